//! Requests: commands as words, and their limits.

/// The position of a word in the input.
///
/// ```
/// use tamis_resp::WordSpan;
///
/// assert_eq!(WordSpan { start: 5, end: 8 }.of(b"ECHO one"), b"one");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordSpan {
    /// The first byte.
    pub start: usize,
    /// The position after the last byte.
    pub end: usize,
}

impl WordSpan {
    /// Returns the word.
    ///
    /// ```
    /// # use tamis_resp::WordSpan;
    /// assert_eq!(WordSpan { start: 0, end: 4 }.of(b"ECHO one"), b"ECHO");
    /// ```
    ///
    /// # Panics
    ///
    /// If the span exceeds `input`, because the caller passed another input than the decoded one.
    #[inline]
    pub fn of(self, input: &[u8]) -> &[u8] {
        &input[self.start..self.end]
    }
}

/// What a client may send in one command. The default is for an authenticated client.
///
/// The total size of a command is not limited here. The owner of the input buffer limits it.
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
    /// True if the client is authenticated. Other clients may send 10 words of 16,384 bytes.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_words: 16 * 1024 * 1024, max_word_bytes: 512 * 1024 * 1024, authenticated: true }
    }
}

/// The first request of an input. It takes the first `consumed` bytes; the next request starts
/// after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A command. Its words, one or more, are spans.
    Words {
        /// The length of the command, in bytes.
        consumed: usize,
    },
    /// A command in one line with quotes. The variant owns its words, because the input contains
    /// them only with quotes and escape sequences.
    Quoted {
        /// The length of the line, in bytes.
        consumed: usize,
        /// The words, one or more.
        argv: Vec<Vec<u8>>,
    },
    /// No command: an empty line, or an array of no words. It gets no reply.
    Nothing {
        /// The bytes to skip.
        consumed: usize,
    },
}
