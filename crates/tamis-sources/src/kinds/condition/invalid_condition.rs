//! The error for a condition that a source cannot evaluate.

use std::fmt;

use crate::errors::source_error::SourceError;

/// The error for a condition that a source cannot evaluate for rows of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCondition(String);

impl InvalidCondition {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }

    /// Returns the error of a source that has this condition.
    pub(crate) fn into_error(self) -> SourceError {
        SourceError::Preflight(format!("where: {self}"))
    }
}

impl fmt::Display for InvalidCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidCondition {}
