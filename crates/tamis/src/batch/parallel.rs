//! Batches on all processors, with rayon (feature `rayon`).

use rayon::iter::{
    IndexedParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator,
};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use crate::batch::answers::Answers;
use crate::batch::chunks::each_chunk;
use crate::bits::{AtomicBitmap, Bitmap};
use crate::filter::bloom::BloomFilter;
use crate::filter::{Filter, Insert};
use crate::item::Item;
use crate::strategy::Strategy;

/// The number of items that a thread takes at a time. The number is a multiple of 64, so that tasks
/// share no word of answers.
const TASK_ITEMS: usize = 8192;

/// Tests many items on the threads of rayon's pool.
pub(crate) fn contains_each<F: Filter + Sync, I: Item + Sync>(
    filter: &F,
    items: &[I],
    answers: &mut Answers,
) {
    let (hasher, words) = (filter.hasher(), answers.reset(items.len()));
    let tasks = items.par_chunks(TASK_ITEMS).zip(words.par_chunks_mut(TASK_ITEMS / 64));
    tasks.for_each(|(items, words)| {
        each_chunk(&mut &*filter, hasher, items, words, |filter, hashes, words| {
            filter.contains_hashes(hashes, words);
        });
    });
}

/// Hashes that a task has collected but not yet inserted.
struct PendingInserts<'a, S> {
    filter: &'a BloomFilter<S, AtomicBitmap>,
    hashes: Vec<u64>,
}

impl<S: Strategy> PendingInserts<'_, S> {
    fn insert(&mut self) {
        let mut filter = self.filter;
        let mut answers = [0; TASK_ITEMS / 64];
        let words = &mut answers[..self.hashes.len().div_ceil(64)];
        Insert::insert_hashes(&mut filter, &self.hashes, words);
        self.hashes.clear();
    }
}

impl<I: Item + Send, S: Strategy> ParallelExtend<I> for &BloomFilter<S, AtomicBitmap> {
    /// Inserts every item on the threads of rayon's pool, in batches.
    fn par_extend<T: IntoParallelIterator<Item = I>>(&mut self, items: T) {
        let filter = *self;
        let hasher = filter.hasher();
        let pending = || PendingInserts { filter, hashes: Vec::new() };
        let items = items.into_par_iter().fold(pending, |mut pending, item| {
            pending.hashes.push(hasher.hash_item(&item));
            if pending.hashes.len() == TASK_ITEMS {
                pending.insert();
            }
            pending
        });
        items.for_each(|mut pending| pending.insert());
    }
}

impl<I: Item + Send, S: Strategy> ParallelExtend<I> for BloomFilter<S, AtomicBitmap> {
    /// Inserts every item on the threads of rayon's pool, in batches.
    fn par_extend<T: IntoParallelIterator<Item = I>>(&mut self, items: T) {
        (&*self).par_extend(items);
    }
}

impl<I: Item + Send, S: Strategy> ParallelExtend<I> for BloomFilter<S, Bitmap> {
    /// Inserts every item on the threads of rayon's pool, in batches. The bits are shared during
    /// the call, without a copy. The resulting bits do not depend on the number of threads.
    ///
    /// # Panics
    ///
    /// If 16 KiB for locks cannot be allocated, or the code of an item panics. After a panic, the
    /// filter still contains the items from before the call, but any of the new items may be
    /// missing.
    fn par_extend<T: IntoParallelIterator<Item = I>>(&mut self, items: T) {
        self.while_shared(|mut shared| ParallelExtend::par_extend(&mut shared, items));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::bloom::Bloom;
    use crate::strategy::{Classic, SplitBlock};
    use crate::{AnyFilter, Hasher, Kind, Plan};

    #[test]
    fn parallel_inserts_set_the_same_bits_as_one_thread() {
        fn check<S: Strategy>() {
            let items: Vec<u64> = (0..50_001).collect();
            let shared = BloomFilter::<S, AtomicBitmap>::builder(50_001, 0.01);
            let builder = BloomFilter::<S>::builder(50_001, 0.01);
            let mut one = builder.build().unwrap();
            one.extend(&items);
            let (mut all, mut shared) = (builder.build().unwrap(), shared.build().unwrap());
            all.par_extend(&items);
            shared.par_extend(items.clone());
            assert_eq!(all, one);
            assert_eq!(shared.into_owned(), one);
        }
        check::<SplitBlock>();
        check::<Classic>();
    }

    #[test]
    fn a_panic_leaves_the_filter_whole() {
        let mut seen = Bloom::for_items(1_000, 0.01).unwrap();
        seen.insert("before");
        let panics = (0..1_000_u64).into_par_iter().map(|i| {
            assert!(i != 500, "an item that panics");
            i
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            seen.par_extend(panics);
        }));
        assert!(result.is_err() && seen.contains("before") && !seen.is_empty());
    }

    #[test]
    fn every_kind_answers_on_all_threads_as_on_one() {
        let items: Vec<u64> = (0..20_100).collect();
        for kind in Kind::ALL {
            let plan = Plan::for_kind(kind, 20_000, 0.01).unwrap();
            let mut seen = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
            seen.try_insert_all(&items[..10_000]).unwrap();
            let (mut one, mut all) = (Answers::new(), Answers::new());
            seen.contains_each(&items, &mut one);
            seen.par_contains_each(&items, &mut all);
            assert_eq!(all, one, "{kind}");
        }
    }
}
