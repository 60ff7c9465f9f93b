//! `BF.ADD`, `BF.MADD`, `BF.INSERT`.

use tamis::{Answers, RedisInsertError};
use tamis_resp::Reply;

use super::reserve::{Options, parse_rate};
use crate::argv::{Argv, parse_integer};
use crate::run::{Change, Env, Outcome};
use crate::scalable_bloom::ExpandError;
use crate::settings::{MAX_CAPACITY, MAX_EXPANSION};
use crate::text::{self, Text, bf};
use crate::tm::insert_filter;
use crate::value::Value;

/// `BF.ADD key item`
pub(crate) fn add(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    add_each(value, argv, env).of_one()
}

/// `BF.MADD key item [item ...]`
pub(crate) fn add_each(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    let (value, created) = match value {
        Some(value) => (value, None),
        None => match Options::unasked(env.settings).build(env.settings, false) {
            Ok(made) => create(value, made),
            Err(text) => return text.into(),
        },
    };
    Outcome { created, ..insert_items(argv[1], value, &argv[2..], env) }
}

/// Sets the first value of a key; returns the value and its image.
fn create(value: &mut Option<Value>, made: Value) -> (&mut Value, Option<Vec<u8>>) {
    let image = made.new_image();
    (value.insert(made), Some(image))
}

/// `BF.INSERT key [CAPACITY n] [ERROR e] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS item [item ...]`
pub(crate) fn insert(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    let asked = match parse(argv, Options::unasked(env.settings)) {
        Ok(Some(asked)) => asked,
        Ok(None) => return Outcome::unchanged(text::wrong_arity("bf.insert")),
        Err(text) => return text.into(),
    };
    let (value, created) = match value {
        Some(value) => (value, None),
        None if asked.is_nocreate => return text::NOT_FOUND.into(),
        None => match asked.options.build(env.settings, asked.is_reserved) {
            Ok(made) => create(value, made),
            Err(text) => return text.into(),
        },
    };
    Outcome { created, ..insert_items(argv[1], value, asked.items, env) }
}

struct Asked<'w> {
    options: Options,
    /// True if the command gives a capacity.
    is_reserved: bool,
    is_nocreate: bool,
    items: Argv<'w>,
}

/// Returns the index of the first item of an insert with options, which follows `ITEMS`. Options
/// are recognized by their first letters, and their values are numbers.
pub(crate) fn items_start(argv: Argv<'_>) -> Option<usize> {
    let is_items = |word: &&[u8]| word.first().is_some_and(|c| c.eq_ignore_ascii_case(&b'i'));
    Some(argv.iter().skip(2).position(is_items)? + 3)
}

/// Parses the arguments by their first letters, as RedisBloom does; `None` if arguments are
/// missing.
fn parse<'w>(argv: Argv<'w>, mut options: Options) -> Result<Option<Asked<'w>>, Text> {
    let (mut is_reserved, mut is_nocreate) = (false, false);
    let mut at = 2;
    while let Some(word) = argv.get(at) {
        let letter = |i: usize| word.get(i).map(u8::to_ascii_lowercase);
        let value = argv.get(at + 1);
        match letter(0) {
            Some(b'i') => {
                let items = &argv[at + 1..];
                let asked = Asked { options, is_reserved, is_nocreate, items };
                return Ok((!items.is_empty()).then_some(asked));
            }
            Some(b'n') => {
                if letter(2) == Some(b'c') {
                    is_nocreate = true;
                } else {
                    options.is_scaling = false;
                }
                at += 1;
                continue;
            }
            Some(b'c' | b'e') if value.is_none() => return Ok(None),
            Some(b'c') => {
                let capacity = value.and_then(|word| parse_integer(word));
                let capacity = capacity.filter(|n| (1..=MAX_CAPACITY).contains(n));
                options.capacity = capacity.ok_or(bf::INSERT_CAPACITY)? as u64;
                is_reserved = true;
            }
            Some(b'e') if letter(1) == Some(b'r') => {
                let rate = value.and_then(|word| parse_rate(word).ok().flatten());
                options.rate = rate.ok_or(bf::INSERT_RATE)?;
            }
            Some(b'e') => {
                let expansion = value.and_then(|word| parse_integer(word));
                let expansion = expansion.filter(|n| (0..=MAX_EXPANSION).contains(n));
                options.expansion = expansion.ok_or(bf::INSERT_EXPANSION)? as u32;
                options.is_scaling &= options.expansion != 0;
            }
            _ => return Err(bf::UNKNOWN_ARGUMENT),
        }
        at += 2;
    }
    Ok(None)
}

/// Inserts items in order. Stops at the first item that does not fit a filter that may not grow.
pub(crate) fn insert_items(
    key: &[u8],
    value: &mut Value,
    items: &[&[u8]],
    env: &Env<'_>,
) -> Outcome {
    match value {
        Value::Bloom(filter) => {
            let mut answers = Answers::new();
            let inserted = filter.insert_each(items, &mut answers);
            let stops = matches!(inserted, Err((_, ExpandError::Full)));
            let hasher = filter.hasher();
            let mut hashes: Vec<u64> = answers.ones().map(|i| hasher.hash(items[i])).collect();
            let reply = match inserted {
                Ok(_) => Reply::Bools { mask: answers.words().to_vec(), len: items.len() },
                Err((done, error)) => {
                    let mut replies: Vec<Reply> =
                        answers.iter().take(done).map(Reply::Bool).collect();
                    if error == ExpandError::Full {
                        replies.push(Reply::error(bf::FULL));
                    } else {
                        // Later items may already be in the filter, or may fit.
                        replies.extend(items[done..].iter().map(|item| {
                            let hash = hasher.hash(item);
                            filter.insert_hash(hash).map_or_else(
                                |_| Reply::error(bf::NOT_INSERTED),
                                |is_new| {
                                    hashes.extend(is_new.then_some(hash));
                                    Reply::Bool(is_new)
                                },
                            )
                        }));
                    }
                    Reply::Array(replies)
                }
            };
            let change = if hashes.is_empty() { Change::None } else { Change::Inserted(hashes) };
            Outcome { change, stops, ..Outcome::unchanged(reply) }
        }
        Value::Filter(file) => insert_filter(file, items, env, bf::FULL),
        Value::RedisBloom(filter) => {
            let mut replies = Vec::with_capacity(items.len());
            let mut stops = false;
            filter.insert_each(items, |inserted| {
                stops = matches!(inserted, Err(RedisInsertError::Full { .. }));
                replies.push(match inserted {
                    Ok(is_new) => Reply::Bool(is_new),
                    Err(RedisInsertError::Full { .. }) => Reply::error(bf::FULL),
                    Err(RedisInsertError::OverLimit { .. }) => Reply::error(text::server::MEMORY),
                    Err(_) => Reply::error(bf::NOT_INSERTED),
                });
                !stops
            });
            let answered = items.iter().zip(&replies);
            let accepted = answered.filter(|(_, reply)| **reply == Reply::Bool(true));
            let accepted: Vec<&[u8]> = accepted.map(|(item, _)| *item).collect();
            let outcome = Outcome::accepted(Reply::Array(replies), &[b"BF.MADD", key], &accepted);
            Outcome { stops, ..outcome }
        }
        Value::Empty(_) => {
            value.build();
            insert_items(key, value, items, env)
        }
        Value::PartialLoad(_) => bf::ARRIVING.into(),
        Value::RedisCuckoo(_) | Value::Bytes(_) => text::WRONG_TYPE.into(),
    }
}
