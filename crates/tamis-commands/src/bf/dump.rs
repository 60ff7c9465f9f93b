//! Implements `BF.SCANDUMP` and `BF.LOADCHUNK`.

use tamis_redisbloom::{RedisBloom, RedisChunkError};
use tamis_resp::Reply;

use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, bf, tm};
use crate::value::Value;
use crate::value::partial_load::{MAX_CHUNK_BYTES, PartialLoad};
use crate::value::serialization::ImageError;

/// Runs `BF.SCANDUMP key iterator`.
pub(crate) fn scan_dump(value: Option<&Value>, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    let value = match value {
        None => return error(text::NOT_FOUND),
        Some(value @ (Value::RedisBloom(_) | Value::Bloom(_) | Value::Filter(_))) => value,
        Some(Value::PartialLoad(_)) => return error(bf::INCOMPLETE),
        Some(_) => return error(text::WRONG_TYPE),
    };
    let Some(position) = parse_integer(argv[2]) else { return error(bf::POSITION) };
    let bytes = value.longest_reply_bytes().min(MAX_CHUNK_BYTES as u64);
    if let Err(text) = env.check_reply(bytes) {
        return error(text);
    }
    let chunk = match value {
        Value::RedisBloom(filter) if position == 0 => Some((1, filter.header())),
        Value::RedisBloom(filter) => filter.chunk(position),
        value => chunk(value, position),
    };
    let (next, bytes) = chunk.unwrap_or((0, Vec::new()));
    Reply::Array(vec![Reply::Integer(next), Reply::Bulk(bytes)])
}

/// Runs `BF.LOADCHUNK key iterator data`.
pub(crate) fn load_chunk(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let position = parse_integer(argv[2]).ok_or(bf::LOAD_POSITION)?;
    match value {
        None if position == 1 => {
            let max_bytes = env.settings.max_filter_bytes;
            *value = Some(match PartialLoad::from_header(argv[3], max_bytes) {
                Some(part) => Value::PartialLoad(Box::new(part)),
                None => {
                    let filter = RedisBloom::from_header_within(argv[3], max_bytes);
                    Value::RedisBloom(Box::new(filter.map_err(|_| bf::BAD_DATA)?))
                }
            });
        }
        None => return Err(text::NOT_FOUND.into()),
        Some(Value::RedisBloom(filter)) => {
            filter.load_chunk(position, argv[3]).map_err(|error| match error {
                RedisChunkError::Outside => bf::OUTSIDE,
                RedisChunkError::TooLong => bf::TOO_LONG,
                _ => bf::BAD_DATA,
            })?;
        }
        Some(Value::PartialLoad(part)) => {
            part.append(position, argv[3])?;
            if !part.is_complete() {
                return Ok(Outcome::changed(Reply::ok()));
            }
            let refusal = match Value::from_dump(part.bytes(), env.settings.max_filter_bytes) {
                Err(ImageError::Memory) => {
                    part.undo_append(argv[3].len());
                    return Err(text::NO_MEMORY_FOR_FILTER.into());
                }
                Ok(whole) if whole.is_ahead(env.now_millis) => tm::CLOCK_AHEAD,
                Ok(whole) if !matches!(whole, Value::PartialLoad(_)) => {
                    *value = Some(whole);
                    return Ok(Outcome::changed(Reply::ok()));
                }
                // The filter changed during the dump, or a chunk was altered.
                Ok(_) | Err(_) => bf::TORN,
            };
            // Delete the key, because no later chunk can correct the value or its clock.
            *value = None;
            return Ok(Outcome::changed(error(refusal)));
        }
        Some(_) => return Err(text::WRONG_TYPE.into()),
    }
    Ok(Outcome::changed(Reply::ok()))
}

/// Returns the chunk of `BF.SCANDUMP` at a position, and the position of the next chunk. Returns `None` past the end of
/// the dump.
fn chunk(value: &Value, position: i64) -> Option<(i64, Vec<u8>)> {
    if position == 0 {
        return Some((1, PartialLoad::header(value.image_bytes())));
    }
    let start = u64::try_from(position).ok()?.checked_sub(1)?;
    let part = value.image_part(start, MAX_CHUNK_BYTES);
    if part.is_empty() { None } else { Some((position + part.len() as i64, part)) }
}
