//! Bloom filters: one type for every strategy and every storage.

mod build;
mod builder;
pub(crate) mod counting;
mod filter;
mod shared_bloom;
mod union;

pub use builder::BloomBuilder;
pub use counting::Counting;
pub use filter::{Bloom, BloomFilter, ClassicBloom, ParquetBloom};
pub use shared_bloom::SharedBloom;
