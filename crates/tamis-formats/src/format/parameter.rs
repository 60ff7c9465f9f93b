//! Parameters of a filter that some files do not store.

use std::fmt;

/// A parameter of a filter that some formats do not store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Parameter {
    /// The number of items that the filter was planned for.
    Items,
    /// The false positive rate that the filter was planned for.
    Rate,
    /// The version of the format, or of the program that wrote the file.
    Version,
    /// The hash of the block that the filter describes.
    BlockHash,
    /// The key of the filter.
    Key,
    /// Whether the filter hashes with MD5.
    Md5,
}

impl Parameter {
    /// Returns the name in a form that fits after the word "its", as in "its planned rate".
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
