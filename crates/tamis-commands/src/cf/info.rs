//! Implements `CF.INFO` and `CF.DEBUG`.

use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, error};
use crate::text;
use crate::value::Value;

/// Runs `CF.INFO key`.
pub(crate) fn info(value: Option<&Value>, _: Argv<'_>, _: &Env<'_>) -> Reply {
    let filter = match value {
        None => return error(text::NOT_FOUND),
        Some(Value::RedisCuckoo(filter)) => filter,
        Some(_) => return error(text::WRONG_TYPE),
    };
    let fields = [
        ("Size", filter.size_bytes()),
        ("Number of buckets", filter.buckets()),
        ("Number of filters", filter.sub_filters() as u64),
        ("Number of items inserted", filter.len()),
        ("Number of items deleted", filter.removed()),
        ("Bucket size", u64::from(filter.bucket_size())),
        ("Expansion rate", u64::from(filter.expansion())),
        ("Max iterations", u64::from(filter.max_iterations())),
    ];
    let pairs = fields.map(|(name, n)| (Reply::simple(name), Reply::Integer(n as i64)));
    Reply::Map(pairs.into())
}

/// Runs `CF.DEBUG key`.
pub(crate) fn debug(value: Option<&Value>, _: Argv<'_>, _: &Env<'_>) -> Reply {
    match value {
        None => error(text::NOT_FOUND),
        Some(Value::RedisCuckoo(filter)) => Reply::Bulk(
            format!(
                "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} \
                    expansion:{}",
                filter.bucket_size(),
                filter.buckets(),
                filter.len(),
                filter.removed(),
                filter.sub_filters(),
                filter.max_iterations(),
                filter.expansion(),
            )
            .into_bytes(),
        ),
        Some(_) => error(text::WRONG_TYPE),
    }
}
