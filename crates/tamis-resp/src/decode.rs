//! Decodes replies, for clients and for tests of servers.

use std::borrow::Cow;

use crate::error::ProtocolError;
use crate::reply::Reply;
use crate::{double, integer};

impl Reply {
    /// Decodes the first reply of `input`, in RESP2 or RESP3. Returns the reply and the length of
    /// the encoded reply in bytes.
    ///
    /// Returns `None` if the reply is incomplete. After `None`, the caller must append more bytes to the same input and
    /// call this method again. The input bounds the memory: this method does not allocate for a length or count until
    /// the bytes have arrived. This method skips attributes and replaces invalid UTF-8 in texts.
    ///
    /// ```
    /// use tamis_resp::Reply;
    ///
    /// assert_eq!(Reply::decode(b":42\r\n+OK\r\n")?, Some((Reply::Integer(42), 5)));
    /// assert_eq!(Reply::decode(b"$5\r\nhel")?, None);
    /// # Ok::<(), tamis_resp::ProtocolError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`ProtocolError`] if the bytes are not a valid reply, or if a reply is nested deeper than
    /// 32 levels.
    pub fn decode(input: &[u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let mut reader = Reader { rest: input };
        match reader.reply(0) {
            Ok(reply) => Ok(Some((reply, input.len() - reader.rest.len()))),
            Err(Stop::Unfinished) => Ok(None),
            Err(Stop::Wrong(error)) => Err(error),
        }
    }
}

/// The remaining input, which is not yet decoded.
struct Reader<'a> {
    rest: &'a [u8],
}

/// The reason why the input contains no complete reply.
enum Stop {
    Unfinished,
    Wrong(ProtocolError),
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        Self::Wrong(error)
    }
}

impl<'a> Reader<'a> {
    /// Decodes a reply at nesting depth `depth`.
    fn reply(&mut self, depth: usize) -> Result<Reply, Stop> {
        let mut of = self.start(depth)?;
        while of == b'|' {
            let attributes = self.length(of)?;
            self.pairs(attributes, depth)?;
            of = self.start(depth)?;
        }
        let wrong = ProtocolError::ReplyValue { of };
        Ok(match of {
            b'+' => Reply::Simple(text(self.line()?)),
            b'-' => Reply::Error(text(self.line()?)),
            b':' => Reply::Integer(integer::parse(self.line()?).ok_or(wrong)?),
            b',' => Reply::Double(double::parse(self.line()?).ok_or(wrong)?),
            b'(' => {
                let digits = self.line()?;
                if !is_whole(digits) {
                    return Err(wrong.into());
                }
                Reply::BigNumber(text(digits))
            }
            b'_' | b'#' => match (of, self.line()?) {
                (b'_', b"") => Reply::Null,
                (b'#', b"t") => Reply::Bool(true),
                (b'#', b"f") => Reply::Bool(false),
                _ => return Err(wrong.into()),
            },
            b'$' | b'*' if self.rest.starts_with(b"-1\r\n") => {
                self.line()?;
                if of == b'$' { Reply::Null } else { Reply::NullArray }
            }
            b'$' => Reply::Bulk(self.bulk(of)?.to_vec()),
            b'!' => Reply::Error(text(self.bulk(of)?)),
            b'=' => match self.bulk(of)? {
                [a, b, c, b':', text @ ..] => {
                    Reply::Verbatim { format: [*a, *b, *c], text: text.to_vec() }
                }
                _ => return Err(wrong.into()),
            },
            b'%' => {
                let pairs = self.length(of)?;
                Reply::Map(self.pairs(pairs, depth)?)
            }
            b'*' => Reply::Array(self.values(of, depth)?),
            b'~' => Reply::Set(self.values(of, depth)?),
            b'>' => Reply::Push(self.values(of, depth)?),
            found => return Err(ProtocolError::ReplyType { found }.into()),
        })
    }

    /// Reads the type byte of a reply.
    fn start(&mut self, depth: usize) -> Result<u8, Stop> {
        let (&of, rest) = self.rest.split_first().ok_or(Stop::Unfinished)?;
        if depth > MAX_DEPTH {
            return Err(ProtocolError::DeepReply.into());
        }
        self.rest = rest;
        Ok(of)
    }

    /// Decodes the values of an array.
    fn values(&mut self, of: u8, depth: usize) -> Result<Vec<Reply>, Stop> {
        let count = self.length(of)?;
        self.announced(count)?;
        (0..count).map(|_| self.reply(depth + 1)).collect()
    }

    /// Decodes the pairs of a map.
    fn pairs(&mut self, count: usize, depth: usize) -> Result<Vec<(Reply, Reply)>, Stop> {
        self.announced(count.saturating_mul(2))?;
        (0..count).map(|_| Ok((self.reply(depth + 1)?, self.reply(depth + 1)?))).collect()
    }

    /// Returns an error if the rest of the input is too short for `count` values. Call this method
    /// before allocating memory for the values.
    fn announced(&self, count: usize) -> Result<(), Stop> {
        if count.saturating_mul(MIN_BYTES) > self.rest.len() {
            return Err(Stop::Unfinished);
        }
        Ok(())
    }

