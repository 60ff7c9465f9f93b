//! Logs commands that change several keys, before any other command can access the changed keys.

use tamis_commands::text::server;
use tamis_commands::{Argv, Env, Value, WriteKeys};
use tamis_resp::Reply;

use crate::keyspace::ExclusiveAccess;
use crate::persistence::{Durable, Record};
use crate::session::Call;
use crate::session::write_keys::outcome::WriteResult;
use crate::session::write_keys::sets;
use crate::shared_state::SharedState;
use crate::system::held_memory::Hold;

/// Logs the changes of a command before another command can access the keys.
pub(crate) fn log(
    server: &SharedState,
    handler: WriteKeys,
    call: Call<'_>,
    keys: &ExclusiveAccess<'_>,
    done: &WriteResult,
) {
    let Call { argv, env, .. } = call;
    let Some(durable) = server.durable.as_ref().filter(|_| done.is_ok()) else { return };
    match (handler, image_keys(handler, argv)) {
        // Log each key separately, because a running snapshot may already contain some of the keys.
        (WriteKeys::Delete, _) => {
            server.log_together(argv[1..].iter().map(|key| vec![&b"DEL"[..], key]), &env);
        }
        // Log the serialized value and not the payload: a later version of the server may decode
        // the payload differently.
        (WriteKeys::Restore, _) => log_image(durable, argv[1], None, &env, keys),
        (WriteKeys::SetEach, _) => server.log_together(sets(argv).map(Vec::from), &env),
        (_, Some((written, removed))) if durable.is_saving() => {
            log_image(durable, written, removed, &env, keys);
        }
        _ => server.log_command(argv, &env),
    }
}

/// Returns the key that a command writes from the values of other keys, and the key that the
/// command removes. While a snapshot is being written, the log gets the whole value of the written
/// key. The snapshot may contain one key from before the command and another key from after the
/// command.
fn image_keys<'w>(handler: WriteKeys, argv: Argv<'w>) -> Option<(&'w [u8], Option<&'w [u8]>)> {
    match handler {
        WriteKeys::BitOp | WriteKeys::Copy => Some((argv[2], None)),
        WriteKeys::Merge => Some((argv[1], None)),
        WriteKeys::Rename | WriteKeys::RenameIfAbsent => Some((argv[2], Some(argv[1]))),
        _ => None,
    }
}

/// Logs the whole value of the key `key`, and the removal of a second key.
fn log_image(
    durable: &Durable,
    key: &[u8],
    removed: Option<&[u8]>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) {
    let expires_millis = keys.expires_millis(key, env.now_millis).flatten();
    let image = keys.read(key, env.now_millis, |value| value.map(Value::to_image));
    let delete = |key| {
        let argv = vec![&b"DEL"[..], key];
        Record::Command { now_millis: env.now_millis, argv }
    };
    let value = match &image {
        Some(serialization) => Record::Value { key, expires_millis, serialization },
        None => delete(key),
    };
    let records: Vec<Record<'_>> = [value].into_iter().chain(removed.map(delete)).collect();
    durable.log.append_all(&records);
}

/// The maximum size of a value that may be renamed while a snapshot is being written, in bytes. For
/// a rename during a snapshot, the log gets the whole value.
pub(crate) const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// Returns a reservation of disk space for the images (serialized values) that a command writes to
/// the log. The caller keeps the reservation until the images are logged. Returns `None` if the
/// command logs no serialized value, or if a transaction keeps the reservation.
///
/// # Errors
///
/// Returns the error reply if the command must wait until the running snapshot is complete, or if
/// the log has no space for the serialized values.
pub(crate) fn admit(
    server: &SharedState,
    handler: WriteKeys,
    call: Call<'_>,
    keys: &ExclusiveAccess<'_>,
) -> Result<Option<Hold>, Reply> {
    let Some(durable) = server.durable.as_ref().filter(|durable| durable.is_saving()) else {
        return Ok(None);
    };
    // A transaction is one frame of the log.
    let group_bytes = durable.log.group_bytes().unwrap_or(0) as u64;
    let bytes = image_bytes(handler, call, keys);
    if bytes == 0 {
        return Ok(None);
    }
    if bytes.saturating_add(group_bytes) > MAX_IMAGE_BYTES {
        return Err(Reply::error(server::LARGE_WHILE_SAVING));
    }
    server.admit_image(space_bytes(bytes)).map_err(Reply::error)
}

/// Returns the disk space for the serialized values that a command logs, in bytes. The argument
/// `image_bytes` is the result of [`image_bytes`].
pub(crate) fn space_bytes(image_bytes: u64) -> u64 {
    if image_bytes == 0 { 0 } else { image_bytes.saturating_add(IMAGE_HEAD_BYTES) }
}

/// An upper bound of the bytes that a serialized value takes in addition to the memory of the
/// value.
const IMAGE_HEAD_BYTES: u64 = 4096;

/// Estimates the number of value bytes that a command writes to the log while a snapshot is being
/// written.
pub(crate) fn image_bytes(handler: WriteKeys, call: Call<'_>, keys: &ExclusiveAccess<'_>) -> u64 {
    let Call { argv, env, .. } = call;
    if image_keys(handler, argv).is_none() {
        return 0;
    }
    let bytes_of =
        |key: &&[u8]| keys.read(key, env.now_millis, |value| value.map_or(0, Value::memory_bytes));
    argv[1..].iter().map(bytes_of).max().unwrap_or(0)
}
