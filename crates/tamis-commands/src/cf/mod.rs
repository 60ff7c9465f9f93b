//! `CF.*`: cuckoo filters, compatible with RedisBloom.

mod dump;
mod info;
mod insert;
mod reserve;

use tamis_resp::Reply;

use crate::argv::Argv;
use crate::run::{Env, Outcome};
use crate::text::{self, cf};
use crate::tm::remove_each;
use crate::value::Value;
pub(crate) use dump::{load_chunk, scan_dump};
pub(crate) use info::{debug, info};
pub(crate) use insert::{add, add_absent, insert, insert_absent};
pub(crate) use reserve::reserve;

/// `CF.COUNT key item`
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

/// `CF.DEL key item`
pub(crate) fn delete(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Outcome {
    match value {
        Some(Value::RedisCuckoo(filter)) => {
            let is_removed = filter.remove(argv[2]);
            Outcome::after(Reply::Bool(is_removed), is_removed)
        }
        Some(Value::Filter(file)) => match remove_each(file, &argv[2..3]) {
            Some((mut replies, has_changed)) => {
                Outcome::after(replies.pop().expect("one item"), has_changed)
            }
            None => text::WRONG_TYPE.into(),
        },
        _ => cf::NOT_FOUND.into(),
    }
}

/// `CF.COMPACT key`
pub(crate) fn compact(value: &mut Option<Value>, _: Argv<'_>, _: &Env<'_>) -> Outcome {
    match value {
        Some(Value::RedisCuckoo(filter)) => {
            filter.compact();
            Outcome::changed(Reply::ok())
        }
        _ => cf::COMPACT_NOT_FOUND.into(),
    }
}
