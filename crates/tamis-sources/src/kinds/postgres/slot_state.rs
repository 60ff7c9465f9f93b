//! The state of a replication slot on the server.

use crate::kinds::postgres::lsn::Lsn;

/// The state of a replication slot on the server.
#[derive(Debug)]
pub(super) struct SlotState {
    /// The server retains all changes after this position.
    pub(super) confirmed: Lsn,
    /// The server process that uses the slot.
    pub(super) process: Option<i32>,
    /// True if the server has deleted the log that the slot needs.
    pub(super) is_lost: bool,
    /// True if the slot is permanent, belongs to this database, uses `pgoutput`, and has no two-phase commits.
    pub(super) is_usable: bool,
}
