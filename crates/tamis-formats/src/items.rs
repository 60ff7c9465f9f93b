//! Converts a line of text to the bytes that a system hashes.

pub(crate) mod charset;
pub(crate) mod funnel;
pub(crate) mod integer_keys;
pub(crate) mod item_collector;
pub(crate) mod java_type;

pub use charset::Charset;
pub use funnel::Funnel;
