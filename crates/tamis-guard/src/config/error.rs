//! The errors of a configuration.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tamis_sources::PlainIo;

/// The reason why a configuration cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file is not valid TOML, or a field has an unknown name or a wrong type.
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The column number in characters, starting at 1.
        column: usize,
        /// The error message.
        message: String,
    },
    /// A value is invalid.
    Value {
        /// The path of the file.
        path: PathBuf,
        /// The name of the table and the field.
        field: String,
        /// The error message.
        message: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {}", path.display(), PlainIo(error)),
            Self::Syntax { path, line, column, message } => {
                write!(f, "{}:{line}:{column}: {message}", path.display())
            }
            Self::Value { path, field, message } => {
                write!(f, "{}: {field}: {message}", path.display())
            }
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
