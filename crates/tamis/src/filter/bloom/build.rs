//! Builds a filter from many items at once, on one or more threads.
//!
//! In a filter larger than the caches, each single insert waits for a random cache line. A core can
//! wait for only a few cache lines at the same time. To avoid random accesses, `build` first
//! collects the hashes in bins (`batch/bins.rs`), with one bin for each part of the filter.
//! Usually, `build` collects as many hashes as the filter has words. After collecting hashes,
//! `build` reads each part of the filter once, in order. While a part is in the L2 cache, `build`
//! inserts all hashes of the bin of this part.
//!
//! Bits only change from 0 to 1, so the order of the inserts does not matter. The bytes of the
//! built filter are the same as after inserting the items one by one.

use std::num::NonZero;

use crate::arch;
use crate::batch::bins::{self, Bins, THREAD_ITEMS};
use crate::batch::chunks::CHUNK;
use crate::filter::Insert as _;
use crate::filter::bloom::filter::Bloom;
use crate::hash::Hasher;
use crate::item::Item;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::{Plan, PlanError};
use crate::strategy::block_rules::split_block;

impl Bloom {
    /// Builds a filter of all `items` on up to `threads` threads. The bytes of the filter do not
    /// depend on the number of threads.
    ///
    /// For a filter larger than the caches, `build` takes about half the time of inserting the
    /// items one by one. Several threads, up to 64, take less time than one thread. The collected
    /// hashes take as much memory as the filter, but at least 8 MiB and at most 256 MiB. Each
    /// thread takes up to 5 MiB in addition to the hashes. If the memory for the hashes cannot be
    /// allocated, or the filter is small, `build` inserts the items one by one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_plan`](Self::from_plan).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::num::NonZero;
    /// use tamis::{Bloom, Hasher, Kind, Plan};
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
        let mut built = Self::from_plan(plan, hasher)?;
        let words = built.words_mut();
        let threads = threads.get().min(items.len() / THREAD_ITEMS).clamp(1, MAX_THREADS);
        let from_bytes = if threads == 1 { PARTS_FROM_BYTES } else { THREADS_FROM_BYTES };
        // If there are fewer items than cache lines of the filter, a pass over the whole filter
        // also reads lines without new items.
        let by_parts = size_of_val(words) >= from_bytes && items.len() >= words.len() / 8;
        let mut waiting = if by_parts { room_for(words.len(), threads) } else { Vec::new() };
        if waiting.is_empty() {
            let (mut hashes, mut answers) = ([0; CHUNK], [0; CHUNK / 64]);
            for items in items.chunks(CHUNK) {
                let hashes = &mut hashes[..items.len()];
                I::hash_each(items, &hasher, hashes);
                built.insert_hashes(hashes, &mut answers[..items.len().div_ceil(64)]);
            }
        } else {
            fill_by_parts(words, part_log(words.len()), &hasher, items, &mut waiting);
        }
        Ok(built)
    }
}

/// The collected hashes, in one bin for each part of the filter. The buffer of a bin has four cache
/// lines. A buffer of one line would be full after every eighth hash, so the CPU would often
/// mispredict the branch for a full buffer. With a buffer of one line, an item took one nanosecond
/// longer than with four lines.
type Hashes = Bins<u64, 32>;

/// The number of hashes of one part that are adjacent in memory, in a chunk of 4 KiB.
const CHUNK_HASHES: usize = 512;

/// The minimum size of a filter that one thread builds in parts. A filter below `PARTS_FROM_BYTES`
/// fits in the last-level cache. Building a filter of 13 MB in parts took 1.3 times as long as
/// inserting the items one by one. Building a filter of 25 MB in parts took half as long as
/// inserting the items one by one.
const PARTS_FROM_BYTES: usize = 16 << 20;

/// The minimum size of a filter that several threads build. For a filter below
/// `THREADS_FROM_BYTES`, one thread inserts all items before a second thread has started.
const THREADS_FROM_BYTES: usize = 1 << 20;

/// The maximum number of threads. More than `MAX_THREADS` threads would only compete for memory
/// bandwidth.
const MAX_THREADS: usize = 64;

/// The minimum and the maximum of the number of hashes that all threads together collect. The
/// collected hashes take 8 MiB to 256 MiB.
const WAITING: std::ops::RangeInclusive<usize> = 1 << 20..=1 << 25;

/// The logarithm of the number of blocks in a part. A part takes 256 KiB, which is half the L2
/// cache of small CPUs.
const PART_LOG: u32 = 12;

/// The maximum number of parts. The buffers of more than `MAX_PARTS` parts would not fit in the L2
/// cache.
const MAX_PARTS: usize = 1024;

/// Returns the logarithm of the number of blocks in a part.
fn part_log(len_words: usize) -> u32 {
    let least = (len_words / split_block::WORDS).div_ceil(MAX_PARTS);
    PART_LOG.max(least.next_power_of_two().ilog2())
}

/// Allocates the bins of each thread. Returns no bins if there is not enough memory.
fn room_for(len_words: usize, threads: usize) -> Vec<Hashes> {
    let parts = (len_words / split_block::WORDS).div_ceil(1 << part_log(len_words));
    let share = len_words.clamp(*WAITING.start(), *WAITING.end()) / threads;
    (0..threads).map_while(|_| Hashes::new(parts, share, CHUNK_HASHES)).collect()
}

