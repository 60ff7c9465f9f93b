//! A sub-filter, which is an array of buckets. Each bucket has slots of one byte.

use tamis::{Bitmap, Bits as _, BitsMut as _, OutOfMemory, prefetch};

use crate::murmur2;

/// A fingerprint with two hashes. Each of the two hashes modulo the number of buckets is a bucket
/// number of the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    // Invariant: the fingerprint is not 0, because 0 marks an empty slot.
    fingerprint: u8,
    h1: u64,
    h2: u64,
}

impl Candidate {
    /// Creates the fingerprint and the two hashes of an item from `hash`, the hash of the item.
    #[inline(always)]
    pub(super) fn of(hash: u64) -> Self {
        Self::in_bucket((hash % 255 + 1) as u8, hash)
    }

    /// Creates a `Candidate` from a fingerprint and the number of one of its two buckets. A slot
    /// does not contain the hash of the item, so the bucket number replaces the first hash.
    #[inline(always)]
    pub(super) fn in_bucket(fingerprint: u8, bucket: u64) -> Self {
        Self { fingerprint, h1: bucket, h2: bucket ^ step(fingerprint) }
    }
}

/// Returns the difference (XOR) of the two bucket numbers of a fingerprint. The XOR of one bucket
/// number of the fingerprint with the difference is the other bucket number.
#[inline(always)]
fn step(fingerprint: u8) -> u64 {
    u64::from(fingerprint) * u64::from(murmur2::M32)
}

/// A sub-filter of a cuckoo filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SubFilter {
    // Invariant: slot `i` is byte `i % 8` of word `i / 8`. The bitmap has a byte for each of
    // the `buckets * bucket_size` slots. `buckets` is a power of two.
    slots: Bitmap,
    buckets: u64,
    bucket_size: u16,
    /// The mask of a bucket inside a word, for buckets of 1, 2, 4 or 8 slots. The mask is 0 if a
    /// bucket does not have 1, 2, 4 or 8 slots.
    in_word: u64,
}

impl SubFilter {
    /// Creates an empty sub-filter.
    pub(super) fn zeroed(buckets: u64, bucket_size: u16) -> Result<Self, OutOfMemory> {
        debug_assert!(buckets.is_power_of_two(), "the caller checked the number");
        let bits = buckets.checked_mul(u64::from(bucket_size) * 8);
        let bits = bits.ok_or(OutOfMemory { bytes: u64::MAX })?;
        let in_word = match bucket_size {
            1 | 2 | 4 | 8 => u64::MAX >> (64 - 8 * bucket_size),
            _ => 0,
        };
        Ok(Self { slots: Bitmap::zeroed(bits)?, buckets, bucket_size, in_word })
    }

    pub(super) fn buckets(&self) -> u64 {
        self.buckets
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.buckets * u64::from(self.bucket_size)
    }

    /// Returns the ratio of occupied slots to all slots in the first `max_bytes` bytes.
    pub(super) fn fill(&self, max_bytes: u64) -> f64 {
        let len = self.len_bytes().min(max_bytes.max(8));
        let words = self.slots.words().iter().take(len.div_ceil(8) as usize);
        // The bytes after the last slot are zero.
        let taken = words.flat_map(|word| word.to_le_bytes()).filter(|&slot| slot != EMPTY).count();
        taken as f64 / len.next_multiple_of(8).min(self.len_bytes()) as f64
    }

    /// Empties every slot.
    pub(super) fn clear_all(&mut self) {
        self.slots.words_mut().fill(0);
    }

    /// Returns the heap memory of the slots, in bytes.
    pub(super) fn heap_bytes(&self) -> u64 {
        self.slots.heap_bytes()
    }

    pub(super) fn words(&self) -> &[u64] {
        self.slots.words()
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        self.slots.words_mut()
    }

    /// Returns the fingerprint in a slot, or 0 if the slot is empty.
    #[inline(always)]
    pub(super) fn slot(&self, index: u64) -> u8 {
        (self.slots.words()[(index / 8) as usize] >> (index % 8 * 8)) as u8
    }

    /// Writes a fingerprint to a slot and returns the old value of the slot.
    #[inline(always)]
    fn replace(&mut self, index: u64, fingerprint: u8) -> u8 {
        let (word, shift) = (&mut self.slots.words_mut()[(index / 8) as usize], index % 8 * 8);
        let old = (*word >> shift) as u8;
        *word ^= u64::from(old ^ fingerprint) << shift;
        old
    }

    /// Empties a slot.
    pub(super) fn clear(&mut self, index: u64) {
        self.replace(index, EMPTY);
    }

    /// Returns the index of the first slot of the bucket for a hash.
    #[inline(always)]
    fn bucket(&self, hash: u64) -> u64 {
        (hash & (self.buckets - 1)) * u64::from(self.bucket_size)
    }

    /// Compares all slots of a bucket with a fingerprint. The lowest set bit of the result is the
    /// high bit of the first matching slot. The bits above the lowest set bit may be wrong. Returns
    /// 0 if no slot matches. The bucket must be inside one word.
    #[inline(always)]
    fn matches(&self, bucket: u64, fingerprint: u8) -> u64 {
        let slots = self.slots.words()[(bucket / 8) as usize] >> (bucket % 8 * 8);
        let differing = slots ^ (u64::from(fingerprint) * LOW_BITS);
        // A byte of 0 causes a borrow from the next higher byte, so the next higher byte may be a
        // wrong match. Only the lowest set bit of the result is therefore always correct.
        differing.wrapping_sub(LOW_BITS) & !differing & HIGH_BITS & self.in_word
    }

