//! The errors of decoding a filter.

use std::fmt;
use std::io;

use tamis::{OutOfMemory, PlanError};

use crate::format::parameter::Parameter;

/// The reason why bytes cannot be decoded as a filter of a format.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeError {
    /// The name of the field, as in the documentation of the format.
    pub field: &'static str,
    /// The byte offset of the start of the field.
    pub at: u64,
    /// What is wrong with the field.
    pub kind: DecodeErrorKind,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The file has the magic number of a format other than the expected format.
    OtherFormat,
    /// The version in the file is later than the newest version that this release of Tamis reads.
    Newer {
        /// The version in the file.
        found: u64,
        /// The newest version that this release reads.
        newest: u64,
    },
    /// This release of Tamis does not know the number in the field.
    Unknown {
        /// The number that was found in the file.
        found: u64,
    },
    /// The input ends too early.
    Truncated {
        /// The minimum number of bytes that are needed.
        expected: u64,
        /// The number of bytes in the input.
        found: u64,
    },
    /// Bytes follow the end of the file.
    TooLong {
        /// The number of bytes that the file should have.
        expected: u64,
    },
    /// A checksum does not match.
    Checksum,
    /// Bytes or bits that must be zero are not zero.
    NotZero,
    /// The format does not allow the value of the field.
    Invalid {
        /// The values that the format allows.
        reason: &'static str,
    },
    /// No filter has the sizes in the file.
    Plan(PlanError),
    /// The format does not allow the number in the field.
    Unexpected {
        /// The values that the format allows.
        expected: &'static str,
        /// The number that was found in the file.
        found: i128,
    },
    /// A decode option contradicts the file.
    WrongOption {
        /// The values that the file allows.
        expected: &'static str,
    },
    /// The file does not store a required parameter, and the caller did not give this parameter.
    Missing(Parameter),
    /// The file contains several filters, and the caller gave no key.
    SeveralKeys {
        /// The first keys, and the number of the remaining keys.
        keys: Box<str>,
    },
    /// Tamis cannot use the filter. The text gives the reason and says what to do.
    Refused {
        /// The reason, and what to do.
        why: Box<str>,
    },
    /// No valid filter has the bits in the file, so the file is damaged.
    Damaged {
        /// What is wrong with the bits.
        reason: &'static str,
    },
    /// The filter is larger than the limit of the caller.
    TooLarge {
        /// The size of the filter in bytes.
        bytes: u64,
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// The allocation failed.
    Memory(OutOfMemory),
    /// The words of the file cannot be used in place, that is, without a copy. In-place use needs a little-endian
    /// machine and a start that is aligned to 8 bytes. If in-place use is not possible, decode a copy of the bytes.
    NotInPlace,
}

impl DecodeError {
    /// Returns an error about the field that starts at byte `at`.
    #[must_use]
    pub fn new(field: &'static str, at: usize, kind: DecodeErrorKind) -> Self {
        Self { field, at: at as u64, kind }
    }

    /// Returns the error "the field is not `reason`".
    pub(crate) fn invalid(field: &'static str, at: usize, reason: &'static str) -> Self {
        Self::new(field, at, DecodeErrorKind::Invalid { reason })
    }

    /// Returns an error about bytes after the end of the file at byte `end`.
    pub(crate) fn too_long(field: &'static str, end: u64) -> Self {
        Self { field, at: end, kind: DecodeErrorKind::TooLong { expected: end } }
    }

    /// Returns an error about a number that differs from `expected`.
    pub(crate) fn unexpected(
        field: &'static str,
        at: usize,
        expected: &'static str,
        found: impl Into<i128>,
    ) -> Self {
        Self::new(field, at, DecodeErrorKind::Unexpected { expected, found: found.into() })
    }

    /// Returns an error about a field that cannot be used. `why` is the reason why the field cannot be used.
    pub(crate) fn refused(field: &'static str, at: usize, why: impl Into<String>) -> Self {
        Self::new(field, at, DecodeErrorKind::Refused { why: why.into().into() })
    }

    /// Returns a function that converts an allocation failure to an error about a field.
    pub(crate) fn memory(field: &'static str, at: usize) -> impl FnOnce(OutOfMemory) -> Self {
        move |memory| Self::new(field, at, DecodeErrorKind::Memory(memory))
    }
}

impl DecodeErrorKind {
    /// Converts a [`PlanError`].
    pub(crate) fn of_plan(error: PlanError) -> Self {
        match error {
            PlanError::Memory(memory) => DecodeErrorKind::Memory(memory),
            PlanError::Words { reason, .. } => DecodeErrorKind::Damaged { reason },
            plan => DecodeErrorKind::Plan(plan),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, at, kind } = self;
        match kind {
            DecodeErrorKind::OtherFormat => f.write_str("not a Tamis filter"),
            DecodeErrorKind::Newer { found, newest } => write!(
                f,
                "format version {found} is newer than this release, which reads up to {newest}: \
                use a newer tamis"
            ),
            DecodeErrorKind::Unknown { found } => {
                write!(f, "unknown {field} {found} at byte {at}: damaged, or from a newer tamis")
            }
            DecodeErrorKind::Truncated { expected, found } => write!(
                f,
                "truncated in the {field} at byte {at}: {found} bytes, expected at least {expected}"
            ),
            DecodeErrorKind::TooLong { expected } => {
                write!(f, "damaged: bytes follow the end at byte {expected}")
            }
            DecodeErrorKind::Checksum => {
                write!(f, "damaged: the {field} at byte {at} does not match")
            }
            DecodeErrorKind::NotZero => {
                write!(f, "damaged: the {field} at byte {at} is not zero")
            }
            DecodeErrorKind::Invalid { reason } => {
                write!(f, "damaged: the {field} at byte {at} is not {reason}")
            }
            DecodeErrorKind::Unexpected { expected, found } => {
                write!(f, "the {field} at byte {at} is {found}, expected {expected}")
            }
            DecodeErrorKind::WrongOption { expected } => {
                write!(f, "the given {field} is not that of the file: expected {expected}")
            }
            DecodeErrorKind::Missing(parameter) => {
                write!(f, "the file does not store its {parameter}")
            }
            DecodeErrorKind::SeveralKeys { keys } => {
                write!(f, "the file has several filters: name the {field}, one of {keys}")
            }
            DecodeErrorKind::Refused { why } => write!(f, "{why} (byte {at})"),
            DecodeErrorKind::Damaged { reason } => write!(f, "damaged: {reason} (byte {at})"),
            DecodeErrorKind::Plan(error) => write!(f, "damaged: {error} (byte {at})"),
            DecodeErrorKind::TooLarge { bytes, max_bytes } => {
                write!(f, "a filter of {bytes} bytes is larger than the limit of {max_bytes} bytes")
            }
            DecodeErrorKind::Memory(OutOfMemory { bytes }) => {
                write!(f, "a filter of {bytes} bytes does not fit in memory")
            }
            DecodeErrorKind::NotInPlace => {
                f.write_str("the filter cannot be used in place on this machine: decode a copy")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// The reason why a filter cannot be read from a stream.
#[derive(Debug)]
pub enum ReadError {
    /// Reading from the stream failed.
    Io(io::Error),
    /// The bytes of the stream are not a filter.
    Decode(DecodeError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => error.fmt(f),
            ReadError::Decode(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

impl From<DecodeError> for ReadError {
    fn from(error: DecodeError) -> Self {
        ReadError::Decode(error)
    }
}
