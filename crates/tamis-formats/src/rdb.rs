//! Redis' snapshots, as `SAVE` and `redis-cli --rdb` write them: the keys in them, and the values that filters live in.
//!
//! ```text
//! | "REDIS" | version: 4 digits | opcode ... | type, key, value | type, key, value | ... | 0xff | CRC-64: u64 |
//! ```
//!
//! Values of other types are passed over. Drawn in `docs/formats/rdb.md`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::decode_options::{DecodeOptions, Parameter};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::format::Sniff;
use crate::redis_payload::{PayloadError, RedisValue};

pub(crate) mod coding;
mod compact;
pub(crate) mod crc64;
mod skip;
mod write;

use coding::{MAX_EXPANSION, Reader};
use crc64::crc64;
use skip::{skip_lengths, skip_of, skip_strings};
pub(crate) use write::{Written, write};

/// A whole snapshot whose checksum is right.
///
/// # Examples
///
/// ```no_run
/// let bytes = std::fs::read("dump.rdb")?;
/// for entry in tamis_formats::Rdb::new(&bytes)?.entries() {
///     let entry = entry?;
///     println!("{} {}", String::from_utf8_lossy(entry.key()), entry.type_name());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rdb<'a> {
    /// All bytes, up to the checksum.
    bytes: &'a [u8],
}

/// A key of a snapshot, and where its value is.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    database: u64,
    key: Cow<'a, [u8]>,
    kind: u8,
    value: &'a [u8],
    at: u64,
}

const MAGIC: &[u8; 5] = b"REDIS";
const START: usize = MAGIC.len() + 4;

/// The first version with a checksum.
const CHECKSUM_SINCE: u32 = 5;

/// What stands before a key, or instead of one.
mod opcode {
    pub const SLOT_INFO: u8 = 244;
    pub const FUNCTION: u8 = 245;
    pub const MODULE_AUX: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQUENCY: u8 = 249;
    pub const AUX: u8 = 250;
    pub const RESIZE_DATABASE: u8 = 251;
    pub const EXPIRES_MILLISECONDS: u8 = 252;
    pub const EXPIRES_SECONDS: u8 = 253;
    pub const SELECT_DATABASE: u8 = 254;
    pub const END: u8 = 255;
}

/// The types of values.
pub(crate) mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const SORTED_SET: u8 = 3;
    pub const HASH: u8 = 4;
    pub const SORTED_SET_2: u8 = 5;
    pub const MODULE_2: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const SORTED_SET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    pub const STREAM: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const SORTED_SET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_3: u8 = 21;
    pub const HASH_EXPIRING: u8 = 24;
    pub const HASH_EXPIRING_LISTPACK: u8 = 25;
}