    /// Reads a length line, then as many bytes as the length specifies.
    fn bulk(&mut self, of: u8) -> Result<&'a [u8], Stop> {
        let len = self.length(of)?;
        let end = len.checked_add(2).ok_or(ProtocolError::ReplyValue { of })?;
        let (bytes, rest) = self.rest.split_at_checked(end).ok_or(Stop::Unfinished)?;
        self.rest = rest;
        Ok(bytes.strip_suffix(b"\r\n").ok_or(ProtocolError::ReplyValue { of })?)
    }

    /// Reads a line with a length or a count.
    fn length(&mut self, of: u8) -> Result<usize, Stop> {
        let length = integer::parse(self.line()?).and_then(|length| length.try_into().ok());
        Ok(length.ok_or(ProtocolError::ReplyValue { of })?)
    }

    /// Reads the remaining bytes of the current line.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let end = self.rest.windows(2).position(|bytes| bytes == b"\r\n");
        let end = end.ok_or(Stop::Unfinished)?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 2..];
        Ok(line)
    }
}

/// Tests whether the bytes are decimal digits, with an optional sign.
fn is_whole(digits: &[u8]) -> bool {
    let digits = digits.strip_prefix(b"-").or(digits.strip_prefix(b"+")).unwrap_or(digits);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Converts bytes to text, and replaces invalid UTF-8.
fn text(bytes: &[u8]) -> Cow<'static, str> {
    Cow::Owned(String::from_utf8_lossy(bytes).into_owned())
}

/// The maximum nesting depth. No server sends a reply that is nested deeper than `MAX_DEPTH`, and the recursion fits in
/// any stack.
const MAX_DEPTH: usize = 32;

/// The length of the shortest reply, in bytes: `_` and a line end.
const MIN_BYTES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_decoded() {
        let one = || Reply::Integer(1);
        for (input, reply) in [
            ("+OK\r\n", Reply::ok()),
            ("+\r\n", Reply::simple("")),
            ("-ERR no\r\n", Reply::error("ERR no")),
            ("!6\r\nERR no\r\n", Reply::error("ERR no")),
            (":-12\r\n", Reply::Integer(-12)),
            ("$2\r\n\r\n\r\n", Reply::bulk("\r\n")),
            ("$-1\r\n", Reply::Null),
            ("_\r\n", Reply::Null),
            ("*-1\r\n", Reply::NullArray),
            ("#t\r\n", Reply::Bool(true)),
            ("#f\r\n", Reply::Bool(false)),
            (",1.5\r\n", Reply::Double(1.5)),
            (",-inf\r\n", Reply::Double(f64::NEG_INFINITY)),
            ("(-123\r\n", Reply::BigNumber("-123".into())),
            ("=6\r\ntxt:hi\r\n", Reply::Verbatim { format: *b"txt", text: b"hi".to_vec() }),
            ("*0\r\n", Reply::Array(vec![])),
            ("*2\r\n:1\r\n+a\r\n", Reply::Array(vec![one(), Reply::simple("a")])),
            ("%1\r\n+a\r\n:1\r\n", Reply::Map(vec![(Reply::simple("a"), one())])),
            ("~1\r\n:1\r\n", Reply::Set(vec![one()])),
            (">1\r\n:1\r\n", Reply::Push(vec![one()])),
            ("|1\r\n+ttl\r\n:9\r\n:1\r\n", one()),
            ("*1\r\n|1\r\n+ttl\r\n:9\r\n:1\r\n", Reply::Array(vec![one()])),
        ] {
            let (input, len) = (format!("{input}:7\r\n"), input.len());
            assert_eq!(Reply::decode(input.as_bytes()), Ok(Some((reply, len))), "{input:?}");
            for cut in 0..len {
                assert_eq!(
                    Reply::decode(&input.as_bytes()[..cut]),
                    Ok(None),
                    "{:?}",
                    &input[..cut]
                );
            }
        }
    }

    #[test]
    fn invalid_replies_are_rejected() {
        let value = |of| ProtocolError::ReplyValue { of };
        for (input, error) in [
            ("PING\r\n", ProtocolError::ReplyType { found: b'P' }),
            (":\r\n", value(b':')),
            (":1.5\r\n", value(b':')),
            ("$-2\r\n", value(b'$')),
            ("$x\r\n", value(b'$')),
            ("$2\r\nabcd", value(b'$')),
            ("$?\r\n", value(b'$')),
            ("!-1\r\n", value(b'!')),
            ("*-2\r\n", value(b'*')),
            ("%-1\r\n", value(b'%')),
            ("#true\r\n", value(b'#')),
            ("_x\r\n", value(b'_')),
            (",\r\n", value(b',')),
            ("(-\r\n", value(b'(')),
            ("(1.5\r\n", value(b'(')),
            ("=2\r\nhi\r\n", value(b'=')),
            (&"*1\r\n".repeat(34), ProtocolError::DeepReply),
        ] {
            assert_eq!(Reply::decode(input.as_bytes()), Err(error), "{input:?}");
        }
        let deepest = format!("{}:1\r\n", "*1\r\n".repeat(MAX_DEPTH));
        assert!(Reply::decode(deepest.as_bytes()).unwrap().is_some());
    }

    #[test]
    fn announced_lengths_beyond_the_input_are_incomplete() {
        for of in ["$", "*", "%", "~", ">", "=", "!", "|"] {
            for length in [1_000_000, isize::MAX] {
                let input = format!("{of}{length}\r\n+a\r\n");
                assert_eq!(Reply::decode(input.as_bytes()), Ok(None), "{input:?}");
            }
        }
    }
}
