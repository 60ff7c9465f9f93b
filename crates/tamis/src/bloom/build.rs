//! Filling a filter from many items at once, on one thread or several.
//!
//! Threads own ranges of blocks, so none of them ever waits for another's cache line and no insert is
//! atomic. Each hashes a share of the items, keeps the hashes that fall into its own range and hands
//! the others to their owners, a buffer at a time. Bits are only ever set, so the order in which
//! buffers arrive does not matter: the bytes are those of one thread.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use super::{Bloom, check_kind};
use crate::arch;
use crate::bits::{AtomicBitmap, Bitmap, Bits as _, BitsMut};
use crate::filter::{CHUNK, Filter as _, Insert as _};
use crate::hash::Hasher;
use crate::item::Item;
use crate::plan::{Plan, PlanError};
use crate::strategy::sealed::Crate;
use crate::strategy::{SplitBlock, Strategy};
use crate::sync::AtomicU64;

impl<I: Item, S: Strategy, B: BitsMut> Extend<I> for Bloom<S, B> {
    /// Inserts every item, in batches.
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        let hasher = self.hasher();
        let mut hashes = [0; CHUNK];
        let mut answers = [0; CHUNK / 64];
        let mut items = items.into_iter().map(|item| hasher.hash_item(&item)).peekable();
        while items.peek().is_some() {
            let mut len = 0;
            // The slots first: an iterator asked past the last slot would lose its item.
            for (slot, hash) in hashes.iter_mut().zip(&mut items) {
                *slot = hash;
                len += 1;
            }
            self.insert_hashes(&hashes[..len], &mut answers[..len.div_ceil(64)]);
        }
    }
}

impl Bloom<SplitBlock, Bitmap> {
    /// Builds a filter of all `items` on up to `threads` threads. The bytes do not depend on their
    /// number.
    ///
    /// Cost: the memory limit of one core for each thread once the filter is larger than the caches;
    /// a small filter is built on one thread, and none on more than 64. Beside the filter each of `t`
    /// threads takes `t` + 4 buffers of 72 KiB: 7 MiB for eight.
    ///
    /// # Errors
    ///
    /// As for [`Bloom::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::num::NonZero;
    /// use tamis::{Bloom, Filter, Hasher, Kind, Plan};
    ///
    /// let items: Vec<u64> = (0..10_000).collect();
    /// let plan = Plan::for_kind(Kind::SplitBlock, 10_000, 0.01)?;
    /// let two = NonZero::new(2).unwrap();
    /// let seen = Bloom::build(&plan, Hasher::default(), &items, two)?;
    /// assert!(seen.contains(&9_999_u64));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn build<I: Item + Sync>(
        plan: &Plan,
        hasher: Hasher,
        items: &[I],
        threads: NonZero<usize>,
    ) -> Result<Self, PlanError> {
        check_kind::<SplitBlock>(plan)?;
        let bits = AtomicBitmap::zeroed(plan.bits())?;
        let small = plan.bytes() < THREADS_FROM_BYTES;
        let threads = if small { 1 } else { threads.get().min(MAX_THREADS) };
        fill(bits.words(), &hasher, items, threads);
        Ok(Self {
            plan: *plan,
            strategy: SplitBlock::of(plan, Crate),
            hasher,
            bits: bits.into_owned(),
        })
    }
}

/// A smaller filter is filled before a second thread has started.
const THREADS_FROM_BYTES: u64 = 1 << 20;

/// More would wait for memory together; and each has at least a block of such a filter.
const MAX_THREADS: usize = 64;

/// Hashes handed over at a time: large enough that the hand-over costs nothing an item.
const BUFFER: usize = 8192;

/// Buffers that wait for an owner at most, which bounds the memory: `t` + 4 a thread in all.
const QUEUE: usize = 4;

/// Sets the bits of all items in `words`, which nobody else writes.
fn fill<I: Item + Sync>(words: &[AtomicU64], hasher: &Hasher, items: &[I], threads: usize) {
    let starts = range_starts(words.len() / SplitBlock::WORDS, threads);
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..threads).map(|_| sync_channel::<Vec<u64>>(QUEUE)).unzip();
    let share = items.len().div_ceil(threads).max(1);
    let workers = receivers.into_iter().enumerate().map(|(owner, received)| Worker {
        words,
        starts: &starts,
        owner,
        received,
        senders: senders.clone(),
    });
    let workers: Vec<Worker> = workers.collect();
    // Each worker has its own senders; these would keep all of them waiting for more.
    drop(senders);
    thread::scope(|scope| {
        for worker in workers {
            let first = (worker.owner * share).min(items.len());
            let items = &items[first..(first + share).min(items.len())];
            scope.spawn(move || worker.run(hasher, items));
        }
    });
}

/// Returns the smallest hash of each thread's range of blocks.
fn range_starts(blocks: usize, threads: usize) -> Vec<u64> {
    let first_hash = |block: usize| ((block as u128) << 64).div_ceil(blocks as u128) as u64;
    (0..threads)
        .map(|thread| first_hash((blocks as u128 * thread as u128 / threads as u128) as usize))
        .collect()
}

