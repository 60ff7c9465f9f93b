//! `BF.SCANDUMP` and `BF.LOADCHUNK`.

use tamis_redisbloom::{RedisBloom, RedisChunkError};
use tamis_resp::Reply;

use crate::argv::{Argv, parse_integer};
use crate::partial_load::{JoinError, MAX_CHUNK_BYTES, PartialLoad, chunk};
use crate::run::{Env, Outcome, error};
use crate::text::{self, bf, tm};
use crate::value::Value;

/// `BF.SCANDUMP key iterator`
pub(crate) fn scan_dump(value: Option<&Value>, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    let value = match value {
        None => return error(text::NOT_FOUND),
        Some(value @ (Value::RedisBloom(_) | Value::Bloom(_) | Value::Filter(_))) => value,
        Some(Value::PartialLoad(_)) => return error(bf::ARRIVING),
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

/// `BF.LOADCHUNK key iterator data`
pub(crate) fn load_chunk(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    let Some(position) = parse_integer(argv[2]) else { return bf::LOAD_POSITION.into() };
    match value {
        None if position == 1 => {
            let max_bytes = env.settings.max_filter_bytes;
            let arriving = PartialLoad::from_header(argv[3], max_bytes);
            let begun = match arriving {
                Some(arriving) => Some(Value::PartialLoad(Box::new(arriving))),
                None => RedisBloom::from_header_within(argv[3], max_bytes)
                    .ok()
                    .map(|filter| Value::RedisBloom(Box::new(filter))),
            };
            match begun {
                Some(begun) => {
                    *value = Some(begun);
                    Outcome::changed(Reply::ok())
                }
                None => bf::BAD_DATA.into(),
            }
        }
        None => text::NOT_FOUND.into(),
        Some(Value::RedisBloom(filter)) => match filter.load_chunk(position, argv[3]) {
            Ok(()) => Outcome::changed(Reply::ok()),
            Err(RedisChunkError::Outside) => bf::OUTSIDE.into(),
            Err(RedisChunkError::TooLong) => bf::TOO_LONG.into(),
            Err(_) => bf::BAD_DATA.into(),
        },
        Some(Value::PartialLoad(arriving)) => {
            match arriving.join(position, argv[3], env.now_millis) {
                Ok(None) => Outcome::changed(Reply::ok()),
                Ok(whole) => {
                    *value = whole;
                    Outcome::changed(Reply::ok())
                }
                Err(JoinError::Gap) => bf::GAP.into(),
                Err(JoinError::Memory) => text::NO_MEMORY_FOR_FILTER.into(),
                Err(JoinError::Ahead) => {
                    // Delete the key: no further chunk could set the clock back.
                    *value = None;
                    Outcome::changed(error(tm::CLOCK_AHEAD))
                }
                Err(JoinError::Value) => {
                    // Delete the key: no further chunk could repair the value.
                    *value = None;
                    Outcome::changed(error(bf::TORN))
                }
            }
        }
        Some(_) => text::WRONG_TYPE.into(),
    }
}
