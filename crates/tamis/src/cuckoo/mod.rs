//! Cuckoo filters: fingerprints in one of two buckets, which can be removed again.

mod redis;

pub use redis::{RedisCuckoo, RedisCuckooError, RedisCuckooOptions};
