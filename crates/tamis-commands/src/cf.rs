//! Implements `CF.*`, the commands for cuckoo filters, compatible with RedisBloom.

mod dump;
mod info;
mod insert;
mod reserve;

use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, Outcome, Written};
use crate::text::{self, cf};
use crate::tm::remove_each;
use crate::value::Value;
pub(crate) use dump::{load_chunk, scan_dump};
pub(crate) use info::{debug, info};
pub(crate) use insert::{add, add_absent, insert, insert_absent};
pub(crate) use reserve::reserve;

/// Runs `CF.COUNT key item`.
pub(crate) fn count(value: Option<&Value>, argv: Argv<'_>, _: &Env<'_>) -> Reply {
    match value {
        Some(Value::RedisCuckoo(filter)) => Reply::Integer(filter.count(argv[2]) as i64),
        Some(Value::Filter(file)) => {
            let count = file.filter.count_hash(file.filter.hasher().hash_item(argv[2]));
            Reply::Integer(count.unwrap_or(0) as i64)
        }
        _ => Reply::Integer(0),
    }
}

/// Runs `CF.DEL key item`.
pub(crate) fn delete(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    match value {
        Some(Value::RedisCuckoo(filter)) => {
            let is_removed = filter.remove(argv[2]);
            Ok(Outcome::after(Reply::Bool(is_removed), is_removed))
        }
        Some(Value::Filter(file)) => {
            let removed = remove_each(file, &argv[2..3]);
            let (mut replies, has_changed) = removed.ok_or(text::WRONG_TYPE)?;
            Ok(Outcome::after(replies.pop().expect("one item"), has_changed))
        }
        _ => Err(cf::NOT_FOUND.into()),
    }
}

/// Runs `CF.COMPACT key`.
pub(crate) fn compact(value: &mut Option<Value>, _: Argv<'_>, _: &Env<'_>) -> Written {
    let Some(Value::RedisCuckoo(filter)) = value else {
        return Err(cf::COMPACT_NOT_FOUND.into());
    };
    filter.compact();
    Ok(Outcome::changed(Reply::ok()))
}
