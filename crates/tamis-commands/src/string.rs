//! `GET`, `SET`, `INCR` and its kin, as much of them as tools use to see whether a server is there; parts of strings, as filters
//! over bitmaps use them; and `TYPE`.

use tamis_resp::Reply;

use crate::bitmap::{SparseBytes, is_backwards, places};
use crate::run::{Env, Expiry, Outcome, error};
use crate::text;
use crate::value::{Value, bytes, bytes_or_new};
use crate::words::{Words, parse_integer};

/// Bytes of the longest string that a command writes.
const MAX_BYTES: u64 = 512 << 20;

/// `GET key`
pub(crate) fn get(value: Option<&Value>, _: Words<'_>, _: &Env<'_>) -> Reply {
    match bytes(value) {
        Ok(None) => Reply::Null,
        Ok(Some(bytes)) => Reply::Bulk(bytes.to_vec(0..bytes.len())),
        Err(text) => error(text),
    }
}

/// `GETRANGE key start end`
pub(crate) fn get_range(value: Option<&Value>, words: Words<'_>, _: &Env<'_>) -> Reply {
    let (Some(start), Some(end)) = (parse_integer(words[2]), parse_integer(words[3])) else {
        return error(text::NO_INTEGER);
    };
    let part = |bytes: &SparseBytes| {
        let places =
            places(start, end, bytes.len() as u64).filter(|_| !is_backwards(start, end))?;
        Some(bytes.to_vec(places.start as usize..places.end as usize))
    };
    match bytes(value) {
        Ok(bytes) => Reply::Bulk(bytes.and_then(part).unwrap_or_default()),
        Err(text) => error(text),
    }
}

/// `SETRANGE key offset value`
pub(crate) fn set_range(value: &mut Option<Value>, words: Words<'_>, _: &Env<'_>) -> Outcome {
    let Some(offset) = parse_integer(words[2]) else { return text::NO_INTEGER.into() };
    let Ok(offset) = u64::try_from(offset) else { return text::bitmap::OFFSET.into() };
    let part = words[3];
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
pub(crate) fn len(value: Option<&Value>, _: Words<'_>, _: &Env<'_>) -> Reply {
    match bytes(value) {
        Ok(bytes) => Reply::Integer(bytes.map_or(0, SparseBytes::len) as i64),
        Err(text) => error(text),
    }
}

/// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]`
pub(crate) fn set(value: &mut Option<Value>, words: Words<'_>, env: &Env<'_>) -> Outcome {
    let SetOptions { exists, gets, expiry } = match set_options(&words[3..], env.now_millis) {
        Ok(options) => options,
        Err(text) => return text.into(),
    };
    let before = match bytes(value.as_ref()) {
        Err(text) if gets => return text.into(),
        Ok(Some(bytes)) if gets => Reply::Bulk(bytes.to_vec(0..bytes.len())),
        _ => Reply::Null,
    };
    if exists.is_some_and(|exists| exists != value.is_some()) {
        return Outcome::unchanged(before);
    }
    *value = Some(Value::Bytes(words[2].to_vec().into()));
    let reply = if gets { before } else { Reply::ok() };
    Outcome { expiry, ..Outcome::changed(reply) }
}

/// What `SET` is told besides key and value.
struct SetOptions {
    /// Whether there must be a value already, or must be none.
    exists: Option<bool>,
    /// Whether the value that was there is the answer.
    gets: bool,
    expiry: Expiry,
}

fn set_options(mut rest: Words<'_>, now_millis: u64) -> Result<SetOptions, text::Text> {
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
                let number = parse_integer(number).ok_or(text::NO_INTEGER)?;
                let unit = if name[0] == b'P' { 1 } else { 1000 };
                let start = if name.ends_with(b"AT") { 0 } else { now_millis as i64 };
                let at = number.checked_mul(unit).and_then(|millis| millis.checked_add(start));
                let at = at.filter(|_| number > 0).ok_or(text::SET_EXPIRY)?;
                expiry = Some(Expiry::At(at as u64));
            }
            _ => return Err(text::SYNTAX),
        }
    }
    Ok(SetOptions { exists, gets, expiry: expiry.unwrap_or(Expiry::Never) })
}

/// `INCR key`
pub(crate) fn increment(value: &mut Option<Value>, _: Words<'_>, _: &Env<'_>) -> Outcome {
    add(value, 1)
}

/// `INCRBY key increment`
pub(crate) fn increment_by(value: &mut Option<Value>, words: Words<'_>, _: &Env<'_>) -> Outcome {
    match parse_integer(words[2]) {
        Some(number) => add(value, number),
        None => text::NO_INTEGER.into(),
    }
}

/// `DECR key`
pub(crate) fn decrement(value: &mut Option<Value>, _: Words<'_>, _: &Env<'_>) -> Outcome {
    add(value, -1)
}

/// `DECRBY key decrement`
pub(crate) fn decrement_by(value: &mut Option<Value>, words: Words<'_>, _: &Env<'_>) -> Outcome {
    match parse_integer(words[2]) {
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
pub(crate) fn type_of(value: Option<&Value>, _: Words<'_>, _: &Env<'_>) -> Reply {
    Reply::simple(value.map_or("none", Value::type_name))
}
