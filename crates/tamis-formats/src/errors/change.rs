//! The error of an insert or a merge.

use std::fmt;

use tamis::OutOfMemory;

/// The reason why items cannot be inserted, or why filters cannot merge.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The format or the original system does not support the change. The text gives the reason and says what to do.
    Refused(Box<str>),
    /// The filter has no space for more items. The text gives the reason and says what to do.
    Full(Box<str>),
    /// The allocation failed.
    Memory(OutOfMemory),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Refused(why) | ChangeError::Full(why) => f.write_str(why),
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
