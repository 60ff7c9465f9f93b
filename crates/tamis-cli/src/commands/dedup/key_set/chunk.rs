//! The memory of a set: chunks of entries, one entry for each distinct key.
//!
//! ```text
//! chunk: | len·2 + keyless | count (u64) | key … | record len | record … | next entry …
//!          varint            Keep::Record          Keep::Record; the len is 0 if the key is the whole record, else len + 1
//! ```

use std::io;

use memmap2::MmapMut;

/// The parts of each distinct record that a set stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The key.
    Key,
    /// The key, the first record and the number of occurrences.
    Record,
}

/// Memory for entries. A chunk uses huge pages if the system has them.
pub struct Chunk {
    bytes: MmapMut,
    len: usize,
}

/// Entries up to this size share chunks. An entry above this size gets its own chunk.
pub const CHUNK_BYTES: usize = 1 << CHUNK_SHIFT;
const CHUNK_SHIFT: u32 = 25;

/// The smallest size of a chunk on huge pages.
#[cfg(target_os = "linux")]
const HUGE_FROM_BYTES: usize = 4 << 20;

/// The length of a count in bytes.
const COUNT_BYTES: usize = 8;

/// The maximum length of the varint of a `u64`.
const MAX_VARINT_BYTES: usize = 10;

impl Chunk {
    /// Maps zeroed memory. The system provides each page at the first write to the page.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be allocated.
    pub fn zeroed(len_bytes: usize) -> io::Result<Self> {
        let bytes = MmapMut::map_anon(len_bytes)?;
        #[cfg(target_os = "linux")]
        if len_bytes >= HUGE_FROM_BYTES {
            // If the system rejects the request for huge pages, the pages stay small.
            bytes.advise(memmap2::Advice::HugePage).ok();
        }
        Ok(Self { bytes, len: 0 })
    }

    /// Tests whether an entry of `len_bytes` can be appended.
    #[inline]
    pub fn fits(&self, len_bytes: usize) -> bool {
        // A place stores the offset of an entry in CHUNK_SHIFT bits.
        self.bytes.len() - self.len >= len_bytes && self.len < CHUNK_BYTES
    }

    /// Returns all bytes, including the bytes after the last entry.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns all bytes, including the bytes after the last entry.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Returns the bytes of the entries.
    pub fn entries(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends an entry, and returns the offset of the entry. If there is a `record`, the record is
    /// written after the key, with a count of one.
    ///
    /// # Panics
    ///
    /// Panics if the entry does not fit: see [`fits`](Self::fits).
    #[inline]
    pub fn append(&mut self, key: &[u8], found: bool, record: Option<&[u8]>) -> usize {
        let start = self.len;
        self.push_varint(header(key, found));
        if record.is_some() {
            self.push(&1_u64.to_le_bytes());
        }
        self.push(key);
        if let Some(record) = record {
            // If the key is the whole record, the key's bytes are stored once.
            let same = record == key;
            self.push_varint(if same { 0 } else { record.len() as u64 + 1 });
            self.push(if same { &[] } else { record });
        }
        start
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends a varint: seven bits per byte, low bits first.
    #[inline]
    fn push_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.push(&[number as u8 | 0x80]);
            number >>= 7;
        }
        self.push(&[number as u8]);
    }
}

/// Returns the place of the entry at offset `start` of a chunk.
#[inline]
pub const fn place(chunk: usize, start: usize) -> u64 {
    (chunk as u64) << CHUNK_SHIFT | start as u64
}

/// Returns the chunk and the offset of a place. The offset is always small, because a long entry is
/// alone in its chunk.
#[inline]
pub const fn split(place: u64) -> (usize, usize) {
    ((place >> CHUNK_SHIFT) as usize, (place & (CHUNK_BYTES as u64 - 1)) as usize)
}

/// One entry of a chunk.
pub struct KeyEntry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// True if the record has a key. A record without a key is its own key.
    pub found: bool,
    /// The number of occurrences, or one if only keys are stored.
    pub count: u64,
    /// The first record, or the key if only keys are stored.
    pub record: &'a [u8],
    /// The length of the entry in bytes.
    pub len_bytes: usize,
}