    /// Finds `fingerprint` in a bucket, and returns the index of the first matching slot. `bucket`
    /// is the index of the first slot of the bucket.
    #[inline(always)]
    fn find(&self, bucket: u64, fingerprint: u8) -> Option<u64> {
        if self.in_word == 0 {
            let mut slots = bucket..bucket + u64::from(self.bucket_size);
            return slots.find(|&i| self.slot(i) == fingerprint);
        }
        let matches = self.matches(bucket, fingerprint);
        (matches != 0).then(|| bucket + u64::from(matches.trailing_zeros() / 8))
    }

    /// Finds `fingerprint` in the two buckets of `candidate`, and returns the index of the first
    /// matching slot. Searches the first bucket before the second bucket.
    #[inline(always)]
    fn find_in_both(&self, candidate: Candidate, fingerprint: u8) -> Option<u64> {
        self.find(self.bucket(candidate.h1), fingerprint)
            .or_else(|| self.find(self.bucket(candidate.h2), fingerprint))
    }

    #[inline]
    pub(super) fn contains(&self, candidate: Candidate) -> bool {
        let fingerprint = candidate.fingerprint;
        if self.in_word == 0 {
            return self.find_in_both(candidate, fingerprint).is_some();
        }
        // The code reads both buckets without a branch between the two reads. The CPU would
        // mispredict a branch between the reads for half of the items.
        let (a, b) = (self.bucket(candidate.h1), self.bucket(candidate.h2));
        self.matches(a, fingerprint) | self.matches(b, fingerprint) != 0
    }

    /// Counts how often the fingerprint of `candidate` occurs in its two buckets. If both buckets
    /// are the same bucket, each fingerprint counts twice.
    pub(super) fn count(&self, candidate: Candidate) -> u64 {
        let in_bucket = |hash| {
            let first = self.bucket(hash);
            let slots = first..first + u64::from(self.bucket_size);
            slots.filter(|&i| self.slot(i) == candidate.fingerprint).count() as u64
        };
        in_bucket(candidate.h1) + in_bucket(candidate.h2)
    }

    /// Writes the fingerprint of `candidate` to an empty slot of one of its two buckets. Returns
    /// false if both buckets are full.
    #[inline]
    pub(super) fn put(&mut self, candidate: Candidate) -> bool {
        let empty = self.find_in_both(candidate, EMPTY);
        if let Some(index) = empty {
            self.replace(index, candidate.fingerprint);
        }
        empty.is_some()
    }

    /// Removes the fingerprint of `candidate` from one of its two buckets. Returns false if neither
    /// bucket contains the fingerprint.
    pub(super) fn take(&mut self, candidate: Candidate) -> bool {
        let found = self.find_in_both(candidate, candidate.fingerprint);
        if let Some(index) = found {
            self.clear(index);
        }
        found.is_some()
    }

    /// Writes the fingerprint of `candidate` to its first bucket, and moves the displaced
    /// fingerprint to the alternative bucket of the displaced fingerprint. Repeats the move with
    /// the displaced fingerprint until a bucket has an empty slot. After `max_iterations` moves
    /// without an empty slot, restores all slots and returns false.
    #[cold]
    pub(super) fn evict(&mut self, candidate: Candidate, max_iterations: u16) -> bool {
        let slots = u64::from(self.bucket_size);
        let (mut fingerprint, mut hash, mut victim) = (candidate.fingerprint, candidate.h1, 0);
        for _ in 0..max_iterations {
            fingerprint = self.replace(self.bucket(hash) + victim, fingerprint);
            hash ^= step(fingerprint);
            if let Some(index) = self.find(self.bucket(hash), EMPTY) {
                self.replace(index, fingerprint);
                return true;
            }
            victim = (victim + 1) % slots;
        }
        // The second loop undoes the moves of the first loop in reverse order. A move displaced the
        // current fingerprint from the previous bucket, so the previous bucket is the alternative
        // bucket of the fingerprint.
        for _ in 0..max_iterations {
            victim = (victim + slots - 1) % slots;
            hash ^= step(fingerprint);
            fingerprint = self.replace(self.bucket(hash) + victim, fingerprint);
        }
        debug_assert_eq!((fingerprint, hash), (candidate.fingerprint, candidate.h1), "undone");
        false
    }

    /// Prefetches the memory of the two buckets of `candidate`.
    #[inline]
    pub(super) fn prefetch(&self, candidate: Candidate) {
        if self.len_bytes() >= PREFETCH_FROM_BYTES {
            prefetch(self.slots.words(), (self.bucket(candidate.h1) / 8) as usize);
            prefetch(self.slots.words(), (self.bucket(candidate.h2) / 8) as usize);
        }
    }
}

/// In `LOW_BITS`, the lowest bit of each byte is set. In `HIGH_BITS`, the highest bit of each byte
/// is set.
const LOW_BITS: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = LOW_BITS << 7;

/// The value of an empty slot.
pub(super) const EMPTY: u8 = 0;

/// The smallest size of a sub-filter with prefetching, in bytes. Sub-filters below this size fit in
/// the L2 cache.
const PREFETCH_FROM_BYTES: u64 = 2 << 20;
