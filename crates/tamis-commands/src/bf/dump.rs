//! `BF.SCANDUMP` and `BF.LOADCHUNK`.

use tamis::{RedisBloom, RedisChunkError};
use tamis_resp::Reply;

use crate::run::{Env, Outcome, error};
use crate::text::{self, bf};
use crate::value::Value;
use crate::words::{Words, parse_integer};

/// `BF.SCANDUMP key iterator`
pub(crate) fn scan_dump(value: Option<&Value>, words: Words<'_>, _: &Env<'_>) -> Reply {
    let filter = match value {
        None => return error(text::NOT_FOUND),
        Some(Value::RedisBloom(filter)) => filter,
        Some(_) => return error(text::WRONG_TYPE),
    };
    let Some(position) = parse_integer(words[2]) else { return error(bf::POSITION) };
    let (next, bytes) = match position {
        0 => (1, filter.header()),
        _ => filter.chunk(position).unwrap_or((0, Vec::new())),
    };
    Reply::Array(vec![Reply::Integer(next), Reply::Bulk(bytes)])
}

/// `BF.LOADCHUNK key iterator data`
pub(crate) fn load_chunk(value: &mut Option<Value>, words: Words<'_>, _: &Env<'_>) -> Outcome {
    let Some(position) = parse_integer(words[2]) else { return bf::LOAD_POSITION.into() };
    match value {
        None if position == 1 => match RedisBloom::from_header(words[3]) {
            Ok(filter) => {
                *value = Some(Value::RedisBloom(Box::new(filter)));
                Outcome::changed(Reply::ok())
            }
            Err(_) => bf::BAD_DATA.into(),
        },
        None => text::NOT_FOUND.into(),
        Some(Value::RedisBloom(filter)) => match filter.load_chunk(position, words[3]) {
            Ok(()) => Outcome::changed(Reply::ok()),
            Err(RedisChunkError::Outside) => bf::OUTSIDE.into(),
            Err(RedisChunkError::TooLong) => bf::TOO_LONG.into(),
            Err(_) => bf::BAD_DATA.into(),
        },
        Some(_) => text::WRONG_TYPE.into(),
    }
}
