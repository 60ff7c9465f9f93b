//! The errors of saving a filter to a file and of loading a filter from a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tamis::Kind;

use crate::errors::decode::DecodeError;

/// The reason why a filter cannot be saved to a file or loaded from a file.
#[derive(Debug)]
pub struct FileError {
    /// The path of the file.
    pub path: PathBuf,
    /// What went wrong.
    pub kind: FileErrorKind,
}

/// What went wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The file cannot be read.
    Read(io::Error),
    /// The file cannot be written. The previous file is unchanged.
    Write(io::Error),
    /// The file was replaced, but the operating system did not confirm that the folder of the file
    /// is on disk. After a power failure, the file may be the previous file.
    SyncFolder(io::Error),
    /// The path is not the path of a regular file, for example of a folder or of a device.
    NotAFile,
    /// The bytes of the file are not a Tamis file.
    Decode(DecodeError),
    /// The file contains a filter of another kind than the type.
    Kind {
        /// The kind of the type.
        expected: Kind,
        /// The kind of the filter in the file.
        found: Kind,
    },
}

impl FileErrorKind {
    pub(crate) fn at(self, path: &Path) -> FileError {
        FileError { path: path.to_owned(), kind: self }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            FileErrorKind::Read(error) => write!(f, "the file cannot be read: {error}"),
            FileErrorKind::Write(error) => {
                write!(f, "the file cannot be written: {error}; a previous file is unchanged")
            }
            FileErrorKind::SyncFolder(error) => write!(
                f,
                "the file was written, but its folder cannot be synced: {error}; after a power \
                 failure, the file may be the previous file: save again"
            ),
            FileErrorKind::NotAFile => f.write_str("the path is not a regular file"),
            FileErrorKind::Decode(error) => error.fmt(f),
            FileErrorKind::Kind { expected, found } => write!(
                f,
                "the file contains a {found} filter, and the program expects a {expected} filter: \
                 load the file as AnyFilter, or as the type of a {found} filter"
            ),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            FileErrorKind::Read(error)
            | FileErrorKind::Write(error)
            | FileErrorKind::SyncFolder(error) => Some(error),
            FileErrorKind::Decode(error) => Some(error),
            FileErrorKind::NotAFile | FileErrorKind::Kind { .. } => None,
        }
    }
}
