//! An exact set of digests. Digests are hashes that are so wide that two items almost never have
//! the same digest.
//!
//! ```text
//! digest ── high half of digest × lines ──▶ home line ─▶ first free slot, or the next line's
//!                                           |d|d|d|d|d|0|0|0|   64 bytes: 8 digests, or 4 wide ones
//! ```
//!
//! The table uses open addressing: a digest is stored in its home cache line or in a later line. A
//! lookup reads the home line of the digest. If the home line is full, the lookup also reads the
//! next line. Digests are never removed, so an empty slot ends the search for a digest. Zero marks
//! an empty slot, so the digest zero is stored outside the table.
//!
//! The high bits of a digest determine its home line, so the table is almost sorted. When the set
//! grows, the set reads the old table and writes the new table from front to back. While copying
//! the digests, the set frees the old table step by step, so the peak memory is little more than
//! the new table. A conversion into a Bloom filter reads and frees the table from front to back, as
//! growing the set does. The high bits of a hash determine the block of a Bloom filter, so a
//! conversion writes the blocks almost in order.

mod digest;

use std::fmt;

use crate::arch::digests;
use crate::arch::memory::{LINE_BYTES, Lines};
use crate::batch::answers::{Answers, set_answer};
use crate::batch::chunks::CHUNK;
use crate::bits::OutOfMemory;

pub use digest::{Digest, expected_collisions};

/// The number of 64-bit words in a cache line.
const LINE_WORDS: usize = LINE_BYTES / 8;

/// The table grows when the share of used slots exceeds `MAX_LOAD`.
const MAX_LOAD: (u64, u64) = (3, 4);

/// A set that stores digests exactly.
///
/// # Examples
///
/// ```
/// use tamis::{Answers, DigestSet, Hasher};
///
/// let hasher = Hasher::default();
/// let lines = ["a", "b", "a"].map(|line| hasher.hash(line.as_bytes()));
/// let mut seen = DigestSet::new();
/// let mut new = Answers::new();
/// seen.insert_each(&lines, &mut new)?;
/// assert_eq!(new.ones().collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(seen.len(), 2);
/// # Ok::<(), tamis::OutOfMemory>(())
/// ```
pub struct DigestSet<D: Digest = u64> {
    // Invariant: at most the share `MAX_LOAD` of the slots is used, so every search ends at an
    // empty slot.
    table: Lines,
    // The number of digests in the table, without the digest zero.
    in_table: u64,
    holds_zero: bool,
    max_bytes: u64,
    /// The number of digests that the caller expects, or zero if the caller has set no number.
    expected: u64,
    digest: std::marker::PhantomData<D>,
}

impl<D: Digest> DigestSet<D> {
    /// Creates an empty set, without an allocation.
    #[must_use]
    pub fn new() -> Self {
        Self::within(u64::MAX)
    }

    /// Creates an empty set that takes at most `max_bytes`.
    #[must_use]
    pub fn within(max_bytes: u64) -> Self {
        Self {
            table: Lines::empty(),
            in_table: 0,
            holds_zero: false,
            max_bytes,
            expected: 0,
            digest: std::marker::PhantomData,
        }
    }

    /// Limits the memory of the set to `max_bytes`. A set that is already larger than `max_bytes`
    /// keeps its memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Answers, DigestSet};
    ///
    /// let mut seen = DigestSet::<u64>::new();
    /// seen.limit(0);
    /// assert!(seen.insert(7).is_err());
    /// ```
    pub fn limit(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes;
    }

    /// Sets the number of digests that the caller expects to insert in total. Takes constant time
    /// and allocates nothing.
    ///
    /// Without an expected number, the set grows by half of its size. With an expected number, the
    /// set grows towards this number, to at most four times its size in one step. With an expected
    /// number, a set grows in fewer steps and copies its digests less often than without an
    /// expected number. A wrong number never changes an answer, but costs time or memory: the table
    /// may be up to four times as large as necessary.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Answers, DigestSet, Hasher};
    ///
    /// let hashes: Vec<u64> = (0..100_000_u64).map(|i| Hasher::default().hash_item(&i)).collect();
    /// let mut seen = DigestSet::new();
    /// seen.set_expected(100_000);
    /// hashes.chunks(1000).try_for_each(|hashes| seen.insert_each(hashes, &mut Answers::new()))?;
    /// assert!(seen.memory_bytes() < DigestSet::<u64>::bytes_for(104_000));
    /// # Ok::<(), tamis::OutOfMemory>(())
    /// ```
    pub fn set_expected(&mut self, len: u64) {
        self.expected = len;
    }

