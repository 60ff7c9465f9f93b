//! Decodes requests from bytes that arrive in pieces. A request is a command, which is a list of
//! words.

use crate::error::ProtocolError;
use crate::progress::Progress;
use crate::request::{Limits, Request, WordSpan};

/// Decodes requests from bytes that arrive in pieces.
///
/// When more bytes of an incomplete command arrive, the decoder continues at the end of the previous bytes. A command
/// of a million words may arrive in any number of pieces. The decoder stores a [`WordSpan`] for each word that has
/// arrived.
///
/// ```
/// use tamis_resp::{Limits, Request, RequestDecoder};
///
/// let mut decoder = RequestDecoder::new(Limits::default());
/// let mut words = Vec::new();
/// let mut input = b"*2\r\n$3\r\nGET\r\n$3\r\nk".to_vec();
/// assert_eq!(decoder.next(&input, &mut words)?, None);
/// input.extend_from_slice(b"ey\r\nSET 'a b' c\r\n");
/// assert_eq!(decoder.next(&input, &mut words)?, Some(Request::Words { consumed: 22 }));
/// assert_eq!(words[1].of(&input), b"key");
///
/// input.drain(..22);
/// let set = vec![b"SET".to_vec(), b"a b".to_vec(), b"c".to_vec()];
/// assert_eq!(
///     decoder.next(&input, &mut words)?,
///     Some(Request::Quoted { consumed: 13, argv: set })
/// );
/// # Ok::<(), tamis_resp::ProtocolError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RequestDecoder {
    limits: Limits,
    progress: Progress,
    /// The spans of the words that have arrived, if the command is incomplete.
    found: Vec<WordSpan>,
}

impl RequestDecoder {
    /// Creates a decoder for a new connection.
    ///
    /// ```
    /// use tamis_resp::{Limits, RequestDecoder};
    ///
    /// let mut decoder = RequestDecoder::new(Limits::default());
    /// assert_eq!(decoder.next(b"", &mut Vec::new()), Ok(None));
    /// ```
    pub fn new(limits: Limits) -> Self {
        Self { limits, progress: Progress::default(), found: Vec::new() }
    }

    /// Sets new limits. The new limits apply to bytes that the decoder reads after this call.
    ///
    /// ```
    /// use tamis_resp::{Limits, RequestDecoder};
    ///
    /// let mut decoder = RequestDecoder::new(Limits { authenticated: false, ..Limits::default() });
    /// decoder.set_limits(Limits::default());
    /// assert_eq!(decoder.next(b"*11\r\n", &mut Vec::new()), Ok(None));
    /// ```
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns how many bytes the decoder uses to store the words of an incomplete command.
    ///
    /// ```
    /// use tamis_resp::{Limits, RequestDecoder};
    ///
    /// let mut decoder = RequestDecoder::new(Limits::default());
    /// decoder.next(b"*2\r\n$3\r\nGET\r\n", &mut Vec::new())?;
    /// assert_eq!(decoder.unfinished_bytes(), 16);
    /// # Ok::<(), tamis_resp::ProtocolError>(())
    /// ```
    pub fn unfinished_bytes(&self) -> usize {
        self.found.len() * size_of::<WordSpan>()
    }

    /// Decodes the first request of `input`, and writes the positions of the words to `words`.
    ///
    /// Returns `None` if the request is incomplete. After `None`, the caller must append more bytes to the same input
    /// and call this method again. Like Redis, the decoder skips the two bytes after a word without checking them.
    /// `words` keeps its capacity, so replace `words` after a command of a million words.
    ///
    /// # Errors
    ///
    /// A [`ProtocolError`] if the bytes are not a valid request, or if the request exceeds the
    /// limits. After an error, the caller must close the connection.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_resp::{Limits, Request, RequestDecoder};
    ///
    /// let (mut decoder, mut words) = (RequestDecoder::new(Limits::default()), Vec::new());
    /// let mut input = &b"\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"[..];
    /// let mut commands = Vec::new();
    /// while let Some(request) = decoder.next(input, &mut words)? {
    ///     let consumed = match request {
    ///         Request::Words { consumed } => {
    ///             commands.push(words[0].of(input));
    ///             consumed
    ///         }
    ///         Request::Quoted { consumed, .. } | Request::Nothing { consumed } => consumed,
    ///     };
    ///     input = &input[consumed..];
    /// }
    /// assert_eq!(commands, [b"PING", b"ECHO"]);
    /// # Ok::<(), tamis_resp::ProtocolError>(())
    /// ```
    #[inline]
    pub fn next(
        &mut self,
        input: &[u8],
        words: &mut Vec<WordSpan>,
    ) -> Result<Option<Request>, ProtocolError> {
        words.clear();
        let mut progress = self.progress;
        if !self.found.is_empty() {
            self.lend(words);
        }
        let read = match input.first() {
            Some(b'*') => progress.array(input, &self.limits, words),
            Some(_) => progress.inline(input, words),
            None => Ok(None),
        };
        if let Ok(Some(_)) = read {
            self.progress = Progress::default();
        } else {
            self.progress = progress;
            self.keep(words);
        }
        read
    }

