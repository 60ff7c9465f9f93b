//! Filters on a Redis server. A command takes a [URL](crate::filters::redis_url) instead of a file
//! name.
//!
//! The module `value` reads the value of the key. The module `upload` writes a filter to a new key.
//! The module `filter` inserts and looks up items on the server. The module `discard` deletes an
//! unfinished filter.

mod discard;
mod filter;
mod upload;
mod value;

pub use discard::{discard, discard_at_interruption};
pub use filter::{RedisTarget, native_excess};
pub use upload::upload;
pub use value::{StoredKind, StoredValue, download, failure, patience, redisson_plan};
