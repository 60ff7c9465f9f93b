//! The errors of a snapshot.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tamis_formats::ReadError;

use crate::errors::escaped::Escaped;
use crate::errors::plain_io::PlainIo;

/// The reason why a snapshot cannot be read, written or used. Without a usable snapshot, the guard reads all ids from
/// its source.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A file cannot be read or written.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The stream returned an I/O error.
    Io(io::Error),
    /// The bytes do not start with the magic number of a snapshot.
    NotASnapshot,
    /// The snapshot has an unsupported version, because another release wrote it.
    Version {
        /// The version in the file.
        found: u32,
        /// The version that this release supports.
        known: u32,
    },
    /// The file ends too early.
    Truncated,
    /// The file has more bytes after the end of the snapshot.
    TooLong,
    /// The snapshot is larger than the caller allows.
    TooLarge {
        /// The maximum size in bytes.
        max_bytes: u64,
    },
    /// A field has an invalid value.
    Invalid(&'static str),
    /// A filter in the snapshot is damaged.
    Filter(ReadError),
    /// The checksum does not match.
    Checksum,
    /// The id type, the source or the rate of the snapshot differs from the settings of the set.
    Other {
        /// The name of the field that differs.
        field: &'static str,
        /// The value in the snapshot.
        found: String,
        /// The value that the guard expects.
        expected: String,
    },
    /// The change stream of the source does not contain the position of the snapshot.
    Outdated(String),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => {
                write!(f, "the snapshot {}: {}", path.display(), PlainIo(error))
            }
            Self::Io(error) => write!(f, "the snapshot cannot be read: {}", PlainIo(error)),
            Self::NotASnapshot => f.write_str("this is not a snapshot of a guard"),
            Self::Version { found, known } => {
                write!(f, "the snapshot has version {found}, this release reads version {known}")
            }
            Self::Truncated => f.write_str("the snapshot is incomplete"),
            Self::TooLong => f.write_str("the snapshot is damaged: bytes follow its end"),
            Self::TooLarge { max_bytes } => {
                write!(f, "the snapshot is larger than {max_bytes} bytes")
            }
            Self::Invalid(field) => write!(f, "the snapshot is damaged: its {field} is invalid"),
            Self::Filter(error) => write!(f, "a filter of the snapshot is damaged: {error}"),
            Self::Checksum => f.write_str("the snapshot is damaged: its checksum differs"),
            Self::Other { field, found, expected } => {
                write!(f, "the snapshot has another {field}: {found}, and not {expected}")
            }
            Self::Outdated(reason) => {
                write!(f, "the snapshot cannot be continued: {}", Escaped(reason))
            }
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } | Self::Io(error) => Some(error),
            Self::Filter(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Io(error),
        }
    }
}

impl From<ReadError> for SnapshotError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error.into(),
            error @ ReadError::Decode(_) => Self::Filter(error),
        }
    }
}
