//! Bins collect the items for each part of a table, so that a part is loaded into the caches once
//! for many items.
//!
//! In a table larger than the caches, each random item waits for a cache line. Therefore items are
//! first sorted by the part of the table that they touch. After sorting, all items of a part are
//! applied together, while the part is in the L2 cache:
//!
//! ```text
//! item → bin → buffer of a few lines → chunk of many buffers → part of the table
//!                    (in cache)             (streamed)            (in cache)
//! ```
//!
//! Each thread fills its own bins. When the bins are full, each thread takes whole parts of the
//! table, and processes the items that all threads have binned for these parts. No two threads
//! write the same data, so no atomic operation is needed. The order of items is lost.
//!
//! Invariant: a bin gets a new chunk only when its last chunk is full. Therefore `n` items fill at
//! most `n / chunk_items` chunks, whatever their distribution over the bins. A pool is always large
//! enough if it has one chunk for each bin plus `n / chunk_items` chunks.

#[cfg(feature = "std")]
use std::sync::Mutex;

use crate::arch::memory::{Integer, Integers};
use crate::arch::partition::partition;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The waiting items of one thread, sorted by bin. A bin writes `BUFFER` items to memory at a time.
///
/// A larger buffer causes fewer mispredicted branches than a smaller buffer. With smaller buffers,
/// the buffers of more bins fit in the caches.
pub(crate) struct Bins<T, const BUFFER: usize> {
    heads: Vec<u32>,
    buffers: Integers<T>,
    pool: Integers<T>,
    // For each chunk, the chunk that its bin filled before, or `NO_CHUNK`.
    before: Vec<u32>,
    chunk_items: usize,
    free: u32,
    items: usize,
    max_items: usize,
}

const NO_CHUNK: u32 = u32::MAX;

/// The minimum number of items for a second thread. With fewer items than this minimum, a second
/// thread costs more time than the thread saves.
pub(crate) const THREAD_ITEMS: usize = 1 << 18;

impl<T: Integer, const BUFFER: usize> Bins<T, BUFFER> {
    /// Creates `bins` bins for `max_items` items. The items of a bin are stored in chunks of
    /// `chunk_items`. Each bin takes memory for one additional chunk. Returns `None` if the memory
    /// cannot be allocated.
    ///
    /// # Panics
    ///
    /// Panics if `chunk_items` is not a power of two, or is smaller than a buffer.
    pub(crate) fn new(bins: usize, max_items: usize, chunk_items: usize) -> Option<Self> {
        assert!(chunk_items.is_power_of_two() && chunk_items >= BUFFER, "whole buffers");
        let chunks = bins + max_items / chunk_items;
        let mut bins = Self {
            heads: vec![0; bins],
            buffers: Integers::zeroed(bins * BUFFER)?,
            pool: Integers::zeroed(chunks * chunk_items)?,
            before: vec![NO_CHUNK; chunks],
            chunk_items,
            free: 0,
            items: 0,
            max_items: max_items / chunk_items * chunk_items,
        };
        bins.clear();
        Some(bins)
    }

    /// Returns the number of waiting items of this thread.
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// Returns how many additional items fit, whatever their distribution over the bins.
    pub(crate) fn room(&self) -> usize {
        self.max_items - self.items
    }

    /// Adds each item to the bin with the given number.
    ///
    /// # Panics
    ///
    /// Panics if there are more items than [`room`](Self::room), or if a bin does not exist.
    pub(crate) fn put(&mut self, items: impl ExactSizeIterator<Item = (usize, T)>) {
        assert!(items.len() <= self.room(), "more items than there is room for");
        self.items += items.len();
        let Self { heads, buffers, pool, before, chunk_items, free, .. } = self;
        let buffers = buffers.as_chunks_mut::<BUFFER>().0;
        partition(items, *chunk_items, heads, buffers, pool, |full| {
            let next = *free;
            *free += 1;
            before[next as usize] = full;
            next
        });
    }

    /// Calls `visit` with the items of `bin`, at most one chunk for each call. The second argument
    /// of `visit` holds the items of the next call.
    fn for_each_slice(&self, bin: usize, mut visit: impl FnMut(&[T], &[T])) {
        let head = self.heads[bin] as usize;
        let buffered = head % BUFFER;
        // The last chunk of the bin is visited first, up to its last item. The chunks that the bin
        // filled before the last chunk are full.
        let mut chunk = head / self.chunk_items;
        let mut items = &self.pool[chunk * self.chunk_items..head - buffered];
        visit(&self.buffers[bin * BUFFER..][..buffered], items);
        loop {
            let before = self.before[chunk];
            if before == NO_CHUNK {
                return visit(items, &[]);
            }
            chunk = before as usize;
            let ahead = &self.pool[chunk * self.chunk_items..][..self.chunk_items];
            visit(items, ahead);
            items = ahead;
        }
    }

