//! The outcome of a command that may change several keys.

use tamis_resp::Reply;

/// The outcome of a command that may change several keys: the reply, and whether a key changed.
pub(crate) struct WriteOutcome {
    pub reply: Reply,
    pub has_changed: bool,
}

/// `Ok` has the reply to a command that changed a key, `Err` the reply to one that changed nothing.
pub(crate) type WriteResult = Result<Reply, Reply>;

impl From<WriteResult> for WriteOutcome {
    fn from(written: WriteResult) -> Self {
        let has_changed = written.is_ok();
        let (Ok(reply) | Err(reply)) = written;
        Self { reply, has_changed }
    }
}

/// Replies with the number of changes.
pub(super) fn count_changes(changes: usize) -> WriteResult {
    let reply = Reply::Integer(changes as i64);
    if changes > 0 { Ok(reply) } else { Err(reply) }
}
