//! Parameters that the caller supplies because the file does not store them.

use crate::encoding::bitcoin::Hash256;
use crate::errors::{CreateError, DecodeError, DecodeErrorKind};
use crate::filters::{Contents, StoredFilter};
use crate::format::parameter::Parameter;

/// Parameters of a filter that the caller supplies because the file does not store them.
///
/// Tamis never guesses a parameter. If a required parameter is missing, reading fails with
/// [`DecodeErrorKind::Missing`]. The type of the items is not a decode option; see [`Funnel`](crate::Funnel).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodeOptions {
    /// The number of items that the filter was planned for.
    pub items: Option<u64>,
    /// The false positive rate that the filter was planned for.
    pub rate: Option<f64>,
    /// The version of the format, or of the program that wrote the file. The page of each format
    /// lists the values.
    pub version: Option<Box<str>>,
    /// The hash of the block that the filter describes.
    pub block_hash: Option<Hash256>,
    /// The key of the filter, in a file with several keys.
    pub key: Option<Vec<u8>>,
    /// Whether to merge several filters into one filter, for a format that stores one filter. The merged filter has a
    /// higher rate than each of the several filters.
    pub union: bool,
    /// Whether the filter hashes with MD5, as `pybloom_live` before release 4 does.
    pub md5: bool,
}

impl DecodeOptions {
    /// Tests whether the caller gave a parameter.
    #[must_use]
    pub fn has(&self, parameter: Parameter) -> bool {
        match parameter {
            Parameter::Items => self.items.is_some(),
            Parameter::Rate => self.rate.is_some(),
            Parameter::Version => self.version.is_some(),
            Parameter::BlockHash => self.block_hash.is_some(),
            Parameter::Key => self.key.is_some(),
            Parameter::Md5 => self.md5,
        }
    }

    /// Returns the planned items and the planned rate, to decode a filter.
    pub(crate) fn plan_to_decode(&self) -> Result<(u64, f64), DecodeError> {
        let items = self.items.ok_or(missing(Parameter::Items))?;
        Ok((items, self.rate.ok_or(missing(Parameter::Rate))?))
    }

    /// Returns the planned items and the planned rate, to create a filter.
    pub(crate) fn plan(&self) -> Result<(u64, f64), CreateError> {
        let items = self.items.ok_or(CreateError::Missing(Parameter::Items))?;
        Ok((items, self.rate.ok_or(CreateError::Missing(Parameter::Rate))?))
    }

    /// Creates a filter for the planned items and the planned rate.
    pub(crate) fn create<F: StoredFilter>(
        &self,
        create: impl FnOnce(u64, f64) -> Result<F, CreateError>,
    ) -> Result<Contents, CreateError> {
        let (items, rate) = self.plan()?;
        create(items, rate).map(Contents::new)
    }

    /// Returns the hash of the block, to decode a filter.
    pub(crate) fn block_hash(&self) -> Result<Hash256, DecodeError> {
        self.block_hash.ok_or(missing(Parameter::BlockHash))
    }
}

fn missing(parameter: Parameter) -> DecodeError {
    DecodeError::new(parameter.name(), 0, DecodeErrorKind::Missing(parameter))
}
