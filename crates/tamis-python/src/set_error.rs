//! The reasons why a set cannot run an operation.

use std::path::PathBuf;

use tamis::{InsertError, NoRoom, OutOfMemory};
use tamis_formats::ChangeError;

/// The reason why a set cannot run an operation.
#[derive(Debug)]
pub enum SetError {
    /// The file of the filter was closed.
    Closed,
    /// The filter is in a mapped file.
    ReadOnly,
    /// The filter has no space. `inserted` items of the batch were inserted.
    Full { why: String, inserted: usize },
    /// The file of the set failed.
    File(String),
    /// The operating system refused an operation on the file of the set.
    System {
        /// The path of the file.
        path: PathBuf,
        /// The number of the error.
        number: i32,
    },
    /// The bytes of the file are damaged.
    Damaged(String),
    /// The other system, whose filter this is, does not support the change.
    Rejected(String),
    /// There is no memory.
    Memory,
    /// The kind of the set does not have the operation.
    Unsupported(&'static str),
}

impl From<InsertError> for SetError {
    fn from(error: InsertError) -> Self {
        match error.reason {
            NoRoom::Memory(_) => SetError::Memory,
            _ => SetError::Full { why: error.to_string(), inserted: error.inserted },
        }
    }
}

impl From<OutOfMemory> for SetError {
    fn from(_: OutOfMemory) -> Self {
        SetError::Memory
    }
}

impl From<ChangeError> for SetError {
    fn from(error: ChangeError) -> Self {
        let why = error.to_string();
        match error {
            // A filter of another system does not count the items before the failed one.
            ChangeError::Full(_) => SetError::Full { why, inserted: 0 },
            ChangeError::Memory(_) => SetError::Memory,
            _ => SetError::Rejected(why),
        }
    }
}
