//! Bloom filters into which several threads insert at the same time.

use std::ops::Range;

use crate::batch::answers::{Answers, check_words};
#[cfg(all(feature = "rayon", not(loom)))]
use crate::bits::Bitmap;
use crate::bits::{AtomicBitmap, Bits, Word as _};
use crate::filter::bloom::filter::BloomFilter;
use crate::filter::{Clear, Insert, Merge, MergeError};
use crate::item::Item;
use crate::strategy::{SplitBlock, Strategy};

/// The default Bloom filter for inserts by several threads. Insert methods take `&self`.
///
/// The filter consists of up to 256 parts, and an insert locks only one part, so writers seldom wait
/// for each other. Readers take no lock. If several threads insert the same new item at the same
/// time, exactly one insert returns true. The locks take up to 16 KiB in addition to the bits.
///
/// Batches of at least some thousand items are fastest, because the filter sorts the items of a
/// large batch before setting bits. A sorted batch has the same answers as inserts of the items in
/// order. When the call for a batch returns, all items of the batch are inserted. Each thread takes
/// at most 1.6 MB for a batch in progress.
///
/// Threads share the filter by reference or in an `Arc`. **A clone is an independent copy**: an
/// insert into a clone does not change the original. `clone` copies the bits while other threads
/// insert. The copy contains every item whose insert returned before the call of `clone`.
/// [`into_owned`](BloomFilter::into_owned) converts the filter or its copy into a
/// [`Bloom`](crate::Bloom).
///
/// # Examples
///
/// ```
/// use tamis::SharedBloom;
///
/// let seen = SharedBloom::for_items(100_000, 0.01)?;
/// let items: Vec<u64> = (0..100_000).collect();
/// std::thread::scope(|threads| {
///     for items in items.chunks(25_000) {
///         let seen = &seen;
///         threads.spawn(move || seen.insert_all(items));
///     }
/// });
/// assert!(seen.contains_all(&items));
/// // After all threads have finished, convert the filter for a single owner, without a copy.
/// let seen = seen.into_owned();
/// assert!(seen.contains(&99_999_u64));
/// # Ok::<(), tamis::PlanError>(())
/// ```
pub type SharedBloom = BloomFilter<SplitBlock, AtomicBitmap>;

#[cfg(not(loom))]
impl<S: Strategy> BloomFilter<S> {
    /// Converts the filter into a filter that several threads can share, whose insert methods take
    /// `&self`. Copies no bits.
    pub fn into_shared(self) -> BloomFilter<S, AtomicBitmap> {
        let Self { plan, strategy, hasher, bits } = self;
        BloomFilter { plan, strategy, hasher, bits: bits.into() }
    }
}

#[cfg(not(loom))]
impl<S: Strategy> BloomFilter<S, AtomicBitmap> {
    /// Converts the filter into a filter with a single owner, whose single inserts are faster than
    /// in a shared filter. Copies no bits.
    pub fn into_owned(self) -> BloomFilter<S> {
        let Self { plan, strategy, hasher, bits } = self;
        BloomFilter { plan, strategy, hasher, bits: bits.into() }
    }
}

#[cfg(all(feature = "rayon", not(loom)))]
impl<S: Strategy> BloomFilter<S> {
    /// Runs `fill` on the filter in its shared form. The bits are moved back even if `fill` panics,
    /// because a filter must always have the bits of its plan.
    pub(crate) fn while_shared(&mut self, fill: impl FnOnce(&BloomFilter<S, AtomicBitmap>)) {
        struct Back<'a, S: Strategy> {
            shared: Option<BloomFilter<S, AtomicBitmap>>,
            owner: &'a mut BloomFilter<S>,
        }

        impl<S: Strategy> Drop for Back<'_, S> {
            fn drop(&mut self) {
                if let Some(shared) = self.shared.take() {
                    *self.owner = shared.into_owned();
                }
            }
        }

        let (plan, strategy, hasher) = (self.plan, self.strategy, self.hasher);
        let bits = std::mem::replace(&mut self.bits, Bitmap::empty());
        let shared = BloomFilter { plan, strategy, hasher, bits: bits.into() };
        let back = Back { shared: Some(shared), owner: self };
        if let Some(shared) = &back.shared {
            fill(shared);
        }
    }
}

