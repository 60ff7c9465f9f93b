//! Encodes replies for a client.

use crate::reply::{Protocol, Reply};
use crate::{double, integer};

impl Reply {
    /// Encodes the reply and appends the bytes to `out`.
    ///
    /// The cost is linear in the length of the output. To encode one answer of
    /// [`Bools`](Self::Bools), this method copies four bytes.
    ///
    /// ```
    /// use tamis_resp::{Protocol, Reply};
    ///
    /// let mut output = Vec::new();
    /// Reply::Bools { mask: vec![0b101], len: 3 }.encode(Protocol::Resp3, &mut output);
    /// assert_eq!(output, b"*3\r\n#t\r\n#f\r\n#t\r\n");
    /// ```
    pub fn encode(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let resp3 = protocol == Protocol::Resp3;
        match self {
            Self::Simple(text) => push_text(out, b'+', text),
            Self::Error(text) => push_text(out, b'-', text),
            Self::Integer(value) => integer::push_line(out, b':', *value),
            Self::Bulk(bytes) => push_bulk(out, bytes),
            Self::Null | Self::NullArray if resp3 => out.extend_from_slice(b"_\r\n"),
            Self::Null => out.extend_from_slice(b"$-1\r\n"),
            Self::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Bool(value) => out.extend_from_slice(&bools(protocol)[usize::from(*value)]),
            Self::Double(value) if resp3 => {
                out.push(b',');
                double::push(out, *value);
                out.extend_from_slice(b"\r\n");
            }
            Self::Double(value) => {
                let mut text = Vec::new();
                double::push(&mut text, *value);
                push_bulk(out, &text);
            }
            Self::BigNumber(digits) if resp3 => push_text(out, b'(', digits),
            Self::BigNumber(digits) => push_bulk(out, digits.as_bytes()),
            Self::Verbatim { format, text } if resp3 => {
                push_len(out, b'=', format.len() + 1 + text.len());
                out.extend_from_slice(format);
                out.push(b':');
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            Self::Verbatim { text, .. } => push_bulk(out, text),
            Self::Array(values) => push_all(out, protocol, b'*', values),
            Self::Set(values) => push_all(out, protocol, if resp3 { b'~' } else { b'*' }, values),
            Self::Push(values) => push_all(out, protocol, if resp3 { b'>' } else { b'*' }, values),
            Self::Map(pairs) => {
                if resp3 {
                    push_len(out, b'%', pairs.len());
                } else {
                    push_len(out, b'*', pairs.len() * 2);
                }
                for (key, value) in pairs {
                    key.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
            Self::Bools { mask, len } => {
                push_len(out, b'*', *len);
                push_bools(out, bools(protocol), mask, *len);
            }
        }
    }

    /// Appends the first line of an array of `len` values.
    ///
    /// With `begin_array` and [`encode_values`](Self::encode_values), the caller can write the
    /// first part of a long array before the last values exist.
    ///
    /// ```
    /// use tamis_resp::{Protocol, Reply};
    ///
    /// let mut output = Vec::new();
    /// Reply::begin_array(3, &mut output);
    /// for part in [Reply::Bools { mask: vec![0b10], len: 2 }, Reply::Array(vec![Reply::Null])] {
    ///     part.encode_values(Protocol::Resp2, &mut output);
    /// }
    /// assert_eq!(output, b"*3\r\n:0\r\n:1\r\n$-1\r\n");
    /// ```
    pub fn begin_array(len: usize, out: &mut Vec<u8>) {
        push_len(out, b'*', len);
    }

    /// Appends the values of an array without the first line, and returns the number of values.
    /// Returns `None` if the reply is not an array.
    pub fn encode_values(&self, protocol: Protocol, out: &mut Vec<u8>) -> Option<usize> {
        match self {
            Self::Array(values) => {
                values.iter().for_each(|value| value.encode(protocol, out));
                Some(values.len())
            }
            Self::Bools { mask, len } => {
                push_bools(out, bools(protocol), mask, *len);
                Some(*len)
            }
            _ => None,
        }
    }
}

/// Appends the number of values, then the values.
fn push_all(out: &mut Vec<u8>, protocol: Protocol, prefix: u8, values: &[Reply]) {
    push_len(out, prefix, values.len());
    for value in values {
        value.encode(protocol, out);
    }
}

/// Appends a line with a length.
fn push_len(out: &mut Vec<u8>, prefix: u8, len: usize) {
    integer::push_line(out, prefix, len as i64);
}

/// Appends the length of `bytes`, then `bytes`.
fn push_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    push_len(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a line of text. Replaces each line end by a space, because a line end would start
/// another reply.
fn push_text(out: &mut Vec<u8>, prefix: u8, text: &str) {
    out.push(prefix);
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    for byte in &mut out[start..] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends one answer for each of the first `len` bits of `mask`.
fn push_bools(out: &mut Vec<u8>, answers: [[u8; 4]; 2], mask: &[u64], len: usize) {
    let start = out.len();
    out.resize(start + len * 4, 0);
    let words = mask.iter().copied().chain(std::iter::repeat(0));
    for (texts, word) in out[start..].chunks_mut(64 * 4).zip(words) {
        for (bit, text) in texts.chunks_exact_mut(4).enumerate() {
            text.copy_from_slice(&answers[(word >> bit & 1) as usize]);
        }
    }
}

/// Returns the encodings of false and true.
const fn bools(protocol: Protocol) -> [[u8; 4]; 2] {
    match protocol {
        Protocol::Resp2 => [*b":0\r\n", *b":1\r\n"],
        Protocol::Resp3 => [*b"#f\r\n", *b"#t\r\n"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(reply: &Reply, protocol: Protocol) -> String {
        let mut out = Vec::new();
        reply.encode(protocol, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_type_is_encoded_in_both_protocols() {
        let values = || vec![Reply::Integer(1), Reply::Bool(false)];
        for (reply, resp2, resp3) in [
            (Reply::ok(), "+OK\r\n", "+OK\r\n"),
            (Reply::error("ERR no"), "-ERR no\r\n", "-ERR no\r\n"),
            (Reply::Integer(-12), ":-12\r\n", ":-12\r\n"),
            (Reply::bulk("ab"), "$2\r\nab\r\n", "$2\r\nab\r\n"),
            (Reply::bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (Reply::NullArray, "*-1\r\n", "_\r\n"),
            (Reply::Bool(true), ":1\r\n", "#t\r\n"),
            (Reply::Bool(false), ":0\r\n", "#f\r\n"),
            (Reply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (Reply::Double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
            (Reply::BigNumber("123".into()), "$3\r\n123\r\n", "(123\r\n"),
            (
                Reply::Verbatim { format: *b"txt", text: b"hi".to_vec() },
                "$2\r\nhi\r\n",
                "=6\r\ntxt:hi\r\n",
            ),
            (Reply::Array(values()), "*2\r\n:1\r\n:0\r\n", "*2\r\n:1\r\n#f\r\n"),
            (Reply::Set(values()), "*2\r\n:1\r\n:0\r\n", "~2\r\n:1\r\n#f\r\n"),
            (Reply::Push(values()), "*2\r\n:1\r\n:0\r\n", ">2\r\n:1\r\n#f\r\n"),
            (
                Reply::Map(vec![(Reply::simple("a"), Reply::Null)]),
                "*2\r\n+a\r\n$-1\r\n",
                "%1\r\n+a\r\n_\r\n",
            ),
            (
                Reply::Bools { mask: vec![0b10], len: 3 },
                "*3\r\n:0\r\n:1\r\n:0\r\n",
                "*3\r\n#f\r\n#t\r\n#f\r\n",
            ),
        ] {
            assert_eq!(bytes(&reply, Protocol::Resp2), resp2);
            assert_eq!(bytes(&reply, Protocol::Resp3), resp3);
        }
    }

    #[test]
    fn a_text_stays_one_line() {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            assert_eq!(bytes(&Reply::error("ERR a\r\n+OK\n"), protocol), "-ERR a  +OK \r\n");
            assert_eq!(bytes(&Reply::simple("a\nb"), protocol), "+a b\r\n");
        }
        assert_eq!(bytes(&Reply::BigNumber("1\r\n2".into()), Protocol::Resp3), "(1  2\r\n");
    }

    #[test]
    fn missing_mask_words_encode_as_no() {
        let reply = Reply::Bools { mask: vec![], len: 2 };
        assert_eq!(bytes(&reply, Protocol::Resp2), "*2\r\n:0\r\n:0\r\n");
        assert_eq!(bytes(&Reply::Bools { mask: vec![7], len: 0 }, Protocol::Resp2), "*0\r\n");
    }
}
