//! Implements `CF.ADD`, `CF.ADDNX`, `CF.INSERT` and `CF.INSERTNX`.

use tamis_redisbloom::{RedisCuckoo, RedisInsertError};
use tamis_resp::{Protocol, Reply};

use crate::cf::reserve::{build, default_options};
use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Change, Env, Outcome, Written, error};
use crate::text::{self, Text, cf};
use crate::value::Value;

/// Runs `CF.ADD key item`.
pub(crate) fn add(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    add_one(value, argv[2], env, |filter, item| filter.insert(item).map(|()| true))
}

/// Runs `CF.ADDNX key item`.
pub(crate) fn add_absent(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    add_one(value, argv[2], env, RedisCuckoo::insert_absent)
}

fn add_one(
    value: &mut Option<Value>,
    item: &[u8],
    env: &Env<'_>,
    insert: fn(&mut RedisCuckoo, &[u8]) -> Result<bool, RedisInsertError>,
) -> Written {
    let created = create(value, env, None)?;
    let text = match filter_of(value, env).map(|filter| insert(filter, item)) {
        Ok(Ok(is_new)) => {
            let outcome = Outcome::after(Reply::Bool(is_new), is_new);
            return Ok(Outcome { created, ..outcome });
        }
        Ok(Err(RedisInsertError::Memory(_))) => cf::NO_MEMORY,
        Ok(Err(RedisInsertError::OverLimit { .. })) => text::server::MEMORY,
        Ok(Err(_)) => cf::FULL,
        Err(text) => text,
    };
    Ok(Outcome { created, ..Outcome::unchanged(error(text)) })
}

/// Runs `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item [item ...]`.
pub(crate) fn insert(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let args = parse(argv, env)?.ok_or_else(|| text::wrong_arity("cf.insert"))?;
    insert_items(value, &args, env, |filter, item| match filter.insert(item) {
        Ok(()) => Reply::Bool(true),
        Err(_) if env.protocol == Protocol::Resp3 => Reply::Bool(false),
        Err(_) => Reply::Integer(-1),
    })
}

/// Runs `CF.INSERTNX key [CAPACITY n] [NOCREATE] ITEMS item [item ...]`.
pub(crate) fn insert_absent(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let args = parse(argv, env)?.ok_or_else(|| text::wrong_arity("cf.insertnx"))?;
    // The reply contains integers in both protocols.
    insert_items(value, &args, env, |filter, item| {
        Reply::Integer(filter.insert_absent(item).map_or(-1, i64::from))
    })
}

struct InsertArgs<'w> {
    key: &'w [u8],
    capacity: Option<u64>,
    is_nocreate: bool,
    items: Argv<'w>,
}

/// Parses the arguments. As in RedisBloom, the first letters identify an option. Returns `None` if
/// arguments are missing.
fn parse<'w>(argv: Argv<'w>, env: &Env<'_>) -> Result<Option<InsertArgs<'w>>, Text> {
    let (mut capacity, mut is_nocreate) = (None, false);
    let mut at = 2;
    while let Some(word) = argv.get(at) {
        match word.first().map(u8::to_ascii_lowercase) {
            Some(b'i') => {
                let items = &argv[at + 1..];
                let args = InsertArgs { key: argv[1], capacity, is_nocreate, items };
                return Ok((!items.is_empty()).then_some(args));
            }
            Some(b'n') => is_nocreate = true,
            Some(b'c') => {
                at += 1;
                let Some(word) = argv.get(at) else { return Ok(None) };
                let number = parse_integer(word).ok_or(cf::BAD_CAPACITY)?;
                let least = 2 * i64::from(env.settings.cf_bucket_size);
                if !(least..=env.settings.limits.capacity).contains(&number) {
                    return Err(cf::INSERT_CAPACITY_RANGE);
                }
                capacity = Some(number as u64);
            }
            _ => return Err(cf::UNKNOWN_ARGUMENT),
        }
        at += 1;
    }
    Ok(None)
}

fn insert_items(
    value: &mut Option<Value>,
    args: &InsertArgs<'_>,
    env: &Env<'_>,
    insert: impl Fn(&mut RedisCuckoo, &[u8]) -> Reply,
) -> Written {
    if value.is_none() && args.is_nocreate {
        return Err(text::NOT_FOUND.into());
    }
    let created = create(value, env, args.capacity)?;
    let outcome = match filter_of(value, env) {
        Ok(filter) => {
            let replies: Vec<Reply> = args.items.iter().map(|item| insert(filter, item)).collect();
            let answered = args.items.iter().zip(&replies);
            let is_accepted = |reply| matches!(reply, &Reply::Bool(true) | &Reply::Integer(1));
            let accepted = answered.filter(|(_, reply)| is_accepted(*reply));
            let accepted: Vec<&[u8]> = accepted.map(|(item, _)| *item).collect();
            // Log the command without `NX`, because each item in the log was inserted.
            let start: [&[u8]; 4] = [b"CF.INSERT", args.key, b"NOCREATE", b"ITEMS"];
            let change = Change::accepted(&start, &accepted);
            Outcome { change, ..Outcome::unchanged(Reply::Array(replies)) }
        }
        Err(text) => Outcome::unchanged(error(text)),
    };
    Ok(Outcome { created, ..outcome })
}

/// Creates the filter of a key that does not exist. Returns the image of the filter.
fn create(
    value: &mut Option<Value>,
    env: &Env<'_>,
    capacity: Option<u64>,
) -> Result<Option<Vec<u8>>, Text> {
    if value.is_some() {
        return Ok(None);
    }
    let mut options = default_options(env.settings);
    options.capacity = capacity.unwrap_or(options.capacity);
    Ok(Some(value.insert(build(options, env.settings)?).new_image()))
}

/// Returns the filter of a key, or an error if the filter must not grow further.
fn filter_of<'v>(value: &'v mut Option<Value>, env: &Env<'_>) -> Result<&'v mut RedisCuckoo, Text> {
    match value {
        Some(Value::RedisCuckoo(filter)) => {
            if filter.sub_filters() >= env.settings.cf_max_expansions as usize {
                return Err(cf::MAX_EXPANSIONS);
            }
            Ok(filter)
        }
        _ => Err(text::WRONG_TYPE),
    }
}
