//! Strategies: the rules that map a hash to the bits of an item. Strategies are pure functions and
//! have no storage.

pub(crate) mod block_rules;
mod by_stripe;
pub(crate) mod classic;
pub(crate) mod lanes;
pub(crate) mod modulus;
pub(crate) mod parquet;
mod rule;
pub(crate) mod sizing;
pub(crate) mod split_block;

pub use classic::Classic;
pub use parquet::Parquet;
pub use rule::Strategy;
pub(crate) use rule::for_plan;
pub use split_block::SplitBlock;
