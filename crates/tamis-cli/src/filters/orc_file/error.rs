//! Defines the error of reading an ORC file.

use std::fmt;

/// The reason why an ORC file is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrcError {
    /// The file contradicts the format. The text names the contradiction between the file and the
    /// format.
    Damaged(&'static str),
    /// The file may be intact, but Tamis does not support the file. The text gives the reason and
    /// the correction.
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
