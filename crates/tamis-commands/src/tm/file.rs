//! `TM.LOAD` and `TM.DUMP`: filters as files.

use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::run::{Env, Outcome, error};
use crate::text::{self, tm};
use crate::value::Value;
use crate::words::{Words, is};

/// `TM.LOAD key data [REPLACE]`
pub(crate) fn load(value: &mut Option<Value>, words: Words<'_>, env: &Env<'_>) -> Outcome {
    match words[3..] {
        [] if value.is_some() => return tm::LOAD_EXISTS.into(),
        [] => {}
        [word] if is(word, "REPLACE") => {}
        _ => return tm::LOAD_OPTION.into(),
    }
    let file = match TamisFile::decode(words[2]) {
        Ok(file) => file,
        Err(reason) => return Outcome::unchanged(tm::because(reason)),
    };
    let loaded = Value::Filter(Box::new(file));
    if loaded.is_ahead(env.now_millis) {
        return tm::CLOCK_AHEAD.into();
    }
    *value = Some(loaded);
    Outcome::changed(Reply::ok())
}

/// `TM.DUMP key`
pub(crate) fn dump(value: Option<&Value>, _: Words<'_>, _: &Env<'_>) -> Reply {
    match value {
        None => Reply::Null,
        Some(Value::Bytes(_)) => error(text::WRONG_TYPE),
        Some(Value::Filter(file)) => bytes_of(file),
        Some(Value::Bloom(filter)) => match filter.to_file() {
            Ok(Some(file)) => bytes_of(&file),
            Ok(None) => error(tm::TWO_PARTS),
            Err(_) => error(tm::NO_MEMORY_TO_DUMP),
        },
        Some(Value::Arriving(_)) => error(text::bf::ARRIVING),
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
