//! Reply values.

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
    /// The version at the start of a connection: text, numbers and arrays.
    #[default]
    Resp2,
    /// The version with a type for each variant of [`Reply`].
    Resp3,
}

/// A server's reply. If RESP2 has no type for a variant, the variant is encoded as the closest
/// type.
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
    /// A short text, such as `OK`. Line ends in it are replaced by spaces.
    Simple(Cow<'static, str>),
    /// An error, starting with its kind in upper case. Line ends in it are replaced by spaces.
    Error(Cow<'static, str>),
    /// An integer.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// The absence of a value.
    Null,
    /// The absence of an array. RESP3 encodes it like [`Null`](Self::Null).
    NullArray,
    /// Yes or no; 1 or 0 in RESP2.
    Bool(bool),
    /// A floating-point number; its digits as bytes in RESP2.
    Double(f64),
    /// The digits of an integer of any size; bytes in RESP2.
    BigNumber(Cow<'static, str>),
    /// A text for people; bytes in RESP2.
    Verbatim {
        /// The format of the text: `*b"txt"` for plain text, `*b"mkd"` for Markdown.
        format: [u8; 3],
        /// The text.
        text: Vec<u8>,
    },
    /// Values in order.
    Array(Vec<Reply>),
    /// Pairs of key and value; in RESP2 an array of key, value, key, value and so on.
    Map(Vec<(Reply, Reply)>),
    /// Values without order; in RESP2 an array.
    Set(Vec<Reply>),
    /// A message that is no reply to a command; in RESP2 an array.
    Push(Vec<Reply>),
    /// An array of [`Bool`](Self::Bool) stored as a bit mask, for answers about many items. It
    /// decodes as an array of booleans.
    Bools {
        /// The first answer is the lowest bit of the first word. Missing words count as zeros.
        mask: Vec<u64>,
        /// The number of answers.
        len: usize,
    },
}

impl Reply {
    /// Returns the reply to a command that succeeded.
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

    /// Returns an error. Its first word is the kind by which clients distinguish errors, usually
    /// `ERR`.
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
