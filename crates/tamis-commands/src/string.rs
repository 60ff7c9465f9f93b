//! Implements `TYPE` and the string commands. Tools check a server with `GET`, `SET`, `INCR` and
//! similar commands. Clients use the range commands for Bloom filters over bitmaps.

use tamis_resp::Reply;

use crate::bitmap::{is_backwards, places};
use crate::command::argv::{Argv, is, parse_integer};
use crate::command::run::{Env, Expiry, Outcome, Written, error};
use crate::text;
use crate::value::sparse_bytes::SparseBytes;
use crate::value::{Value, bytes, bytes_or_new};

/// The longest string that a command writes, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// Runs `GET key`.
pub fn get(value: Option<&Value>, _: Argv<'_>, env: &Env<'_>) -> Reply {
    bytes(value).and_then(|bytes| whole(bytes, env)).unwrap_or_else(error)
}

/// Replies with a whole string. A reply may take far more memory than a sparse string.
fn whole(bytes: Option<&SparseBytes>, env: &Env<'_>) -> Result<Reply, text::Text> {
    let Some(bytes) = bytes else { return Ok(Reply::Null) };
    env.check_reply(bytes.len() as u64)?;
    Ok(Reply::Bulk(bytes.to_vec(0..bytes.len())))
}

/// Runs `GETRANGE key start end`.
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

/// Runs `SETRANGE key offset value`.
pub(crate) fn set_range(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    let offset = parse_integer(argv[2]).ok_or(text::NO_INTEGER)?;
    let offset = u64::try_from(offset).map_err(|_| text::bitmap::OFFSET)?;
    let part = argv[3];
    let len = bytes(value.as_ref())?.map_or(0, SparseBytes::len);
    if part.is_empty() {
        return Ok(Outcome::unchanged(Reply::Integer(len as i64)));
    }
    write(value, offset, part)
}

/// Writes bytes into a string, starting at byte `at`.
fn write(value: &mut Option<Value>, at: u64, part: &[u8]) -> Written {
    if at.saturating_add(part.len() as u64) > MAX_BYTES {
        return Err(text::bitmap::TOO_LONG.into());
    }
    let bytes = bytes_or_new(value)?;
    bytes.write(at as usize, part);
    Ok(Outcome::changed(Reply::Integer(bytes.len() as i64)))
}

/// Runs `STRLEN key`.
pub(crate) fn len(value: Option<&Value>, _: Argv<'_>, _: &Env<'_>) -> Reply {
    match bytes(value) {
        Ok(bytes) => Reply::Integer(bytes.map_or(0, SparseBytes::len) as i64),
        Err(text) => error(text),
    }
}

/// Runs `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT time | PXAT time |
/// KEEPTTL]`.
///
/// # Errors
///
/// The error reply. After an error, the value is unchanged.
pub fn set(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let SetOptions { exists, gets, expiry } = set_options(&argv[3..], env.now_millis)?;
    let before = if gets { whole(bytes(value.as_ref())?, env)? } else { Reply::Null };
    if exists.is_some_and(|exists| exists != value.is_some()) {
        return Ok(Outcome::unchanged(before));
    }
    let reply = if gets { before } else { Reply::ok() };
    Ok(set_to(value, argv[2], reply, expiry))
}

/// Sets the value of a key to a string.
fn set_to(value: &mut Option<Value>, bytes: &[u8], reply: Reply, expiry: Expiry) -> Outcome {
    *value = Some(Value::Bytes(bytes.to_vec().into()));
    Outcome { expiry, ..Outcome::changed(reply) }
}

/// Runs `SETNX key value`.
pub(crate) fn set_absent(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    Ok(match value {
        Some(_) => Outcome::unchanged(Reply::Integer(0)),
        None => set_to(value, argv[2], Reply::Integer(1), Expiry::Never),
    })
}

