//! Implements `BF.*`, the commands for Bloom filters, compatible with RedisBloom.

mod dump;
mod info;
mod insert;
pub(crate) mod reserve;

use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, error};
use crate::filter_info::utilization::items_of;
use crate::text;
use crate::value::Value;
pub(crate) use dump::{load_chunk, scan_dump};
pub(crate) use info::{debug, info};
pub(crate) use insert::{insert, items_start};
pub(crate) use reserve::reserve;

/// Runs `BF.CARD key`.
pub(crate) fn card(value: Option<&Value>, _: Argv<'_>, env: &Env<'_>) -> Reply {
    match value {
        None => Reply::Integer(0),
        Some(Value::Bloom(filter)) => Reply::Integer(filter.items() as i64),
        Some(Value::RedisBloom(filter)) => Reply::Integer(filter.len() as i64),
        Some(Value::Filter(file)) => Reply::Integer(items_of(file, env.now_millis) as i64),
        Some(Value::PartialLoad(_)) => error(text::bf::INCOMPLETE),
        Some(_) => error(text::WRONG_TYPE),
    }
}
