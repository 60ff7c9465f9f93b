//! Which of billions of integers occur more than once.
//!
//! Two bits a value: seen, and seen again. Tested one by one, each of many random values waits for a
//! line of 512 MiB. So values first wait in bins by their high bits, a megabit of values each, and a
//! bin is then applied at once, when its 128 KiB of bits are in the second cache (`bins.rs`). Meanwhile the
//! values to come and the bits of the bin to come are asked for. Order is lost on the way and does not
//! matter: the answer is a set.

use super::{DenseSet, RangeError};
use crate::arch::prefetch_index;
use crate::bins::{self, Bins, THREAD_ITEMS};
use crate::bits::BitsMut as _;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

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
/// assert_eq!(found.seen.len(), 8);
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
/// Values of a bin lie together in chunks as large as they can be while one for each bin takes a
/// sixteenth of the scratch: a walk through chunks of 4 KiB took half the time of one through 1 KiB.
const CHUNK_ITEMS: std::ops::RangeInclusive<usize> = 256..=1024;
/// Words of a bin that share a cache line.
const LINE_WORDS: usize = 8;
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

    /// Sets how many bytes of items may wait in bins, all threads together; 4 MiB a thread or a
    /// sixteenth, whichever is more, come on top for the bins themselves.
    ///
    /// The more wait, the fewer times all bits pass through the caches, and the more fresh memory the
    /// system has to clear first: for hundreds of millions of random items the default of 256 MiB
    /// measured best, twice as much the same, and a quarter took half as long again. Only what is
    /// used is touched. At least 1 MiB and at most 8 GiB is taken.
    #[must_use]
    pub fn with_scratch_bytes(mut self, bytes: u64) -> Self {
        self.scratch_items = (bytes.clamp(1 << 20, 8 << 30) / 4) as usize;
        self
    }

    /// Takes in `items`. Slices of a megabyte and more are best; small ones wait for company.
    pub fn feed(&mut self, items: &[u32]) {
        let mut rest = items;
        while !rest.is_empty() {
            if !self.allocate(rest.len()) {
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

    /// Makes bins for slices of `items`, unless there are; false if there is no memory for any.
    fn allocate(&mut self, items: usize) -> bool {
        // Small slices are binned by one thread, whatever the number of those that set bits.
        let threads = if items < THREAD_ITEMS { 1 } else { self.threads };
        if self.bins.len() < threads {
            self.apply();
            // Those of one thread have room for all of the scratch.
            self.bins.clear();
            let share = self.scratch_items / threads;
            let chunk_items = (share / BINS / 16).clamp(*CHUNK_ITEMS.start(), *CHUNK_ITEMS.end());
            let bins = || Bins::new(BINS, share, 1 << chunk_items.ilog2());
            self.bins.extend(std::iter::from_fn(bins).take(threads));
        }
        !self.bins.is_empty()
    }

    /// Sets the bits of all items that wait.
    fn apply(&mut self) {
        let waiting: usize = self.bins.iter().map(Bins::items).sum();
        // So many lines of the bin to come for each line of items, that all are there in time.
        let lines_ahead = (BINS * BIN_WORDS / LINE_WORDS).div_ceil(waiting / BUFFER + 1);
        let seen = self.found.seen.bits.words_mut().chunks_exact_mut(BIN_WORDS);
        let repeated = self.found.repeated.bits.words_mut().chunks_exact_mut(BIN_WORDS);
        bins::apply(
            &mut self.bins,
            self.threads,
            seen.zip(repeated),
            |(seen, repeated), waiting| {
                let mut part = Part {
                    seen: seen.try_into().expect("a bin of words"),
                    repeated: repeated.try_into().expect("a bin of words"),
                    // The others take those in between.
                    word_ahead: BIN_WORDS * self.threads,
                    end_ahead: BIN_WORDS * (self.threads + 1),
                    lines_ahead,
                    again: [0; *CHUNK_ITEMS.end()],
                };
                waiting.for_each_slice(|items, ahead| part.set_each(items, ahead));
            },
        );
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

/// The bits of one bin.
struct Part<'a> {
    seen: &'a mut [u64; BIN_WORDS],
    repeated: &'a mut [u64; BIN_WORDS],
    /// The next word to be asked for, counted from the first of this bin, and where the bin to come ends.
    word_ahead: usize,
    end_ahead: usize,
    lines_ahead: usize,
    /// Room for the items of a chunk that were seen before.
    again: [u32; *CHUNK_ITEMS.end()],
}

impl Part<'_> {
    /// Sets the bits of a chunk's items, or of fewer, and asks for as many of those ahead.
    #[inline]
    fn set_each(&mut self, items: &[u32], ahead: &[u32]) {
        let mut repeats = 0;
        for (nth, line) in items.chunks(BUFFER).enumerate() {
            prefetch_index(ahead, nth * BUFFER);
            let until = self.end_ahead.min(self.word_ahead + self.lines_ahead * LINE_WORDS);
            for word in (self.word_ahead..until).step_by(LINE_WORDS) {
                prefetch_index(&self.seen[..], word);
            }
            self.word_ahead = until;
            for &item in line {
                let word = &mut self.seen[word_of(item)];
                let is_again = *word >> (item % 64) & 1;
                *word |= 1 << (item % 64);
                // Without a branch: of a billion random items one in ten repeats, which cannot be
                // foreseen.
                self.again[repeats] = item;
                repeats += is_again as usize;
            }
        }
        // The pages of values that never repeat are never touched.
        let again = &self.again[..repeats];
        again.iter().for_each(|&item| prefetch_index(&self.repeated[..], word_of(item)));
        again.iter().for_each(|&item| self.repeated[word_of(item)] |= 1 << (item % 64));
    }
}

/// Returns in which word of its bin the bit of `item` is.
#[inline]
fn word_of(item: u32) -> usize {
    (item >> 6) as usize % BIN_WORDS
}
