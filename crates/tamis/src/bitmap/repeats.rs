//! Which of billions of integers occur more than once.
//!
//! Two bits a value: seen, and seen again. Tested one by one, each of many random values waits for a
//! line of 512 MiB. So values first wait in bins by their high bits, a megabit of values each, and a
//! bin is then applied at once, when its 128 KiB of bits are in the second cache (`bins.rs`). Order is
//! lost on the way and does not matter: the answer is a set.

use super::{DenseSet, RangeError};
use crate::bins::{self, Bins};
use crate::bits::BitsMut as _;

/// Finds the values that occur more than once among any number of `u32`, exactly.
///
/// Takes 1 GiB of bits, of which only touched pages count, and its
/// [scratch](Self::with_scratch_bytes).
///
/// # Examples
///
/// ```
/// use tamis::RepeatFinder;
///
/// let mut finder = RepeatFinder::new()?;
/// finder.feed(&[1, 2, 3, 4, 5, 6, 7, 8, 3, 4]);
/// let found = finder.finish();
/// assert_eq!(found.repeated.iter().collect::<Vec<_>>(), [3, 4]);
/// assert_eq!(found.seen.count(), 8);
/// # Ok::<(), tamis::RangeError>(())
/// ```
#[derive(Debug)]
pub struct RepeatFinder {
    found: Repeats,
    threads: usize,
    scratch_items: usize,
    bins: Vec<Bins<u32, BUFFER>>,
}

/// What a [`RepeatFinder`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// The values that occurred.
    pub seen: DenseSet,
    /// The values that occurred more than once.
    pub repeated: DenseSet,
}

/// Low bits of a value that are its place in a bin: 128 KiB of bits a bin, twice, fit the second
/// cache. Half of it makes more bins than the cache holds buffers for; twice is as good.
const BIN_BITS: u32 = 20;
const BINS: usize = 1 << (32 - BIN_BITS);
const BIN_WORDS: usize = 1 << (BIN_BITS - 6);
/// One line: that of more would not fit the caches for so many bins.
const BUFFER: usize = 16;
/// More would wait for memory together; and the least scratch is still 16 chunks for each of them.
const MAX_THREADS: usize = 64;

impl RepeatFinder {
    /// Returns a finder over all of `u32`, for one thread and 256 MiB of scratch.
    ///
    /// # Errors
    ///
    /// [`RangeError::OutOfMemory`] if the system has no 1 GiB of address space.
    pub fn new() -> Result<Self, RangeError> {
        let found = Repeats { seen: DenseSet::all_u32()?, repeated: DenseSet::all_u32()? };
        let finder = Self { found, threads: 1, scratch_items: 0, bins: Vec::new() };
        Ok(finder.with_scratch_bytes(256 << 20))
    }

    /// Uses up to `threads` threads for large slices; zero counts as one, more than 64 as 64.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, MAX_THREADS);
        self
    }

    /// Sets how many bytes of items may wait in bins, all threads together; 4 MiB a thread come on
    /// top for the bins themselves.
    ///
    /// The more wait, the fewer times all bits pass through the caches, and the more fresh memory the
    /// system has to clear first: for a billion random items the default of 256 MiB measured best
    /// where that is slow, and 1 GiB where it is not. 32 MiB still halve the time without bins. Only
    /// what is used is touched. At least 1 MiB and at most 8 GiB is taken.
    #[must_use]
    pub fn with_scratch_bytes(mut self, bytes: u64) -> Self {
        self.scratch_items = (bytes.clamp(1 << 20, 8 << 30) / 4) as usize;
        self
    }

    /// Takes in `items`. Slices of a megabyte and more are best; small ones wait for company.
    pub fn feed(&mut self, items: &[u32]) {
        let mut rest = items;
        while !rest.is_empty() {
            if !self.allocate() {
                self.apply_unbinned(rest);
                return;
            }
            rest = bins::deal(&mut self.bins, rest, |bins, items| {
                bins.put(items.iter().map(|&item| ((item >> BIN_BITS) as usize, item)));
            });
            if self.bins.iter().all(|bins| bins.room() == 0) {
                self.apply();
            }
        }
    }

    /// Returns the values seen and those repeated.
    #[must_use]
    pub fn finish(mut self) -> Repeats {
        self.apply();
        self.found
    }

    /// Makes the bins at the first feed; false if there is no memory for them.
    fn allocate(&mut self) -> bool {
        while self.bins.len() < self.threads {
            match Bins::new(BINS, self.scratch_items / self.threads) {
                Some(bins) => self.bins.push(bins),
                None => return !self.bins.is_empty(),
            }
        }
        true
    }

    /// Sets the bits of all items that wait.
    fn apply(&mut self) {
        let seen = self.found.seen.bits.words_mut().chunks_exact_mut(BIN_WORDS);
        let repeated = self.found.repeated.bits.words_mut().chunks_exact_mut(BIN_WORDS);
        bins::apply(&mut self.bins, seen.zip(repeated), |(seen, repeated), waiting| {
            let seen: &mut [u64; BIN_WORDS] = seen.try_into().expect("a bin of words");
            let repeated: &mut [u64; BIN_WORDS] = repeated.try_into().expect("a bin of words");
            waiting.for_each_slice(|items| set_each(seen, repeated, items));
        });
    }

    /// Sets the bits of `items` one after the other.
    fn apply_unbinned(&mut self, items: &[u32]) {
        let Repeats { seen, repeated } = &mut self.found;
        for &item in items {
            if seen.insert(item.into()) == Ok(false) {
                repeated.insert(item.into()).expect("both hold all of u32");
            }
        }
    }
}

/// Sets the bits of a bin's items, given the bin's words.
#[inline]
fn set_each(seen: &mut [u64; BIN_WORDS], repeated: &mut [u64; BIN_WORDS], items: &[u32]) {
    for &item in items {
        let at = (item >> 6) as usize % BIN_WORDS;
        let bit = 1 << (item % 64);
        let before = seen[at];
        seen[at] = before | bit;
        // A branch, so that the pages of values that never repeat are never touched.
        if before & bit != 0 {
            repeated[at] |= bit;
        }
    }
}
