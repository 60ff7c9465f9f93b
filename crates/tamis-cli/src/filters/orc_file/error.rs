//! Why an ORC file is not read.

use std::fmt;

/// Why an ORC file is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrcError {
    /// The file contradicts the format. The text says what is wrong.
    Damaged(&'static str),
    /// The file may be intact, but is not read. The text says why, and what to do.
    Refused(String),
}

impl fmt::Display for OrcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrcError::Damaged(what) => write!(f, "damaged: {what}"),
            OrcError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OrcError {}
