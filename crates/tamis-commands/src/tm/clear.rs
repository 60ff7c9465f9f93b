//! Implements `TM.CLEAR`.

use tamis::AnyFilter;
use tamis_formats::TamisFile;
use tamis_redisbloom::{RedisCuckoo, RedisCuckooOptions};
use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, Outcome, Written, error};
use crate::new_filter::new_filter;
use crate::text::{self, tm};
use crate::value::Value;

/// Runs `TM.CLEAR key`: replaces the filter by a new, empty filter. Allocating the new filter costs
/// less than zeroing the old filter, because the allocation does not write the memory.
pub(crate) fn clear(value: &mut Option<Value>, _: Argv<'_>, env: &Env<'_>) -> Written {
    let value = value.as_mut().ok_or(tm::NOT_FOUND)?;
    match (emptied(value, env.now_millis)?, value) {
        (Value::Filter(empty), Value::Filter(file)) => {
            file.filter = empty.filter;
            file.added = 0;
        }
        (empty, value) => *value = empty,
    }
    Ok(Outcome::changed(Reply::ok()))
}

/// Creates an empty filter with the parameters of another filter: kind, layout, hash function and
/// hash key.
///
/// # Errors
///
/// The error reply, if the value is not a filter, or if there is not enough memory.
pub(super) fn emptied(value: &Value, now_millis: u64) -> Result<Value, Reply> {
    Ok(match value {
        Value::Bytes(_) => return Err(error(text::WRONG_TYPE)),
        Value::PartialLoad(_) => return Err(error(text::bf::INCOMPLETE)),
        Value::Empty(empty) => return emptied(&empty.build(), now_millis),
        Value::Bloom(filter) => Value::Bloom(Box::new(filter.emptied().map_err(tm::because)?)),
        Value::RedisBloom(filter) => {
            let empty = filter.emptied().map_err(|_| error(text::NO_MEMORY_FOR_FILTER))?;
            Value::RedisBloom(Box::new(empty))
        }
        Value::RedisCuckoo(filter) => {
            let empty = RedisCuckoo::new(&options_of_cuckoo(filter)).map_err(tm::because)?;
            Value::RedisCuckoo(Box::new(empty))
        }
        Value::Filter(file) => {
            let (span, refreshes, began_millis) = match &file.filter {
                AnyFilter::Window(window) => {
                    (Some(window.span()), window.refreshes(), window.began_millis())
                }
                _ => (None, false, None),
            };
            // The clock of a window never moves backward.
            let now_millis = now_millis.max(began_millis.unwrap_or(0));
            let (plan, hasher) = (file.filter.plan(), file.filter.hasher());
            let empty =
                new_filter(plan, hasher, span, refreshes, now_millis).map_err(tm::because)?;
            Value::Filter(Box::new(TamisFile::new(empty)))
        }
    })
}

fn options_of_cuckoo(filter: &RedisCuckoo) -> RedisCuckooOptions {
    RedisCuckooOptions {
        capacity: filter.buckets() * u64::from(filter.bucket_size()),
        bucket_size: filter.bucket_size(),
        max_iterations: filter.max_iterations(),
        expansion: filter.expansion(),
    }
}
