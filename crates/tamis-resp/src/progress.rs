//! Decodes a request from pieces of input, and continues at the end of the previous piece.
//!
//! ```text
//! *2\r\n $4\r\n ECHO\r\n $5\r\n hel      the next piece starts here
//!                               ^ at: the word has `word_bytes` 5, 1 word is `missing`
//! *2\r\n $4\r\n ECHO\r\n $1            or here
//!                        ^ at: no end of the line in the 2 bytes `searched`
//! ```
//!
//! Nearly every line is complete and contains only a few digits. [`short_number`] reads a complete line with few
//! digits. [`Progress::line`] reads every line that `short_number` does not read, implements all rules, and stores the
//! position where decoding continues.

use crate::error::ProtocolError;
use crate::request::{Limits, Request, WordSpan};
use crate::{inline, integer};

/// A decoded value, or `None` if more bytes are needed.
type Read<T> = Result<Option<T>, ProtocolError>;

/// The decoding state of an incomplete request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The number of decoded bytes. The next line or word starts at the position `at`.
    at: usize,
    /// The number of bytes after `at` that the decoder has searched without finding the end of the
    /// line.
    searched: usize,
    /// The number of missing words. The number is valid after the decoder has read the first line.
    missing: usize,
    /// The length in bytes of the word that starts at `at`. `None` until the decoder has read the line with the length.
    word_bytes: Option<usize>,
}

impl Progress {
    /// Continues decoding a command in the array format.
    pub(super) fn array(
        &mut self,
        input: &[u8],
        limits: &Limits,
        words: &mut Vec<WordSpan>,
    ) -> Read<Request> {
        if self.at == 0 {
            let Some((count, line_bytes)) = self.count(input, limits)? else { return Ok(None) };
            if count == 0 {
                return Ok(Some(Request::Nothing { consumed: line_bytes }));
            }
            (self.at, self.searched, self.missing) = (line_bytes, 0, count);
        }
        while self.missing > 0 {
            let word_bytes = match self.word_bytes {
                Some(bytes) => bytes,
                None => {
                    let length = self.word_length(input, limits)?;
                    let Some((bytes, line_bytes)) = length else { return Ok(None) };
                    (self.at, self.searched) = (self.at + line_bytes, 0);
                    bytes
                }
            };
            // A line end of two bytes follows the word.
            let there = input.len().saturating_sub(self.at);
            if there < 2 || there - 2 < word_bytes {
                self.word_bytes = Some(word_bytes);
                return Ok(None);
            }
            let end = self.at + word_bytes;
            words.push(WordSpan { start: self.at, end });
            (self.at, self.missing, self.word_bytes) = (end + 2, self.missing - 1, None);
        }
        Ok(Some(Request::Words { consumed: self.at }))
    }

    /// Reads the first line. Returns the number of words, and the length of the line in bytes.
    #[inline]
    fn count(&mut self, input: &[u8], limits: &Limits) -> Read<(usize, usize)> {
        let (count, line_bytes) = match short_number(input) {
            Some(short) => short,
            None => {
                let Some(line) = self.line(input, ProtocolError::LongCount)? else {
                    return Ok(None);
                };
                let count = integer::parse(&line[1..]).ok_or(ProtocolError::Count)?;
                // A null array is treated as an empty array.
                (usize::try_from(count.max(0)).unwrap_or(usize::MAX), line.len() + 2)
            }
        };
        if count > limits.max_words {
            return Err(ProtocolError::Count);
        }
        if count > UNAUTHENTICATED_WORDS && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        Ok(Some((count, line_bytes)))
    }

