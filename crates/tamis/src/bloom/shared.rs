//! Filters that many threads fill at once.

use super::{Bloom, check_kind};
use crate::bits::AtomicBitmap;
use crate::filter::{Filter, Insert};
use crate::hash::Hasher;
use crate::item::Item;
use crate::layout::Layout;
use crate::plan::{Plan, PlanError};
use crate::strategy::Strategy;
use crate::strategy::sealed::Crate;

impl<S: Strategy> Bloom<S, AtomicBitmap> {
    /// Makes an empty filter that threads insert into through shared references.
    ///
    /// # Errors
    ///
    /// As for [`Bloom::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{AtomicBitmap, Bloom, Filter, Hasher, Plan, SplitBlock};
    ///
    /// let plan = Plan::new(1_000, 0.01)?;
    /// let seen = Bloom::<SplitBlock, AtomicBitmap>::shared(&plan, Hasher::default())?;
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| seen.insert("left"));
    ///     threads.spawn(|| seen.insert("right"));
    /// });
    /// assert!(seen.contains("left") && seen.contains("right"));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn shared(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        check_kind::<S>(plan)?;
        let bits = AtomicBitmap::zeroed(plan.bits())?;
        Ok(Self { plan: *plan, strategy: S::of(plan, Crate), hasher, bits })
    }

    /// Inserts `item` from any thread; true if it is new to the filter.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.strategy.insert_shared(&self.bits, self.hasher.hash_item(item))
    }
}

impl<S: Strategy> Filter for &Bloom<S, AtomicBitmap> {
    fn plan(&self) -> &Plan {
        (**self).plan()
    }

    #[inline]
    fn hasher(&self) -> Hasher {
        (**self).hasher()
    }

    fn layout(&self) -> Layout {
        (**self).layout()
    }

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        (**self).contains_hash(hash)
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        (**self).prefetch_hash(hash);
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        (**self).contains_hashes(hashes, answers);
    }

    fn estimate_items(&self) -> f64 {
        (**self).estimate_items()
    }

    fn estimate_rate(&self) -> f64 {
        (**self).estimate_rate()
    }

    fn fill(&self) -> f64 {
        (**self).fill()
    }
}

/// How many items have their memory asked for before the first of them is set.
const BATCH: usize = 32;

/// Smaller filters lie in the second cache: asking ahead would cost a third more than it saves.
const PREFETCH_FROM_BYTES: u64 = 2 << 20;

impl<S: Strategy> Insert for &Bloom<S, AtomicBitmap> {
    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.strategy.insert_shared(&self.bits, hash)
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        assert_eq!(answers.len(), hashes.len().div_ceil(64), "a word for each 64 hashes");
        let is_large = self.plan.bytes() >= PREFETCH_FROM_BYTES;
        for (word, hashes) in answers.iter_mut().zip(hashes.chunks(64)) {
            // In a register until all 64 are in: a lock waits for every store before it.
            let mut mask = 0;
            for (i, &hash) in hashes.iter().enumerate() {
                if is_large && i % BATCH == 0 {
                    for &hash in hashes[i..].iter().take(BATCH) {
                        self.strategy.prefetch_shared(&self.bits, hash);
                    }
                }
                mask |= u64::from(self.strategy.insert_shared(&self.bits, hash)) << i;
            }
            *word = mask;
        }
    }
}
