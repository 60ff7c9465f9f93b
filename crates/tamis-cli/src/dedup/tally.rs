//! Keys kept whole: exact whatever the hashes do, and able to count.
//!
//! Keys lie one after the other in chunks, in first-seen order; a table of (hash, place) finds them.
//!
//! ```text
//! chunk: | len·2 + keyless | count (u64) | key … | record len | record … | next entry …
//!          varint            tally only            tally only, if the key is not the whole record
//! ```

use tamis::{Answers, Bitmap, Bits as _, BitsMut as _, prefetch};

use super::cut::Batch;
use super::digest::Width;
use super::seen::Worth;
use crate::exit::Failure;
use crate::size::Size;

/// What is kept of each distinct record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its key.
    Key,
    /// Its key, its first record and how often it occurred.
    Record,
}

/// A set of keys.
pub struct Tally {
    // Pairs of words: hash, and place plus one; a place of zero is an empty slot.
    table: Bitmap,
    len: u64,
    chunks: Vec<Vec<u8>>,
    chunks_bytes: u64,
    keep: Keep,
    max_bytes: u64,
}

/// Entries up to this size share chunks.
const CHUNK_BYTES: usize = 1 << CHUNK_SHIFT;
const CHUNK_SHIFT: u32 = 22;

/// The highest load of the table: three entries for five slots.
const MAX_LOAD: (u64, u64) = (3, 5);

/// The number of records whose memory is prefetched before the first is compared.
const AHEAD: usize = 64;

impl Tally {
    /// Creates an empty set that takes at most `max_bytes`.
    pub fn new(keep: Keep, max_bytes: u64) -> Self {
        let table = Bitmap::zeroed(0).expect("no memory is needed");
        let chunks = Vec::new();
        Self { table, len: 0, chunks, chunks_bytes: 0, keep, max_bytes }
    }

    /// Inserts the records of a batch, and writes to `new` which were new.
    ///
    /// # Errors
    ///
    /// If the keys do not fit.
    pub fn insert_batch<D: Width>(
        &mut self,
        batch: &Batch<'_, D>,
        new: &mut Answers,
    ) -> Result<(), Failure> {
        self.insert_some(batch, new).map_err(|(_, failure)| failure)
    }

    /// As [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    ///
    /// If the keys do not fit: the index of the first record that was not inserted, and why.
    pub fn insert_some<D: Width>(
        &mut self,
        batch: &Batch<'_, D>,
        new: &mut Answers,
    ) -> Result<(), (usize, Failure)> {
        self.reserve(batch.len() as u64).map_err(|failure| (0, failure))?;
        let words = new.reset(batch.len());
        let mut start = 0;
        for (word, digests) in words.iter_mut().zip(batch.digests().chunks(AHEAD)) {
            for digest in digests {
                prefetch(self.table.words(), self.home(digest.hash64()));
            }
            for digest in digests {
                self.prefetch_key(digest.hash64());
            }
            for i in 0..digests.len() {
                let inserted = self.insert_record(batch, start + i);
                *word |= u64::from(inserted.map_err(|failure| (start + i, failure))?) << i;
            }
            start += digests.len();
        }
        Ok(())
    }

    /// Inserts the records of a batch that are not set in `new_elsewhere`, and writes to `new` which of them were new here.
    ///
    /// # Errors
    ///
    /// If the keys do not fit.
    pub fn insert_repeats<D: Width>(
        &mut self,
        batch: &Batch<'_, D>,
        new_elsewhere: &Answers,
        new: &mut Answers,
    ) -> Result<(), Failure> {
        self.reserve(batch.len() as u64)?;
        let words = new.reset(batch.len());
        for i in new_elsewhere.zeros() {
            words[i / 64] |= u64::from(self.insert_record(batch, i)?) << (i % 64);
        }
        Ok(())
    }

    fn insert_record<D: Width>(&mut self, batch: &Batch<'_, D>, i: usize) -> Result<bool, Failure> {
        let (key, found) = batch.key(i);
        self.insert(batch.digests()[i].hash64(), key, found, batch.record(i))
    }

