//! Errors of the decoders.

use std::fmt;

use crate::reply::Reply;

/// The reason why bytes are not a valid request or reply. After a protocol error, the caller must close the connection.
///
/// The text of a request error equals the text of Redis, because clients show the text and users
/// search for the text.
///
/// ```
/// use tamis_resp::{Limits, ProtocolError, RequestDecoder};
///
/// let mut decoder = RequestDecoder::new(Limits::default());
/// let error = decoder.next(b"*1\r\n+PING\r\n", &mut Vec::new()).unwrap_err();
/// assert_eq!(error, ProtocolError::ExpectedBulk { found: b'+' });
/// assert_eq!(error.to_string(), "Protocol error: expected '$', got '+'");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The line with the number of words has no end within 64 KiB.
    LongCount,
    /// The number of words is invalid or above the limit.
    Count,
    /// The number of words is above 10 before the client has authenticated.
    UnauthenticatedCount,
    /// The line with the length of a word has no end within 64 KiB.
    LongBulkLength,
    /// A word of a request does not start with `$`.
    ExpectedBulk {
        /// The first byte of the word.
        found: u8,
    },
    /// The length of a word is invalid, negative or above the limit.
    BulkLength,
    /// The length of a word is above 16,384 bytes before the client has authenticated.
    UnauthenticatedBulkLength,
    /// An inline command has no end within 64 KiB.
    LongInline,
    /// A quote of an inline command is not closed, or no white space follows the closing quote.
    Quotes,
    /// The first byte of a reply is not the type byte of any reply type.
    ReplyType {
        /// The first byte of the reply.
        found: u8,
    },
    /// The bytes after the type byte of a reply are invalid for the type of the reply.
    ReplyValue {
        /// The type byte of the reply.
        of: u8,
    },
    /// Replies are nested deeper than 32 levels.
    DeepReply,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match *self {
            Self::LongCount => f.write_str("too big mbulk count string"),
            Self::Count => f.write_str("invalid multibulk length"),
            Self::UnauthenticatedCount => f.write_str("unauthenticated multibulk length"),
            Self::LongBulkLength => f.write_str("too big bulk count string"),
            Self::ExpectedBulk { found } => {
                write!(f, "expected '$', got '{}'", char::from(found))
            }
            Self::BulkLength => f.write_str("invalid bulk length"),
            Self::UnauthenticatedBulkLength => f.write_str("unauthenticated bulk length"),
            Self::LongInline => f.write_str("too big inline request"),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::ReplyType { found } => {
                write!(f, "no reply starts with '{}'", char::from(found).escape_default())
            }
            Self::ReplyValue { of } => {
                write!(f, "invalid value in a reply of type '{}'", char::from(of))
            }
            Self::DeepReply => f.write_str("a reply is nested deeper than 32 levels"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Creates the reply that a server sends before closing the connection.
impl From<ProtocolError> for Reply {
    fn from(error: ProtocolError) -> Self {
        Self::error(format!("ERR {error}"))
    }
}
