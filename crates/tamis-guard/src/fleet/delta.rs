//! Encodes the changes of a set after a position.
//!
//! # Layout
//!
//! Integers are little-endian.
//!
//! | bytes | field |
//! | --- | --- |
//! | 8 | magic number `89 54 44 45 4c 54 41 0a` |
//! | 4 | version: 1 |
//! | 8, 8 | position before the changes: epoch, number |
//! | 1 | completeness of the leader: 0 not all ids, 1 all ids, 2 more changes follow |
//! | 8 | lag of the leader in microseconds; 0 unless the completeness is 1 |
//! | 8 | time from the request to the response in microseconds |
//! | 4 | number of changes |
//! | | each change: its length and kind (LEB128: 4 × length + kind), its id |
//! | 8 | XXH3 of all bytes before |
//!
//! The kinds of changes are 0 (inserted), 1 (deleted), 2 (recently inserted, as a program has reported) and 3 (a row
//! was deleted, and another row may have the id).

use std::fmt;
use std::time::Duration;

use tamis_sources::ChangeKind;
use xxhash_rust::xxh3::xxh3_64;

use crate::fleet::position::FeedPosition;

/// The first byte of the magic number is not ASCII, and the last byte is a line feed, so that the reader detects a
/// text-mode transfer.
const MAGIC: [u8; 8] = *b"\x89TDELTA\n";

const VERSION: u32 = 1;

/// The maximum length of an id in bytes.
pub(super) const MAX_ID: usize = 64 << 10;

/// The maximum size of a delta in bytes.
pub(crate) const MAX_BYTES: usize = 4 << 20;

const HEAD_BYTES: usize = 8 + 4 + 16 + 1 + 8 + 8 + 4;
const CHECKSUM_BYTES: usize = 8;

/// The maximum size of the changes in a delta in bytes.
pub(super) const MAX_CHANGE_BYTES: usize = MAX_BYTES - HEAD_BYTES - CHECKSUM_BYTES;

/// A change of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'d> {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The id in its canonical text.
    pub id: &'d [u8],
}

/// States which committed ids the set of the leader contains at the end of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// The leader may lack ids that were committed at any time.
    Unknown,
    /// The leader contains all ids that were committed at least this long before its response.
    Age(Duration),
    /// The leader has more changes, which the next delta contains.
    More,
}

/// The changes of a set after a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The position before the changes.
    pub since: FeedPosition,
    /// States which committed ids the set of the leader contains after the changes.
    pub knowledge: Knowledge,
    /// The time from the request to the response, measured on the leader's clock.
    pub held: Duration,
    count: u32,
    /// The encoded changes. The encoding is always valid.
    changes: Vec<u8>,
}

/// The reason why bytes are not a valid delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeltaError {
    /// The bytes do not start with the magic number of a delta.
    NotADelta,
    /// The delta has an unsupported version, because another release wrote it.
    Version {
        /// The version in the bytes.
        found: u32,
    },
    /// The delta is too short or too long.
    Length,
    /// The checksum does not match.
    Checksum,
    /// A field has an invalid value.
    Invalid(&'static str),
}

impl fmt::Display for DeltaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADelta => f.write_str("the answer has no changes of a guard"),
            Self::Version { found } => {
                write!(f, "the changes have version {found}, this release reads version {VERSION}")
            }
            Self::Length => f.write_str("the changes have a wrong length"),
            Self::Checksum => f.write_str("the changes are damaged: their checksum differs"),
            Self::Invalid(field) => write!(f, "the changes are damaged: their {field} is invalid"),
        }
    }
}

impl std::error::Error for DeltaError {}

impl Delta {
    /// Creates a delta from encoded changes.
    pub(super) fn new(
        since: FeedPosition,
        knowledge: Knowledge,
        held: Duration,
        count: u32,
        changes: Vec<u8>,
    ) -> Self {
        Self { since, knowledge, held, count, changes }
    }

    /// Returns the position after the changes.
    #[must_use]
    pub fn position(&self) -> FeedPosition {
        FeedPosition { number: self.since.number + u64::from(self.count), ..self.since }
    }

    /// Returns the changes in their order.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        let mut left = &self.changes[..];
        std::iter::from_fn(move || {
            let (change, rest) = split_change(left)?;
            left = rest;
            Some(change)
        })
    }

    /// Encodes the delta.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (knowledge, age) = match self.knowledge {
            Knowledge::Unknown => (0, 0),
            Knowledge::Age(age) => (1, micros(age)),
            Knowledge::More => (2, 0),
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.changes.len() + CHECKSUM_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.since.epoch.to_le_bytes());
        bytes.extend(self.since.number.to_le_bytes());
        bytes.push(knowledge);
        bytes.extend(age.to_le_bytes());
        bytes.extend(micros(self.held).to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(&self.changes);
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Decodes a delta of at most 4 MiB.
    ///
    /// # Errors
    ///
    /// [`DeltaError`] unless the bytes are exactly one valid delta.
    #[expect(clippy::missing_panics_doc, reason = "the length of the head is tested before")]
    pub fn decode(bytes: &[u8]) -> Result<Self, DeltaError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(DeltaError::NotADelta);
        }
        // The version is read before the length test, because a delta of another version may be shorter.
        let version = bytes.get(8..).and_then(<[u8]>::first_chunk).ok_or(DeltaError::Length)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(DeltaError::Version { found: version });
        }
        if !(HEAD_BYTES + CHECKSUM_BYTES..=MAX_BYTES).contains(&bytes.len()) {
            return Err(DeltaError::Length);
        }
        let (body, checksum) = bytes.split_last_chunk().ok_or(DeltaError::Length)?;
        if u64::from_le_bytes(*checksum) != xxh3_64(body) {
            return Err(DeltaError::Checksum);
        }
        let (head, changes) = body.split_at(HEAD_BYTES);
        let word = |at: usize| {
            let word = head[at..].first_chunk().expect("the head has all fields");
            u64::from_le_bytes(*word)
        };
        let since = FeedPosition { epoch: word(12), number: word(20) };
        let (knowledge, age, held) = (head[28], Duration::from_micros(word(29)), word(37));
        let count = u32::from_le_bytes(*head.last_chunk().expect("the head has all fields"));
        let knowledge = match knowledge {
            0 if age.is_zero() => Knowledge::Unknown,
            1 => Knowledge::Age(age),
            // If a delta without changes announced more changes, the reader would request the same position forever.
            2 if age.is_zero() && count > 0 => Knowledge::More,
            _ => return Err(DeltaError::Invalid("knowledge")),
        };
        since.number.checked_add(count.into()).ok_or(DeltaError::Invalid("position"))?;
        let (mut left, mut found) = (changes, 0);
        while let Some((_, rest)) = split_change(left) {
            left = rest;
            found += 1;
        }
        if !left.is_empty() || found != count {
            return Err(DeltaError::Invalid("list of changes"));
        }
        let held = Duration::from_micros(held);
        Ok(Self { since, knowledge, held, count, changes: changes.to_vec() })
    }
}

