//! `BITOP`: combines bitmaps and stores the result.

use tamis_commands::{Argv, BitOp, Env, text};
use tamis_resp::Reply;

use crate::keyspace::ExclusiveAccess;
use crate::session::write_keys::outcome::WriteResult;

pub(super) fn bitop(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    left_bytes: u64,
) -> WriteResult {
    let (destination, sources) = (argv[2], &argv[3..]);
    let mut operation = BitOp::new(argv)?;
    for key in sources {
        keys.read(key, env.now_millis, |value| {
            // Check the available memory before the result is computed.
            if operation.bytes_with(value) > left_bytes {
                return Err(Reply::error(text::server::MEMORY));
            }
            operation.take(value)
        })?;
    }
    let (value, len) = operation.finish();
    if value.as_ref().is_some_and(|value| value.heap_bytes() > left_bytes) {
        return Err(Reply::error(text::server::MEMORY));
    }
    // Remove the destination, whatever its type, and its expiry time.
    keys.remove(destination, env.now_millis);
    if value.is_some() {
        keys.write(destination, env.now_millis, |slot| *slot = value);
    }
    // If all sources are empty, the command removes the destination and replies with 0.
    Ok(Reply::Integer(len as i64))
}
