//! Filters that grow with what they hold.

#[allow(dead_code)]
pub(crate) mod prefixes;
pub(crate) mod redis;

pub use redis::{
    RedisBloom, RedisBloomError, RedisBloomOptions, RedisChunkError, RedisHeaderError,
    RedisHeaderErrorKind, RedisInsertError, RedisLayer,
};
