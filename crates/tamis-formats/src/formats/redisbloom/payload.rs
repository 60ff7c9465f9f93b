//! Decodes a filter of RedisBloom from the payload that `DUMP` returns.

use crate::errors::{DecodeError, DecodeErrorKind};
use crate::filters::Contents;
use crate::redis::payload::{PayloadError, RedisValue};
use crate::redis::rdb_encoding::MAX_EXPANSION;

/// Tests whether the bytes start like the result of `DUMP` for a filter of a Tamis server.
pub(super) fn is_of_tamis(bytes: &[u8]) -> bool {
    bytes.split_first().is_some_and(|(&kind, value)| RedisValue::is_of_tamis(kind, value))
}

/// Decodes the result of `DUMP`. Accepts the trailing line feed of `redis-cli`. The checksum shows whether a trailing
/// line feed is a part of the payload.
pub(super) fn value(bytes: &[u8]) -> Result<RedisValue, PayloadError> {
    let max_bytes = MAX_EXPANSION * bytes.len() as u64;
    match (RedisValue::from_payload(bytes, max_bytes), bytes.split_last()) {
        (Err(PayloadError::Checksum), Some((b'\n', rest))) => {
            RedisValue::from_payload(rest, max_bytes)
        }
        (read, _) => read,
    }
}

/// Decodes a filter of RedisBloom from the result of `DUMP`.
pub(super) fn decode_payload(bytes: &[u8]) -> Result<Contents, DecodeError> {
    let error = DecodeError::new;
    let refused = |why: &str| DecodeError::refused("value", 0, why);
    match value(bytes) {
        Ok(value) => of_value(value, |why| refused(&format!("this is {why}"))),
        Err(PayloadError::Checksum) => {
            Err(error("checksum", bytes.len().saturating_sub(8), DecodeErrorKind::Checksum))
        }
        Err(other) => Err(refused(&other.to_string())),
    }
}

pub(super) fn of_value(
    value: RedisValue,
    refused: impl FnOnce(&str) -> DecodeError,
) -> Result<Contents, DecodeError> {
    Err(refused(match value {
        RedisValue::Bloom(filter) => return Ok(Contents::new(filter)),
        RedisValue::Cuckoo(filter) => return Ok(Contents::new(filter)),
        RedisValue::String(_) => {
            "a string, not a filter of RedisBloom: bitmaps are read as redis-bitmap, redis-bitmaps \
            or redisson"
        }
        RedisValue::Tamis(_) => {
            "a filter in a layout that only `tamis serve` reads: RESTORE it there, or create \
            filters for Redis with `bf-layout redisbloom`"
        }
    }))
}
