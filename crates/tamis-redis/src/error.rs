//! The errors of operations on a filter.

use std::fmt;
use std::sync::Arc;

use crate::layouts::metadata::RedisMetadataError;
use crate::layouts::shard_keys::NameError;
use crate::transport::server_url::ServerUrlError;

/// The reason why one item of a batch has no result. All other items of the batch still get their
/// results.
///
/// A program can repeat an operation safely. If an insert fails, the server may still have inserted
/// the item. A repeated insert may therefore report that the item is not new.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisItemError {
    /// The key of a shard is missing: the server evicted the key, the key expired, or a client
    /// deleted the key. The items of the shard are lost.
    MissingShard {
        /// The key that caused the error.
        key: Arc<str>,
    },
    /// The metadata of the filter is missing: the metadata expired, or a client deleted the
    /// metadata.
    NoFilter {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// A client deleted the filter and created another filter with another hash function or window.
    /// To use the new filter, open the filter again.
    Replaced {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// No rebuild is running, because another client ended the rebuild.
    NoRebuild {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// The settings of a Redisson filter changed after the client opened the filter.
    ConfigChanged {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// The metadata of the filter has a wrong format.
    Metadata {
        /// The name of the filter.
        name: Arc<str>,
        /// The reason of the error.
        source: RedisMetadataError,
    },
    /// The key holds a value of another type.
    WrongType {
        /// The key that caused the error.
        key: Arc<str>,
    },
    /// The server replied with an error.
    Server {
        /// The key that caused the error.
        key: Arc<str>,
        /// The first word of the error message.
        code: Arc<str>,
        /// The error message after the first word.
        message: Arc<str>,
    },
    /// The connection failed, or the reply did not arrive in time.
    Connection {
        /// The error of the connection.
        message: Arc<str>,
    },
    /// The URL of the nodes is not valid. Only
    /// [`RedisNodes::connect`](crate::RedisNodes::connect) returns this error.
    Url(ServerUrlError),
    /// Other clients changed the filter repeatedly during the operation, or each attempt took
    /// longer than a slice of the window.
    Unsettled,
}

impl From<ServerUrlError> for RedisItemError {
    fn from(error: ServerUrlError) -> Self {
        Self::Url(error)
    }
}

impl RedisItemError {
    pub(crate) fn of_server(key: &[u8], code: &str, message: &str) -> Self {
        let key = printable(key);
        match code {
            "WRONGTYPE" => Self::WrongType { key },
            _ => Self::Server { key, code: code.into(), message: message.into() },
        }
    }

    pub(crate) fn unexpected(key: &[u8], what: &str) -> Self {
        Self::of_server(key, "reply", what)
    }
}

/// Returns a key as text for messages.
pub(crate) fn printable(key: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(key).into()
}

impl fmt::Display for RedisItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingShard { key } => write!(
                f,
                "the key {key:?} of the filter is missing: it was evicted, expired or deleted, and \
                 its items are lost; build the filter again, and set maxmemory-policy noeviction"
            ),
            Self::NoFilter { name } => {
                write!(f, "there is no filter {name:?}: it expired or was deleted")
            }
            Self::Replaced { name } => write!(
                f,
                "the filter {name:?} was deleted and created with another hash function: open it \
                 again"
            ),
            Self::NoRebuild { name } => {
                write!(f, "no rebuild of the filter {name:?} is running: start it again")
            }
            Self::ConfigChanged { name } => {
                write!(f, "the settings of the filter {name:?} were changed: open it again")
            }
            Self::Metadata { name, source } => write!(f, "the key {name:?}: {source}"),
            Self::WrongType { key } => {
                write!(f, "the key {key:?} holds another type of value: delete or rename it")
            }
            Self::Server { key, code, message } => write!(f, "the key {key:?}: {code} {message}"),
            Self::Connection { message } => write!(f, "the connection to Redis failed: {message}"),
            Self::Url(error) => error.fmt(f),
            Self::Unsettled => f.write_str(
                "other clients kept changing the filter, or each attempt took longer than a slice \
                 of the window: try again",
            ),
        }
    }
}

impl std::error::Error for RedisItemError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Metadata { source, .. } => Some(source),
            Self::Url(error) => Some(error),
            _ => None,
        }
    }
}

/// The reason why a filter was not created.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisCreateError {
    /// The name is not valid.
    Name(NameError),
    /// The key with the name of the filter exists. The failed creation did not change this key.
    Exists {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// The server or the connection failed.
    Redis(RedisItemError),
}

/// The reason why a filter was not opened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisOpenError {
    /// The name is not valid.
    Name(NameError),
    /// No filter has this name.
    NotFound {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// The string at the key is not the metadata of a filter.
    Metadata {
        /// The name of the filter.
        name: Arc<str>,
        /// The reason of the error.
        source: RedisMetadataError,
    },
    /// The filter format of the Java program does not allow the plan.
    Plan {
        /// The reason of the error.
        why: String,
    },
    /// The filter and the plan have different parameters.
    Differs {
        /// The name of the filter.
        name: Arc<str>,
        /// The parameters that differ.
        differences: Vec<Difference>,
    },
    /// The server or the connection failed.
    Redis(RedisItemError),
}

/// A parameter whose value in Redis differs from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the parameter.
    pub parameter: &'static str,
    /// The value of the plan.
    pub planned: String,
    /// The value in Redis.
    pub found: String,
}

impl Difference {
    /// Compares two values. Returns `None` if the values are equal.
    pub(crate) fn of<T: PartialEq + fmt::Debug>(
        parameter: &'static str,
        planned: &T,
        found: &T,
    ) -> Option<Self> {
        (planned != found).then(|| Self {
            parameter,
            planned: format!("{planned:?}"),
            found: format!("{found:?}"),
        })
    }

    /// Collects the differences from the results of several comparisons.
    pub(crate) fn all(compared: impl IntoIterator<Item = Option<Self>>) -> Vec<Self> {
        compared.into_iter().flatten().collect()
    }

    /// Returns a list of differences as text for messages.
    pub(crate) fn list(differences: &[Self]) -> String {
        differences.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl RedisOpenError {
    /// Returns an error if the list of differences is not empty.
    pub(crate) fn check(name: &[u8], differences: Vec<Difference>) -> Result<(), Self> {
        match differences.is_empty() {
            true => Ok(()),
            false => Err(Self::Differs { name: printable(name), differences }),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, planned {}", self.parameter, self.found, self.planned)
    }
}

impl fmt::Display for RedisCreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Exists { name } => write!(f, "the key {name:?} exists: open it, or delete it"),
            Self::Redis(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for RedisOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::NotFound { name } => write!(f, "there is no filter {name:?}: create it"),
            Self::Metadata { name, source } => write!(f, "the key {name:?}: {source}"),
            Self::Plan { why } => f.write_str(why),
            Self::Differs { name, differences } => {
                let differences = Difference::list(differences);
                write!(f, "the filter {name:?} differs from the plan: {differences}")
            }
            Self::Redis(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisCreateError {}
impl std::error::Error for RedisOpenError {}

impl From<NameError> for RedisCreateError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<RedisItemError> for RedisCreateError {
    fn from(error: RedisItemError) -> Self {
        Self::Redis(error)
    }
}

impl From<NameError> for RedisOpenError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<RedisItemError> for RedisOpenError {
    fn from(error: RedisItemError) -> Self {
        Self::Redis(error)
    }
}

impl RedisItemError {
    /// Tests whether the error says that the server does not support the command. Redis has no
    /// error code for an unknown command.
    #[must_use]
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Server { message, .. } if message.starts_with("unknown command"))
    }
}
