//! `BITOP`: combines bitmaps into another one.

use tamis_commands::{Argv, BitOp, Env, text};
use tamis_resp::Reply;

use crate::keyspace::ExclusiveAccess;
use crate::write_keys::done::Done;

pub(crate) fn bitop(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    left_bytes: u64,
) -> Done {
    let (destination, sources) = (argv[2], &argv[3..]);
    let combine = || {
        let mut operation = BitOp::new(argv)?;
        for key in sources {
            keys.read(key, env.now_millis, |value| {
                // Check the memory before the result is computed.
                if operation.bytes_with(value) > left_bytes {
                    return Err(Reply::error(text::server::MEMORY));
                }
                operation.take(value)
            })?;
        }
        Ok(operation.finish())
    };
    let (value, len) = match combine() {
        Ok(combined) => combined,
        Err(refusal) => return Done::unchanged(refusal),
    };
    if value.as_ref().is_some_and(|value| value.heap_bytes() > left_bytes) {
        return Done::unchanged(Reply::error(text::server::MEMORY));
    }
    // Remove the destination of any type, with its expiry time.
    keys.remove(destination, env.now_millis);
    if value.is_some() {
        keys.write(destination, env.now_millis, |slot| *slot = value);
    }
    // If all sources are empty, the command removes the destination and replies with 0.
    Done::changed(Reply::Integer(len as i64))
}
