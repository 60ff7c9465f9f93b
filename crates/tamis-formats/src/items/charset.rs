//! Encodes text in a charset as Java does.
//!
//! The tables of `encoding_rs` follow the WHATWG standard. Java's tables of GBK and GB 18030 differ from the WHATWG
//! standard in some characters, which `charset/java.rs` lists. The test data in `tests/golden/charsets` cover every
//! character.

mod java;

use std::fmt;

use encoding_rs::{EncoderResult, Encoding, GB18030, GBK};

/// A charset in which Java programs encode text before hashing.
///
/// A character that is not in the charset becomes `?`, as in Java's `String.getBytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Charset {
    /// UTF-8.
    Utf8,
    /// ISO-8859-1.
    Latin1,
    /// US-ASCII.
    Ascii,
    /// Java's `UTF-16`: big-endian with the byte order mark FE FF. Empty text gets no byte order mark.
    Utf16,
    /// UTF-16, big-endian, without a byte order mark.
    Utf16Be,
    /// UTF-16, little-endian, without a byte order mark.
    Utf16Le,
    /// GBK in Java's encoding. In Java's GBK, 184 characters differ from the WHATWG encoding.
    Gbk,
    /// GB 18030 of 2022 in Java's encoding. In Java's GB 18030, 19 private use characters differ from the WHATWG
    /// encoding.
    Gb18030,
}

impl Charset {
    /// All charsets.
    pub const ALL: [Charset; 8] = [
        Charset::Utf8,
        Charset::Latin1,
        Charset::Ascii,
        Charset::Utf16,
        Charset::Utf16Be,
        Charset::Utf16Le,
        Charset::Gbk,
        Charset::Gb18030,
    ];

    /// Returns the name in Java and in the IANA registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Charset::Utf8 => "UTF-8",
            Charset::Latin1 => "ISO-8859-1",
            Charset::Ascii => "US-ASCII",
            Charset::Utf16 => "UTF-16",
            Charset::Utf16Be => "UTF-16BE",
            Charset::Utf16Le => "UTF-16LE",
            Charset::Gbk => "GBK",
            Charset::Gb18030 => "GB18030",
        }
    }

    /// Returns the common names of the charset that differ from [`name`](Self::name).
    #[must_use]
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Charset::Utf8 => &["UTF8"],
            Charset::Latin1 => &["ISO8859-1", "ISO8859_1", "Latin1", "Latin-1"],
            Charset::Ascii => &["ASCII"],
            Charset::Utf16 => &["UTF16"],
            Charset::Utf16Be => &["UTF16BE"],
            Charset::Utf16Le => &["UTF16LE"],
            Charset::Gbk => &["CP936"],
            Charset::Gb18030 => &["GB-18030"],
        }
    }

    /// Finds a charset by its name or an alias. Upper and lower case are equal.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::Charset;
    ///
    /// assert_eq!(Charset::named("utf8"), Some(Charset::Utf8));
    /// assert_eq!(Charset::named("KOI8-R"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Charset> {
        let is_name = |it: &str| it.eq_ignore_ascii_case(name);
        Charset::ALL.into_iter().find(|charset| {
            is_name(charset.name()) || charset.aliases().iter().any(|alias| is_name(alias))
        })
    }

    /// Encodes UTF-16 code units, the content of a Java `String`, and appends the bytes to `to`. An unpaired surrogate
    /// becomes U+FFFD in UTF-16, and `?` in all charsets except UTF-16.
    pub fn encode_units(self, units: &[u16], to: &mut Vec<u8>) {
        let lost = if matches!(self, Charset::Utf16 | Charset::Utf16Be | Charset::Utf16Le) {
            '\u{fffd}'
        } else {
            '?'
        };
        let chars = char::decode_utf16(units.iter().copied()).map(|c| c.unwrap_or(lost));
        self.encode(&chars.collect::<String>(), to);
    }

    /// Encodes `text` and appends the bytes to `to`.
    pub(crate) fn encode(self, text: &str, to: &mut Vec<u8>) {
        match self {
            Charset::Utf8 => to.extend_from_slice(text.as_bytes()),
            Charset::Latin1 => to.extend(text.chars().map(|c| u8::try_from(c).unwrap_or(b'?'))),
            Charset::Ascii => {
                to.extend(text.chars().map(|c| if c.is_ascii() { c as u8 } else { b'?' }));
            }
            Charset::Utf16 => {
                if !text.is_empty() {
                    to.extend(b"\xfe\xff");
                }
                Charset::Utf16Be.encode(text, to);
            }
            Charset::Utf16Be => to.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            Charset::Utf16Le => to.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Charset::Gbk => encode_by(GBK, java::GBK, text, to),
            Charset::Gb18030 => encode_by(GB18030, java::GB18030, text, to),
        }
    }
}

