//! Why a filter cannot be changed.

use std::fmt;

use tamis::OutOfMemory;

/// Why items cannot be inserted, or filters cannot merge.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The format or the original system cannot do it. The text is the reason, and what to do.
    Refused(Box<str>),
    /// The allocation failed.
    Memory(OutOfMemory),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Refused(why) => f.write_str(why),
            ChangeError::Memory(OutOfMemory { bytes }) => {
                write!(f, "cannot allocate {bytes} more bytes")
            }
        }
    }
}

impl std::error::Error for ChangeError {}

impl ChangeError {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        ChangeError::Refused(why.into().into())
    }
}
