//! `TYPE` and the string commands. Tools check a server with `GET`, `SET`, `INCR` and similar
//! commands. Clients use the range commands for Bloom filters over bitmaps.

use tamis_resp::Reply;

use crate::argv::{Argv, is, parse_integer};
use crate::bitmap::{is_backwards, places};
use crate::run::{Env, Expiry, Outcome, error};
use crate::sparse_bytes::SparseBytes;
use crate::text;
use crate::value::{Value, bytes, bytes_or_new};

/// The longest string that a command writes, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// `GET key`
pub fn get(value: Option<&Value>, _: Argv<'_>, env: &Env<'_>) -> Reply {
    bytes(value).and_then(|bytes| whole(bytes, env)).unwrap_or_else(error)
}

/// Replies with a whole string, which may be far longer than its memory.
fn whole(bytes: Option<&SparseBytes>, env: &Env<'_>) -> Result<Reply, text::Text> {
    let Some(bytes) = bytes else { return Ok(Reply::Null) };
    env.check_reply(bytes.len() as u64)?;
    Ok(Reply::Bulk(bytes.to_vec(0..bytes.len())))
}

/// `GETRANGE key start end`
pub(crate) fn get_range(value: Option<&Value>, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    let (Some(start), Some(end)) = (parse_integer(argv[2]), parse_integer(argv[3])) else {
        return error(text::NO_INTEGER);
    };
    let part = |bytes: &SparseBytes| {
        let places = places(start, end, bytes.len() as u64).filter(|_| !is_backwards(start, end));
        let Some(places) = places else { return Ok(Vec::new()) };
        env.check_reply(places.end - places.start)?;
        Ok(bytes.to_vec(places.start as usize..places.end as usize))
    };
    let part = bytes(value).and_then(|bytes| bytes.map(part).transpose());
    part.map_or_else(error, |part| Reply::Bulk(part.unwrap_or_default()))
}

