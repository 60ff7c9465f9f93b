//! Why a configuration cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tamis_sources::PlainIo;

/// Why a configuration cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file is no TOML, or a field has another name or type.
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A value cannot be used.
    Value {
        /// The file.
        path: PathBuf,
        /// The table and the field.
        field: String,
        /// What is wrong.
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
