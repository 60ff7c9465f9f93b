//! The value of a reply.

use std::borrow::Cow;

/// The version of the protocol that a client chose with `HELLO`.
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
    /// What a connection starts with: text, numbers and arrays.
    #[default]
    Resp2,
    /// The version that has types for all of [`Reply`].
    Resp3,
}

/// What a server answers. RESP2 shows what it has no type for as the next best.
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
    /// A short text, such as `OK`. Line ends in it become spaces.
    Simple(Cow<'static, str>),
    /// An error, its kind in capitals first. Line ends in it become spaces.
    Error(Cow<'static, str>),
    /// A whole number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Nothing, where a value could be.
    Null,
    /// Nothing, where an array could be. RESP3 does not tell it from [`Null`](Self::Null).
    NullArray,
    /// Yes or no; in RESP2 1 or 0.
    Bool(bool),
    /// A number; in RESP2 its digits as bytes.
    Double(f64),
    /// Digits of a whole number of any size; in RESP2 bytes.
    BigNumber(Cow<'static, str>),
    /// A text for people; in RESP2 bytes.
    Verbatim {
        /// What it is written in: `*b"txt"` for plain text, `*b"mkd"` for Markdown.
        format: [u8; 3],
        /// The text.
        text: Vec<u8>,
    },
    /// Values in order.
    Array(Vec<Reply>),
    /// Keys with values; in RESP2 an array of a key, its value, a key and so on.
    Map(Vec<(Reply, Reply)>),
    /// Values without order; in RESP2 an array.
    Set(Vec<Reply>),
    /// A message that answers no command; in RESP2 an array.
    Push(Vec<Reply>),
    /// An array of [`Bool`](Self::Bool) in a bit each, for answers about many items. It is read back as such an array.
    Bools {
        /// The first answer is the lowest bit of the first word. Words that are not there are zeros.
        mask: Vec<u64>,
        /// How many there are.
        len: usize,
    },
}

impl Reply {
    /// Returns the reply of a command that has done what it should.
    ///
    /// ```
    /// use tamis_resp::Reply;
    ///
    /// assert_eq!(Reply::ok(), Reply::simple("OK"));
    /// ```
    pub const fn ok() -> Self {
        Self::Simple(Cow::Borrowed("OK"))
    }

    /// Returns a short text.
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

    /// Returns an error. Its first word is the kind by which clients tell errors apart, `ERR` for most.
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

    /// Returns bytes.
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
