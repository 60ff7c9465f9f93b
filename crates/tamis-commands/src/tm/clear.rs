//! `TM.CLEAR`.

use tamis::{
    AnyFilter, Filter as _, RedisBloom, RedisBloomOptions, RedisCuckoo, RedisCuckooOptions,
};
use tamis_resp::Reply;

use super::reserve::empty;
use crate::run::{Env, Outcome};
use crate::text::{self, tm};
use crate::value::Value;
use crate::words::Words;

/// `TM.CLEAR key`: an empty filter takes the place of the full one. Its memory is not touched yet, which costs
/// less than zeroing what is there.
pub(crate) fn clear(value: &mut Option<Value>, _: Words<'_>, env: &Env<'_>) -> Outcome {
    let cleared = match value {
        None => return tm::NOT_FOUND.into(),
        Some(Value::Bytes(_)) => return text::WRONG_TYPE.into(),
        Some(Value::Arriving(_)) => return text::bf::ARRIVING.into(),
        Some(Value::Bloom(filter)) => {
            filter.emptied().map(|empty| **filter = empty).map_err(tm::because)
        }
        Some(Value::RedisBloom(filter)) => RedisBloom::new(&options_of_bloom(filter))
            .map(|empty| **filter = empty)
            .map_err(tm::because),
        Some(Value::RedisCuckoo(filter)) => RedisCuckoo::new(&options_of_cuckoo(filter))
            .map(|empty| **filter = empty)
            .map_err(tm::because),
        Some(Value::Filter(file)) => {
            let (span, refreshes) = match &file.filter {
                AnyFilter::Window(window) => (Some(window.span()), window.refreshes()),
                _ => (None, false),
            };
            empty(file.filter.plan(), file.filter.hasher(), span, refreshes, env.now_millis)
                .map(|empty| {
                    file.filter = empty;
                    file.added = 0;
                })
                .map_err(tm::because)
        }
    };
    match cleared {
        Ok(()) => Outcome::changed(Reply::ok()),
        Err(reply) => Outcome::unchanged(reply),
    }
}

/// Returns what the filter was made by: its first layer tells.
fn options_of_bloom(filter: &RedisBloom) -> RedisBloomOptions {
    let first = filter.layers().next().expect("a filter has a layer");
    let is_scaling = filter.is_scaling();
    RedisBloomOptions {
        capacity: first.capacity,
        // Of what grows the first layer has half the rate.
        rate: if is_scaling { first.rate * 2.0 } else { first.rate },
        expansion: filter.expansion().unwrap_or(0),
        is_scaling,
    }
}

fn options_of_cuckoo(filter: &RedisCuckoo) -> RedisCuckooOptions {
    RedisCuckooOptions {
        capacity: filter.buckets() * u64::from(filter.bucket_size()),
        bucket_size: filter.bucket_size(),
        max_iterations: filter.max_iterations(),
        expansion: filter.expansion(),
    }
}
