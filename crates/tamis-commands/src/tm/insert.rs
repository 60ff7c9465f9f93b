//! `TM.ADD`, `TM.MADD`.

use tamis::{Answers, InsertError, NoRoom};
use tamis_formats::TamisFile;
use tamis_redisbloom::{RedisCuckoo, RedisInsertError};
use tamis_resp::Reply;

use crate::argv::Argv;
use crate::bf;
use crate::run::{Env, Outcome, error};
use crate::text::{self, Text, tm};
use crate::value::Value;

/// `TM.ADD key item`
pub(crate) fn add(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    add_each(value, argv, env).of_one()
}

/// `TM.MADD key item [item ...]`
pub(crate) fn add_each(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    let items = &argv[2..];
    match value {
        None => tm::NOT_FOUND.into(),
        Some(Value::Filter(file)) => insert_filter(file, items, env, tm::FULL),
        Some(Value::RedisCuckoo(filter)) => insert_redis_cuckoo(argv[1], filter, items, env),
        Some(value) => bf::insert_items(argv[1], value, items, env),
    }
}

/// Inserts items in order, up to the first item that does not fit a full filter; `full` is the
/// error of that item. An item whose place is full of other items gets an error, and the insert
/// continues after it.
pub(crate) fn insert_filter(
    file: &mut TamisFile,
    items: &[&[u8]],
    env: &Env<'_>,
    full: Text,
) -> Outcome {
    file.filter.advance(env.now_millis);
    let mut answers = Answers::new();
    let done = file.filter.try_insert_each(items, &mut answers);
    let taken = done.map_or_else(|error| error.inserted, |()| items.len());
    let mut inserted = taken;
    let (reply, stops) = match done {
        Ok(()) => (Reply::Bools { mask: answers.words().to_vec(), len: items.len() }, false),
        Err(why) => {
            let mut replies = answers.iter().take(taken).map(Reply::Bool).collect();
            let stop =
                insert_rest(file, &items[taken..], why.reason, full, &mut replies, &mut inserted);
            replies.extend(stop.map(error));
            (Reply::Array(replies), stop.is_some())
        }
    };
    file.added = file.added.saturating_add(inserted as u64);
    Outcome { stops, ..Outcome::after(reply, inserted > 0) }
}

/// Continues at an item that was rejected. Appends the replies to `replies`, and adds the number of
/// inserted items to `inserted`. Returns the error at which it stopped, if any.
///
/// Hashes each item once, even if items are rejected.
fn insert_rest(
    file: &mut TamisFile,
    items: &[&[u8]],
    mut why: NoRoom,
    full: Text,
    replies: &mut Vec<Reply>,
    inserted: &mut usize,
) -> Option<Text> {
    let hasher = file.filter.hasher();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            match file.filter.try_insert_hash(hasher.hash_item(*item)) {
                Ok(is_new) => {
                    replies.push(Reply::Bool(is_new));
                    *inserted += 1;
                    continue;
                }
                Err(InsertError { reason, .. }) => why = reason,
            }
        }
        match why {
            NoRoom::Crowded => replies.push(error(tm::CROWDED)),
            NoRoom::Memory(_) => return Some(tm::NO_MEMORY),
            _ => return Some(full),
        }
    }
    None
}

/// Inserts each item again even if it is present, as Tamis' own cuckoo filters do.
fn insert_redis_cuckoo(
    key: &[u8],
    filter: &mut RedisCuckoo,
    items: &[&[u8]],
    env: &Env<'_>,
) -> Outcome {
    let mut answers = Vec::with_capacity(items.len());
    let mut failed = None;
    for item in items {
        if filter.sub_filters() >= env.settings.cf_max_expansions as usize {
            failed = Some(tm::FULL);
            break;
        }
        let is_new = !filter.contains(*item);
        match filter.insert(*item) {
            Ok(()) => answers.push(Reply::Bool(is_new)),
            Err(RedisInsertError::Memory(_)) => failed = Some(tm::NO_MEMORY),
            Err(RedisInsertError::OverLimit { .. }) => failed = Some(text::server::MEMORY),
            Err(_) => failed = Some(tm::FULL),
        }
        if failed.is_some() {
            break;
        }
    }
    let accepted = &items[..answers.len()];
    answers.extend(failed.map(error));
    let outcome = Outcome::accepted(Reply::Array(answers), &[b"TM.MADD", key], accepted);
    Outcome { stops: failed.is_some(), ..outcome }
}
