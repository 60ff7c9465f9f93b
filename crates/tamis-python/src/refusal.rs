//! The reasons why a set refuses an operation.

use tamis::{InsertError, OutOfMemory};
use tamis_formats::ChangeError;

/// The reason why a set refuses a batch.
#[derive(Debug)]
pub enum Refusal {
    /// The file of the filter was closed.
    Closed,
    /// The filter is in a mapped file.
    ReadOnly,
    /// The filter has no space. `inserted` items of the batch were inserted.
    Full { why: String, inserted: usize },
    /// The file of the set failed.
    File(String),
    /// The bytes of the file are damaged.
    Damaged(String),
    /// The other system, whose filter this is, does not support the change.
    Rejected(String),
    /// There is no memory.
    Memory,
    /// The kind of the set does not have the operation.
    Unsupported(&'static str),
}

impl From<InsertError> for Refusal {
    fn from(error: InsertError) -> Self {
        Refusal::Full { why: error.to_string(), inserted: error.inserted }
    }
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Refusal::Memory
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        let why = error.to_string();
        match error {
            // A filter of another system does not count the items before the failed one.
            ChangeError::Full(_) => Refusal::Full { why, inserted: 0 },
            ChangeError::Memory(_) => Refusal::Memory,
            _ => Refusal::Rejected(why),
        }
    }
}