impl<'a> Rdb<'a> {
    /// Checks the start and the checksum. Reads all bytes once.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if this is no snapshot, or was changed or cut.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let wrong = |field, at: usize, kind| DecodeError { field, at: at as u64, kind };
        if !Self::has_magic(bytes) {
            return Err(wrong(
                "magic",
                0,
                DecodeErrorKind::Invalid { reason: "that of a snapshot of Redis" },
            ));
        }
        let found = bytes.len() as u64;
        let Some(version) = bytes.get(MAGIC.len()..START) else {
            let kind = DecodeErrorKind::Truncated { expected: START as u64, found };
            return Err(wrong("version", MAGIC.len(), kind));
        };
        let version = std::str::from_utf8(version).ok().and_then(|digits| digits.parse().ok());
        let version: u32 = version.ok_or_else(|| {
            wrong("version", MAGIC.len(), DecodeErrorKind::Invalid { reason: "four digits" })
        })?;
        if version < CHECKSUM_SINCE {
            return Ok(Self { bytes });
        }
        let rest = bytes.split_last_chunk().filter(|(summed, _)| summed.len() > START);
        let Some((summed, checksum)) = rest else {
            let kind = DecodeErrorKind::Truncated { expected: START as u64 + 9, found };
            return Err(wrong("checksum", START, kind));
        };
        let checksum = u64::from_le_bytes(*checksum);
        // Zero is that of a server with `rdbchecksum no`.
        if checksum != 0 && checksum != crc64(summed) {
            // What was cut short does not end as a whole one does.
            return Err(if summed.last() == Some(&opcode::END) {
                wrong("checksum", summed.len(), DecodeErrorKind::Checksum)
            } else {
                let kind = DecodeErrorKind::Truncated { expected: found + 1, found };
                wrong("keys", START, kind)
            });
        }
        Ok(Self { bytes: summed })
    }

    /// Tells whether bytes start as a snapshot does.
    pub(crate) fn has_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Tells whether bytes start as a snapshot of any version does, whole or damaged.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::Rdb;
    ///
    /// assert!(Rdb::is_one(b"REDIS0009, and nothing that Redis writes"));
    /// assert!(!Rdb::is_one(b"REDIS is a server"));
    /// ```
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        let version = bytes.get(MAGIC.len()..START);
        Self::has_magic(bytes)
            && version.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    }

    /// Checks that all keys can be read. Reads all bytes once more.
    ///
    /// # Errors
    ///
    /// That of the first one that cannot.
    pub fn check(&self) -> Result<(), DecodeError> {
        self.entries().try_for_each(|entry| entry.map(drop))
    }

    /// Tells whether bytes are a whole snapshot with such a key. Of a damaged one nothing tells what it holds.
    pub(crate) fn sniff(bytes: &[u8], is_one: impl Fn(&Entry<'_>) -> bool) -> Sniff {
        let has_one = |rdb: Rdb<'_>| {
            let found =
                rdb.entries().try_fold(false, |found, it| it.map(|it| found || is_one(&it)));
            found.unwrap_or(false)
        };
        let maybe = Self::has_magic(bytes) && Rdb::new(bytes).is_ok_and(has_one);
        if maybe { Sniff::Maybe } else { Sniff::No }
    }

    /// Iterates over the keys, in the file's order; ends after the first error.
    ///
    /// The error names a value of a type that is not known by its number and place.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, DecodeError>> + use<'a> {
        let mut walk = Walk {
            all: self.bytes,
            from: Reader::new(&self.bytes[START..], u64::MAX),
            database: 0,
        };
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let next = walk.next().transpose();
            is_over = !matches!(next, Some(Ok(_)));
            next
        })
    }

    /// Finds the values of a few keys. Keys are looked for in all databases.
    pub(crate) fn find<const N: usize>(
        &self,
        keys: [&[u8]; N],
    ) -> Result<[Option<Entry<'a>>; N], DecodeError> {
        let mut found = [const { None }; N];
        for entry in self.entries() {
            let entry = entry?;
            if let Some(i) = keys.iter().position(|key| entry.key == *key) {
                entry.only(found[i].as_ref())?;
                found[i] = Some(entry);
            }
        }
        Ok(found)
    }

    /// Finds the key that was told; without one, the only key that `is_one` is true of. Where there are several, they are shown
    /// as they are to be told, by `told_as`.
    pub(crate) fn find_key(
        &self,
        options: &DecodeOptions,
        what: &str,
        is_one: impl Fn(&Entry<'a>) -> bool,
        shown_as: fn(&[u8]) -> &[u8],
    ) -> Result<Entry<'a>, DecodeError> {
        if let Some(key) = &options.key {
            let [found] = self.find([key])?;
            return found.ok_or_else(|| {
                self.refused(format!("there is no key {:?}", String::from_utf8_lossy(key)))
            });
        }
        let (mut only, mut keys, mut more) = (None, Vec::new(), 0_u64);
        for entry in self.entries() {
            let entry = entry?;
            if !is_one(&entry) {
                continue;
            }
            if keys.len() < MAX_SHOWN {
                keys.push(shown(shown_as(entry.key())));
            } else {
                more += 1;
            }
            only = Some(entry);
        }
        if keys.len() > 1 {
            let mut keys = keys.join(", ");
            if more > 0 {
                keys.push_str(&format!(" and {more} more"));
            }
            let kind = DecodeErrorKind::SeveralKeys { keys: keys.into() };
            return Err(DecodeError { field: Parameter::Key.name(), at: START as u64, kind });
        }
        only.ok_or_else(|| self.refused(format!("none of its keys is {what}")))
    }

    /// Returns an error about the keys as a whole.
    pub(crate) fn refused(&self, why: String) -> DecodeError {
        DecodeError {
            field: "keys",
            at: START as u64,
            kind: DecodeErrorKind::Refused { why: why.into() },
        }
    }
}

impl<'a> Entry<'a> {
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