/// Sets the bits of all items in `words`, which are zero, in parts of 2^`part_log` blocks.
fn fill_by_parts<I: Item + Sync>(
    words: &mut [u64],
    part_log: u32,
    hasher: &Hasher,
    items: &[I],
    waiting: &mut [Hashes],
) {
    let blocks = words.len() / split_block::WORDS;
    let part_words = split_block::WORDS << part_log;
    let wait = |waiting: &mut Hashes, items: &[I]| {
        let mut hashes = [0; CHUNK];
        for items in items.chunks(CHUNK) {
            let hashes = &mut hashes[..items.len()];
            I::hash_each(items, hasher, hashes);
            waiting.put(hashes.iter().map(|&hash| {
                let block = split_block::block(hash, blocks);
                (block >> part_log, split_block::hash_in_part(hash, block, part_log))
            }));
        }
    };
    let insert = arch::kernels().insert_512;
    let mut is_fresh = true;
    let mut rest = items;
    while !rest.is_empty() {
        rest = bins::deal(waiting, rest, wait);
        let threads = waiting.len();
        bins::apply(waiting, threads, words.chunks_mut(part_words), |part, hashes| {
            let insert_into = |part: &mut [u64]| {
                let mut answers = [0; CHUNK_HASHES / 64];
                hashes.for_each_slice(|hashes, _| {
                    insert(part, hashes, &mut answers[..hashes.len().div_ceil(64)]);
                });
            };
            if !is_fresh {
                read_in(part);
            }
            if part.len() == part_words {
                insert_into(part);
            } else {
                // The last part may be shorter than the other parts. The kernel maps a hash to a
                // block by the length of the part, so a short part would give wrong blocks. Before
                // its hashes are inserted, the last part is copied to a part of full length.
                let mut whole = vec![0; part_words];
                let (used, _) = whole.split_at_mut(part.len());
                used.copy_from_slice(part);
                insert_into(&mut whole);
                part.copy_from_slice(&whole[..part.len()]);
            }
        });
        is_fresh = false;
    }
}

/// Reads `part` into the caches. The CPU prefetches a sequential read, which takes half the time of
/// prefetching the cache line of each item. Memory that was never written must not be read: the
/// operating system would map each page twice, once for the read and once for the write.
fn read_in(part: &[u64]) {
    std::hint::black_box(part.iter().step_by(split_block::WORDS).fold(0, |all, word| all | word));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Plan;
    use crate::plan::kind::Kind;

    fn one_by_one(plan: &Plan, items: &[u64]) -> Bloom {
        let mut one_by_one = Bloom::from_plan(plan, Hasher::xxh3(5)).unwrap();
        items.iter().for_each(|item| {
            one_by_one.insert(item);
        });
        one_by_one
    }

    fn by_parts(plan: &Plan, items: &[u64], part_log: u32, shares: &[usize]) -> Bloom {
        let mut built = Bloom::from_plan(plan, Hasher::xxh3(5)).unwrap();
        let words = built.words_mut();
        let parts = (words.len() / split_block::WORDS).div_ceil(1 << part_log);
        let mut waiting: Vec<_> =
            shares.iter().map(|&share| Hashes::new(parts, share, CHUNK_HASHES).unwrap()).collect();
        fill_by_parts(words, part_log, &Hasher::xxh3(5), items, &mut waiting);
        built
    }

    #[test]
    fn any_number_of_threads_builds_the_same_bytes() {
        // The cases have sizes below and above the limits for building a filter in parts, on one
        // thread and on several threads.
        for (capacity, threads) in [(100_000, 2), (1_200_001, 2), (1_200_001, 64), (14_000_001, 1)]
        {
            let items: Vec<u64> = (0..800_000).map(|i| i * 77).collect();
            let plan = Plan::for_kind(Kind::SplitBlock, capacity, 0.01).unwrap();
            let one_by_one = one_by_one(&plan, &items);
            let threads = NonZero::new(threads).unwrap();
            let built = Bloom::build(&plan, Hasher::xxh3(5), &items, threads).unwrap();
            assert_eq!(built, one_by_one, "{capacity} on {threads} threads");
        }
    }

    #[test]
    fn several_rounds_of_parts_build_the_same_bytes() {
        let plan = Plan::for_kind(Kind::SplitBlock, 300_001, 0.01).unwrap();
        let step = |step: u64| (0..700_000).map(|i| i / 3 * step).collect::<Vec<u64>>();
        for items in [step(77), step(0), [step(0), step(1)].concat()] {
            let one_by_one = one_by_one(&plan, &items);
            assert_eq!(by_parts(&plan, &items, 8, &[1 << 17, 1 << 16, 1 << 15]), one_by_one);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn parts_of_any_size_build_the_bytes_of_one_item_after_the_other(
            capacity in 1_u64..20_000,
            items in prop::collection::vec(any::<u64>(), 0..5000),
            mask: u64,
            part_log in 1_u32..12,
            chunks in 1_usize..12,
        ) {
            let items: Vec<u64> = items.iter().map(|item| item & mask).collect();
            let plan = Plan::for_kind(Kind::SplitBlock, capacity, 0.01).unwrap();
            let built = by_parts(&plan, &items, part_log, &[chunks * CHUNK_HASHES]);
            prop_assert_eq!(built, one_by_one(&plan, &items));
        }
    }

    #[test]
    fn parts_fit_the_l2_cache_up_to_the_maximum_number_of_parts() {
        for (mebibytes, part_kibibytes) in
            [(1, 256), (32, 256), (256, 256), (257, 512), (5000, 8192)]
        {
            let part_log = part_log((mebibytes << 20) / size_of::<u64>());
            assert_eq!(64 << part_log, part_kibibytes << 10, "{mebibytes} MiB");
        }
    }

    #[test]
    fn building_from_nothing_gives_an_empty_filter() {
        let plan = Plan::for_kind(Kind::SplitBlock, 2_000_000, 0.01).unwrap();
        let four = NonZero::new(4).unwrap();
        let built = Bloom::build::<&str>(&plan, Hasher::default(), &[], four).unwrap();
        assert_eq!(built.fill(), 0.0);
    }
}
