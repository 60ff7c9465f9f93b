//! The first fields of a snapshot.

use std::time::SystemTime;

/// What a snapshot says about its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The type of the ids, as [`IdType`](crate::IdType) formats it.
    pub ids: String,
    /// The identity of the source, such as a server, a database and a table.
    pub source: String,
    /// The position in the source's change stream. The generation has all changes up to it.
    pub position: Vec<u8>,
    /// When the snapshot was written, to the millisecond.
    pub created: SystemTime,
}
