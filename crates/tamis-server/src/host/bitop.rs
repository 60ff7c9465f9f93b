//! `BITOP`: bitmaps combined into another.

use tamis_commands::{BitOp, Env, Words, text};
use tamis_resp::Reply;

use crate::session::Keys;

pub(super) fn bitop(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>, left_bytes: u64) -> Reply {
    let Keys::Exclusive(keys) = keys else { unreachable!("it runs alone") };
    let (destination, sources) = (words[2], &words[3..]);
    let combine = || {
        let mut operation = BitOp::new(words)?;
        for key in sources {
            keys.read(key, env.now_millis, |value| {
                // Before it is made.
                if operation.bytes_with(value) > left_bytes {
                    return Err(Reply::error(text::host::MEMORY));
                }
                operation.take(value)
            })?;
        }
        Ok(operation.finish())
    };
    let (value, len) = match combine() {
        Ok(combined) => combined,
        Err(refusal) => return refusal,
    };
    if value.as_ref().is_some_and(|value| value.heap_bytes() > left_bytes) {
        return Reply::error(text::host::MEMORY);
    }
    // With its time, whatever it was.
    keys.remove(destination, env.now_millis);
    if value.is_some() {
        keys.write(destination, env.now_millis, |slot| *slot = value);
    }
    Reply::Integer(len as i64)
}
