//! A key of a snapshot and its value.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::errors::{DecodeError, DecodeErrorKind};
use crate::redis::payload::{PayloadError, RedisValue};
use crate::redis::rdb::compact;
use crate::redis::rdb_encoding::{MAX_EXPANSION, RdbReader, value_type};

/// A key of a snapshot and its value.
#[derive(Clone, Debug)]
pub struct RdbEntry<'a> {
    pub(super) database: u64,
    pub(super) key: Cow<'a, [u8]>,
    pub(super) kind: u8,
    pub(super) value: &'a [u8],
    pub(super) at: u64,
}

impl<'a> RdbEntry<'a> {
    /// Returns the number of the database.
    #[must_use]
    pub fn database(&self) -> u64 {
        self.database
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the reply of `TYPE` for the value. The values of modules other than RedisBloom and Tamis have the name
    /// "module".
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            value_type::STRING => "string",
            value_type::MODULE_2 => RedisValue::filter_name(self.value).unwrap_or("module"),
            value_type::STREAM | value_type::STREAM_2 | value_type::STREAM_3 => "stream",
            value_type::LIST
            | value_type::LIST_ZIPLIST
            | value_type::LIST_QUICKLIST
            | value_type::LIST_QUICKLIST_2 => "list",
            value_type::SET | value_type::SET_INTSET | value_type::SET_LISTPACK => "set",
            value_type::SORTED_SET
            | value_type::SORTED_SET_2
            | value_type::SORTED_SET_ZIPLIST
            | value_type::SORTED_SET_LISTPACK => "zset",
            _ => "hash",
        }
    }

    /// Tests whether the value is a filter of RedisBloom.
    pub(crate) fn is_filter(&self) -> bool {
        RedisValue::is_filter(self.kind, self.value)
    }

    /// Tests whether the value is a filter of a Tamis server that RedisBloom cannot read.
    pub(crate) fn is_of_tamis(&self) -> bool {
        RedisValue::is_of_tamis(self.kind, self.value)
    }

    /// Decodes a filter of RedisBloom, or a string.
    pub(crate) fn value(&self) -> Result<RedisValue, DecodeError> {
        // Limits the memory after decompression to a multiple of the length of the stored value. The stored value is
        // not longer than the file.
        let max_bytes = MAX_EXPANSION * self.value.len() as u64;
        RedisValue::read(self.kind, RdbReader::new(self.value, max_bytes)).map_err(|error| {
            match error {
                PayloadError::OtherType => self.other_type("a filter of RedisBloom"),
                _ => {
                    self.error(DecodeErrorKind::Invalid { reason: "a value that a server writes" })
                }
            }
        })
    }

    /// Reads a string of at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the value is not a string, the string is longer than `max_bytes`, or the bytes are damaged.
    pub fn string(&self, max_bytes: u64) -> Result<Cow<'a, [u8]>, DecodeError> {
        if self.kind != value_type::STRING {
            return Err(self.other_type("a string"));
        }
        RdbReader::new(self.value, max_bytes).bytes().ok_or_else(|| {
            self.refused(format!(
                "is a string of more than the {max_bytes} bytes that its plan has"
            ))
        })
    }

    /// Reads a hash with few fields. The settings of a filter are a hash with few fields.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the value is not a hash, if the hash has too many fields, or if the bytes are damaged.
    pub fn fields(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, DecodeError> {
        let invalid = || self.error(DecodeErrorKind::Invalid { reason: "a hash of a few fields" });
        let mut from = RdbReader::new(self.value, MAX_SETTINGS_BYTES);
        let texts = match self.kind {
            value_type::HASH => {
                let fields = from.length().filter(|&fields| fields <= MAX_FIELDS as u64);
                (0..2 * fields.ok_or_else(invalid)?)
                    .map(|_| from.bytes().map(Cow::into_owned))
                    .collect()
            }
            value_type::HASH_ZIPLIST => {
                from.bytes().and_then(|bytes| compact::ziplist(&bytes, 2 * MAX_FIELDS))
            }
            value_type::HASH_LISTPACK => {
                from.bytes().and_then(|bytes| compact::listpack(&bytes, 2 * MAX_FIELDS))
            }
            _ => return Err(self.other_type("a hash without fields that expire")),
        };
        let texts: Vec<Vec<u8>> = texts.ok_or_else(invalid)?;
        let (pairs, []) = texts.as_chunks() else { return Err(invalid()) };
        Ok(pairs.iter().map(|[field, value]| (field.clone(), value.clone())).collect())
    }

    /// Returns the offset of the value.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Checks that the key occurs in only one database.
    pub(crate) fn only(&self, earlier: Option<&Self>) -> Result<(), DecodeError> {
        let Some(earlier) = earlier else { return Ok(()) };
        let (one, other) = (earlier.database, self.database);
        Err(self.refused(format!(
            "is in databases {one} and {other}: save a server that has it in one database"
        )))
    }

    /// Creates an error about the key of this entry.
    pub(crate) fn refused(&self, why: impl AsRef<str>) -> DecodeError {
        let why = format!("key {:?} {}", String::from_utf8_lossy(&self.key), why.as_ref());
        self.error(DecodeErrorKind::Refused { why: why.into() })
    }

    fn other_type(&self, expected: &str) -> DecodeError {
        self.refused(format!("is a {}, not {expected}", self.type_name()))
    }

    fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { field: "value", at: self.at, kind }
    }
}

/// The largest number of fields in a hash of settings. The settings of a filter have four or five fields.
const MAX_FIELDS: usize = 64;
const MAX_SETTINGS_BYTES: u64 = 64 << 10;