impl<'a> KeyEntry<'a> {
    /// Returns the maximum length in bytes of the entry of a record.
    #[inline]
    pub fn max_len_bytes(key: &[u8], record: Option<&[u8]>) -> usize {
        key.len() + record.map_or(0, <[u8]>::len) + COUNT_BYTES + 2 * MAX_VARINT_BYTES
    }

    /// Reads the entry at the start of `bytes`.
    pub fn read(bytes: &'a [u8], keep: Keep) -> Self {
        let (header, mut at) = varint(bytes);
        let (len, found) = ((header >> 1) as usize, header & 1 == 0);
        let mut count = 1;
        if keep == Keep::Record {
            count =
                u64::from_le_bytes(bytes[at..at + COUNT_BYTES].try_into().expect("eight bytes"));
            at += COUNT_BYTES;
        }
        let key = &bytes[at..at + len];
        at += len;
        let mut record = key;
        if keep == Keep::Record {
            let (len, len_len) = varint(&bytes[at..]);
            at += len_len;
            if let Some(len) = len.checked_sub(1) {
                record = &bytes[at..at + len as usize];
                at += len as usize;
            }
        }
        Self { key, found, count, record, len_bytes: at }
    }

    /// Tests whether the entry at the start of `bytes` has this key.
    #[inline]
    pub fn is_key(bytes: &[u8], keep: Keep, key: &[u8], found: bool) -> bool {
        // `KeyEntry::read` also reads the record, which a comparison does not need.
        let (held, mut at) = varint(bytes);
        if keep == Keep::Record {
            at += COUNT_BYTES;
        }
        held == header(key, found) && bytes[at..at + key.len()] == *key
    }

    /// Adds one to the count of the entry at the start of `bytes`. The set must use
    /// [`Keep::Record`].
    #[inline]
    pub fn increment_count(bytes: &mut [u8]) {
        let at = varint(bytes).1;
        let count = bytes[at..].first_chunk_mut::<COUNT_BYTES>().expect("eight bytes");
        *count = (u64::from_le_bytes(*count) + 1).to_le_bytes();
    }
}

/// Returns the first varint of an entry: the length of the key, and whether the record has a key.
#[inline]
const fn header(key: &[u8], found: bool) -> u64 {
    (key.len() as u64) << 1 | !found as u64
}

/// Reads a varint: seven bits per byte, low bits first. Returns the number and the length in bytes.
#[inline]
fn varint(bytes: &[u8]) -> (u64, usize) {
    let (mut number, mut at) = (0, 0);
    loop {
        let byte = bytes[at];
        number |= u64::from(byte & 0x7f) << (7 * at);
        at += 1;
        if byte < 0x80 {
            return (number, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_appended() {
        let long = [b'x'; 300];
        let cases: [(&[u8], bool, &[u8]); 4] =
            [(b"", true, b""), (b"a", true, b"a,1"), (b"b", false, b"b"), (&long, true, &long)];
        for keep in [Keep::Key, Keep::Record] {
            let mut chunk = Chunk::zeroed(4096).unwrap();
            for (key, found, record) in cases {
                let record = (keep == Keep::Record).then_some(record);
                let most = KeyEntry::max_len_bytes(key, record);
                assert!(chunk.fits(most));
                let start = chunk.append(key, found, record);
                assert!(chunk.entries().len() - start <= most);
                if keep == Keep::Record {
                    KeyEntry::increment_count(&mut chunk.bytes_mut()[start..]);
                }
                let bytes = &chunk.bytes()[start..];
                assert!(KeyEntry::is_key(bytes, keep, key, found));
                assert!(!KeyEntry::is_key(bytes, keep, key, !found));
                assert!(!KeyEntry::is_key(bytes, keep, b"other", found));
                let entry = KeyEntry::read(bytes, keep);
                assert_eq!((entry.key, entry.found), (key, found));
                assert_eq!(entry.record, record.unwrap_or(key));
                assert_eq!(entry.count, if keep == Keep::Record { 2 } else { 1 });
                assert_eq!(start + entry.len_bytes, chunk.entries().len());
            }
        }
    }

    #[test]
    fn a_place_is_a_chunk_and_an_offset() {
        for (chunk, start) in [(0, 0), (3, 0), (3, CHUNK_BYTES - 1)] {
            assert_eq!(split(place(chunk, start)), (chunk, start));
        }
    }
}
