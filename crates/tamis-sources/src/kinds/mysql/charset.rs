//! The character sets of text columns. The log contains a text in the character set of its column, and queries return
//! the text in UTF-8.

use std::borrow::Cow;

use encoding_rs::{GBK, WINDOWS_1252};

/// The character set of a text column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    /// UTF-8 and ASCII: the log and the queries return the same bytes.
    Utf8,
    /// `latin1` is Windows-1252.
    Latin1,
    Gbk,
    /// The character set `gb2312`, which is a part of GBK.
    Gb2312,
}

impl Charset {
    /// Returns the character set with a name of the server. Returns `None` for a set that the source cannot decode.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "utf8" | "utf8mb3" | "utf8mb4" | "ascii" => Self::Utf8,
            "latin1" => Self::Latin1,
            "gbk" => Self::Gbk,
            "gb2312" => Self::Gb2312,
            _ => return None,
        })
    }

    /// Converts a text of the log to UTF-8, as the server does for a query. Returns `None` if the source cannot convert
    /// the text.
    pub(super) fn decode(self, text: &[u8]) -> Option<Cow<'_, [u8]>> {
        if text.is_ascii() || self == Self::Utf8 {
            return Some(Cow::Borrowed(text));
        }
        let encoding = if self == Self::Latin1 { WINDOWS_1252 } else { GBK };
        if self != Self::Latin1 && !self.has_only_characters(text) {
            return None;
        }
        let decoded = encoding.decode_without_bom_handling_and_without_replacement(text)?;
        Some(Cow::Owned(decoded.into_owned().into_bytes()))
    }

    /// Tests whether a text has only ASCII and Chinese characters. MySQL and the WHATWG encoding decode the Chinese
    /// characters to the same characters, but some punctuation and symbols to different characters.
    fn has_only_characters(self, text: &[u8]) -> bool {
        let mut bytes = text.iter();
        while let Some(&lead) = bytes.next() {
            if lead.is_ascii() {
                continue;
            }
            let Some(&trail) = bytes.next() else { return false };
            // The WHATWG encoding has characters for the five codes after the last character of the first level, and
            // MySQL has none.
            let is_assigned = !(lead == 0xD7 && trail >= 0xFA);
            let is_simplified = matches!(lead, 0xB0..=0xF7) && trail >= 0xA1 && is_assigned;
            let is_other =
                matches!(lead, 0x81..=0xA0) || matches!(lead, 0xAA..=0xFD) && trail < 0xA1;
            if !(is_simplified || is_other && self == Self::Gbk) {
                return false;
            }
        }
        true
    }
}
