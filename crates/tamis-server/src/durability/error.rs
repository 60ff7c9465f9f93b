//! What goes wrong with the files of a server.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the files of a server cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum DurabilityError {
    /// A file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another server uses the folder.
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A file is damaged, and more than its end.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first byte that cannot be.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A file was written by another version.
    Version {
        /// The file.
        path: PathBuf,
    },
}

impl DurabilityError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |error| DurabilityError::Io { path: path.into(), error }
    }
}

impl fmt::Display for DurabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurabilityError::Io { path, error } => {
                // Without Rust's "(os error 2)".
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or(&text);
                write!(f, "{}: {text}", path.display())
            }
            DurabilityError::Locked { path } => write!(
                f,
                "{}: another server uses this folder; stop it or choose another --dir",
                path.display()
            ),
            DurabilityError::Damaged { path, at, what } => write!(
                f,
                "{}: damaged at byte {at}: {what}; restore the folder from a backup, or move it away to \
                 start empty",
                path.display()
            ),
            DurabilityError::Version { path } => write!(
                f,
                "{}: no file of this version of tamis: use the version that wrote it, or another --dir",
                path.display()
            ),
        }
    }
}

impl std::error::Error for DurabilityError {}
