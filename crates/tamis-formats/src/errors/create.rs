//! The error of creating an empty filter.

use std::fmt;

use tamis::OutOfMemory;

use crate::format::parameter::Parameter;

/// The reason why an empty filter cannot be created.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// A required parameter is missing.
    Missing(Parameter),
    /// The original system has no filter with the given parameters. The text names the limit and
    /// what to change.
    Refused(Box<str>),
    /// The allocation failed.
    Memory(OutOfMemory),
}

impl CreateError {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        CreateError::Refused(why.into().into())
    }

    /// Checks a plan: `items` is at least 1, and `rate` is above 0 and below 1.
    pub(crate) fn check_plan(system: &str, items: u64, rate: f64) -> Result<(), Self> {
        if rate > 0.0 && rate < 1.0 && items > 0 {
            return Ok(());
        }
        Err(Self::refused(format!(
            "{system} has no filter of {items} items at a rate of {rate}: plan at least one item, \
            and a rate above 0 and below 1"
        )))
    }
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::Missing(parameter) => write!(f, "this format needs its {parameter}"),
            CreateError::Refused(why) => f.write_str(why),
            CreateError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CreateError {}

impl From<OutOfMemory> for CreateError {
    fn from(error: OutOfMemory) -> Self {
        CreateError::Memory(error)
    }
}