/// One thread: the owner of a range of blocks.
struct Worker<'a> {
    words: &'a [AtomicU64],
    starts: &'a [u64],
    owner: usize,
    received: Receiver<Vec<u64>>,
    senders: Vec<SyncSender<Vec<u64>>>,
}

impl Worker<'_> {
    fn run<I: Item>(self, hasher: &Hasher, items: &[I]) {
        let mut hashes = [0; CHUNK];
        if self.starts.len() == 1 {
            for items in items.chunks(CHUNK) {
                let hashes = &mut hashes[..items.len()];
                I::hash_each(items, hasher, hashes);
                arch::insert_512_shared(self.words, hashes);
            }
            return;
        }
        let mut buffers = vec![Vec::with_capacity(BUFFER + CHUNK); self.starts.len()];
        for items in items.chunks(CHUNK) {
            let hashes = &mut hashes[..items.len()];
            I::hash_each(items, hasher, hashes);
            for (owner, buffer) in buffers.iter_mut().enumerate() {
                self.select(owner, hashes, buffer);
                if buffer.len() >= BUFFER {
                    self.hand_over(owner, buffer);
                }
            }
        }
        for (owner, buffer) in buffers.iter_mut().enumerate() {
            self.hand_over(owner, buffer);
        }
        let Self { words, received, senders, .. } = self;
        drop(senders);
        for hashes in received {
            arch::insert_512_shared(words, &hashes);
        }
    }

    /// Appends the hashes that fall into `owner`'s range, without a branch on any of them.
    fn select(&self, owner: usize, hashes: &[u64], buffer: &mut Vec<u64>) {
        let first = self.starts[owner];
        // The last range ends at 2⁶⁴, which wraps to the right number.
        let span = self.starts.get(owner + 1).unwrap_or(&0).wrapping_sub(first).wrapping_sub(1);
        let old = buffer.len();
        buffer.resize(old + hashes.len(), 0);
        let mut len = old;
        for &hash in hashes {
            buffer[len] = hash;
            len += usize::from(hash.wrapping_sub(first) <= span);
        }
        buffer.truncate(len);
    }

    /// Empties `buffer` into `owner`'s range, by its thread.
    fn hand_over(&self, owner: usize, buffer: &mut Vec<u64>) {
        if owner == self.owner {
            arch::insert_512_shared(self.words, buffer);
            buffer.clear();
            return;
        }
        let mut full = std::mem::replace(buffer, Vec::with_capacity(BUFFER + CHUNK));
        // While the other has too much to do, take what it has for us: neither can block the other.
        while let Err(error) = self.senders[owner].try_send(full) {
            match error {
                TrySendError::Full(hashes) => full = hashes,
                TrySendError::Disconnected(_) => unreachable!("an owner outlives its senders"),
            }
            match self.received.try_recv() {
                Ok(hashes) => arch::insert_512_shared(self.words, &hashes),
                Err(_) => thread::yield_now(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::strategy::Kind;

    #[test]
    fn any_number_of_threads_builds_the_same_bytes() {
        let items: Vec<u64> = (0..300_000).map(|i| i * 77).collect();
        // 1.5 MB and no power of two, so that ranges do not end where the filter's parts would.
        let plan = Plan::for_kind(Kind::SplitBlock, 1_200_001, 0.01).unwrap();
        let mut one_by_one = Bloom::<SplitBlock>::new(&plan, Hasher::xxh3(5)).unwrap();
        items.iter().for_each(|item| {
            one_by_one.insert(item);
        });
        for threads in [1, 2, 3, 7, 64] {
            let threads = NonZero::new(threads).unwrap();
            let built = Bloom::build(&plan, Hasher::xxh3(5), &items, threads).unwrap();
            assert_eq!(built, one_by_one, "{threads} threads");
        }
    }

    #[test]
    fn building_from_nothing_gives_an_empty_filter() {
        let plan = Plan::for_kind(Kind::SplitBlock, 2_000_000, 0.01).unwrap();
        let four = NonZero::new(4).unwrap();
        let built = Bloom::build::<&str>(&plan, Hasher::default(), &[], four).unwrap();
        assert_eq!(built.fill(), 0.0);
    }

    #[test]
    fn an_iterator_of_any_length_loses_no_item() {
        for len in [0, 1, 63, 64, 1023, 1024, 1025, 5000] {
            let mut seen: Bloom = Bloom::for_items(5000, 0.001).unwrap();
            seen.extend(0..len as u64);
            assert!((0..len as u64).all(|item| seen.contains(&item)), "{len}");
        }
    }

    #[test]
    fn ranges_of_blocks_start_at_their_first_hash() {
        for (blocks, threads) in [(7, 3), (1 << 20, 2), (12345, 64), (5, 5)] {
            for (thread, start) in range_starts(blocks, threads).into_iter().enumerate() {
                let first = blocks * thread / threads;
                assert_eq!(SplitBlock::block(start, blocks), first);
                assert!(first == 0 || SplitBlock::block(start - 1, blocks) == first - 1);
            }
        }
    }
}
