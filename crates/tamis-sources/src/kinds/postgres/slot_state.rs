//! What the server says about a replication slot.

use crate::kinds::postgres::lsn::Lsn;

/// What the server says about a slot.
#[derive(Debug)]
pub(super) struct SlotState {
    /// The server has all changes after this place.
    pub(super) confirmed: Lsn,
    /// The process that uses the slot.
    pub(super) process: Option<i32>,
    /// True if the server has deleted the log that the slot needs.
    pub(super) is_lost: bool,
    /// True if it is a permanent slot of this database for `pgoutput`, without two-phase commits.
    pub(super) is_usable: bool,
}
