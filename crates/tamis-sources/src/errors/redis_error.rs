//! The errors of reading a filter from a Redis server.

use std::fmt;
use std::io;

use tamis::PlanError;
use tamis_formats::{DecodeError, PayloadError};
use tamis_redis::{KeyUrlError, RedisCopyError};
use tamis_resp::ProtocolError;

use crate::errors::plain_io::PlainIo;

/// The formats of strings that the source reads.
pub(crate) const FORMATS: [&str; 3] = ["redis-bitmap", "redis-bits", "java-bitmap"];

/// The reason why a filter cannot be read from a Redis server. After an error, the set keeps its present ids.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedisSourceError {
    /// The URL is invalid.
    Url(KeyUrlError),
    /// The connection failed, or no connection exists.
    Io(io::Error),
    /// The server sent no bytes within the time limit.
    Silent,
    /// The TLS connection cannot be opened.
    Tls(String),
    /// The server refused a command.
    Server(String),
    /// The key is on another node of a cluster.
    Moved(String),
    /// The server sent bytes that are not a valid reply.
    Protocol(ProtocolError),
    /// The server sent an unexpected reply. The text names the expected reply.
    Unexpected(&'static str),
    /// The server is a replica, or was a replica when the source asked for its role.
    Replica,
    /// The user may not run the command that returns the role of the server.
    NoRole(String),
    /// The value exceeds the maximum size in the settings.
    TooLarge {
        /// The maximum size in bytes.
        max_bytes: u64,
    },
    /// The key does not exist on the server.
    NoKey,
    /// The key holds a value that is not a filter.
    OtherType(String),
    /// The key holds a string, and the settings do not name its format.
    NoFormat,
    /// The settings do not define how ids are converted to bytes.
    NoFunnel,
    /// The filter forgets items over time, but a copy of the filter would not forget items.
    Window,
    /// The value is damaged, or the settings do not match the filter.
    Decode(DecodeError),
    /// The result of `DUMP` is not a filter.
    Payload(PayloadError),
    /// The filter of `tamis-redis` cannot be copied.
    Copy(RedisCopyError),
    /// The filter contains fewer ids than the source expects.
    TooFew {
        /// The number of ids in the filter.
        items: u64,
        /// The minimum number of ids that the source publishes.
        least: u64,
    },
    /// The system has no memory for a filter.
    Plan(PlanError),
    /// The source was stopped.
    Stopped,
}

impl RedisSourceError {
    /// Converts an error reply of the server to an error of the source.
    pub(crate) fn of_server(message: &str) -> Self {
        // The server may send terminal control codes and a text of any length.
        let plain: String = message.chars().filter(|it| !it.is_control()).take(200).collect();
        let mut words = plain.split(' ');
        match (words.next(), words.nth(1)) {
            (Some("MOVED" | "ASK"), Some(address)) => Self::Moved(address.to_owned()),
            _ => Self::Server(plain),
        }
    }
}

impl fmt::Display for RedisSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::Io(error) => write!(f, "the connection failed: {}", PlainIo(error)),
            Self::Silent => f.write_str("the server does not answer"),
            Self::Tls(why) => write!(f, "cannot set up TLS: {why}"),
            Self::Server(message) if message.starts_with("NOAUTH") => {
                f.write_str("the server requires a password: write redis://USER:PASSWORD@HOST/KEY")
            }
            Self::Server(message) => write!(f, "the server returned an error: {message}"),
            Self::Moved(address) => write!(
                f,
                "the key is on the node {address} of a cluster, and the guard reads one server: \
                 write the address of that node in the URL"
            ),
            Self::Protocol(error) => write!(f, "the server sent an invalid reply: {error}"),
            Self::Unexpected(expected) => {
                write!(f, "the server sent an unexpected reply instead of {expected}")
            }
            Self::Replica => f.write_str(
                "the server is a replica, and a replica lags behind its primary; write the address of the primary in \
                 the URL",
            ),
            Self::NoRole(message) => write!(
                f,
                "the guard cannot ask whether the server is a primary ({message}); run: ACL SETUSER the-user +info"
            ),
            Self::TooLarge { max_bytes } => {
                write!(f, "the value is larger than {max_bytes} bytes; raise `max_size`")
            }
            Self::NoKey => f.write_str("there is no such key"),
            Self::OtherType(kind) => write!(f, "the key holds a {kind}, not a filter"),
            Self::NoFormat => write!(
                f,
                "the key holds a string, which does not show the format of its bits: set `format` \
                 to one of {}",
                FORMATS.join(", ")
            ),
            Self::NoFunnel => f.write_str(
                "the filter does not store how the program encodes ids to bytes: set `funnel`, \
                 such as funnel = \"long\"",
            ),
            Self::Window => f.write_str(
                "the filter is a window, which forgets items; use a filter without a window",
            ),
            Self::Decode(error) => write!(f, "cannot decode the value as a filter: {error}"),
            Self::Payload(error) => write!(f, "cannot decode the value as a filter: {error}"),
            Self::Copy(error) => error.fmt(f),
            Self::TooFew { items, least } => {
                write!(f, "the filter has {items} ids, but at least {least} are expected")
            }
            Self::Plan(error) => write!(f, "cannot create a filter: {error}"),
            Self::Stopped => f.write_str("the source was stopped"),
        }
    }
}

impl std::error::Error for RedisSourceError {}

impl From<KeyUrlError> for RedisSourceError {
    fn from(error: KeyUrlError) -> Self {
        Self::Url(error)
    }
}

impl From<io::Error> for RedisSourceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ProtocolError> for RedisSourceError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl From<DecodeError> for RedisSourceError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<PayloadError> for RedisSourceError {
    fn from(error: PayloadError) -> Self {
        Self::Payload(error)
    }
}

impl From<RedisCopyError> for RedisSourceError {
    fn from(error: RedisCopyError) -> Self {
        match error {
            RedisCopyError::Window => Self::Window,
            error => Self::Copy(error),
        }
    }
}

impl From<PlanError> for RedisSourceError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