    /// Returns the number of digests.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.in_table + u64::from(self.holds_zero)
    }

    /// Returns true if the set holds no digest.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the table, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.len() as u64 * 8
    }

    /// Returns the minimum memory for a set of `len` digests, in bytes.
    #[must_use]
    pub fn bytes_for(len: u64) -> u64 {
        let slots = len.saturating_mul(MAX_LOAD.1).div_ceil(MAX_LOAD.0);
        slots.div_ceil(slots_per_line::<D>()).saturating_mul(LINE_BYTES as u64)
    }

    /// Estimates how many distinct items have the same digest as an earlier item. See
    /// [`expected_collisions`].
    #[must_use]
    pub fn expected_collisions(&self) -> f64 {
        expected_collisions(self.len(), D::BITS)
    }

    /// Reserves memory for `additional` more digests.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the memory cannot be allocated or exceeds the limit of the set. On error,
    /// the set is unchanged.
    pub fn reserve(&mut self, additional: u64) -> Result<(), OutOfMemory> {
        let needed_bytes = Self::bytes_for(self.in_table.saturating_add(additional));
        if needed_bytes <= self.memory_bytes() {
            return Ok(());
        }
        // The table grows by half instead of doubling, so that the table takes at most 1.5 times
        // the needed memory.
        let usual = self.memory_bytes().saturating_mul(3) / 2;
        let clamp = |wanted: u64| wanted.max(needed_bytes).max(MIN_BYTES).min(self.max_bytes);
        let (usual, step) = (clamp(usual), clamp(usual.max(self.step_bytes())));
        if needed_bytes > usual {
            return Err(OutOfMemory { bytes: needed_bytes });
        }
        // If a table of `step` bytes does not fit in memory, a table of `usual` bytes may still
        // fit.
        let table =
            allocate(step).or_else(|| allocate(usual)).ok_or(OutOfMemory { bytes: usual })?;
        let old = std::mem::replace(&mut self.table, table);
        drain::<D>(old, |digests| D::insert_absent(&mut self.table, digests));
        Ok(())
    }

    /// Returns the size of the next table on the way to the expected number of digests, in bytes.
    /// Growing a table to 8.3 million digests takes 0.09 s with the sizes of this function. Growing
    /// to 8.3 million digests by half in each step would take 0.26 s.
    fn step_bytes(&self) -> u64 {
        // The size includes space for slightly more digests than expected, so that the table does
        // not grow again for a few extra digests.
        let mut bytes = Self::bytes_for(self.expected.saturating_add(self.expected / 32));
        let most = self.memory_bytes().max(MIN_BYTES).saturating_mul(MAX_STEP);
        while bytes > most {
            bytes /= MAX_STEP;
        }
        bytes.min(MAX_STEP_BYTES)
    }

    /// Inserts many digests in order. Answer `i` is true if `digests[i]` was new.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`reserve`](Self::reserve). The set reserves space as if all digests
    /// were new. On error, the set is unchanged.
    pub fn insert_each(&mut self, digests: &[D], new: &mut Answers) -> Result<(), OutOfMemory> {
        self.reserve(digests.len() as u64)?;
        let words = new.reset(digests.len());
        for (digests, words) in digests.chunks(CHUNK).zip(words.chunks_mut(CHUNK / 64)) {
            D::insert_each(&mut self.table, digests, words);
            self.in_table += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            // In the table, zero marks an empty slot, so the kernel reports the digest zero as
            // already present.
            let zero = digests.iter().position(|digest| is_zero(*digest));
            if let Some(at) = zero.filter(|_| !self.holds_zero) {
                set_answer(words, at, true);
                self.holds_zero = true;
            }
        }
        Ok(())
    }

    /// Inserts one digest. Returns true if the digest is new.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`reserve`](Self::reserve).
    pub fn insert(&mut self, digest: D) -> Result<bool, OutOfMemory> {
        let mut new = Answers::new();
        self.insert_each(&[digest], &mut new)?;
        Ok(new.get(0))
    }

    /// Returns true if the set holds `digest`.
    #[must_use]
    pub fn contains(&self, digest: D) -> bool {
        if is_zero(digest) {
            return self.holds_zero;
        }
        !self.table.is_empty() && D::contains(&self.table, digest)
    }

    /// Prefetches the memory that a lookup of `digest` reads.
    #[inline]
    pub fn prefetch(&self, digest: D) {
        digests::prefetch(&self.table, digest.hash64());
    }

    /// Returns true unless hundreds of digests would share a run of used slots. Inserting such
    /// digests takes quadratic time. `digests` are in ascending order.
    #[cfg(feature = "serde")]
    pub(crate) fn is_spread(digests: &[D]) -> bool {
        let slots = (Self::bytes_for(digests.len() as u64) / LINE_BYTES as u64).max(1)
            * slots_per_line::<D>();
        let mut next_free = 0_u64;
        digests.iter().all(|digest| {
            let home = (u128::from(digest.hash64()) * u128::from(slots)) >> 64;
            next_free = next_free.max(home as u64) + 1;
            next_free - home as u64 <= MAX_RUN
        })
    }

    /// Iterates over the digests, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = D> + '_ {
        let slots = self.table.chunks_exact(D::WORDS).map(D::of);
        let zero = self.holds_zero.then(|| D::of(&[0; 2]));
        zero.into_iter().chain(slots.filter(|digest| !is_zero(*digest)))
    }

    /// Consumes the set and passes its digests to `each` in batches, in almost ascending order.
    /// While the set passes its digests to `each`, the set frees its memory step by step, so that
    /// the caller can use the freed memory.
    ///
    /// # Examples
    ///
    /// An exact set becomes a Bloom filter without reading its items again:
    ///
    /// ```
    /// use tamis::{Bloom, Digest, DigestSet, Hasher, Insert};
    ///
    /// let mut exact = DigestSet::new();
    /// exact.insert(Hasher::default().hash(b"tamis"))?;
    /// let mut seen: Bloom = Bloom::for_items(1_000, 0.01)?;
    /// exact.drain_each(|digests| {
    ///     seen.insert_hashes(digests, &mut vec![0; digests.len().div_ceil(64)]);
    /// });
    /// assert!(seen.contains("tamis"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain_each(self, mut each: impl FnMut(&[D])) {
        if self.holds_zero {
            each(&[D::of(&[0; 2])]);
        }
        drain::<D>(self.table, each);
    }
}

