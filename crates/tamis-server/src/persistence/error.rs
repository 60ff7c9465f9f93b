//! The errors in the data files of a server.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::system::system_error::without_code;

/// The reason why the data files of a server cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum DurabilityError {
    /// A file cannot be read or written.
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The cause of the I/O error.
        error: io::Error,
    },
    /// Another server uses the folder.
    Locked {
        /// The path of the folder.
        path: PathBuf,
    },
    /// A file is damaged, and synced data is lost.
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The offset of the first damaged byte.
        at: u64,
        /// The kind of damage.
        what: String,
    },
    /// A required file is missing.
    Missing {
        /// The path of the file.
        path: PathBuf,
        /// The role of the file.
        what: &'static str,
    },
    /// A version of Tamis with a different file format wrote the file.
    Version {
        /// The path of the file.
        path: PathBuf,
    },
}

impl DurabilityError {
    /// Returns a function that adds a path to an I/O error.
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |error| DurabilityError::Io { path: path.to_owned(), error }
    }

    pub(super) fn damaged(path: &Path, at: u64, what: impl Into<String>) -> Self {
        DurabilityError::Damaged { path: path.to_owned(), at, what: what.into() }
    }
}

impl fmt::Display for DurabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match self {
            DurabilityError::Io { path, .. }
            | DurabilityError::Locked { path }
            | DurabilityError::Damaged { path, .. }
            | DurabilityError::Missing { path, .. }
            | DurabilityError::Version { path } => path,
        };
        let what = match self {
            DurabilityError::Io { error, .. } => without_code(error),
            DurabilityError::Locked { .. } => {
                "another server uses this folder; stop it or choose another --dir".to_owned()
            }
            DurabilityError::Damaged { at, what, .. } => format!("damaged at byte {at}: {what}"),
            DurabilityError::Missing { what, .. } => format!("{what} is missing"),
            DurabilityError::Version { .. } => "not a file of this version of tamis; use the \
                version that wrote it, or another --dir"
                .to_owned(),
        };
        write!(f, "{}: {what}", path.display())?;
        if !matches!(self, DurabilityError::Damaged { .. } | DurabilityError::Missing { .. }) {
            return Ok(());
        }
        let dir = path.parent().unwrap_or(path).display();
        write!(
            f,
            "; restore the folder from a backup, or keep what is valid: tamis check-data --repair \
             {dir}"
        )
    }
}

impl std::error::Error for DurabilityError {}
