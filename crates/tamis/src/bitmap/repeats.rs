//! Search for the integers that occur more than once among billions.
//!
//! Each value has two bits: seen, and seen again. If random values were tested one by one, each would wait for a line
//! of 512 MiB. So values are first collected in bins by their high bits, 2²⁰ values of range each. The items of a bin
//! are then applied together, while its 128 KiB of bits are in the second cache (`bins.rs`). Meanwhile the next values
//! and the bits of the next bin are prefetched. The order of values is lost and does not matter, because the result is
//! a set.

use super::{DenseSet, RangeError};
use crate::arch::prefetch_index;
use crate::bins::{self, Bins, THREAD_ITEMS};
use crate::bits::BitsMut as _;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// Finds the values that occur more than once among any number of `u32`, exactly.
///
/// It takes 1 GiB for bits, of which only touched pages use memory, and its [scratch memory](Self::with_scratch_bytes).
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

/// The result of a [`RepeatFinder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// The values that occurred.
    pub seen: DenseSet,
    /// The values that occurred more than once.
    pub repeated: DenseSet,
}

/// The low bits of a value, which are its place in a bin: twice 128 KiB of bits fit in the second cache. Half the size
/// makes more bins than the cache has space for their buffers; twice the size is as fast.
const BIN_BITS: u32 = 20;
const BINS: usize = 1 << (32 - BIN_BITS);
const BIN_WORDS: usize = 1 << (BIN_BITS - 6);
/// One line. With larger buffers, the buffers of all bins would not fit in the caches.
const BUFFER: usize = 16;
/// The values of a bin are stored in chunks, which are as large as possible while one chunk for each bin takes at most
/// a sixteenth of the scratch memory. Reading chunks of 4 KiB took half the time of reading chunks of 1 KiB.
const CHUNK_ITEMS: std::ops::RangeInclusive<usize> = 256..=1024;
/// Words of a bin in a cache line.
const LINE_WORDS: usize = 8;
/// More threads would only compete for memory. The smallest scratch memory still has 16 chunks for each of 64.
const MAX_THREADS: usize = 64;

impl RepeatFinder {
    /// Creates a finder over all of `u32`, with one thread and 256 MiB of scratch memory.
    ///
    /// # Errors
    ///
    /// [`RangeError::OutOfMemory`] if 1 GiB of address space cannot be allocated.
    pub fn new() -> Result<Self, RangeError> {
        let found = Repeats { seen: DenseSet::all_u32()?, repeated: DenseSet::all_u32()? };
        let finder = Self { found, threads: 1, scratch_items: 0, bins: Vec::new() };
        Ok(finder.with_scratch_bytes(256 << 20))
    }

    /// Sets the most threads for large slices. Zero counts as one, more than 64 as 64.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, MAX_THREADS);
        self
    }

    /// Sets how many bytes of items may wait in bins, all threads together. The bins themselves take 4 MiB for each
    /// thread or a sixteenth, whichever is more.
    ///
    /// With more waiting items, all bits pass through the caches fewer times, but the system clears more new memory
    /// first. For hundreds of millions of random items the default of 256 MiB was fastest, twice as much took the same
    /// time, and a quarter took half as long again. Only used memory is touched. The value is limited to 1 MiB to 8
    /// GiB.
    #[must_use]
    pub fn with_scratch_bytes(mut self, bytes: u64) -> Self {
        self.scratch_items = (bytes.clamp(1 << 20, 8 << 30) / 4) as usize;
        self
    }

    /// Adds `items`. Slices of a megabyte and more are fastest; small ones wait for more.
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

    /// Returns the values that occurred, and those that occurred more than once.
    #[must_use]
    pub fn finish(mut self) -> Repeats {
        self.apply();
        self.found
    }

    /// Creates bins for slices of `items`, if there are none. Returns false if the memory cannot be allocated.
    fn allocate(&mut self, items: usize) -> bool {
        // One thread bins small slices, whatever the number of threads that set bits.
        let threads = if items < THREAD_ITEMS { 1 } else { self.threads };
        if self.bins.len() < threads {
            self.apply();
            // The bins of one thread use all of the scratch memory.
            self.bins.clear();
            let share = self.scratch_items / threads;
            let chunk_items = (share / BINS / 16).clamp(*CHUNK_ITEMS.start(), *CHUNK_ITEMS.end());
            let bins = || Bins::new(BINS, share, 1 << chunk_items.ilog2());
            self.bins.extend(std::iter::from_fn(bins).take(threads));
        }
        !self.bins.is_empty()
    }

    /// Sets the bits of all waiting items.
    fn apply(&mut self) {
        let waiting: usize = self.bins.iter().map(Bins::items).sum();
        // For each line of items, this number of lines of the next bin is prefetched, so that all arrive in time.
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
                    // The other threads take the bins in between.
                    word_ahead: BIN_WORDS * self.threads,
                    end_ahead: BIN_WORDS * (self.threads + 1),
                    lines_ahead,
                    again: [0; *CHUNK_ITEMS.end()],
                };
                waiting.for_each_slice(|items, ahead| part.set_each(items, ahead));
            },
        );
    }

    /// Sets the bits of `items` one by one.
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
    /// The next word to prefetch, counted from the first word of this bin, and the end of the next bin.
    word_ahead: usize,
    end_ahead: usize,
    lines_ahead: usize,
    /// Space for the items of a chunk that were seen before.
    again: [u32; *CHUNK_ITEMS.end()],
}

impl Part<'_> {
    /// Sets the bits of a chunk's items, or of fewer, and prefetches for the items of `ahead`.
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
                // Without a branch: of a billion random items one in ten repeats, and the branch would be mispredicted.
                self.again[repeats] = item;
                repeats += is_again as usize;
            }
        }
        // The pages of values that never repeat are not touched.
        let again = &self.again[..repeats];
        again.iter().for_each(|&item| prefetch_index(&self.repeated[..], word_of(item)));
        again.iter().for_each(|&item| self.repeated[word_of(item)] |= 1 << (item % 64));
    }
}

/// Returns the word of its bin that contains the bit of `item`.
#[inline]
fn word_of(item: u32) -> usize {
    (item >> 6) as usize % BIN_WORDS
}
