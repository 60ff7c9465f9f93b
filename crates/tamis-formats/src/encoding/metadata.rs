//! Stores the metadata of a filter: sorted `key=value` text.
//!
//! The layout of an entry in a file:
//!
//! ```text
//! | key bytes u8 | value bytes u32 | key | value |
//! ```

use std::collections::BTreeMap;
use std::fmt;

use crate::encoding::reader::ByteReader;
use crate::errors::DecodeError;

/// Text that is stored with a filter. Metadata does not affect the answers of the filter.
///
/// Entries are sorted by key, so equal metadata has equal bytes. The size of all entries together is at most
/// [`MAX_BYTES`](Self::MAX_BYTES).
///
/// # Examples
///
/// ```
/// use tamis_formats::Metadata;
///
/// let mut metadata = Metadata::new();
/// metadata.insert("source", "urls.txt")?;
/// assert_eq!(metadata.get("source"), Some("urls.txt"));
/// assert!(metadata.insert("", "a key has a name").is_err());
/// # Ok::<(), tamis_formats::MetadataError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    // Invariant: every key passes `check_key`, and `len_bytes()` is at most `MAX_BYTES`.
    entries: BTreeMap<String, String>,
}

impl Metadata {
    /// The maximum size of all entries in a file, in bytes.
    pub const MAX_BYTES: usize = 1 << 20;

    /// Creates empty metadata.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }

    /// Sets `key` to `value`. Replaces a previous value of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError::Key`] unless the key is 1 to 255 bytes without `=` and control characters.
    /// [`MetadataError::TooLong`] if all entries together would exceed
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn insert(&mut self, key: &str, value: &str) -> Result<(), MetadataError> {
        if !is_key(key) {
            return Err(MetadataError::Key);
        }
        let replaced = self.entries.get(key).map_or(0, |old| entry_bytes(key, old));
        if self.len_bytes() - replaced + entry_bytes(key, value) > Self::MAX_BYTES {
            return Err(MetadataError::TooLong);
        }
        self.entries.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(String::as_str)
    }

    /// Iterates over the entries in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Tests whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the size of the entries in a file, in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.iter().map(|(key, value)| entry_bytes(key, value)).sum()
    }

    /// Appends the encoded entries to `bytes`.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        for (key, value) in self.iter() {
            bytes.push(u8::try_from(key.len()).expect("a key has at most 255 bytes"));
            let len = u32::try_from(value.len()).expect("a value is shorter than `MAX_BYTES`");
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(value.as_bytes());
        }
    }

    /// Decodes all entries from `bytes`. `at` is the offset of `bytes` in the file.
    pub(crate) fn decode(bytes: &[u8], at: usize) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        let mut entries = BTreeMap::new();
        let mut decode_all = || {
            while !reader.is_empty() {
                let key_bytes = reader.u8("metadata")?;
                let value_bytes = reader.u32("metadata")?;
                let key = text(&mut reader, usize::from(key_bytes))?;
                let value = text(&mut reader, value_bytes as usize)?;
                let in_order = entries.last_key_value().is_none_or(|(last, _)| *last < key);
                if !is_key(&key) || !in_order {
                    return Err(reader.invalid("metadata", "a list of sorted keys"));
                }
                entries.insert(key, value);
            }
            Ok(())
        };
        decode_all().map_err(|error| DecodeError { at: error.at + at as u64, ..error })?;
        Ok(Self { entries })
    }
}

fn text(reader: &mut ByteReader<'_>, len: usize) -> Result<String, DecodeError> {
    let start = reader.at();
    let bytes = reader.bytes("metadata", len)?;
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned).map_err(|_| DecodeError::invalid("metadata", start, "UTF-8 text"))
}

fn is_key(key: &str) -> bool {
    (1..=255).contains(&key.len()) && !key.contains(|c: char| c == '=' || c.is_control())
}

fn entry_bytes(key: &str, value: &str) -> usize {
    1 + 4 + key.len() + value.len()
}

/// The reason why a metadata entry was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataError {
    /// The key is empty, too long, or contains `=` or a control character.
    Key,
    /// The size of all entries together would exceed the maximum.
    TooLong,
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetadataError::Key => {
                f.write_str("a metadata key is 1 to 255 bytes without `=` and control characters")
            }
            MetadataError::TooLong => {
                write!(f, "metadata take at most {} bytes together", Metadata::MAX_BYTES)
            }
        }
    }
}

impl std::error::Error for MetadataError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Metadata {
        let mut metadata = Metadata::new();
        metadata.insert("来源", "网址").unwrap();
        metadata.insert("a", "").unwrap();
        metadata.insert("b", "line\nbreak").unwrap();
        metadata
    }

    #[test]
    fn entries_come_back_sorted() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!(bytes.len(), sample().len_bytes());
        assert_eq!(Metadata::decode(&bytes, 0).unwrap(), sample());
        assert_eq!(sample().iter().next(), Some(("a", "")));
    }

    #[test]
    fn bad_keys_are_refused() {
        for key in ["", "a=b", "a\n", &"k".repeat(256)] {
            assert_eq!(Metadata::new().insert(key, ""), Err(MetadataError::Key), "{key:?}");
        }
    }

    #[test]
    fn the_limit_does_not_count_replaced_entries() {
        let mut metadata = Metadata::new();
        let long = "v".repeat(Metadata::MAX_BYTES - entry_bytes("k", ""));
        metadata.insert("k", &long).unwrap();
        metadata.insert("k", &long).unwrap();
        assert_eq!(metadata.insert("l", ""), Err(MetadataError::TooLong));
        metadata.insert("k", "short").unwrap();
        metadata.insert("l", "").unwrap();
    }

    #[test]
    fn unsorted_and_repeated_keys_are_refused() {
        let entry = |key: u8| [1, 0, 0, 0, 0, key];
        for keys in [*b"ba", *b"aa"] {
            let bytes = keys.map(entry).concat();
            let error = Metadata::decode(&bytes, 100).unwrap_err();
            assert_eq!((error.field, error.at), ("metadata", 112));
        }
        assert!(Metadata::decode(&[1, 0, 0, 0, 0, 0xff], 0).is_err());
        assert!(Metadata::decode(&[1, 255, 255, 255, 255, b'a'], 0).is_err());
    }
}
