//! Why bytes are not the protocol.

use std::fmt;

use crate::Reply;

/// Why bytes are no request or no reply. A connection cannot go on after it.
///
/// A request's error says what Redis says, to the letter, since clients show it to people who search for it.
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
    /// The line with the number of words does not end within 64 KiB.
    LongCount,
    /// The number of words is no number, or above the limit.
    Count,
    /// The number of words is above 10 before the client has authenticated.
    UnauthenticatedCount,
    /// The line with the length of a word does not end within 64 KiB.
    LongBulkLength,
    /// A word of a request does not start with `$`.
    ExpectedBulk {
        /// What it starts with.
        found: u8,
    },
    /// The length of a word is no number, negative, or above the limit.
    BulkLength,
    /// The length of a word is above 16,384 bytes before the client has authenticated.
    UnauthenticatedBulkLength,
    /// An inline command does not end within 64 KiB.
    LongInline,
    /// A quote of an inline command is not closed, or more than white space follows it at once.
    Quotes,
    /// No type of reply starts with this byte.
    ReplyType {
        /// The byte.
        found: u8,
    },
    /// What follows the first byte of a reply is not what this type has.
    ReplyValue {
        /// The first byte.
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

/// The reply after which a server closes the connection.
impl From<ProtocolError> for Reply {
    fn from(error: ProtocolError) -> Self {
        Self::error(format!("ERR {error}"))
    }
}
