//! The result of a command that may change several keys.

use tamis_resp::Reply;

/// `Ok` has the reply to a command that changed a key, `Err` the reply to one that changed nothing.
pub(crate) type WriteResult = Result<Reply, Reply>;

/// Replies with the number of changes.
pub(super) fn count_changes(changes: usize) -> WriteResult {
    let reply = Reply::Integer(changes as i64);
    if changes > 0 { Ok(reply) } else { Err(reply) }
}
