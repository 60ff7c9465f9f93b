//! Filters that grow with what they hold.

pub(crate) mod redis;

pub use redis::{
    RedisBloom, RedisBloomError, RedisBloomOptions, RedisChunkError, RedisHeaderError,
    RedisHeaderErrorKind, RedisInsertError, RedisLayer,
};
