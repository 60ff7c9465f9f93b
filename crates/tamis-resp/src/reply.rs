//! The values that a server sends as replies.

use std::borrow::Cow;

/// The protocol version that a client selected with `HELLO`.
///
/// ```
/// use tamis_resp::{Protocol, Reply};
///
/// let (mut old, mut new) = (Vec::new(), Vec::new());
/// Reply::Bool(true).encode(Protocol::Resp2, &mut old);
/// Reply::Bool(true).encode(Protocol::Resp3, &mut new);
/// assert_eq!((&old[..], &new[..]), (&b":1\r\n"[..], &b"#t\r\n"[..]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The protocol version at the start of a connection. RESP2 has types for texts, numbers and arrays.
    #[default]
    Resp2,
    /// The newer protocol version. RESP3 has a type for each variant of [`Reply`].
    Resp3,
}

/// A server's reply. If RESP2 has no type for a variant, the encoder uses the closest type.
///
/// ```
/// use tamis_resp::{Protocol, Reply};
///
/// let reply = Reply::Map(vec![(Reply::bulk("rate"), Reply::Double(0.01))]);
/// let mut output = Vec::new();
/// reply.encode(Protocol::Resp2, &mut output);
/// assert_eq!(output, b"*2\r\n$4\r\nrate\r\n$4\r\n0.01\r\n");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A short status text, such as `OK`. The encoder replaces line ends in the text by spaces.
    Simple(Cow<'static, str>),
    /// An error text. The first word is the kind of the error in upper case. The encoder replaces
    /// line ends in the text by spaces.
    Error(Cow<'static, str>),
    /// An integer.
    Integer(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// The absence of a value.
    Null,
    /// The absence of an array. In RESP3, the encoding is the same as for [`Null`](Self::Null).
    NullArray,
    /// A boolean; 1 or 0 in RESP2.
    Bool(bool),
    /// A floating-point number; the digits as a bulk string in RESP2.
    Double(f64),
    /// The digits of an integer of any size; a bulk string in RESP2.
    BigNumber(Cow<'static, str>),
    /// A text for people to read; a bulk string in RESP2.
    Verbatim {
        /// The format of the text: `*b"txt"` for plain text, `*b"mkd"` for Markdown.
        format: [u8; 3],
        /// The bytes of the text.
        text: Vec<u8>,
    },
    /// An ordered list of values.
    Array(Vec<Reply>),
    /// Pairs of key and value. In RESP2, a map is encoded as an array of key, value, key, value and so on.
    Map(Vec<(Reply, Reply)>),
    /// Values without order. In RESP2, a set is encoded as an array.
    Set(Vec<Reply>),
    /// A message that is not the reply to a command. In RESP2, a push message is encoded as an array.
    Push(Vec<Reply>),
    /// An array of [`Bool`](Self::Bool) answers, stored as a bit mask. A client decodes `Bools` as an array of
    /// booleans.
    Bools {
        /// The lowest bit of the first word is the first answer. The encoder treats missing words
        /// as zeros.
        mask: Vec<u64>,
        /// The number of answers.
        len: usize,
    },
}

impl Reply {
    /// Returns the reply `OK` for a command that succeeded.
    ///
    /// ```
    /// use tamis_resp::Reply;
    ///
    /// assert_eq!(Reply::ok(), Reply::simple("OK"));
    /// ```
    pub const fn ok() -> Self {
        Self::Simple(Cow::Borrowed("OK"))
    }

    /// Returns a reply with a short text.
    ///
    /// ```
    /// use tamis_resp::{Protocol, Reply};
    ///
    /// let mut output = Vec::new();
    /// Reply::simple("PONG").encode(Protocol::Resp2, &mut output);
    /// assert_eq!(output, b"+PONG\r\n");
    /// ```
    pub fn simple(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Simple(text.into())
    }

    /// Returns an error reply. Clients distinguish errors by the first word of the text, which is
    /// usually `ERR`.
    ///
    /// ```
    /// use tamis_resp::{Protocol, Reply};
    ///
    /// let mut output = Vec::new();
    /// Reply::error("ERR not found").encode(Protocol::Resp2, &mut output);
    /// assert_eq!(output, b"-ERR not found\r\n");
    /// ```
    pub fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// Returns a reply with bytes, which RESP calls a bulk string.
    ///
    /// ```
    /// use tamis_resp::Reply;
    ///
    /// assert_eq!(Reply::bulk("key"), Reply::Bulk(b"key".to_vec()));
    /// ```
    pub fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }
}
