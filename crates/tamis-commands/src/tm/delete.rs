//! Implements `TM.DEL` and `TM.COUNT`.

use tamis::Removed;
use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, tm};
use crate::value::Value;

/// Runs `TM.DEL key item [item ...]`.
pub(crate) fn delete(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    let items = &argv[2..];
    let Some(value) = value else {
        return Ok(Outcome::unchanged(Reply::Bools { mask: Vec::new(), len: items.len() }));
    };
    let kind = value.kind_name();
    let removed = match value {
        Value::Bytes(_) => return Err(text::WRONG_TYPE.into()),
        Value::PartialLoad(_) => return Err(text::bf::INCOMPLETE.into()),
        Value::RedisCuckoo(filter) => {
            let removed: Vec<bool> = items.iter().map(|item| filter.remove(*item)).collect();
            let has_changed = removed.contains(&true);
            Some((removed.into_iter().map(Reply::Bool).collect(), has_changed))
        }
        Value::Filter(file) => remove_each(file, items),
        Value::Bloom(_) | Value::RedisBloom(_) | Value::Empty(_) => None,
    };
    let (replies, has_changed) = removed.ok_or_else(|| tm::cannot("delete", kind))?;
    Ok(Outcome::after(Reply::Array(replies), has_changed))
}

/// Deletes each item once, in order. Returns the replies and whether the filter changed; `None` if
/// the filter cannot delete items.
pub(crate) fn remove_each(file: &mut TamisFile, items: &[&[u8]]) -> Option<(Vec<Reply>, bool)> {
    let hasher = file.filter.hasher();
    let mut removed = 0;
    let mut replies = Vec::with_capacity(items.len());
    for item in items {
        replies.push(match file.filter.remove_hash(hasher.hash_item(*item))? {
            Removed::Yes => {
                removed += 1;
                Reply::Bool(true)
            }
            Removed::Absent => Reply::Bool(false),
            Removed::Saturated => error(tm::STUCK),
        });
    }
    file.added = file.added.saturating_sub(removed);
    Some((replies, removed > 0))
}

/// Runs `TM.COUNT key item [item ...]`.
pub(crate) fn count(value: Option<&Value>, argv: Argv<'_>, _: &Env<'_>) -> Reply {
    let items = &argv[2..];
    let counts: Option<Vec<u64>> = match value {
        None => Some(vec![0; items.len()]),
        Some(Value::Bytes(_)) => return error(text::WRONG_TYPE),
        Some(Value::PartialLoad(_)) => return error(text::bf::INCOMPLETE),
        Some(Value::RedisCuckoo(filter)) => {
            Some(items.iter().map(|item| filter.count(*item)).collect())
        }
        Some(Value::Filter(file)) => {
            let hasher = file.filter.hasher();
            let count = |item: &&[u8]| file.filter.count_hash(hasher.hash_item(*item));
            items.iter().map(count).collect()
        }
        Some(Value::Bloom(_) | Value::RedisBloom(_) | Value::Empty(_)) => None,
    };
    match (counts, value) {
        (Some(counts), _) => {
            Reply::Array(counts.into_iter().map(|count| Reply::Integer(count as i64)).collect())
        }
        (None, value) => tm::cannot("count", value.map_or("", Value::kind_name)),
    }
}