    /// Removes all items.
    fn clear(&mut self) {
        for (bin, head) in self.heads.iter_mut().enumerate() {
            *head = (bin * self.chunk_items) as u32;
        }
        // `put` initializes the entry of each later chunk when a bin gets the chunk.
        let bins = self.heads.len();
        self.before[..bins].fill(NO_CHUNK);
        self.free = bins as u32;
        self.items = 0;
    }
}

/// Calls `take` on this thread for the bins with the most free space, with a share of `items`.
/// Without the standard library there is only one thread. Returns the items that did not fit.
#[cfg(not(feature = "std"))]
pub(crate) fn deal<'a, T: Integer, I, const BUFFER: usize>(
    all: &mut [Bins<T, BUFFER>],
    items: &'a [I],
    take: impl Fn(&mut Bins<T, BUFFER>, &[I]),
) -> &'a [I] {
    let bins = all.iter_mut().max_by_key(|bins| bins.room()).expect("at least one thread has bins");
    let (mine, rest) = items.split_at(items.len().min(bins.room()));
    take(bins, mine);
    rest
}

/// Calls `apply_to` on this thread with each part of a table and the waiting items of the part.
/// Empties the bins at the end.
#[cfg(not(feature = "std"))]
pub(crate) fn apply<T: Integer, P, const BUFFER: usize>(
    all: &mut [Bins<T, BUFFER>],
    _: usize,
    parts: impl Iterator<Item = P>,
    apply_to: impl Fn(P, BinItems<'_, T, BUFFER>),
) {
    for (bin, part) in parts.enumerate() {
        apply_to(part, BinItems { all: &*all, bin });
    }
    for bins in all {
        bins.clear();
    }
}

/// If there are many items, starts a thread for each value of `all`, which calls `take` with its
/// bins and a share of `items`. If there are few items, calls `take` once, on this thread. Returns
/// the items that did not fit.
#[cfg(feature = "std")]
pub(crate) fn deal<'a, T: Integer, I: Sync, const BUFFER: usize>(
    all: &mut [Bins<T, BUFFER>],
    items: &'a [I],
    take: impl Fn(&mut Bins<T, BUFFER>, &[I]) + Sync,
) -> &'a [I] {
    if items.len() < THREAD_ITEMS || all.len() == 1 {
        let bins = all.iter_mut().max_by_key(|bins| bins.room()).expect("bins for a thread");
        let (mine, rest) = items.split_at(items.len().min(bins.room()));
        take(bins, mine);
        return rest;
    }
    let share = items.len().div_ceil(all.len());
    std::thread::scope(|threads| {
        let mut rest = items;
        for bins in all {
            let taken = share.min(bins.room()).min(rest.len());
            let (mine, others) = rest.split_at(taken);
            rest = others;
            let take = &take;
            threads.spawn(move || take(bins, mine));
        }
        rest
    })
}

/// Calls `apply_to` with each part of a table and the waiting items of the part's bin. Empties the
/// bins at the end. The first part belongs to bin 0. Uses up to `threads` threads if there are many
/// items.
#[cfg(feature = "std")]
pub(crate) fn apply<T: Integer, P, const BUFFER: usize>(
    all: &mut [Bins<T, BUFFER>],
    threads: usize,
    parts: impl Iterator<Item = P> + Send,
    apply_to: impl Fn(P, BinItems<'_, T, BUFFER>) + Sync,
) {
    let waiting: usize = all.iter().map(|bins| bins.items).sum();
    let work = Mutex::new(parts.enumerate());
    let next = || work.lock().expect("no thread panics while it holds the lock").next();
    let apply_parts = || {
        while let Some((bin, part)) = next() {
            apply_to(part, BinItems { all: &*all, bin });
        }
    };
    if waiting < THREAD_ITEMS || threads == 1 {
        apply_parts();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(apply_parts);
            }
        });
    }
    for bins in all {
        bins.clear();
    }
}

/// The waiting items of one bin, collected by all threads.
pub(crate) struct BinItems<'a, T, const BUFFER: usize> {
    all: &'a [Bins<T, BUFFER>],
    bin: usize,
}

impl<T: Integer, const BUFFER: usize> BinItems<'_, T, BUFFER> {
    /// Calls `visit` with the items of the bin, at most one chunk for each call. The second
    /// argument of `visit` contains the items of the next call, for prefetching. The second
    /// argument of `visit` is empty if the items of the next call are not known.
    pub(crate) fn for_each_slice(&self, mut visit: impl FnMut(&[T], &[T])) {
        for bins in self.all {
            bins.for_each_slice(self.bin, &mut visit);
        }
    }
}

impl<T, const BUFFER: usize> std::fmt::Debug for Bins<T, BUFFER> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bins").field("items", &self.items).finish_non_exhaustive()
    }
}
