//! Opens the group of a transaction in the log.

use tamis_commands::text::server as text;
use tamis_commands::{Env, Handler, WriteKeys};
use tamis_resp::Reply;

use crate::handlers::write_log::{MAX_IMAGE_BYTES, image_bytes, space_bytes};
use crate::keyspace::ExclusiveAccess;
use crate::persistence::LogGroup;
use crate::session::Call;
use crate::session::decoding::Decoded;
use crate::session::exec::prepared::Prepared;
use crate::session::write_keys::restore::NotDecoded;
use crate::shared_state::SharedState;
use crate::system::held_memory::Hold;

/// Opens the group of a transaction in the log: the whole transaction is one frame. Returns the
/// memory reservation for the images (serialized values) of the frame, and the group. The memory is
/// reserved until the group ends. The group keeps disk space for the serialized values. Returns
/// `None` if there is no log.
///
/// # Errors
///
/// Returns the error reply if there is no memory or disk space for the serialized values. On an
/// error, no command of the transaction has run.
pub(super) fn begin_log_group<'s>(
    server: &'s SharedState,
    prepared: &Prepared<'_>,
    decoded: &[(usize, Result<Decoded, NotDecoded>)],
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) -> Result<Option<(Hold, LogGroup<'s>)>, Reply> {
    let Some(durable) = &server.durable else { return Ok(None) };
    let restored_bytes = |(i, decoded): &(usize, Result<Decoded, NotDecoded>)| match (
        prepared.commands[*i].0.handler,
        decoded,
    ) {
        (Handler::WriteKeys(WriteKeys::Restore), Ok(decoded)) => decoded.image_bytes(),
        _ => 0,
    };
    let restored = decoded.iter().map(restored_bytes).fold(0, u64::saturating_add);
    if restored > MAX_IMAGE_BYTES {
        return Err(text::discarded(text::LARGE_MULTI));
    }
    // The check of the command already includes the log bytes around a restored image.
    let (mut memory, mut space) = (restored, restored);
    if durable.is_saving() {
        for (command, argv) in prepared.iter() {
            if let Handler::WriteKeys(handler) = command.handler {
                let bytes = image_bytes(handler, Call { command, argv, env: *env }, keys);
                memory = memory.saturating_add(bytes);
                space = space.saturating_add(space_bytes(bytes));
            }
        }
        if memory > MAX_IMAGE_BYTES {
            return Err(text::discarded(text::LARGE_WHILE_SAVING));
        }
    }
    let images = server.reserve_memory(memory).ok_or(text::discarded(text::MEMORY))?;
    let group = durable.log.begin_group(space);
    let group = group.map_err(|why| text::discarded(&text::no_log(&why)))?;
    Ok(Some((images, group)))
}
