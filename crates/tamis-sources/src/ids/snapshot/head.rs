//! The content of a snapshot.

use std::time::SystemTime;

use crate::ids::generation::Generation;
use crate::ids::id_set_options::IdSetOptions;

/// The content of a snapshot.
#[derive(Debug)]
pub struct Snapshot {
    /// The head, which describes the origin of the ids.
    pub head: SnapshotHead,
    /// The ids.
    pub generation: Generation,
    /// A position in the change stream of the source. The generation contains no change after this position.
    pub end: Vec<u8>,
}

/// The metadata of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The type of the ids, as [`IdType`](crate::IdType) formats it.
    pub ids: String,
    /// The identity of the source, for example a database and a table.
    pub source: String,
    /// A position in the change stream of the source. The generation contains all changes up to this position.
    pub position: Vec<u8>,
    /// The time at which the snapshot was written, to the millisecond.
    pub created: SystemTime,
    /// The time at which all ids were read into the generation, to the millisecond.
    pub built: SystemTime,
}

impl SnapshotHead {
    /// Creates the head of a snapshot that is about to be written.
    #[must_use]
    pub fn new(source: &str, ids: &IdSetOptions, position: Vec<u8>, built: SystemTime) -> Self {
        Self {
            ids: ids.id.to_string(),
            source: source.to_owned(),
            position,
            created: SystemTime::now(),
            built,
        }
    }
}
