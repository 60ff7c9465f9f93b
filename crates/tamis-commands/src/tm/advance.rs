//! Implements `TM.ADVANCE`.

use tamis::AnyFilter;
use tamis_resp::Reply;

use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Env, Outcome, Written};
use crate::text::{self, tm};
use crate::value::{Value, is_ahead};

/// Runs `TM.ADVANCE key unix-milliseconds`: moves the clock of a window forward. A primary sends `TM.ADVANCE` to its
/// replicas, so that the windows of all servers remove the same items.
pub(crate) fn advance(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let millis = parse_integer(argv[2]).and_then(|millis| u64::try_from(millis).ok());
    let millis = millis.ok_or(tm::TIME)?;
    let value = value.as_mut().ok_or(tm::NOT_FOUND)?;
    let began = value.window_began_millis();
    match value {
        Value::Bytes(_) => Err(text::WRONG_TYPE.into()),
        Value::Filter(file) => match &mut file.filter {
            AnyFilter::Window(window) if began.is_some() => {
                if is_ahead(millis, env.now_millis) {
                    return Err(tm::TIME_AHEAD.into());
                }
                let is_changed = window.advance(millis);
                Ok(Outcome::after(Reply::ok(), is_changed))
            }
            _ => Err(tm::NO_CLOCK.into()),
        },
        _ => Err(tm::NO_CLOCK.into()),
    }
}
