//! A snapshot: every key with its value. The server writes the snapshot while the server serves
//! clients.
//!
//! ```text
//! | header (`header.rs`), with the position of its log |
//! | item header | key | value | checksum |                                      each key
//! | item header |                                                               the end
//! | copy of the header |
//!
//! item header   | key length | time + 1 | position | value length | check |
//! end item      | 2⁶⁴ − 1    | keys     | end      | 0            | check |
//! ```
//!
//! Every number is a `u64`. The value of a key is in serialized form.
//!
//! When the snapshot was complete, the stream of logs was durable up to the position `end`. No
//! value in the snapshot contains a change after the position `end`.
//!
//! The check is the XXH3-64 hash of the 32 bytes before the check. The checksum is the XXH3-64 hash
//! of the value, the key and the three numbers after the key length. The check and the checksum use
//! the same seed: the offset of the item, XOR the secret of the file. After a damaged item, a
//! repair searches for the next item: the repair tests the check at every byte. A client does not
//! know the secret, so no value that a client chose looks like an item. If the first header is
//! damaged, a reader uses the copy of the header.

pub(super) mod reader;
pub(super) mod writer;

use std::path::PathBuf;

use tamis_commands::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::persistence::disk::Disk;
use crate::persistence::header::Kind;

const KIND: Kind = Kind { magic: b"TAMISNAP", version: 1 };

/// Marks the end of the keys. The writer stores this number in the place of a key length.
const END: u64 = u64::MAX;

/// Returns the path of a snapshot.
pub(super) fn path(disk: &dyn Disk, number: u64) -> PathBuf {
    disk.dir().join(format!("snapshot-{number}.tamis"))
}

/// A key of a snapshot.
pub(super) struct SnapshotEntry {
    pub key: Vec<u8>,
    pub value: Value,
    pub expires_millis: Option<u64>,
    /// The value contains all changes before this position of the log.
    pub applied: u64,
}

/// The length of an item header, in bytes.
const ITEM_HEADER_BYTES: usize = 5 * 8;

/// Encodes four numbers as an item header.
fn item_header(numbers: [u64; 4], seed: u64) -> [u8; ITEM_HEADER_BYTES] {
    let mut header = [0; ITEM_HEADER_BYTES];
    let (fields, check) = header.split_at_mut(4 * 8);
    for (field, number) in fields.chunks_exact_mut(8).zip(numbers) {
        field.copy_from_slice(&number.to_le_bytes());
    }
    check.copy_from_slice(&xxh3_64_with_seed(fields, seed).to_le_bytes());
    header
}

/// Returns the numbers of an item header, and whether the check of the header is correct.
fn parse_item_header(header: &[u8; ITEM_HEADER_BYTES], seed: u64) -> ([u64; 4], bool) {
    let (chunks, _) = header.as_chunks::<8>();
    let number = |i: usize| u64::from_le_bytes(chunks[i]);
    let is_valid = xxh3_64_with_seed(&header[..4 * 8], seed) == number(4);
    (std::array::from_fn(number), is_valid)
}

/// Returns the checksum of an item. `sum` is the checksum state after the value.
fn finish_sum(mut sum: Xxh3, key: &[u8], numbers: &[u64]) -> u64 {
    sum.update(key);
    numbers.iter().for_each(|number| sum.update(&number.to_le_bytes()));
    sum.digest()
}

/// A reader or writer that computes the checksum of all bytes.
struct Summed<W> {
    inner: W,
    sum: Xxh3,
    len: u64,
}

impl<W> Summed<W> {
    fn new(inner: W, seed: u64) -> Self {
        Self { inner, sum: Xxh3::with_seed(seed), len: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.len += bytes.len() as u64;
    }
}
