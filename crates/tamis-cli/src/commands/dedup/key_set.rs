//! A set of whole keys. The set is exact even if hashes collide, and can count occurrences.
//!
//! The keys are stored one after the other in chunks, in first-seen order. A hash table maps the
//! hash of a key to the place of the key.

mod chunk;

use tamis::{Answers, Bitmap, Bits as _, BitsMut as _, prefetch};

use crate::arguments::byte_size::ByteSize;
use crate::commands::dedup::digest::Width;
pub use crate::commands::dedup::key_set::chunk::Keep;
use crate::commands::dedup::key_set::chunk::{CHUNK_BYTES, Chunk, KeyEntry, place, split};
use crate::commands::dedup::record_batch::BatchPart;
use crate::commands::dedup::seen::Accuracy;
use crate::exit::Failure;

/// A set of keys.
pub struct KeySet {
    // The table consists of lines of four slots. A slot has two words: the hash, and the place plus
    // one. If the second word is zero, the slot is empty.
    table: Bitmap,
    len: u64,
    // The expected number of distinct records, or zero if unknown. The table grows in larger steps
    // until it has space for the expected number of records.
    expected: u64,
    chunks: Vec<Chunk>,
    chunks_bytes: u64,
    keep: Keep,
    max_bytes: u64,
}

/// The size of the first chunk. Each later chunk is as large as all earlier chunks together, up to
/// [`CHUNK_BYTES`].
const FIRST_CHUNK_BYTES: usize = 64 << 10;

/// The maximum load of the table: three entries for five slots.
const MAX_LOAD: (u64, u64) = (3, 5);

/// The number of words in a cache line. A search starts at the first word of a line. If a search
/// started in the middle of a line, two of three new records would need a second line.
const LINE_WORDS: usize = 8;

/// The largest step of growth, as a multiple of the current size.
const MAX_STEP: u64 = 4;

/// Tables of this size or more grow by half, as the tables of a `DigestSet` do.
const MAX_STEP_BYTES: u64 = 1 << 30;

/// The size of a slot: a hash and a place.
const SLOT_BYTES: u64 = 16;

/// The number of slots in a line.
const SLOTS_PER_LINE: u64 = LINE_WORDS as u64 / 2;

/// The distance between two stages of the search, in records. The line of the table is prefetched 2
/// × PREFETCH_DISTANCE records before the comparison. The key is prefetched PREFETCH_DISTANCE
/// records before the comparison. Distances of 16 and 64 were equally fast.
const PREFETCH_DISTANCE: usize = 32;

/// Marks a record whose hash is not in its home line.
const NONE: usize = usize::MAX;

impl KeySet {
    /// Creates an empty set of at most `max_bytes`.
    pub fn new(keep: Keep, max_bytes: u64) -> Self {
        let table = Bitmap::zeroed(0).expect("no memory is needed");
        let chunks = Vec::new();
        Self { table, len: 0, expected: 0, chunks, chunks_bytes: 0, keep, max_bytes }
    }

    /// Sets the expected number of distinct records. The table grows in larger steps until it has
    /// space for the expected number of records.
    pub fn set_expected(&mut self, distinct: u64) {
        self.expected = distinct;
    }

