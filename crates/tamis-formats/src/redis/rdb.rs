//! Reads the keys of Redis snapshots, and the values that contain filters. `SAVE` and `redis-cli --rdb` write
//! snapshots.
//!
//! ```text
//! | "REDIS" | version: 4 digits | opcode ... | type, key, value | type, key, value | ... | 0xff | CRC-64: u64 |
//! ```
//!
//! Valkey 9 and later write "VALKEY" and three digits instead of "REDIS" and four digits. Values of types that cannot
//! contain a filter are skipped. Layout: `docs/formats/rdb.md`.

mod compact;
mod entry;
mod flavor;
mod opcode;
mod skip;
mod walk;
mod write;

use crate::errors::{DecodeError, DecodeErrorKind};
use crate::format::{DecodeOptions, Parameter, Sniff};
use crate::redis::rdb::flavor::Flavor;
use crate::redis::rdb::walk::Walk;
use crate::redis::rdb_encoding::RdbReader;
use crate::redis::rdb_encoding::crc64::crc64;

pub use entry::RdbEntry;
pub use write::{SnapshotValue, write_snapshot};

/// A snapshot whose checksum matches.
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
    /// All bytes before the checksum.
    bytes: &'a [u8],
    flavor: Flavor,
    version: u32,
}

/// The length of the magic number and the version. The length is the same in snapshots of Redis and of Valkey.
const START: usize = 9;

/// The first RDB version with a checksum.
const CHECKSUM_SINCE: u32 = 5;

impl<'a> Rdb<'a> {
    /// Opens a snapshot. Reads all bytes once, and checks the start and the checksum.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the bytes are not a snapshot, or if the snapshot was changed or truncated.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let wrong = DecodeError::new;
        let Some(flavor) = Flavor::of(bytes) else {
            return Err(DecodeError::invalid("magic", 0, "that of a Redis snapshot"));
        };
        let (found, version_at) = (bytes.len() as u64, flavor.magic().len());
        let Some(version) = bytes.get(version_at..START) else {
            let kind = DecodeErrorKind::Truncated { expected: START as u64, found };
            return Err(wrong("version", version_at, kind));
        };
        let version = std::str::from_utf8(version).ok().and_then(|digits| digits.parse().ok());
        let version: u32 =
            version.ok_or(DecodeError::invalid("version", version_at, "a decimal number"))?;
        if version < CHECKSUM_SINCE {
            return Ok(Self { bytes, flavor, version });
        }
        let rest = bytes.split_last_chunk().filter(|(summed, _)| summed.len() > START);
        let Some((summed, checksum)) = rest else {
            let kind = DecodeErrorKind::Truncated { expected: START as u64 + 9, found };
            return Err(wrong("checksum", START, kind));
        };
        let checksum = u64::from_le_bytes(*checksum);
        // A server with `rdbchecksum no` writes zero as the checksum.
        if checksum != 0 && checksum != crc64(summed) {
            // A whole snapshot ends with the opcode `END`; a truncated snapshot does not.
            return Err(if summed.last() == Some(&opcode::END) {
                wrong("checksum", summed.len(), DecodeErrorKind::Checksum)
            } else {
                let kind = DecodeErrorKind::Truncated { expected: found + 1, found };
                wrong("keys", START, kind)
            });
        }
        Ok(Self { bytes: summed, flavor, version })
    }

    /// Tests whether bytes start with the magic number of a snapshot.
    pub(crate) fn has_magic(bytes: &[u8]) -> bool {
        Flavor::of(bytes).is_some()
    }

    /// Tests whether the bytes start like a snapshot of any version. Does not check whether the snapshot is damaged.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::Rdb;
    ///
    /// assert!(Rdb::is_one(b"REDIS0009, and nothing that Redis writes"));
    /// assert!(Rdb::is_one(b"VALKEY080"));
    /// assert!(!Rdb::is_one(b"REDIS is a server"));
    /// ```
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        let version = Flavor::of(bytes).and_then(|it| bytes.get(it.magic().len()..START));
        version.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    }

    /// Checks that all keys can be read. Linear time.
    ///
    /// # Errors
    ///
    /// The error of the first key that cannot be read.
    pub fn check(&self) -> Result<(), DecodeError> {
        self.entries().try_for_each(|entry| entry.map(drop))
    }

    /// Tests whether the bytes are a whole snapshot with a key for which `is_one` is true. The keys of a damaged
    /// snapshot are unknown.
    pub(crate) fn sniff(bytes: &[u8], is_one: impl Fn(&RdbEntry<'_>) -> bool) -> Sniff {
        let has_one = |rdb: Rdb<'_>| {
            let mut entries = rdb.entries();
            entries.try_fold(false, |found, it| it.map(|it| found || is_one(&it))).unwrap_or(false)
        };
        let maybe = Self::has_magic(bytes) && Rdb::new(bytes).is_ok_and(has_one);
        Sniff::maybe(maybe)
    }

    /// Iterates over the keys in the order of the file. The iteration ends after the first error.
    ///
    /// An error about a value of an unknown type names the type number and the offset.
    pub fn entries(&self) -> impl Iterator<Item = Result<RdbEntry<'a>, DecodeError>> + use<'a> {
        let mut walk = Walk {
            flavor: self.flavor,
            version: self.version,
            len: self.bytes.len(),
            from: RdbReader::new(&self.bytes[START..], u64::MAX),
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

    /// Finds the entries of the given keys, in all databases.
    pub(crate) fn find<const N: usize>(
        &self,
        keys: [&[u8]; N],
    ) -> Result<[Option<RdbEntry<'a>>; N], DecodeError> {
        let mut found = [const { None }; N];
        for entry in self.entries() {
            let entry = entry?;
            if let Some(i) = keys.iter().position(|key| entry.key() == *key) {
                entry.only(found[i].as_ref())?;
                found[i] = Some(entry);
            }
        }
        Ok(found)
    }

    /// Finds the key in the options. If the options have no key, finds the only key for which `is_one` is true. If
    /// `is_one` is true for several keys, the error lists the keys. `shown_as` converts a key to the form in which the
    /// user gives the key.
    pub(crate) fn find_key(
        &self,
        options: &DecodeOptions,
        what: &str,
        is_one: impl Fn(&RdbEntry<'a>) -> bool,
        shown_as: fn(&[u8]) -> &[u8],
    ) -> Result<RdbEntry<'a>, DecodeError> {
        if let Some(key) = &options.key {
            let [found] = self.find([key])?;
            return found.ok_or_else(|| {
                self.refused(format!("the snapshot has no key {:?}", String::from_utf8_lossy(key)))
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
            return Err(DecodeError::new(Parameter::Key.name(), START, kind));
        }
        only.ok_or_else(|| self.refused(format!("none of its keys is {what}")))
    }

    /// Returns an error about all keys together.
    pub(crate) fn refused(&self, why: String) -> DecodeError {
        DecodeError::refused("keys", START, why)
    }
}

/// Returns a key for display: control characters are escaped, and a long key is truncated.
fn shown(key: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(key);
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "..." } else { "" };
    format!("{}{more}", start.escape_debug())
}

/// The largest number of keys that an error lists.
const MAX_SHOWN: usize = 10;