impl<S: Strategy> Insert for &BloomFilter<S, AtomicBitmap> {
    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.strategy.insert_shared(&self.bits, hash)
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        check_words(answers, hashes.len());
        let copy = |range: Range<usize>, to: &mut [u64]| to.copy_from_slice(&hashes[range]);
        self.strategy.insert_each_shared(&self.bits, hashes.len(), copy, answers);
    }

    // This method passes the whole batch to the strategy at once, instead of a thousand items at a
    // time. The longer the batch, the more items the default filter inserts under one lock.
    fn insert_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
        let answers = answers.reset(items.len());
        let hash =
            |range: Range<usize>, to: &mut [u64]| I::hash_each(&items[range], &self.hasher, to);
        self.strategy.insert_each_shared(&self.bits, items.len(), hash, answers);
    }

    fn insert_all<I: Item>(&mut self, items: &[I]) -> usize {
        let mut answers = Answers::new();
        Insert::insert_each(self, items, &mut answers);
        answers.count_ones()
    }
}

impl<S: Strategy> Insert for BloomFilter<S, AtomicBitmap> {
    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        Insert::insert_hash(&mut &*self, hash)
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        Insert::insert_hashes(&mut &*self, hashes, answers);
    }
}

impl<S: Strategy> Clear for BloomFilter<S, AtomicBitmap> {
    fn clear(&mut self) {
        self.bits.update_each(|_, _| 0);
    }
}

impl<S: Strategy, C: Bits> Merge<BloomFilter<S, C>> for BloomFilter<S, AtomicBitmap> {
    /// Merges the bits of the other filter. The merge needs exclusive access, because an insert by
    /// another thread writes whole words and would overwrite merged bits.
    fn merge(&mut self, other: &BloomFilter<S, C>) -> Result<(), MergeError> {
        MergeError::check_layouts(self.layout(), other.layout())?;
        let other = other.bits.words();
        self.bits.update_each(|i, word| word | other[i].get());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filter::bloom::Bloom;
    use crate::hash::Hasher;
    use crate::plan::Plan;
    use crate::plan::kind::Kind;

    /// Inserts the same batches into a shared and an owned filter with `blocks` blocks, and
    /// compares the answers and the bits.
    fn assert_same<'a>(blocks: u64, batches: impl IntoIterator<Item = &'a [u64]>) {
        let plan =
            Plan::from_parts(Kind::SplitBlock, 1, 0.5, blocks * 512, crate::Geometry::Probes(8))
                .unwrap();
        let shared = SharedBloom::from_plan(&plan, Hasher::default()).unwrap();
        let mut owned = Bloom::from_plan(&plan, Hasher::default()).unwrap();
        for hashes in batches {
            let mut found = vec![7; hashes.len().div_ceil(64)];
            let mut expected = found.clone();
            (&shared).insert_hashes(hashes, &mut found);
            owned.insert_hashes(hashes, &mut expected);
            assert_eq!(found, expected, "{} hashes, {blocks} blocks", hashes.len());
        }
        let is_same =
            |(shared, owned): (&crate::arch::sync::AtomicU64, &u64)| shared.get() == *owned;
        assert!(shared.bits().words().iter().zip(owned.bits().words()).all(is_same));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]

        #[test]
        fn a_shared_batch_has_the_answers_and_bytes_of_an_owned_one(
            blocks in prop_oneof![1_u64..20, 200_u64..300, 1_u64..5000],
            lens in prop::collection::vec(0_usize..6000, 1..4),
            seed: u64,
            // The batch has fewer different hashes than items, or all items are in the first
            // blocks, or all items are in the last blocks.
            kept in prop_oneof![Just(u64::MAX), Just(0xfff0_0000_0000_000f)],
            fixed in prop_oneof![Just(0), Just(u64::MAX << 60)],
            skew in prop_oneof![Just(0), 0_u32..16],
        ) {
            let hashes: Vec<u64> = (0..lens.iter().sum::<usize>() as u64)
                .map(|i| Hasher::xxh3(seed).hash_item(&i) & kept)
                .map(|hash| hash >> skew | fixed)
                .collect();
            let mut rest = &hashes[..];
            let batches = lens.iter().map(|&len| rest.split_off(..len).expect("the lengths add up to all hashes"));
            assert_same(blocks, batches);
        }
    }

    /// The parts of the filter under one lock are so large that a buffered entry has too few bits
    /// for the position in the whole batch.
    #[cfg(not(miri))]
    #[test]
    fn a_long_batch_into_a_large_filter_is_taken_in_parts() {
        let hashes: Vec<u64> = (0..600_000_u64)
            .map(|i| Hasher::default().hash_item(&(i % 400_000)))
            // One in a thousand hashes selects any block, and the other hashes select only a few
            // blocks. The filter is larger than the items of the test need.
            .map(|hash| if hash % 1024 == 0 { hash } else { hash >> 12 })
            .collect();
        assert_same((1 << 22) + 5, [&hashes[..]]);
    }
}