    /// Inserts the records of a batch, and sets the bits in `new` of the new records.
    ///
    /// # Errors
    ///
    /// If the keys exceed the memory, returns the index of the first record that was not inserted,
    /// and the failure.
    pub fn insert_batch<D: Width>(
        &mut self,
        part: &BatchPart<'_, D>,
        new: &mut Answers,
    ) -> Result<(), (usize, Failure)> {
        self.reserve(part.len() as u64).map_err(|failure| (0, failure))?;
        new.reset(part.len());
        let hash_of = |i: usize| part.digests().get(i).map(|digest| digest.hash64());
        let mut slots = [NONE; PREFETCH_DISTANCE];
        for i in 0..part.len() + 2 * PREFETCH_DISTANCE {
            // The search has three stages. Each of the first two stages prefetches the memory that
            // the next stage reads.
            if let Some(hash) = hash_of(i) {
                prefetch(self.table.words(), self.home(hash));
            }
            let slot = slots[i % PREFETCH_DISTANCE];
            if let Some(hash) = i.checked_sub(PREFETCH_DISTANCE).and_then(hash_of) {
                slots[i % PREFETCH_DISTANCE] = self.prefetch_key(hash);
            }
            let Some(i) = i.checked_sub(2 * PREFETCH_DISTANCE) else { continue };
            let (key, found) = part.key(i);
            if slot != NONE {
                // The table does not grow within a batch, so the slot is still at the same index.
                let place = self.table.words()[slot + 1] - 1;
                if self.is_entry(place, key, found) {
                    if self.keep == Keep::Record {
                        self.count(place);
                    }
                    continue;
                }
            }
            let inserted = self.insert_record(part, i).map_err(|failure| (i, failure))?;
            new.set(i, inserted);
        }
        Ok(())
    }

    /// Inserts the records of a batch whose bits in `new_elsewhere` are not set. Sets the bits
    /// in `new` of the inserted records that are new in this set.
    ///
    /// # Errors
    ///
    /// Returns an error if the keys exceed the memory.
    pub fn insert_repeats<D: Width>(
        &mut self,
        part: &BatchPart<'_, D>,
        new_elsewhere: &Answers,
        new: &mut Answers,
    ) -> Result<(), Failure> {
        self.reserve(part.len() as u64)?;
        new.reset(part.len());
        for i in new_elsewhere.zeros() {
            new.set(i, self.insert_record(part, i)?);
        }
        Ok(())
    }

    fn insert_record<D: Width>(
        &mut self,
        part: &BatchPart<'_, D>,
        i: usize,
    ) -> Result<bool, Failure> {
        let (key, found) = part.key(i);
        self.insert(part.digests()[i].hash64(), key, found, part.record(i))
    }