impl<D: Digest> Clone for DigestSet<D> {
    /// Copies the table.
    ///
    /// # Panics
    ///
    /// Panics if there is no memory for the copy.
    fn clone(&self) -> Self {
        let mut table = Lines::zeroed(self.table.len()).expect("memory for the copy");
        table.copy_from_slice(&self.table);
        Self { table, ..*self }
    }
}

impl<D: Digest> PartialEq for DigestSet<D> {
    /// Returns true if both sets hold the same digests.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|digest| other.contains(digest))
    }
}

impl<D: Digest> Eq for DigestSet<D> {}

impl<D: Digest> Default for DigestSet<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Digest> fmt::Debug for DigestSet<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DigestSet")
            .field("bits", &D::BITS)
            .field("len", &self.len())
            .field("memory_bytes", &self.memory_bytes())
            .finish()
    }
}

/// The largest growth of one step, as a multiple of the current size. Without the limit `MAX_STEP`,
/// the set would waste memory if the expected number is too high.
const MAX_STEP: u64 = 4;

/// The maximum size of a table that grows towards the expected number, in bytes. A table above
/// `MAX_STEP_BYTES` grows by half in each step, because the expected number may be wrong.
const MAX_STEP_BYTES: u64 = 1 << 30;

/// The size of the first table: one page.
const MIN_BYTES: u64 = 4096;

/// The maximum distance of a serialized digest from its home slot, in slots. In simulated sets of up
/// to 20 million random digests, the largest distance was 27 slots.
#[cfg(feature = "serde")]
const MAX_RUN: u64 = 256;

/// The number of cache lines of the old table that the set frees at once.
const RELEASE_LINES: usize = (2 << 20) / LINE_BYTES;

const fn slots_per_line<D: Digest>() -> u64 {
    (LINE_WORDS / D::WORDS) as u64
}

/// Allocates as many whole lines as fit in `bytes`. Returns `None` if the memory cannot be
/// allocated.
fn allocate(bytes: u64) -> Option<Lines> {
    let lines = usize::try_from(bytes / LINE_BYTES as u64).ok()?;
    Lines::zeroed(lines.checked_mul(LINE_WORDS)?)
}

fn is_zero<D: Digest>(digest: D) -> bool {
    digest == D::of(&[0; 2])
}

/// Passes the digests of a table to `each` from front to back, and frees the memory of the table on
/// the way.
fn drain<D: Digest>(mut table: Lines, mut each: impl FnMut(&[D])) {
    let line_slots = LINE_WORDS / D::WORDS;
    let mut batch = [D::of(&[0; 2]); CHUNK];
    let (mut len, mut released) = (0, 0);
    for at in (0..table.len()).step_by(LINE_WORDS) {
        // The loop copies all slots of a line, including empty slots, so that no branch depends on
        // the number of empty slots. The digests of the next line overwrite the empty slots in the
        // batch.
        let line = &table[at..at + LINE_WORDS];
        for (place, slot) in batch[len..len + line_slots].iter_mut().zip(line.chunks(D::WORDS)) {
            *place = D::of(slot);
        }
        len += D::taken_words(line) / D::WORDS;
        if len + line_slots > CHUNK {
            each(&batch[..len]);
            len = 0;
        }
        if at - released >= RELEASE_LINES * LINE_WORDS {
            table.release(at);
            released = at;
        }
    }
    if len > 0 {
        each(&batch[..len]);
    }
}

#[cfg(test)]
mod tests;
