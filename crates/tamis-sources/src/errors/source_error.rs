//! The errors of a source.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tamis::PlanError;
use tamis_formats::ReadError;

use crate::errors::escaped::Escaped;
use crate::errors::plain_io::PlainIo;
#[cfg(feature = "databases")]
use crate::errors::redis_error::RedisSourceError;

/// The reason why a read of a source failed. After an error, the set keeps its present ids.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceError {
    /// The operating system refused to open or read a file.
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The path names a directory, a pipe or a device.
    NotAFile(PathBuf),
    /// The file is not a valid CSV file.
    Csv(csv::Error),
    /// The file is not a valid Parquet file, or its column cannot be read as ids.
    #[cfg(feature = "databases")]
    Parquet(parquet::errors::ParquetError),
    /// The CSV or Parquet file does not contain this column.
    NoColumn(String),
    /// The file is not a valid filter file.
    Filter(ReadError),
    /// The filter forgets items, so an id that is not in the filter may still exist.
    Forgets,
    /// The source is a filter, which cannot list its ids.
    NoList,
    /// The list contains fewer ids than the source expects.
    TooFew {
        /// The number of ids in the list.
        items: u64,
        /// The minimum number of ids that the source publishes.
        least: u64,
    },
    /// Too many rows of the list are not valid ids.
    Invalid {
        /// The number of rows that are not valid ids.
        invalid: u64,
        /// The number of all rows.
        rows: u64,
    },
    /// The system has no memory for a filter.
    Plan(PlanError),
    /// SQLite returned an error.
    #[cfg(feature = "databases")]
    Sqlite(rusqlite::Error),
    /// A connection to the database failed, or a query failed. The message comes from the server or from the operating
    /// system.
    Connect(String),
    /// The source cannot read all changes, because of the URL, the table, a setting of the server or the privileges of
    /// the user. The error message tells the operator what to change, often as SQL.
    Preflight(String),
    /// The source must read all ids again, because the table or the log has changed. The error message states the
    /// reason for the full read.
    Reread(String),
    /// The error of a source kind that another crate implements.
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// The filter on a Redis server cannot be read.
    #[cfg(feature = "databases")]
    Redis {
        /// The URL of the key, without user name and password.
        name: String,
        /// The error of the read.
        error: RedisSourceError,
    },
    /// The reader panicked, because the source sent malformed data or because the program has a bug. The source starts
    /// a new reader.
    Panicked,
    /// The read was stopped.
    Stopped,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => {
                write!(f, "cannot read {}: {}", path.display(), PlainIo(error))
            }
            Self::NotAFile(path) => write!(f, "{} is not a regular file", path.display()),
            Self::Csv(error) => write!(f, "cannot read the CSV file: {error}"),
            #[cfg(feature = "databases")]
            Self::Parquet(error) => {
                let message = error.to_string();
                // The message for a damaged file may contain bytes of the file.
                let line = message.split(char::is_control).find(|line| !line.trim().is_empty());
                write!(f, "cannot read the Parquet file: {}", line.unwrap_or_default())
            }
            Self::NoColumn(name) => write!(f, "the file has no column `{name}`"),
            Self::Filter(error) => write!(f, "cannot read the filter file: {error}"),
            Self::Forgets => f.write_str(
                "the filter file is a window, which forgets items; build one without --window",
            ),
            Self::NoList => f.write_str(
                "a filter has no list of its ids; audit it with ids that exist: tamis guard audit --ids FILE",
            ),
            Self::TooFew { items, least } => write!(
                f,
                "the list has {items} ids, at least {least} are expected; \
                 lower `min_items` or `min_share` if it is complete"
            ),
            Self::Invalid { invalid, rows } => write!(
                f,
                "{invalid} of {rows} rows are no ids; check the type of the ids and the format"
            ),
            Self::Plan(error) => write!(f, "cannot create a filter: {error}"),
            #[cfg(feature = "databases")]
            Self::Sqlite(error) => write!(f, "cannot read the database: {error}"),
            Self::Connect(error) => write!(f, "the database cannot be read: {}", Escaped(error)),
            Self::Preflight(message) | Self::Reread(message) => Escaped(message).fmt(f),
            Self::Other(error) => error.fmt(f),
            #[cfg(feature = "databases")]
            Self::Redis { name, error } => write!(f, "{name}: {error}"),
            Self::Panicked => f.write_str(
                "the reader of the source panicked, and the guard has started another one; report the panic \
                 on standard error",
            ),
            Self::Stopped => f.write_str("the source was stopped"),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Csv(error) => Some(error),
            Self::Filter(error) => Some(error),
            Self::Plan(error) => Some(error),
            Self::Other(error) => Some(&**error),
            #[cfg(feature = "databases")]
            Self::Sqlite(error) => Some(error),
            _ => None,
        }
    }
}

impl From<PlanError> for SourceError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<csv::Error> for SourceError {
    fn from(error: csv::Error) -> Self {
        Self::Csv(error)
    }
}

#[cfg(feature = "databases")]
impl From<parquet::errors::ParquetError> for SourceError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Parquet(error)
    }
}

#[cfg(feature = "databases")]
impl From<rusqlite::Error> for SourceError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
