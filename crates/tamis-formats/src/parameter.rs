//! Parameters of a filter that some files do not store.

use std::fmt;

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
