//! Which of billions of integers occur more than once.
//!
//! Two bits a value: seen, and seen again. Tested one by one, each of many random values waits for a
//! line of 512 MiB. So values are first sorted into bins by their high bits, a megabit of values each,
//! and a bin is then applied at once, when its 128 KiB of bits are in the second cache:
//!
//! ```text
//! values → bin = value >> 20 → one-line buffer → chunk of 256 → bits of the bin
//!          (4096 bins)          (in cache)         (streamed)      (in cache)
//! ```
//!
//! Each thread fills bins of its own; then each takes whole bins of bits, with what all threads have
//! binned for it, so no bit is shared and no atomic needed. Order is lost on the way and does not
//! matter: the answer is a set.
//!
//! Invariant: a chunk is given to a bin only when its last is full, so `n` items fill at most
//! `n / CHUNK_ITEMS` chunks whatever their values, and a pool of that many more than bins never
//! runs out.

use std::sync::Mutex;

use super::{DenseSet, RangeError};
use crate::arch::memory::{ItemLine, ItemLines};
use crate::arch::partition::{LINE_ITEMS, partition};
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
    bins: Vec<Bins>,
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
const CHUNK_ITEMS: usize = 256;
/// Below this many items a second thread costs more than it helps.
const THREAD_ITEMS: usize = 1 << 18;
/// More would wait for memory together; and the least scratch is still 16 chunks for each of them.
const MAX_THREADS: usize = 64;
const NO_CHUNK: u32 = u32::MAX;

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
            rest = self.bin(rest);
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
            match Bins::new(self.scratch_items / self.threads) {
                Some(bins) => self.bins.push(bins),
                None => return !self.bins.is_empty(),
            }
        }
        true
    }

    /// Bins as many items as there is room for, and returns the rest.
    fn bin<'a>(&mut self, items: &'a [u32]) -> &'a [u32] {
        if items.len() < THREAD_ITEMS || self.bins.len() == 1 {
            let bins = self.bins.iter_mut().max_by_key(|bins| bins.room());
            return bins.expect("one set of bins a thread").take(items);
        }
        let share = items.len().div_ceil(self.bins.len());
        std::thread::scope(|threads| {
            let mut rest = items;
            for bins in &mut self.bins {
                let taken = share.min(bins.room()).min(rest.len());
                let (mine, others) = rest.split_at(taken);
                rest = others;
                threads.spawn(|| bins.take(mine));
            }
            rest
        })
    }

    /// Sets the bits of all items that wait.
    fn apply(&mut self) {
        let waiting: usize = self.bins.iter().map(|bins| bins.items).sum();
        let bins = &self.bins;
        let seen = self.found.seen.bits.words_mut().chunks_exact_mut(BIN_WORDS);
        let repeated = self.found.repeated.bits.words_mut().chunks_exact_mut(BIN_WORDS);
        let work = Mutex::new(seen.zip(repeated).enumerate());
        let next = || work.lock().expect("taking work does not panic").next();
        let apply_bins = || {
            while let Some((bin, (seen, repeated))) = next() {
                let seen: &mut [u64; BIN_WORDS] = seen.try_into().expect("a bin of words");
                let repeated: &mut [u64; BIN_WORDS] = repeated.try_into().expect("a bin of words");
                for bins in bins {
                    bins.for_each_slice(bin, |items| set_each(seen, repeated, items));
                }
            }
        };
        if waiting < THREAD_ITEMS || self.threads == 1 {
            apply_bins();
        } else {
            std::thread::scope(|threads| {
                for _ in 0..self.threads {
                    threads.spawn(apply_bins);
                }
            });
        }
        for bins in &mut self.bins {
            bins.clear();
        }
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

/// The items that wait, by bin, of one thread.
struct Bins {
    heads: Vec<u32>,
    buffers: Vec<ItemLine>,
    pool: ItemLines,
    // The chunk that a bin filled before this one, or `NO_CHUNK`.
    before: Vec<u32>,
    free: u32,
    items: usize,
    max_items: usize,
}

impl Bins {
    /// Makes bins for `max_items` items, or `None` if there is no memory.
    fn new(max_items: usize) -> Option<Self> {
        let chunks = BINS + max_items / CHUNK_ITEMS;
        let mut bins = Self {
            heads: vec![0; BINS],
            buffers: vec![ItemLine::default(); BINS],
            pool: ItemLines::zeroed(chunks * (CHUNK_ITEMS / LINE_ITEMS))?,
            before: vec![NO_CHUNK; chunks],
            free: 0,
            items: 0,
            max_items: max_items / CHUNK_ITEMS * CHUNK_ITEMS,
        };
        bins.clear();
        Some(bins)
    }

    /// Forgets all items.
    fn clear(&mut self) {
        for (bin, head) in self.heads.iter_mut().enumerate() {
            *head = (bin * CHUNK_ITEMS) as u32;
        }
        // Those of later chunks are written when the chunk is given out.
        self.before[..BINS].fill(NO_CHUNK);
        self.free = BINS as u32;
        self.items = 0;
    }

    /// Returns how many more items fit, whatever they are.
    fn room(&self) -> usize {
        self.max_items - self.items
    }

    /// Bins the items that fit and returns the rest.
    fn take<'a>(&mut self, items: &'a [u32]) -> &'a [u32] {
        let (mine, rest) = items.split_at(items.len().min(self.room()));
        self.items += mine.len();
        let Self { heads, buffers, pool, before, free, .. } = self;
        partition(mine, BIN_BITS, CHUNK_ITEMS, heads, buffers, pool, |full| {
            let next = *free;
            *free += 1;
            before[next as usize] = full;
            next
        });
        rest
    }

    /// Calls `visit` with the items of `bin`, some at a time.
    fn for_each_slice(&self, bin: usize, mut visit: impl FnMut(&[u32])) {
        let head = self.heads[bin] as usize;
        visit(&self.buffers[bin].0[..head % LINE_ITEMS]);
        let mut chunk = head / CHUNK_ITEMS;
        let mut lines = chunk * CHUNK_ITEMS / LINE_ITEMS..head / LINE_ITEMS;
        loop {
            for line in &self.pool[lines] {
                visit(&line.0);
            }
            match self.before[chunk] {
                NO_CHUNK => return,
                before => chunk = before as usize,
            }
            let first = chunk * CHUNK_ITEMS / LINE_ITEMS;
            lines = first..first + CHUNK_ITEMS / LINE_ITEMS;
        }
    }
}

impl std::fmt::Debug for Bins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bins").field("items", &self.items).finish_non_exhaustive()
    }
}
