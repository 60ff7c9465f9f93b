//! Requests of clients, and the limits for requests.

/// The position of one word in the input.
///
/// ```
/// use tamis_resp::WordSpan;
///
/// assert_eq!(WordSpan { start: 5, end: 8 }.of(b"ECHO one"), b"one");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordSpan {
    /// The position of the first byte.
    pub start: usize,
    /// The position after the last byte.
    pub end: usize,
}

impl WordSpan {
    /// Returns the bytes of the word in `input`.
    ///
    /// ```
    /// # use tamis_resp::WordSpan;
    /// assert_eq!(WordSpan { start: 0, end: 4 }.of(b"ECHO one"), b"ECHO");
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the span exceeds `input`. The caller must pass the same input that the decoder read.
    #[inline]
    pub fn of(self, input: &[u8]) -> &[u8] {
        &input[self.start..self.end]
    }
}

/// The limits for one command of a client. The default values apply to an authenticated client.
///
/// The limits of this type do not include the total size of a command. The owner of the input buffer must limit the
/// total size.
///
/// ```
/// use tamis_resp::{Limits, ProtocolError, RequestDecoder};
///
/// let mut decoder = RequestDecoder::new(Limits { authenticated: false, ..Limits::default() });
/// let error = decoder.next(b"*11\r\n", &mut Vec::new()).unwrap_err();
/// assert_eq!(error, ProtocolError::UnauthenticatedCount);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of words of a command; 16,777,216 by default.
    pub max_words: usize,
    /// The maximum length of a word in bytes; 512 MiB by default.
    pub max_word_bytes: usize,
    /// True if the client is authenticated. Before authentication, a command may have at most 10 words of at most
    /// 16,384 bytes.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_words: 16 * 1024 * 1024, max_word_bytes: 512 * 1024 * 1024, authenticated: true }
    }
}

/// The first request of an input. The request consists of the first `consumed` bytes. The next
/// request starts at position `consumed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A command with one or more words. The decoder has written the spans of the words.
    Words {
        /// The length of the command, in bytes.
        consumed: usize,
    },
    /// An inline command with quotes. The variant `Quoted` owns the words, because the words in the input still contain
    /// quotes and escape sequences.
    Quoted {
        /// The length of the line, in bytes.
        consumed: usize,
        /// The decoded words, one or more.
        argv: Vec<Vec<u8>>,
    },
    /// An empty line or an empty array, which is not a command. The server must not send a reply.
    Nothing {
        /// The number of bytes to skip.
        consumed: usize,
    },
}
