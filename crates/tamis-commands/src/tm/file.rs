//! Implements `TM.LOAD` and `TM.DUMP`: load a filter from a file, and write a filter as a file.

use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::command::argv::{Argv, is};
use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, Text, tm};
use crate::value::Value;

/// Runs `TM.LOAD key data [REPLACE]`.
pub(crate) fn load(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    match load_refusal(value.is_some(), argv) {
        Some(refusal) => Err(refusal.into()),
        None => load_decoded(value, argv, decode_file(argv[2]), env),
    }
}

/// Decodes the file of a `TM.LOAD`. Decoding may take a long time and needs no access to keys.
///
/// # Errors
///
/// The error reply, if the bytes are not a valid file.
pub fn decode_file(data: &[u8]) -> Result<Value, Reply> {
    let file = TamisFile::decode(data).map_err(tm::because)?;
    Ok(Value::Filter(Box::new(file)))
}

/// Sets the value of a key to the value that [`decode_file`] returned for a `TM.LOAD`.
///
/// # Errors
///
/// The error reply. After an error, the value is unchanged. A window with a clock ahead of `env.now_millis` is an
/// error. During a replay, `env.now_millis` is the time in the log, so the replay has the same result as the original
/// command.
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

/// Returns the error of a `TM.LOAD` with the given arguments, without a check of the data. Returns `None` if the
/// command may succeed.
#[must_use]
pub fn load_refusal(key_exists: bool, argv: Argv<'_>) -> Option<Text> {
    match argv[3..] {
        [] if key_exists => Some(tm::LOAD_EXISTS),
        [] => None,
        [word] if is(word, "REPLACE") => None,
        _ => Some(tm::LOAD_OPTION),
    }
}

/// Runs `TM.DUMP key`.
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