/// `SETRANGE key offset value`
pub(crate) fn set_range(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Outcome {
    let Some(offset) = parse_integer(argv[2]) else { return text::NO_INTEGER.into() };
    let Ok(offset) = u64::try_from(offset) else { return text::bitmap::OFFSET.into() };
    let part = argv[3];
    let len = match bytes(value.as_ref()) {
        Ok(bytes) => bytes.map_or(0, SparseBytes::len),
        Err(text) => return text.into(),
    };
    if part.is_empty() {
        return Outcome::unchanged(Reply::Integer(len as i64));
    }
    if offset.saturating_add(part.len() as u64) > MAX_BYTES {
        return text::bitmap::TOO_LONG.into();
    }
    let bytes = bytes_or_new(value).expect("its type was seen");
    bytes.write(offset as usize, part);
    Outcome::changed(Reply::Integer(bytes.len() as i64))
}

/// `STRLEN key`
pub(crate) fn len(value: Option<&Value>, _: Argv<'_>, _: &Env<'_>) -> Reply {
    match bytes(value) {
        Ok(bytes) => Reply::Integer(bytes.map_or(0, SparseBytes::len) as i64),
        Err(text) => error(text),
    }
}

/// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]`
pub fn set(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    let SetOptions { exists, gets, expiry } = match set_options(&argv[3..], env.now_millis) {
        Ok(options) => options,
        Err(text) => return text.into(),
    };
    let before = match gets {
        true => bytes(value.as_ref()).and_then(|bytes| whole(bytes, env)),
        false => Ok(Reply::Null),
    };
    let before = match before {
        Ok(before) => before,
        Err(text) => return text.into(),
    };
    if exists.is_some_and(|exists| exists != value.is_some()) {
        return Outcome::unchanged(before);
    }
    *value = Some(Value::Bytes(argv[2].to_vec().into()));
    let reply = if gets { before } else { Reply::ok() };
    Outcome { expiry, ..Outcome::changed(reply) }
}

/// `SETNX key value`
pub(crate) fn set_absent(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Outcome {
    if value.is_some() {
        return Outcome::unchanged(Reply::Integer(0));
    }
    *value = Some(Value::Bytes(argv[2].to_vec().into()));
    Outcome { expiry: Expiry::Never, ..Outcome::changed(Reply::Integer(1)) }
}

/// `SETEX key seconds value`
pub(crate) fn set_seconds(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    set_for(value, argv, b"EX", "setex", env)
}

/// `PSETEX key milliseconds value`
pub(crate) fn set_millis(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    set_for(value, argv, b"PX", "psetex", env)
}

/// Writes a string with an expiry time.
fn set_for(
    value: &mut Option<Value>,
    argv: Argv<'_>,
    unit: &[u8],
    command: &str,
    env: &Env<'_>,
) -> Outcome {
    let at = match expiry_at(unit, argv[2], env.now_millis) {
        Ok(Some(at)) => at,
        Ok(None) => return Outcome::unchanged(text::server::expire_time(command)),
        Err(text) => return text.into(),
    };
    *value = Some(Value::Bytes(argv[3].to_vec().into()));
    Outcome { expiry: Expiry::At(at), ..Outcome::changed(Reply::ok()) }
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]`
pub(crate) fn get_and_expire(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    let expiry = match &argv[2..] {
        [] => Expiry::Kept,
        [option] if is(option, "PERSIST") => Expiry::Never,
        [unit, number] => match expiry_at(&unit.to_ascii_uppercase(), number, env.now_millis) {
            Ok(Some(at)) => Expiry::At(at),
            Ok(None) => return Outcome::unchanged(text::server::expire_time("getex")),
            Err(text) => return text.into(),
        },
        _ => return text::SYNTAX.into(),
    };
    let reply = get(value.as_ref(), argv, env);
    // The expiry time changes only if the key holds a string.
    let has_changed = matches!(reply, Reply::Bulk(_)) && expiry != Expiry::Kept;
    if has_changed {
        Outcome { expiry, ..Outcome::changed(reply) }
    } else {
        Outcome::unchanged(reply)
    }
}

/// `APPEND key value`
pub(crate) fn append(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Outcome {
    let len = match bytes(value.as_ref()) {
        Ok(bytes) => bytes.map_or(0, SparseBytes::len),
        Err(text) => return text.into(),
    };
    let part = argv[2];
    if (len + part.len()) as u64 > MAX_BYTES {
        return text::bitmap::TOO_LONG.into();
    }
    if value.is_some() && part.is_empty() {
        return Outcome::unchanged(Reply::Integer(len as i64));
    }
    let bytes = bytes_or_new(value).expect("its type was seen");
    bytes.write(len, part);
    Outcome::changed(Reply::Integer(bytes.len() as i64))
}

/// Converts an argument of `EX`, `PX`, `EXAT` or `PXAT` to a time in milliseconds since 1970.
/// Returns `None` if a key cannot have this expiry time.
///
/// # Errors
///
/// If the unit is unknown, or the number is no integer.
fn expiry_at(unit: &[u8], number: &[u8], now_millis: u64) -> Result<Option<u64>, text::Text> {
    let (factor, start) = match unit {
        b"EX" => (1000, now_millis as i64),
        b"PX" => (1, now_millis as i64),
        b"EXAT" => (1000, 0),
        b"PXAT" => (1, 0),
        _ => return Err(text::SYNTAX),
    };
    let number = parse_integer(number).ok_or(text::NO_INTEGER)?;
    let at = number.checked_mul(factor).and_then(|millis| millis.checked_add(start));
    Ok(at.filter(|_| number > 0).map(|at| at as u64))
}

/// The options of `SET` after the key and the value.
struct SetOptions {
    /// `Some(true)` requires that the key exists, `Some(false)` that it does not.
    exists: Option<bool>,
    /// True if the reply is the previous value.
    gets: bool,
    expiry: Expiry,
}

fn set_options(mut rest: Argv<'_>, now_millis: u64) -> Result<SetOptions, text::Text> {
    let (mut exists, mut gets, mut expiry) = (None, false, None);
    while let [option, behind @ ..] = rest {
        rest = behind;
        match option.to_ascii_uppercase().as_slice() {
            b"NX" if exists != Some(true) => exists = Some(false),
            b"XX" if exists != Some(false) => exists = Some(true),
            b"GET" => gets = true,
            b"KEEPTTL" if expiry.is_none() => expiry = Some(Expiry::Kept),
            name @ (b"EX" | b"PX" | b"EXAT" | b"PXAT") if expiry.is_none() => {
                let [number, behind @ ..] = rest else { return Err(text::SYNTAX) };
                rest = behind;
                let at = expiry_at(name, number, now_millis)?.ok_or(text::SET_EXPIRY)?;
                expiry = Some(Expiry::At(at));
            }
            _ => return Err(text::SYNTAX),
        }
    }
    Ok(SetOptions { exists, gets, expiry: expiry.unwrap_or(Expiry::Never) })
}

/// `INCR key`
pub(crate) fn increment(value: &mut Option<Value>, _: Argv<'_>, _: &Env<'_>) -> Outcome {
    add(value, 1)
}

/// `INCRBY key increment`
pub(crate) fn increment_by(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Outcome {
    match parse_integer(argv[2]) {
        Some(number) => add(value, number),
        None => text::NO_INTEGER.into(),
    }
}

/// `DECR key`
pub(crate) fn decrement(value: &mut Option<Value>, _: Argv<'_>, _: &Env<'_>) -> Outcome {
    add(value, -1)
}

/// `DECRBY key decrement`
pub(crate) fn decrement_by(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Outcome {
    match parse_integer(argv[2]) {
        Some(i64::MIN) => text::DECREMENT_OVERFLOW.into(),
        Some(number) => add(value, -number),
        None => text::NO_INTEGER.into(),
    }
}

/// Adds to the number of a key.
fn add(value: &mut Option<Value>, number_added: i64) -> Outcome {
    let number = match value {
        None => 0,
        Some(Value::Bytes(bytes)) => match bytes.as_short().and_then(parse_integer) {
            Some(number) => number,
            None => return text::NO_INTEGER.into(),
        },
        Some(_) => return text::WRONG_TYPE.into(),
    };
    let Some(number) = number.checked_add(number_added) else { return text::OVERFLOW.into() };
    *value = Some(Value::Bytes(number.to_string().into_bytes().into()));
    Outcome::changed(Reply::Integer(number))
}

/// `TYPE key`
pub(crate) fn type_of(value: Option<&Value>, _: Argv<'_>, _: &Env<'_>) -> Reply {
    Reply::simple(value.map_or("none", Value::type_name))
}
