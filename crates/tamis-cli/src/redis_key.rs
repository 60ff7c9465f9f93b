//! Filters on a Redis server: a command takes a [URL](crate::redis_url) in the place of a file.
//!
//! `value` reads and writes what is stored under the key, and `filter` adds and looks up items there.

mod filter;
mod value;

pub use filter::{RedisTarget, native_excess};
pub use value::{StoredKind, StoredValue, download, failure, patience, redisson_plan, upload};