    /// Returns the index of the first word of the line at which the search for `hash` starts.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        let lines = self.table.words().len() as u64 / LINE_WORDS as u64;
        ((u128::from(hash) * u128::from(lines)) >> 64) as usize * LINE_WORDS
    }

    /// Prefetches the key whose hash is in the home line, and returns the index of the first word
    /// of the key's slot. Returns [`NONE`] if the home line does not hold the hash.
    #[inline]
    fn prefetch_key(&self, hash: u64) -> usize {
        let at = self.home(hash);
        let line = &self.table.words()[at..at + LINE_WORDS];
        let Some(slot) = line.chunks_exact(2).position(|slot| slot[0] == hash && slot[1] != 0)
        else {
            return NONE;
        };
        let (chunk, start) = split(line[2 * slot + 1] - 1);
        let chunk = self.chunks[chunk].bytes();
        prefetch(chunk, start);
        // Most keys continue in the second cache line.
        prefetch(chunk, start + 64);
        at + 2 * slot
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

    #[inline]
    fn is_entry(&self, place: u64, key: &[u8], found: bool) -> bool {
        let (chunk, start) = split(place);
        KeyEntry::is_key(&self.chunks[chunk].bytes()[start..], self.keep, key, found)
    }

    fn count(&mut self, place: u64) {
        let (chunk, start) = split(place);
        KeyEntry::increment_count(&mut self.chunks[chunk].bytes_mut()[start..]);
    }

    fn append(&mut self, key: &[u8], found: bool, record: &[u8]) -> Result<u64, Failure> {
        let record = (self.keep == Keep::Record).then_some(record);
        let most = KeyEntry::max_len_bytes(key, record);
        if !self.chunks.last().is_some_and(|chunk| chunk.fits(most)) {
            // Under a small memory limit, one chunk of full size would take all memory.
            let usual = self.chunks_bytes.min(self.max_bytes / 16).min(CHUNK_BYTES as u64) as usize;
            let bytes = most.max(usual).max(FIRST_CHUNK_BYTES);
            self.check_limit(bytes as u64)?;
            let chunk = Chunk::zeroed(bytes).map_err(|_| self.too_large())?;
            self.chunks.push(chunk);
            self.chunks_bytes += bytes as u64;
        }
        let number = self.chunks.len() - 1;
        let chunk = self.chunks.last_mut().expect("pushed above");
        Ok(place(number, chunk.append(key, found, record)))
    }

    fn reserve(&mut self, additional: u64) -> Result<(), Failure> {
        let slots = self.table.words().len() as u64 / 2;
        let needed = (self.len + additional) * MAX_LOAD.1 / MAX_LOAD.0 + 1;
        if needed <= slots {
            return Ok(());
        }
        let usual = needed.max(slots * 3 / 2).next_multiple_of(SLOTS_PER_LINE);
        let step = usual.max(self.step_slots(slots).next_multiple_of(SLOTS_PER_LINE));
        self.check_limit(step * SLOT_BYTES)?;
        // The system may have enough memory for a step of the usual size, but not for a larger
        // step.
        let larger = Bitmap::zeroed(step * SLOT_BYTES * 8)
            .or_else(|_| Bitmap::zeroed(usual * SLOT_BYTES * 8))
            .map_err(|_| self.too_large())?;
        let old = std::mem::replace(&mut self.table, larger);
        for slot in old.words().chunks_exact(2).filter(|slot| slot[1] != 0) {
            let mut at = self.home(slot[0]);
            let words = self.table.words_mut();
            while words[at + 1] != 0 {
                at = if at + 2 == words.len() { 0 } else { at + 2 };
            }
            words[at..at + 2].copy_from_slice(slot);
        }
        Ok(())
    }

    /// Returns the number of slots of the next table on the way to the expected number of records.
    /// The result is at most four times the current number of slots.
    fn step_slots(&self, slots: u64) -> u64 {
        if self.max_bytes < u64::MAX {
            // A large step would take memory that is needed for keys.
            return 0;
        }
        // The calculation is the same as in `DigestSet::step_bytes`, but counts slots instead of
        // bytes. The margin of 1/32 prevents another growth step if there are slightly more records
        // than expected.
        let expected = self.expected.saturating_add(self.expected / 32);
        let mut step = expected.saturating_mul(MAX_LOAD.1) / MAX_LOAD.0;
        while step > MAX_STEP * slots.max(1024) {
            step /= MAX_STEP;
        }
        step.min(MAX_STEP_BYTES / SLOT_BYTES)
    }

    fn check_limit(&self, more_bytes: u64) -> Result<(), Failure> {
        let needed = self.memory_bytes() + more_bytes;
        if needed <= self.max_bytes { Ok(()) } else { Err(self.too_large()) }
    }

    fn too_large(&self) -> Failure {
        let (distinct, limit) = (self.len, ByteSize { bytes: self.max_bytes });
        let held = ByteSize { bytes: self.memory_bytes() };
        let limit = if self.max_bytes == u64::MAX { held } else { limit };
        let advice = match self.keep {
            Keep::Key => "compare by hash: leave out --full",
            Keep::Record => "leave out --exact and --full to go on approximately",
        };
        Failure::new(format!(
            "the whole keys do not fit: {distinct} distinct records fill {limit}; give more \
             --memory, or {advice}"
        ))
    }

    fn memory_bytes(&self) -> u64 {
        self.chunks_bytes + self.table.words().len() as u64 * 8
    }

    /// Returns the number of distinct records.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Calls `each` with every entry, in first-seen order.
    ///
    /// # Errors
    ///
    /// Returns the first error of `each`.
    pub fn each<E>(&self, mut each: impl FnMut(&KeyEntry<'_>) -> Result<(), E>) -> Result<(), E> {
        for chunk in &self.chunks {
            let mut rest = chunk.entries();
            while !rest.is_empty() {
                let entry = KeyEntry::read(rest, self.keep);
                each(&entry)?;
                rest = &rest[entry.len_bytes..];
            }
        }
        Ok(())
    }

    /// Returns the accuracy of the set, which is exact.
    pub fn accuracy(&self) -> Accuracy {
        Accuracy {
            method: "exact by full keys".into(),
            distinct: self.len,
            expected_lost: 0.0,
            rates: None,
            memory_bytes: self.memory_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis::Hasher;

    use super::*;
    use crate::commands::dedup::record_batch::tests::each_part;

    fn insert(set: &mut KeySet, bytes: &[u8]) -> Result<Vec<bool>, Failure> {
        let (mut new, mut all) = (Answers::new(), Vec::new());
        each_part(bytes, true, |part| {
            set.insert_batch(part, &mut new).map_err(|(_, failure)| failure)?;
            all.extend(new.iter());
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn keys_of_equal_hash_stay_apart() {
        let mut set = KeySet::new(Keep::Key, u64::MAX);
        set.reserve(10).unwrap();
        assert!(set.insert(7, b"one", true, b"").unwrap());
        assert!(set.insert(7, b"two", true, b"").unwrap());
        assert!(set.insert(7, b"two", false, b"").unwrap(), "a record without a key");
        assert!(!set.insert(7, b"one", true, b"").unwrap());
        assert!(!set.insert(7, b"two", true, b"").unwrap());
    }

    #[test]
    fn a_key_of_equal_hash_hides_no_record_of_a_batch() {
        let mut set = KeySet::new(Keep::Key, u64::MAX);
        set.reserve(10).unwrap();
        assert!(set.insert(Hasher::default().hash(b"b"), b"other", true, b"").unwrap());
        assert_eq!(insert(&mut set, b"a\nb\nb\n").unwrap(), [true, true, false]);
        assert_eq!(insert(&mut set, b"b\na\nc\n").unwrap(), [false, false, true]);
    }

    /// The test covers large steps, small steps, an unknown number of records, and chunks of every
    /// size.
    #[test]
    fn a_wrong_expectation_loses_no_record() {
        let block: String = (0..50_000).map(|i| format!("record {}\n", i % 30_000)).collect();
        let expected: Vec<bool> = (0..50_000).map(|i| i < 30_000).collect();
        for distinct in [0, 100, 30_000, 1_000_000, u64::MAX] {
            let mut set = KeySet::new(Keep::Key, u64::MAX);
            set.set_expected(distinct);
            assert!(insert(&mut set, block.as_bytes()).unwrap() == expected, "{distinct}");
            assert_eq!(set.len(), 30_000);
        }
    }

    #[test]
    fn records_come_back_in_first_seen_order_with_their_counts() {
        let mut set = KeySet::new(Keep::Record, u64::MAX);
        let long = "x".repeat(CHUNK_BYTES + 5);
        let block = format!("b\na\nb\n{long}\n\nb\n{long}\nc\n");
        let new = insert(&mut set, block.as_bytes()).unwrap();
        assert_eq!(new, [true, true, false, true, true, false, false, true]);
        let mut found = Vec::new();
        set.each(|entry| {
            found.push((entry.record.to_vec(), entry.count));
            Ok::<(), ()>(())
        })
        .unwrap();
        let expected = [("b", 3), ("a", 1), (long.as_str(), 2), ("", 1), ("c", 1)];
        assert_eq!(found, expected.map(|(record, count)| (record.as_bytes().to_vec(), count)));
    }

    #[test]
    fn a_limit_is_an_error_that_says_what_to_do() {
        let mut set = KeySet::new(Keep::Key, 1 << 20);
        let block: String = (0..100_000).map(|i| format!("{i}\n")).collect();
        match insert(&mut set, block.as_bytes()) {
            Err(Failure::Message(line)) => assert!(line.contains("--memory"), "{line}"),
            other => panic!("{other:?}"),
        }
    }
}
