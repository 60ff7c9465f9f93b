//! `TM.LOAD` and `TM.DUMP`: filters as files.

use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::command::argv::{Argv, is};
use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, Text, tm};
use crate::value::Value;

/// `TM.LOAD key data [REPLACE]`
pub(crate) fn load(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    match load_refusal(value.is_some(), argv) {
        Some(refusal) => Err(refusal.into()),
        None => load_decoded(value, argv, decode_file(argv[2]), env),
    }
}

/// Decodes the file of a `TM.LOAD`. This may take long and needs no access to keys.
///
/// # Errors
///
/// The error reply, if the bytes are not a file.
pub fn decode_file(data: &[u8]) -> Result<Value, Reply> {
    let file = TamisFile::decode(data).map_err(tm::because)?;
    Ok(Value::Filter(Box::new(file)))
}

/// Sets the value of a key to the value that [`decode_file`] returned for a `TM.LOAD`.
///
/// # Errors
///
/// The error reply, with nothing changed: also if the value is a window whose clock is ahead. The
/// test uses the time in the log, so that a replay decides as the server did.
pub fn load_decoded(
    value: &mut Option<Value>,
    argv: Argv<'_>,
    decoded: Result<Value, Reply>,
    env: &Env<'_>,
) -> Written {
    load_refusal(value.is_some(), argv).map_or(Ok(()), Err)?;
    let loaded = decoded?;
    if loaded.is_ahead(env.now_millis) {
        return Err(tm::CLOCK_AHEAD.into());
    }
    *value = Some(loaded);
    Ok(Outcome::changed(Reply::ok()))
}

/// Returns why a `TM.LOAD` with these arguments fails, independent of its data; `None` if it may
/// succeed.
#[must_use]
pub fn load_refusal(key_exists: bool, argv: Argv<'_>) -> Option<Text> {
    match argv[3..] {
        [] if key_exists => Some(tm::LOAD_EXISTS),
        [] => None,
        [word] if is(word, "REPLACE") => None,
        _ => Some(tm::LOAD_OPTION),
    }
}

/// `TM.DUMP key`
pub(crate) fn dump(value: Option<&Value>, _: Argv<'_>, env: &Env<'_>) -> Reply {
    if let Err(text) = env.check_reply(value.map_or(0, Value::longest_reply_bytes)) {
        return error(text);
    }
    match value {
        None => Reply::Null,
        Some(Value::Bytes(_)) => error(text::WRONG_TYPE),
        Some(Value::Filter(file)) => bytes_of(file),
        Some(Value::Bloom(filter)) => match filter.to_file() {
            Ok(Some(file)) => bytes_of(&file),
            Ok(None) => error(tm::TWO_PARTS),
            Err(_) => error(tm::NO_MEMORY_TO_DUMP),
        },
        Some(Value::PartialLoad(_)) => error(text::bf::INCOMPLETE),
        Some(value) => tm::no_file(value.kind_name()),
    }
}

fn bytes_of(file: &TamisFile) -> Reply {
    let mut bytes = Vec::new();
    let len = usize::try_from(file.len_bytes()).unwrap_or(usize::MAX);
    if bytes.try_reserve_exact(len).is_err() {
        return error(tm::NO_MEMORY_TO_DUMP);
    }
    file.write_to(&mut bytes).expect("memory takes all that is written");
    Reply::Bulk(bytes)
}