    /// Returns the first word of the slot at which the search for `hash` starts.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        let slots = self.table.words().len() as u64 / 2;
        ((u128::from(hash) * u128::from(slots)) >> 64) as usize * 2
    }

    /// Prefetches the memory of the key that probably has this hash.
    fn prefetch_key(&self, hash: u64) {
        let words = self.table.words();
        let at = self.home(hash);
        if words[at] == hash && words[at + 1] != 0 {
            let (chunk, start) = split(words[at + 1] - 1);
            prefetch(&self.chunks[chunk], start);
            // Most keys are longer than what is left of the first line.
            prefetch(&self.chunks[chunk], start + 64);
        }
    }

    fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        found: bool,
        record: &[u8],
    ) -> Result<bool, Failure> {
        let mut at = self.home(hash);
        loop {
            let [held, place] = [self.table.words()[at], self.table.words()[at + 1]];
            if place == 0 {
                let place = self.append(key, found, record)?;
                let slot = &mut self.table.words_mut()[at..at + 2];
                slot.copy_from_slice(&[hash, place + 1]);
                self.len += 1;
                return Ok(true);
            }
            if held == hash && self.is_entry(place - 1, key, found) {
                if self.keep == Keep::Record {
                    self.count(place - 1);
                }
                return Ok(false);
            }
            at += 2;
            if at == self.table.words().len() {
                at = 0;
            }
        }
    }

    fn is_entry(&self, place: u64, key: &[u8], found: bool) -> bool {
        let (chunk, start) = split(place);
        let entry = Entry::read(&self.chunks[chunk][start..], self.keep);
        entry.key == key && entry.found == found
    }

    fn count(&mut self, place: u64) {
        let (chunk, start) = split(place);
        let entry = &mut self.chunks[chunk][start..];
        let at = varint(entry).1;
        let count: &mut [u8; 8] = (&mut entry[at..at + 8]).try_into().expect("eight bytes");
        *count = (u64::from_le_bytes(*count) + 1).to_le_bytes();
    }

    fn append(&mut self, key: &[u8], found: bool, record: &[u8]) -> Result<u64, Failure> {
        let record = (self.keep == Keep::Record).then_some(record);
        let most = key.len() + record.map_or(0, <[u8]>::len) + 28;
        let has_room = self.chunks.last().is_some_and(|chunk| {
            chunk.capacity() - chunk.len() >= most && chunk.len() < CHUNK_BYTES
        });
        if !has_room {
            // With little memory, one whole chunk would take all of it.
            let usual = CHUNK_BYTES.min((self.max_bytes / 16).max(64 << 10) as usize);
            let bytes = most.max(usual);
            self.check_limit(bytes as u64)?;
            let mut chunk = Vec::new();
            chunk.try_reserve_exact(bytes).map_err(|_| self.too_large())?;
            self.chunks.push(chunk);
            self.chunks_bytes += bytes as u64;
        }
        let number = self.chunks.len() as u64 - 1;
        let chunk = self.chunks.last_mut().expect("pushed above");
        let place = number << CHUNK_SHIFT | chunk.len() as u64;
        push_varint(chunk, (key.len() as u64) << 1 | u64::from(!found));
        if record.is_some() {
            chunk.extend_from_slice(&1_u64.to_le_bytes());
        }
        chunk.extend_from_slice(key);
        if let Some(record) = record {
            // The bytes of a whole record are not kept twice.
            let same = record == key;
            push_varint(chunk, if same { 0 } else { record.len() as u64 + 1 });
            chunk.extend_from_slice(if same { &[] } else { record });
        }
        Ok(place)
    }

    fn reserve(&mut self, additional: u64) -> Result<(), Failure> {
        let slots = self.table.words().len() as u64 / 2;
        let needed = (self.len + additional) * MAX_LOAD.1 / MAX_LOAD.0 + 1;
        if needed <= slots {
            return Ok(());
        }
        let slots = needed.max(slots * 3 / 2);
        self.check_limit(slots * 16)?;
        let larger = Bitmap::zeroed(slots * 128).map_err(|_| self.too_large())?;
        let old = std::mem::replace(&mut self.table, larger);
        for slot in old.words().chunks_exact(2).filter(|slot| slot[1] != 0) {
            let mut at = self.home(slot[0]);
            let words = self.table.words_mut();
            while words[at + 1] != 0 {
                at = (at + 2) % words.len();
            }
            words[at..at + 2].copy_from_slice(slot);
        }
        Ok(())
    }

    fn check_limit(&self, more_bytes: u64) -> Result<(), Failure> {
        let needed = self.memory_bytes() + more_bytes;
        if needed <= self.max_bytes { Ok(()) } else { Err(self.too_large()) }
    }

    fn too_large(&self) -> Failure {
        let (distinct, limit) = (self.len, Size { bytes: self.max_bytes });
        let held = Size { bytes: self.memory_bytes() };
        let limit = if self.max_bytes == u64::MAX { held } else { limit };
        let advice = match self.keep {
            Keep::Key => "compare by hash: leave out --full",
            Keep::Record => "leave out --exact and --full to go on approximately",
        };
        Failure::new(format!(
            "records kept whole do not fit: {distinct} distinct ones fill {limit}; give more --memory, or {advice}"
        ))
    }

    fn memory_bytes(&self) -> u64 {
        self.chunks_bytes + self.table.words().len() as u64 * 8
    }

    /// Returns the number of distinct records.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Hands out every record and its count, in first-seen order.
    ///
    /// # Errors
    ///
    /// The first error of `each`.
    pub fn each<E>(&self, mut each: impl FnMut(&[u8], u64) -> Result<(), E>) -> Result<(), E> {
        self.each_key(|_, record, count| each(record, count))
    }

    /// As [`each`](Self::each), with the key before the record, and whether it is one.
    ///
    /// # Errors
    ///
    /// The first error of `each`.
    pub fn each_key<E>(
        &self,
        mut each: impl FnMut((&[u8], bool), &[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for chunk in &self.chunks {
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                let entry = Entry::read(rest, self.keep);
                each((entry.key, entry.found), entry.record, entry.count)?;
                rest = &rest[entry.len_bytes..];
            }
        }
        Ok(())
    }

    /// Returns how exact the answers are: they are certain.
    pub fn worth(&self) -> Worth {
        Worth {
            method: "exact by full keys".into(),
            distinct: self.len,
            expected_lost: 0.0,
            rates: None,
            memory_bytes: self.memory_bytes(),
        }
    }
}