/// Runs `SETEX key seconds value`.
pub(crate) fn set_seconds(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    set_for(value, argv, b"EX", "setex", env)
}

/// Runs `PSETEX key milliseconds value`.
pub(crate) fn set_millis(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    set_for(value, argv, b"PX", "psetex", env)
}

/// Writes a string with an expiry time.
fn set_for(
    value: &mut Option<Value>,
    argv: Argv<'_>,
    unit: &[u8],
    command: &str,
    env: &Env<'_>,
) -> Written {
    let at = expiry_at(unit, argv[2], env.now_millis)?;
    let at = at.ok_or_else(|| text::server::expire_time(command))?;
    Ok(set_to(value, argv[3], Reply::ok(), Expiry::At(at)))
}

/// Runs `GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]`.
pub(crate) fn get_and_expire(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let expiry = match &argv[2..] {
        [] => Expiry::Kept,
        [option] if is(option, "PERSIST") => Expiry::Never,
        [unit, number] => {
            let at = expiry_at(&unit.to_ascii_uppercase(), number, env.now_millis)?;
            Expiry::At(at.ok_or_else(|| text::server::expire_time("getex"))?)
        }
        _ => return Err(text::SYNTAX.into()),
    };
    let reply = get(value.as_ref(), argv, env);
    // The expiry time changes only if the key holds a string.
    let has_changed = matches!(reply, Reply::Bulk(_)) && expiry != Expiry::Kept;
    let expiry = if has_changed { expiry } else { Expiry::Kept };
    Ok(Outcome { expiry, ..Outcome::after(reply, has_changed) })
}

/// Runs `APPEND key value`.
pub(crate) fn append(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    let len = bytes(value.as_ref())?.map_or(0, SparseBytes::len);
    if value.is_some() && argv[2].is_empty() {
        return Ok(Outcome::unchanged(Reply::Integer(len as i64)));
    }
    write(value, len as u64, argv[2])
}

/// Converts an argument of `EX`, `PX`, `EXAT` or `PXAT` to a time in milliseconds since 1970.
/// Returns `None` if the time is not a valid expiry time.
///
/// # Errors
///
/// If the unit is unknown, or the number is not an integer.
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
    /// `Some(true)` requires that the key exists. `Some(false)` requires that the key does not
    /// exist.
    exists: Option<bool>,
    /// True if the reply contains the previous value.
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

/// Runs `INCR key`.
pub(crate) fn increment(value: &mut Option<Value>, _: Argv<'_>, _: &Env<'_>) -> Written {
    add(value, 1)
}

/// Runs `INCRBY key increment`.
pub(crate) fn increment_by(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    add(value, parse_integer(argv[2]).ok_or(text::NO_INTEGER)?)
}

/// Runs `DECR key`.
pub(crate) fn decrement(value: &mut Option<Value>, _: Argv<'_>, _: &Env<'_>) -> Written {
    add(value, -1)
}

/// Runs `DECRBY key decrement`.
pub(crate) fn decrement_by(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    let number = parse_integer(argv[2]).ok_or(text::NO_INTEGER)?;
    add(value, number.checked_neg().ok_or(text::DECREMENT_OVERFLOW)?)
}

/// Adds `number_added` to the number at a key.
fn add(value: &mut Option<Value>, number_added: i64) -> Written {
    let before = match bytes(value.as_ref())? {
        None => 0,
        Some(bytes) => bytes.as_short().and_then(parse_integer).ok_or(text::NO_INTEGER)?,
    };
    let number = before.checked_add(number_added).ok_or(text::OVERFLOW)?;
    *value = Some(Value::Bytes(number.to_string().into_bytes().into()));
    Ok(Outcome::changed(Reply::Integer(number)))
}

/// Runs `TYPE key`.
pub(crate) fn type_of(value: Option<&Value>, _: Argv<'_>, _: &Env<'_>) -> Reply {
    Reply::simple(value.map_or("none", Value::type_name))
}
