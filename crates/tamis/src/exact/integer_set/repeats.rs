//! Finds the integers that occur more than once among billions of integers.
//!
//! Each value has two bits: "seen" and "seen again". Each bit array has 512 MiB, so testing random
//! values one by one would wait for memory at each value. To avoid waiting for memory, the finder
//! first collects values in bins by their high bits. The values of a bin span a range of 2²⁰. The
//! finder sets the bits of all values of a bin together, while these bits are in the L2 cache
//! (`batch/bins.rs`). While setting bits, the finder prefetches the next values and the bits of the
//! next bin. Bins do not keep the order of the values, but the result is a set and has no order.

use crate::arch::prefetch_index;
use crate::batch::bins::{self, Bins, THREAD_ITEMS};
use crate::bits::BitsMut as _;
use crate::exact::integer_set::dense::DenseSet;
use crate::exact::integer_set::error::RangeError;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// Finds the values that occur more than once among any number of `u32`, exactly.
///
/// The finder allocates 1 GiB of address space for bits, whose pages use memory only after the
/// first access. The finder also uses [scratch memory](Self::with_scratch_bytes).
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

/// The number of low bits of a value, which select the place of the value in its bin. A bin has two
/// arrays of 128 KiB of bits, which fit in the L2 cache. With bins of half the chosen size, the
/// buffers of all bins do not fit in the cache. Bins of twice the chosen size take the same time as
/// bins of the chosen size.
const BIN_BITS: u32 = 20;
const BINS: usize = 1 << (32 - BIN_BITS);
const BIN_WORDS: usize = 1 << (BIN_BITS - 6);
/// The number of items in a buffer, which is one cache line. If a buffer had more than one cache
/// line, the buffers of all bins would not fit in the caches.
const BUFFER: usize = 16;
/// The number of items in a chunk. A bin stores its values in chunks. Chunks are as large as
/// possible, but one chunk for each bin takes at most a sixteenth of the scratch memory. Reading
/// chunks of 4 KiB took half the time of reading chunks of 1 KiB.
const CHUNK_ITEMS: std::ops::RangeInclusive<usize> = 256..=1024;
/// The number of 64-bit words in a cache line.
const LINE_WORDS: usize = 8;
/// The maximum number of threads. More than `MAX_THREADS` threads would only compete for memory
/// bandwidth. The smallest scratch memory still has 16 chunks for each of 64 threads.
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

    /// Sets the maximum number of threads for large slices. Zero is treated as 1, and values above
    /// 64 as 64.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, MAX_THREADS);
        self
    }

    /// Sets the maximum memory of items that wait in bins, in bytes, for all threads together. The
    /// bins take additional memory: 4 MiB for each thread or a sixteenth of `bytes`, whichever is
    /// more.
    ///
    /// The more items can wait in bins, the fewer times the finder reads all bits into the caches,
    /// but the more new memory the operating system must clear. The default of 256 MiB was fastest
    /// for hundreds of millions of random items. Twice the default took the same time, and a
    /// quarter of the default took 1.5 times as long. The finder never accesses scratch memory that
    /// the waiting items do not need. `bytes` is limited to the range from 1 MiB to 8 GiB.
    #[must_use]
    pub fn with_scratch_bytes(mut self, bytes: u64) -> Self {
        self.scratch_items = (bytes.clamp(1 << 20, 8 << 30) / 4) as usize;
        self
    }

    /// Adds `items`. Adding slices of at least a megabyte is fastest. Items of small slices wait in
    /// bins until enough items have arrived.
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

    /// Returns the set of values that occurred, and the set of values that occurred more than once.
    #[must_use]
    pub fn finish(mut self) -> Repeats {
        self.apply();
        self.found
    }

    /// Creates the bins for a slice of `items` items, if the bins do not exist. Returns false if
    /// the memory cannot be allocated.
    fn allocate(&mut self, items: usize) -> bool {
        // One thread puts the items of a small slice into bins, even if several threads set the
        // bits later.
        let threads = if items < THREAD_ITEMS { 1 } else { self.threads };
        if self.bins.len() < threads {
            self.apply();
            // The bins of one thread use all of the scratch memory, so these bins are freed before
            // the bins of several threads are allocated.
            self.bins.clear();
            let share = self.scratch_items / threads;
            let chunk_items = (share / BINS / 16).clamp(*CHUNK_ITEMS.start(), *CHUNK_ITEMS.end());
            let bins = || Bins::new(BINS, share, 1 << chunk_items.ilog2());
            self.bins.extend(std::iter::from_fn(bins).take(threads));
        }
        !self.bins.is_empty()
    }

    /// Sets the bits of all items that wait in bins.
    fn apply(&mut self) {
        let waiting: usize = self.bins.iter().map(Bins::items).sum();
        // `lines_ahead` is the number of cache lines of the next bin that are prefetched for each
        // cache line of items. With `lines_ahead` lines for each line of items, all lines of the
        // next bin are prefetched before the current bin ends.
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
                    // While this thread processes a bin, the other threads take the bins that
                    // follow, so the next bin of this thread is usually `threads` bins later.
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
                repeated.insert(item.into()).expect("the range is all of u32");
            }
        }
    }
}

/// The bits of one bin.
struct Part<'a> {
    seen: &'a mut [u64; BIN_WORDS],
    repeated: &'a mut [u64; BIN_WORDS],
    /// The next word to prefetch and the end of the next bin, both counted from the first word of
    /// this bin.
    word_ahead: usize,
    end_ahead: usize,
    lines_ahead: usize,
    /// A buffer for the items of a chunk that were seen before.
    again: [u32; *CHUNK_ITEMS.end()],
}

impl Part<'_> {
    /// Sets the bits of at most one chunk of items, and prefetches the items of `ahead`.
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
                // This loop has no branch, because the CPU would often mispredict a branch: among a
                // billion random items, one in ten repeats an earlier item.
                self.again[repeats] = item;
                repeats += is_again as usize;
            }
        }
        // The code accesses a page of `repeated` only if a value of the page repeats.
        let again = &self.again[..repeats];
        again.iter().for_each(|&item| prefetch_index(&self.repeated[..], word_of(item)));
        again.iter().for_each(|&item| self.repeated[word_of(item)] |= 1 << (item % 64));
    }
}

/// Returns the word that contains the bit of `item`, counted from the start of its bin.
#[inline]
fn word_of(item: u32) -> usize {
    (item >> 6) as usize % BIN_WORDS
}