    /// Stores the words of an incomplete command, because the caller may pass a different vector to
    /// the next call.
    ///
    /// The vector may have capacity for a million words, after an earlier command from any connection. A connection
    /// must not keep the memory of a million words for a few words.
    fn keep(&mut self, words: &mut Vec<WordSpan>) {
        if words.len() <= FEW {
            self.found.append(words);
        } else {
            self.found = std::mem::take(words);
            if self.found.len() < MANY {
                self.found.shrink_to(2 * self.found.len());
            } else if self.found.capacity() < VERY_MANY {
                self.found.reserve_exact(VERY_MANY - self.found.len());
            }
        }
    }

    /// Moves the stored words into the caller's empty vector.
    fn lend(&mut self, words: &mut Vec<WordSpan>) {
        if self.found.len() <= FEW {
            words.append(&mut self.found);
        } else {
            *words = std::mem::take(&mut self.found);
        }
    }
}

/// The maximum number of words that the decoder copies. For more than `FEW` words, the decoder moves the whole vector.
const FEW: usize = 64;

/// A command with more than `MANY` words may have a million words. If the vector grew step by step, each step would
/// copy all words. To avoid the copies, the decoder reserves memory for `VERY_MANY` words in one step. The allocator
/// maps an area of `VERY_MANY` words separately, so only pages that the decoder writes use memory.
const MANY: usize = 1 << 15;
const VERY_MANY: usize = (33 << 20) / size_of::<WordSpan>();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::MAX_LINE;

    fn error_of(input: &[u8], limits: Limits) -> String {
        let mut decoder = RequestDecoder::new(limits);
        let mut words = Vec::new();
        let error = decoder.next(input, &mut words).unwrap_err();
        assert_eq!(decoder.next(input, &mut words), Err(error), "it stays one");
        error.to_string()
    }

    #[test]
    fn errors_have_the_texts_of_redis() {
        let authenticated = Limits::default();
        let stranger = Limits { authenticated: false, ..authenticated };
        let long = |prefix: &str| [prefix.as_bytes(), &[b'1'; MAX_LINE]].concat();
        let cases: &[(&[u8], Limits, &str)] = &[
            (&long("*"), authenticated, "too big mbulk count string"),
            (b"*x\r\n", authenticated, "invalid multibulk length"),
            (b"*\r\n", authenticated, "invalid multibulk length"),
            (b"*+1\r\n", authenticated, "invalid multibulk length"),
            (b"*01\r\n", authenticated, "invalid multibulk length"),
            (b"* 1\r\n", authenticated, "invalid multibulk length"),
            (b"*16777217\r\n", authenticated, "invalid multibulk length"),
            (b"*99999999999999999999\r\n", authenticated, "invalid multibulk length"),
            (b"*11\r\n", stranger, "unauthenticated multibulk length"),
            (b"*16777217\r\n", stranger, "invalid multibulk length"),
            (b"*1\r\n+PING\r\n", authenticated, "expected '$', got '+'"),
            (b"*1\r\n:4\r\nPING\r\n", authenticated, "expected '$', got ':'"),
            (b"*1\r\n\r\n", authenticated, "expected '$', got '\r'"),
            (&long("*1\r\n$"), authenticated, "too big bulk count string"),
            (b"*1\r\n$-1\r\n", authenticated, "invalid bulk length"),
            (b"*1\r\n$x\r\n", authenticated, "invalid bulk length"),
            (b"*1\r\n$536870913\r\n", authenticated, "invalid bulk length"),
            (b"*1\r\n$9223372036854775807\r\n", authenticated, "invalid bulk length"),
            (b"*1\r\n$16385\r\n", stranger, "unauthenticated bulk length"),
            (&long("G"), authenticated, "too big inline request"),
            (b"GET \"key\n", authenticated, "unbalanced quotes in request"),
            (b"GET 'key'x\r\n", authenticated, "unbalanced quotes in request"),
        ];
        for (input, limits, text) in cases {
            let shown = input[..input.len().min(40)].escape_ascii().to_string();
            assert_eq!(error_of(input, *limits), format!("Protocol error: {text}"), "{shown}");
        }
    }

    #[test]
    fn a_request_at_a_limit_is_incomplete_not_an_error() {
        let stranger = Limits { authenticated: false, ..Limits::default() };
        let line = vec![b'G'; MAX_LINE];
        let cases: &[(&[u8], Limits)] = &[
            (b"*16777216\r\n", Limits::default()),
            (b"*1\r\n$536870912\r\n", Limits::default()),
            (b"*10\r\n$16384\r\n", stranger),
            (b"*1\r\n$4", stranger),
            (b"*1\r\n$4\r", stranger),
            (b"*1\r\n$4\r\nPING\r", stranger),
            (&line, stranger),
        ];
        for (input, limits) in cases {
            let mut words = Vec::new();
            assert_eq!(RequestDecoder::new(*limits).next(input, &mut words), Ok(None));
            assert!(words.capacity() < 10, "nothing is allocated for what is only announced");
        }
    }

    #[test]
    fn a_decoder_keeps_no_capacity_of_an_earlier_command() {
        let mut words = Vec::with_capacity(1_000_000);
        let mut input = b"*1000\r\n".to_vec();
        for count in 1..500 {
            input.extend_from_slice(b"$1\r\na\r\n");
            let mut decoder = RequestDecoder::new(Limits::default());
            words.reserve(1_000_000);
            assert_eq!(decoder.next(&input, &mut words), Ok(None));
            assert_eq!(decoder.found.len(), count);
            assert!(decoder.found.capacity() <= 2 * count.max(4), "{count}");
        }
    }

    #[test]
    fn lengths_without_a_limit_overflow_nothing() {
        let limits =
            Limits { max_words: usize::MAX, max_word_bytes: usize::MAX, authenticated: true };
        let largest = isize::MAX;
        let input = format!("*{largest}\r\n${largest}\r\nPING\r\n").into_bytes();
        let mut decoder = RequestDecoder::new(limits);
        assert_eq!(decoder.next(&input, &mut Vec::new()), Ok(None));
        assert_eq!(decoder.next(&input, &mut Vec::new()), Ok(None));
    }

    #[test]
    fn the_two_bytes_after_a_word_are_skipped() {
        let input = b"*2\rx$4\ryPINGab$0\r\ncd";
        let mut words = Vec::new();
        let request = RequestDecoder::new(Limits::default()).next(input, &mut words);
        assert_eq!(request, Ok(Some(Request::Words { consumed: input.len() })));
        assert_eq!(
            words.iter().map(|word| word.of(input)).collect::<Vec<_>>(),
            [&b"PING"[..], b""]
        );
    }

    #[test]
    fn empty_requests_are_consumed_one_by_one() {
        for input in [&b"\r\n"[..], b"\n", b"  \t\r\n", b"*0\r\n", b"*-1\r\n", b"*-9\r\n"] {
            let mut words = vec![WordSpan { start: 1, end: 2 }];
            let request = RequestDecoder::new(Limits::default()).next(input, &mut words);
            assert_eq!(request, Ok(Some(Request::Nothing { consumed: input.len() })));
            assert!(words.is_empty());
        }
    }

    #[test]
    fn a_shrunken_input_is_incomplete() {
        let mut decoder = RequestDecoder::new(Limits::default());
        for input in [&b"*2\r\n$4\r\nPING\r\n"[..], b"*2", b"*2\r\n$4\r\nPING\r\n", b"", b"GET"] {
            assert_eq!(decoder.next(input, &mut Vec::new()), Ok(None));
        }
    }
}
