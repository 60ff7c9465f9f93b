//! What the user says of a filter because its bytes do not.

use std::fmt;

use crate::bitcoin::Hash256;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};

/// A fact about a filter that some formats do not write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Parameter {
    /// For how many items it was planned.
    Items,
    /// For which rate it was planned.
    Rate,
    /// Which version of the format it is, or of the program that wrote it.
    Version,
    /// The hash of the block that it is of.
    BlockHash,
    /// Under which key it is stored.
    Key,
    /// Whether its hash is MD5.
    Md5,
}

impl Parameter {
    /// Returns what is asked for, to be read after "its".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Parameter::Items => "planned items",
            Parameter::Rate => "planned rate",
            Parameter::Version => "version",
            Parameter::BlockHash => "block's hash",
            Parameter::Key => "key",
            Parameter::Md5 => "hash",
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is known of a filter besides its bytes, and is needed to read or write it. Nothing is ever guessed: what is needed
/// and not told is [`DecodeErrorKind::Missing`]. What its items are is asked for by nobody but who asks the filter:
/// [`Funnel`](crate::Funnel).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodeOptions {
    /// For how many items it was planned.
    pub items: Option<u64>,
    /// For which rate it was planned.
    pub rate: Option<f64>,
    /// Which version of the format it is, or of the program that wrote it: what a format expects, its page says.
    pub version: Option<Box<str>>,
    /// The hash of the block that it is of.
    pub block_hash: Option<Hash256>,
    /// Under which key it is stored, where a file has many.
    pub key: Option<Vec<u8>>,
    /// Whether several filters are to be put together as one, at the rate that comes of it, where a format has a place
    /// for just one.
    pub union: bool,
    /// Its hash is MD5, where that depends on the release: pybloom_live before 4.
    pub md5: bool,
}

impl DecodeOptions {
    /// Tests whether a fact was given.
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

    /// Returns for how many items a filter was planned.
    pub(crate) fn items(&self) -> Result<u64, DecodeError> {
        self.items.ok_or(missing(Parameter::Items))
    }

    /// Returns for which rate a filter was planned.
    pub(crate) fn rate(&self) -> Result<f64, DecodeError> {
        self.rate.ok_or(missing(Parameter::Rate))
    }

    /// Returns for how many items and at which rate a filter is to be made.
    pub(crate) fn plan(&self) -> Result<(u64, f64), EncodeError> {
        let items = self.items.ok_or(EncodeError::Missing(Parameter::Items))?;
        Ok((items, self.rate.ok_or(EncodeError::Missing(Parameter::Rate))?))
    }

    /// Returns the hash of the block that a filter is of.
    pub(crate) fn block_hash(&self) -> Result<Hash256, DecodeError> {
        self.block_hash.ok_or(missing(Parameter::BlockHash))
    }
}

fn missing(parameter: Parameter) -> DecodeError {
    DecodeError { field: parameter.name(), at: 0, kind: DecodeErrorKind::Missing(parameter) }
}
