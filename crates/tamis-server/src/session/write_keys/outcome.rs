//! The result of a command that may change several keys.

use tamis_resp::Reply;

/// `Ok` contains the reply to a command that changed a key. `Err` contains the reply to a command
/// that changed nothing.
pub(crate) type WriteResult = Result<Reply, Reply>;

/// Returns a reply with the number of changes.
pub(super) fn count_changes(changes: usize) -> WriteResult {
    let reply = Reply::Integer(changes as i64);
    if changes > 0 { Ok(reply) } else { Err(reply) }
}