    /// Returns what `TYPE` calls the value, and for modules' values that are no filter of RedisBloom just "module".
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            kind::STRING => "string",
            kind::MODULE_2 => RedisValue::filter_name(self.value).unwrap_or("module"),
            kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => "stream",
            kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
                "list"
            }
            kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => "set",
            kind::SORTED_SET
            | kind::SORTED_SET_2
            | kind::SORTED_SET_ZIPLIST
            | kind::SORTED_SET_LISTPACK => "zset",
            _ => "hash",
        }
    }

    /// Tells whether it is a filter of RedisBloom.
    pub(crate) fn is_filter(&self) -> bool {
        RedisValue::is_filter(self.kind, self.value)
    }

    /// Reads a filter of RedisBloom, or a string.
    pub(crate) fn value(&self) -> Result<RedisValue, DecodeError> {
        // What compression may have made of it: the value is no longer than the file.
        let max_bytes = MAX_EXPANSION * self.value.len() as u64;
        RedisValue::read(self.kind, Reader::new(self.value, max_bytes)).map_err(|error| match error
        {
            PayloadError::OtherType => self.other_type("a filter of RedisBloom"),
            _ => self.error(DecodeErrorKind::Invalid { reason: "a value that a server writes" }),
        })
    }

    /// Reads a string of at most `max_bytes`.
    pub(crate) fn string(&self, max_bytes: u64) -> Result<Cow<'a, [u8]>, DecodeError> {
        if self.kind != kind::STRING {
            return Err(self.other_type("a string"));
        }
        Reader::new(self.value, max_bytes).bytes().ok_or_else(|| {
            self.refused(format!(
                "is a string of more than the {max_bytes} bytes that its plan has"
            ))
        })
    }

    /// Reads a hash of at most [`MAX_FIELDS`] fields, as settings are stored.
    pub(crate) fn fields(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, DecodeError> {
        let invalid = || self.error(DecodeErrorKind::Invalid { reason: "a hash of a few fields" });
        let mut from = Reader::new(self.value, MAX_SETTINGS_BYTES);
        let texts = match self.kind {
            kind::HASH => {
                let fields = from.length().filter(|&fields| fields <= MAX_FIELDS as u64);
                (0..2 * fields.ok_or_else(invalid)?)
                    .map(|_| from.bytes().map(Cow::into_owned))
                    .collect()
            }
            kind::HASH_ZIPLIST => {
                from.bytes().and_then(|bytes| compact::ziplist(&bytes, 2 * MAX_FIELDS))
            }
            kind::HASH_LISTPACK => {
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

    /// Checks that the same key was not found in another database.
    pub(crate) fn only(&self, earlier: Option<&Self>) -> Result<(), DecodeError> {
        let Some(earlier) = earlier else { return Ok(()) };
        let (one, other) = (earlier.database, self.database);
        Err(self.refused(format!(
            "is in database {one} and in {other}, and which is meant nothing says: save a server with one of them"
        )))
    }

    /// Returns an error that says something of this key.
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

/// A key as it is shown: what would steer a terminal is spelled out, and what is long is cut.
fn shown(key: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(key);
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "..." } else { "" };
    format!("{}{more}", start.escape_debug())
}

/// How many of the keys that could be meant are shown.
const MAX_SHOWN: usize = 10;

/// More than any settings are: those of a filter are four or five.
const MAX_FIELDS: usize = 64;
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// Where a walk through a snapshot is.
struct Walk<'a> {
    all: &'a [u8],
    from: Reader<'a>,
    database: u64,
}

impl<'a> Walk<'a> {
    /// Goes on to the next key; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry<'a>>, DecodeError> {
        loop {
            let at = self.at();
            let kind = self.expect("opcode", |from| from.take(1))?[0];
            match kind {
                opcode::END if self.from.is_empty() => return Ok(None),
                opcode::END => {
                    return Err(self.error(
                        "end",
                        self.at(),
                        DecodeErrorKind::TooLong { expected: self.at() },
                    ));
                }
                opcode::SELECT_DATABASE => {
                    self.database = self.expect("database", Reader::length)?;
                }
                opcode::RESIZE_DATABASE => {
                    self.skip("sizes of a database", |from| skip_lengths(from, 2))?;
                }
                opcode::SLOT_INFO => self.skip("sizes of a slot", |from| skip_lengths(from, 3))?,
                opcode::AUX => self.skip("auxiliary field", |from| skip_strings(from, 2))?,
                opcode::FUNCTION => self.skip("function", Reader::skip_bytes)?,
                opcode::IDLE => self.skip("idle time", |from| skip_lengths(from, 1))?,
                opcode::FREQUENCY => self.skip("frequency", |from| from.take(1).map(drop))?,
                opcode::EXPIRES_SECONDS => self.skip("expiry", |from| from.take(4).map(drop))?,
                opcode::EXPIRES_MILLISECONDS => {
                    self.skip("expiry", |from| from.take(8).map(drop))?;
                }
                opcode::MODULE_AUX => self.skip("module's data", |from| {
                    from.length()?;
                    from.skip_values()
                })?,
                kind => return self.entry(kind, at).map(Some),
            }
        }
    }

    fn entry(&mut self, kind: u8, kind_at: u64) -> Result<Entry<'a>, DecodeError> {
        let key = self.expect("key", Reader::bytes)?;
        let (at, value) = (self.at(), self.from.rest());
        let Some(skip) = skip_of(kind) else {
            let why = format!(
                "values of type {kind} are not known, so that nothing behind byte {kind_at} can be read: \
                 use a newer tamis, or save a server without key {:?}",
                String::from_utf8_lossy(&key)
            );
            return Err(self.error("type", kind_at, DecodeErrorKind::Refused { why: why.into() }));
        };
        self.skip("value", skip)?;
        let value = &value[..(self.at() - at) as usize];
        Ok(Entry { database: self.database, key, kind, value, at })
    }

    fn at(&self) -> u64 {
        (self.all.len() - self.from.rest().len()) as u64
    }

    fn expect<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
    ) -> Result<T, DecodeError> {
        let at = self.at();
        let reason = "whole, as Redis writes it";
        read(&mut self.from)
            .ok_or_else(|| self.error(field, at, DecodeErrorKind::Invalid { reason }))
    }

    fn skip(
        &mut self,
        field: &'static str,
        skip: impl FnOnce(&mut Reader<'a>) -> Option<()>,
    ) -> Result<(), DecodeError> {
        self.expect(field, skip)
    }

    fn error(&self, field: &'static str, at: u64, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { field, at, kind }
    }
}
