//! What a snapshot contains.

use std::time::SystemTime;

use crate::ids::generation::Generation;
use crate::ids::id_set_options::IdSetOptions;

/// What a snapshot contains.
#[derive(Debug)]
pub struct Snapshot {
    /// Whose ids they are.
    pub head: SnapshotHead,
    /// The ids.
    pub generation: Generation,
    /// A position in the source's change stream. The generation has no change after it.
    pub end: Vec<u8>,
}

/// What a snapshot says about its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The type of the ids, as [`IdType`](crate::IdType) formats it.
    pub ids: String,
    /// The identity of the source, such as a database and a table.
    pub source: String,
    /// The position in the source's change stream. The generation has all changes up to it.
    pub position: Vec<u8>,
    /// When the snapshot was written, to the millisecond.
    pub created: SystemTime,
    /// When all ids were read into the generation, to the millisecond.
    pub built: SystemTime,
}

impl SnapshotHead {
    /// Returns the head of a snapshot that is written now.
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