    /// Reads the length line of the next word. Returns the length of the word and the length of the
    /// line, both in bytes.
    #[inline]
    fn word_length(&mut self, input: &[u8], limits: &Limits) -> Read<(usize, usize)> {
        let rest = input.get(self.at..).unwrap_or_default();
        let (bytes, line_bytes) = match short_number(rest) {
            Some(short) if rest[0] == b'$' => short,
            _ => {
                let Some(line) = self.line(rest, ProtocolError::LongBulkLength)? else {
                    return Ok(None);
                };
                if rest[0] != b'$' {
                    return Err(ProtocolError::ExpectedBulk { found: rest[0] });
                }
                let bytes = integer::parse(&line[1..]).and_then(|bytes| bytes.try_into().ok());
                (bytes.ok_or(ProtocolError::BulkLength)?, line.len() + 2)
            }
        };
        if bytes > limits.max_word_bytes {
            return Err(ProtocolError::BulkLength);
        }
        if bytes > UNAUTHENTICATED_WORD_BYTES && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        Ok(Some((bytes, line_bytes)))
    }

    /// Returns the first line of `rest` without the line end. Returns `None` until the byte after
    /// the carriage return has arrived.
    #[cold]
    fn line<'a>(&mut self, rest: &'a [u8], long: ProtocolError) -> Read<&'a [u8]> {
        match self.find(b'\r', rest, long)? {
            Some(end) if end + 1 < rest.len() => Ok(Some(&rest[..end])),
            // The next search starts at this carriage return.
            Some(end) => {
                self.searched = end;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Decodes an inline command.
    #[cold]
    pub(super) fn inline(&mut self, input: &[u8], words: &mut Vec<WordSpan>) -> Read<Request> {
        let Some(end) = self.find(b'\n', input, ProtocolError::LongInline)? else {
            return Ok(None);
        };
        let (line, consumed) = (&input[..end], end + 1);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if inline::has_quotes(line) {
            // Each quote is part of a word, so the line has at least one word.
            let words = inline::unquote(line).ok_or(ProtocolError::Quotes)?;
            return Ok(Some(Request::Quoted { consumed, argv: words }));
        }
        inline::push_spans(line, words);
        Ok(Some(if words.is_empty() {
            Request::Nothing { consumed }
        } else {
            Request::Words { consumed }
        }))
    }

    /// Returns the position of the line end. The search skips bytes that an earlier call has
    /// searched.
    fn find(&mut self, end: u8, rest: &[u8], long: ProtocolError) -> Read<usize> {
        // The search covers one byte more than the maximum line length, so that the result for a too long line does not
        // depend on the sizes of the pieces.
        let line = &rest[..rest.len().min(MAX_LINE + 1)];
        let unseen = line.get(self.searched..).unwrap_or_default();
        match unseen.iter().position(|&byte| byte == end) {
            Some(more) => Ok(Some(self.searched + more)),
            None if line.len() > MAX_LINE => Err(long),
            None => {
                self.searched = line.len();
                Ok(None)
            }
        }
    }
}

/// Returns the number after the first byte of a line, and the length of the line in bytes. Returns
/// `None` unless the line is complete and the number has few digits in the protocol's notation.
///
/// After `None`, the caller must decode the line with [`Progress::line`].
#[inline]
fn short_number(line: &[u8]) -> Option<(usize, usize)> {
    let digits = line.get(1..)?;
    let mut value = 0;
    for (i, &byte) in digits.iter().take(SHORT_DIGITS + 1).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            value = value * 10 + usize::from(digit);
            continue;
        }
        let one_way = i == 1 || i > 1 && digits[0] != b'0';
        return (byte == b'\r' && one_way && i + 1 < digits.len()).then_some((value, i + 3));
    }
    None
}

/// The maximum length in bytes of an inline command, or of a line with a length or count.
pub(super) const MAX_LINE: usize = 64 * 1024;

/// The maximum number of digits that [`short_number`] reads. Each number with 8 digits fits in a
/// `usize`.
const SHORT_DIGITS: usize = 8;

/// The maximum number of words in a command from a client that is not authenticated.
const UNAUTHENTICATED_WORDS: usize = 10;

/// The maximum length in bytes of a word from a client that is not authenticated.
const UNAUTHENTICATED_WORD_BYTES: usize = 16_384;
