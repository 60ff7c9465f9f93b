//! Filters on a Redis server: a command takes a [URL](crate::filters::redis_url) in the place of a file.
//!
//! `value` reads what is stored under the key, `upload` writes a filter there, `filter` inserts and
//! looks up items on the server, and `discard` deletes what was not completed.

mod discard;
mod filter;
mod upload;
mod value;

pub use discard::{discard, discard_at_interruption};
pub use filter::{RedisTarget, native_excess};
pub use upload::upload;
pub use value::{StoredKind, StoredValue, download, failure, patience, redisson_plan};