/// Returns chunk and offset of a place. A long entry starts its own chunk, so offsets stay small.
const fn split(place: u64) -> (usize, usize) {
    ((place >> CHUNK_SHIFT) as usize, (place & (CHUNK_BYTES as u64 - 1)) as usize)
}

/// One key, as it lies in its chunk.
struct Entry<'a> {
    key: &'a [u8],
    found: bool,
    count: u64,
    record: &'a [u8],
    len_bytes: usize,
}

impl<'a> Entry<'a> {
    fn read(bytes: &'a [u8], keep: Keep) -> Self {
        let (header, mut at) = varint(bytes);
        let (len, found) = ((header >> 1) as usize, header & 1 == 0);
        let mut count = 1;
        if keep == Keep::Record {
            count = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            at += 8;
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
}

/// Reads seven bits a byte, low ones first; returns the number and its length.
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

fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use tamis::Hasher;

    use super::super::cut::{Cut, Rule};
    use super::*;
    use crate::key::KeyArgs;
    use crate::records::Blocks;

    fn insert(tally: &mut Tally, bytes: &[u8]) -> Result<Vec<bool>, Failure> {
        let key = KeyArgs::default().rule();
        let hasher = Hasher::default();
        let mut rule = Rule { key, hasher, delimiter: b'\n', keeps_keys: true, timer: None };
        let (mut new, mut all) = (Answers::new(), Vec::new());
        let (mut blocks, mut cut) = (Blocks::new(bytes, b'\n'), Cut::<u64>::default());
        while blocks.read_block(&mut cut.block).unwrap() {
            let end = cut.find_records(b'\n');
            blocks.take_back(&mut cut.block, end);
            cut.digest(&mut rule, &mut Vec::new());
            for batch in cut.batches() {
                tally.insert_batch(&batch, &mut new)?;
                all.extend(new.iter());
            }
        }
        Ok(all)
    }

    #[test]
    fn keys_of_equal_hash_stay_apart() {
        let mut tally = Tally::new(Keep::Key, u64::MAX);
        tally.reserve(10).unwrap();
        assert!(tally.insert(7, b"one", true, b"").unwrap());
        assert!(tally.insert(7, b"two", true, b"").unwrap());
        assert!(tally.insert(7, b"two", false, b"").unwrap(), "a record without a key");
        assert!(!tally.insert(7, b"one", true, b"").unwrap());
        assert!(!tally.insert(7, b"two", true, b"").unwrap());
    }

    #[test]
    fn records_come_back_in_first_seen_order_with_their_counts() {
        let mut tally = Tally::new(Keep::Record, u64::MAX);
        let long = "x".repeat(CHUNK_BYTES + 5);
        let block = format!("b\na\nb\n{long}\n\nb\n{long}\nc\n");
        let new = insert(&mut tally, block.as_bytes()).unwrap();
        assert_eq!(new, [true, true, false, true, true, false, false, true]);
        let mut found = Vec::new();
        tally
            .each(|record, count| {
                found.push((record.to_vec(), count));
                Ok::<(), ()>(())
            })
            .unwrap();
        let expected = [("b", 3), ("a", 1), (long.as_str(), 2), ("", 1), ("c", 1)];
        assert_eq!(found, expected.map(|(record, count)| (record.as_bytes().to_vec(), count)));
    }

    #[test]
    fn a_limit_is_an_error_that_says_what_to_do() {
        let mut tally = Tally::new(Keep::Key, CHUNK_BYTES as u64 + 100_000);
        let block: String = (0..100_000).map(|i| format!("{i}\n")).collect();
        match insert(&mut tally, block.as_bytes()) {
            Err(Failure::Message(line)) => assert!(line.contains("--memory"), "{line}"),
            other => panic!("{other:?}"),
        }
    }
}
