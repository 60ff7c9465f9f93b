//! The error of writing a filter in a format.

use std::fmt;
use std::io;

use crate::errors::create::CreateError;
use crate::format::parameter::Parameter;

/// The reason why a filter cannot be written in a format.
#[derive(Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// The bits of the filter cannot be converted to the format. The format stores a different kind of filter, or
    /// computes different probes for an item. A new filter of the format can be built from the items. The text gives
    /// the reason.
    NeedsItems(Box<str>),
    /// The format cannot store the given filter. The text gives the reason and says what to do.
    Refused(Box<str>),
    /// The file holds several filters, but the format stores one filter. The caller can merge the filters with
    /// [`DecodeOptions::union`](crate::DecodeOptions::union), or build a new filter from the items.
    Several {
        /// The number of filters.
        filters: usize,
        /// The false positive rate of the merged filter.
        rate: f64,
    },
    /// A required parameter is missing.
    Missing(Parameter),
    /// The bytes could not be written.
    Io(io::Error),
}

impl EncodeError {
    pub(crate) fn needs_items(why: impl Into<String>) -> Self {
        EncodeError::NeedsItems(why.into().into())
    }

    pub(crate) fn refused(why: impl Into<String>) -> Self {
        EncodeError::Refused(why.into().into())
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::NeedsItems(why) => write!(f, "{why}: build one from the items"),
            EncodeError::Refused(why) => f.write_str(why),
            EncodeError::Several { filters, rate } => write!(
                f,
                "the format stores one filter, and these are {filters}: a union of their bits has \
                a false positive rate of {rate:.3}; set the option `union`, or build one from the \
                items"
            ),
            EncodeError::Missing(parameter) => write!(f, "this format needs its {parameter}"),
            EncodeError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EncodeError {}

impl From<CreateError> for EncodeError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Missing(parameter) => EncodeError::Missing(parameter),
            error => EncodeError::refused(error.to_string()),
        }
    }
}

impl From<io::Error> for EncodeError {
    fn from(error: io::Error) -> Self {
        EncodeError::Io(error)
    }
}
