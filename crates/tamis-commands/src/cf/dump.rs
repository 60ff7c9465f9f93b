//! `CF.SCANDUMP` and `CF.LOADCHUNK`.

use tamis::RedisCuckoo;
use tamis_resp::Reply;

use crate::run::{Env, Outcome, error};
use crate::text::{self, cf};
use crate::value::Value;
use crate::words::{Words, parse_integer};

/// Bytes of a header.
const HEADER_BYTES: usize = 38;

/// `CF.SCANDUMP key position`
pub(crate) fn scan_dump(value: Option<&Value>, words: Words<'_>, _: &Env<'_>) -> Reply {
    let Some(position) = parse_integer(words[2]).filter(|&n| n >= 0) else {
        return error(cf::POSITION);
    };
    let filter = match value {
        None => return error(text::NOT_FOUND),
        Some(Value::RedisCuckoo(filter)) => filter,
        Some(_) => return error(text::WRONG_TYPE),
    };
    let chunk = match position {
        _ if filter.items() == 0 => None,
        0 => Some((1, filter.header().to_vec())),
        _ => filter.chunk(position),
    };
    let (next, bytes) = match chunk {
        Some((next, bytes)) => (next, Reply::Bulk(bytes)),
        None => (0, Reply::Null),
    };
    Reply::Array(vec![Reply::Integer(next), bytes])
}

/// `CF.LOADCHUNK key position data`
pub(crate) fn load_chunk(value: &mut Option<Value>, words: Words<'_>, _: &Env<'_>) -> Outcome {
    let Some(position) = parse_integer(words[2]).filter(|&n| n != 0) else {
        return cf::POSITION.into();
    };
    let data = words[3];
    match value {
        Some(Value::RedisCuckoo(_)) if position == 1 => text::ITEM_EXISTS.into(),
        Some(Value::RedisCuckoo(filter)) => match filter.load_chunk(position, data) {
            Ok(()) => Outcome::changed(Reply::ok()),
            Err(_) => cf::BAD_CHUNK.into(),
        },
        Some(_) => text::WRONG_TYPE.into(),
        None if position != 1 => text::NOT_FOUND.into(),
        None if data.len() != HEADER_BYTES => cf::HEADER.into(),
        None => match RedisCuckoo::from_header(data) {
            Ok(filter) => {
                *value = Some(Value::RedisCuckoo(Box::new(filter)));
                Outcome::changed(Reply::ok())
            }
            Err(_) => cf::BAD_HEADER.into(),
        },
    }
}