/// Appends a change.
pub(super) fn push_change(bytes: &mut Vec<u8>, kind: ChangeKind, id: &[u8]) {
    let mut head = (id.len() << 2) | kind as usize;
    while head >= 0x80 {
        bytes.push(head as u8 | 0x80);
        head >>= 7;
    }
    bytes.push(head as u8);
    bytes.extend(id);
}

/// Splits off the first change. Returns `None` at the end, and if the next change is invalid.
pub(super) fn split_change(bytes: &[u8]) -> Option<(Change<'_>, &[u8])> {
    let mut head = 0;
    let mut at = 0;
    loop {
        let byte = *bytes.get(at)?;
        head |= usize::from(byte & 0x7f) << (7 * at);
        at += 1;
        if byte < 0x80 {
            // A zero in the last byte would be a second encoding of the same number.
            if byte == 0 && at > 1 {
                return None;
            }
            break;
        }
        if at == 3 {
            return None;
        }
    }
    let (len, kind) = (head >> 2, *ChangeKind::ALL.get(head & 3)?);
    if len > MAX_ID {
        return None;
    }
    let (id, rest) = bytes.get(at..)?.split_at_checked(len)?;
    Some((Change { kind, id }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta() -> Delta {
        let mut changes = Vec::new();
        let long = vec![b'x'; MAX_ID];
        push_change(&mut changes, ChangeKind::Insert, b"1");
        push_change(&mut changes, ChangeKind::Delete, &long);
        push_change(&mut changes, ChangeKind::InsertRecent, b"");
        push_change(&mut changes, ChangeKind::DeleteRow, b"22");
        let since = FeedPosition { epoch: 7, number: 40 };
        let age = Knowledge::Age(Duration::from_micros(1_500));
        Delta::new(since, age, Duration::from_millis(3), 4, changes)
    }

    #[test]
    fn a_delta_is_decoded_as_it_was_encoded() {
        let delta = delta();
        let decoded = Delta::decode(&delta.encode()).unwrap();
        assert_eq!(decoded, delta);
        assert_eq!(decoded.position(), FeedPosition { epoch: 7, number: 44 });
        let kinds: Vec<_> = decoded.changes().map(|it| (it.kind, it.id.len())).collect();
        let expected = [
            (ChangeKind::Insert, 1),
            (ChangeKind::Delete, MAX_ID),
            (ChangeKind::InsertRecent, 0),
            (ChangeKind::DeleteRow, 2),
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn each_damaged_byte_and_each_cut_is_detected() {
        let bytes = Delta { changes: b"\x041".to_vec(), count: 1, ..delta() }.encode();
        assert!(Delta::decode(&bytes).is_ok());
        for at in 0..bytes.len() {
            assert!(Delta::decode(&bytes[..at]).is_err(), "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Delta::decode(&damaged).is_err(), "byte {at}");
        }
        let longer = [&bytes[..], b"0"].concat();
        assert!(Delta::decode(&longer).is_err());
    }

    #[test]
    fn a_sealed_delta_with_wrong_fields_is_refused() {
        let seal = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Delta { changes: b"\x041".to_vec(), count: 1, ..delta() }.encode();
            bytes.truncate(bytes.len() - CHECKSUM_BYTES);
            change(&mut bytes);
            bytes.extend(xxh3_64(&bytes).to_le_bytes());
            Delta::decode(&bytes)
        };
        assert!(seal(&|_| {}).is_ok());
        assert_eq!(seal(&|bytes| bytes[8] = 9), Err(DeltaError::Version { found: 9 }));
        assert_eq!(seal(&|bytes| bytes[28] = 3), Err(DeltaError::Invalid("knowledge")));
        assert_eq!(seal(&|bytes| bytes[28] = 0), Err(DeltaError::Invalid("knowledge")));
        assert_eq!(seal(&|bytes| bytes[20..28].fill(0xff)), Err(DeltaError::Invalid("position")));
        for changes in [&b"\x08x"[..], b"\x84\x001", b"\x84\x80\x80\x01", b"\x041\x042", b""] {
            let refused = seal(&|bytes| {
                bytes.truncate(HEAD_BYTES);
                bytes.extend(changes);
            });
            assert_eq!(refused, Err(DeltaError::Invalid("list of changes")), "{changes:?}");
        }
    }
}
