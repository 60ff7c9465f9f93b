//! The reason why bytes are not an image.

use std::{fmt, io};

use tamis_formats::module_value::ModuleValueError;
use tamis_formats::{DecodeErrorKind, ReadError};
use tamis_redisbloom::RedisHeaderError;

/// The reason why bytes are not an image of a value.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes cannot be read, or the bytes end too early.
    Io(io::Error),
    /// The bytes contain a value that no server writes.
    Value,
    /// There is not enough memory for the value.
    Memory,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::Io(error) => error.fmt(f),
            ImageError::Value => f.write_str("this is no value that a server writes"),
            ImageError::Memory => f.write_str("there is not enough memory for it"),
        }
    }
}

impl std::error::Error for ImageError {}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> Self {
        ImageError::Io(error)
    }
}

impl From<ReadError> for ImageError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => ImageError::Io(error),
            ReadError::Decode(error) if matches!(error.kind, DecodeErrorKind::Memory(_)) => {
                ImageError::Memory
            }
            ReadError::Decode(_) => ImageError::Value,
        }
    }
}

impl From<ModuleValueError> for ImageError {
    fn from(error: ModuleValueError) -> Self {
        match error {
            ModuleValueError::Value => ImageError::Value,
            ModuleValueError::Memory => ImageError::Memory,
        }
    }
}

impl From<RedisHeaderError> for ImageError {
    fn from(error: RedisHeaderError) -> Self {
        ModuleValueError::from(error).into()
    }
}