impl fmt::Display for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Encodes `text` in `encoding`. Characters in `differences` get the bytes that `differences` gives. `differences` is
/// sorted.
fn encode_by(
    encoding: &'static Encoding,
    differences: &[(char, u32)],
    mut text: &str,
    to: &mut Vec<u8>,
) {
    let difference = |c: char| {
        let at = differences.binary_search_by_key(&c, |&(c, _)| c).ok()?;
        Some(differences[at].1)
    };
    while let Some((at, c, code)) =
        text.char_indices().find_map(|(at, c)| Some((at, c, difference(c)?)))
    {
        encode_by_whatwg(encoding, &text[..at], to);
        let bytes = code.to_be_bytes();
        to.extend(&bytes[(code.leading_zeros() / 8) as usize..]);
        text = &text[at + c.len_utf8()..];
    }
    encode_by_whatwg(encoding, text, to);
}

fn encode_by_whatwg(encoding: &'static Encoding, mut text: &str, to: &mut Vec<u8>) {
    let mut encoder = encoding.new_encoder();
    // The buffer has a fixed size, so the time is linear even if many characters are unmappable.
    let mut chunk = [0; 256];
    loop {
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(text, &mut chunk, true);
        to.extend_from_slice(&chunk[..written]);
        text = &text[read..];
        match result {
            EncoderResult::InputEmpty => return,
            EncoderResult::Unmappable(_) => to.push(b'?'),
            EncoderResult::OutputFull => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(charset: Charset, text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        charset.encode(text, &mut bytes);
        bytes
    }

    #[test]
    fn the_differences_are_sorted_and_of_one_to_four_bytes() {
        for (table, len) in [(java::GBK, 184), (java::GB18030, 19)] {
            assert_eq!(table.len(), len);
            assert!(table.is_sorted_by(|one, next| one.0 < next.0));
            assert!(table.iter().all(|&(_, code)| code > 0));
        }
    }

    #[test]
    fn the_euro_sign_has_two_bytes_in_gbk_of_java() {
        assert_eq!(encode(Charset::Gbk, "€"), b"\xa2\xe3");
        assert_eq!(encode(Charset::Gbk, "价格€100"), b"\xbc\xdb\xb8\xf1\xa2\xe3100");
    }

    #[test]
    fn long_text_is_encoded_across_chunks() {
        for (charset, item, expected) in [
            (Charset::Gbk, "a你😀é€", &b"a\xc4\xe3?\xa8\xa6\xa2\xe3"[..]),
            (Charset::Gb18030, "a你😀", b"a\xc4\xe3\x94\x39\xfc\x36"),
        ] {
            assert!(encode(charset, &item.repeat(1_000)) == expected.repeat(1_000), "{charset}");
        }
    }

    #[test]
    fn a_charset_is_found_by_any_of_its_names_in_any_case() {
        for charset in Charset::ALL {
            for name in [&[charset.name()], charset.aliases()].concat() {
                assert_eq!(Charset::named(&name.to_lowercase()), Some(charset), "{name}");
                assert_eq!(Charset::named(&name.to_uppercase()), Some(charset), "{name}");
            }
        }
        assert_eq!(Charset::named("UTF-7"), None);
    }

    #[test]
    fn half_a_pair_is_replaced() {
        for (charset, expected) in [(Charset::Utf8, &b"a?"[..]), (Charset::Utf16Be, b"\0a\xff\xfd")]
        {
            let mut bytes = Vec::new();
            charset.encode_units(&[0x61, 0xd800], &mut bytes);
            assert_eq!(bytes, expected);
        }
    }
}
