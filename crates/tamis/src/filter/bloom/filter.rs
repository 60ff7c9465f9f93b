//! The Bloom filter of any strategy and any storage, and the names of the usual Bloom filters.

use std::fmt;

use crate::batch::answers::check_words;
use crate::bits::{BitView, Bitmap, Bits, BitsMut, NewBits, Pages, Word as _, words_from};
use crate::filter::FilterWords;
use crate::filter::debug::{self, DebugState};
use crate::filter::variant::{Variant, one_run};
use crate::filter::{Clear, Filter, Insert, Merge, MergeError, plan_and_hasher};
use crate::hash::Hasher;
use crate::plan::{Plan, PlanError};
use crate::strategy::{self, Classic, Parquet, SplitBlock, Strategy};

/// The default Bloom filter: [`SplitBlock`] in memory of its own. [`BloomFilter`] documents its
/// methods.
pub type Bloom = BloomFilter<SplitBlock, Bitmap>;

/// A Bloom filter with the fewest bits at low rates, in memory of its own. [`BloomFilter`] documents
/// its methods.
pub type ClassicBloom = BloomFilter<Classic, Bitmap>;

/// A Bloom filter in the layout of Parquet's column filters, in memory of its own. [`BloomFilter`]
/// documents its methods.
pub type ParquetBloom = BloomFilter<Parquet, Bitmap>;

/// A Bloom filter of strategy `S` over bits `B`.
///
/// Programs use the short names [`Bloom`], [`SharedBloom`](crate::SharedBloom), [`ClassicBloom`]
/// and [`ParquetBloom`]. The storage `B` is [`Bitmap`] (owned), [`AtomicBitmap`](crate::AtomicBitmap)
/// (shared by threads) or [`BitView`] (mapped from a file). Answers do not depend on the storage.
/// [`builder`](Self::builder) sets a seed or a key.
///
/// # Examples
///
/// ```
/// use tamis::Bloom;
///
/// let mut seen = Bloom::for_items(1_000_000, 0.01)?;
/// assert!(seen.insert(&42_u64), "new");
/// assert!(!seen.insert(&42_u64), "not new");
/// assert!(seen.contains(&42_u64));
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct BloomFilter<S = SplitBlock, B = Bitmap> {
    pub(super) plan: Plan,
    pub(super) strategy: S,
    pub(super) hasher: Hasher,
    // Invariant: `bits` contains exactly `plan.bits()` bits, rounded up to words. The unused bits
    // of the last word are 0.
    pub(super) bits: B,
}

impl<S: Strategy, B: NewBits> BloomFilter<S, B> {
    /// Creates an empty filter that keeps `rate` until the filter holds `items` distinct items.
    /// `items` is any integer, for example `urls.len()`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough
    /// memory.
    pub fn for_items(items: impl TryInto<u64>, rate: f64) -> Result<Self, PlanError> {
        Self::from_plan(&Plan::for_kind(S::KIND, items, rate)?, Hasher::default())
    }

    /// Creates an empty filter from a plan for this strategy, for example from [`Plan::for_kind`].
    ///
    /// [`Plan::new`] chooses the kind of the filter. For a plan of [`Plan::new`], use
    /// [`AnyFilter::from_plan`](crate::AnyFilter::from_plan).
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the kind of the plan is not the kind of the strategy;
    /// [`PlanError::Memory`] if there is not enough memory.
    pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        Self::from_plan_on(plan, hasher, Pages::Huge)
    }

    /// Creates an empty filter on pages of the given kind.
    pub(super) fn from_plan_on(
        plan: &Plan,
        hasher: Hasher,
        pages: Pages,
    ) -> Result<Self, PlanError> {
        plan.check_kind(S::KIND)?;
        Self::restore(plan, hasher, B::zeroed_on(plan.bits(), pages)?)
    }
}

impl<S: Strategy, B: Bits> BloomFilter<S, B> {
    /// Creates a filter from the words of a filter with this plan. Returns the errors of
    /// [`view`](BloomFilter::view).
    pub(crate) fn restore(plan: &Plan, hasher: Hasher, bits: B) -> Result<Self, PlanError> {
        plan.check_kind(S::KIND)?;
        plan.check_len(bits.words().len())?;
        Ok(Self { plan: *plan, strategy: strategy::for_plan(plan), hasher, bits })
    }

    /// Returns the storage of the bits.
    pub fn bits(&self) -> &B {
        &self.bits
    }
}

impl<S: Strategy, B: Bits<Word = u64>> BloomFilter<S, B> {
    /// Borrows the filter. Takes constant time.
    pub fn as_view(&self) -> BloomFilter<S, BitView<'_>> {
        let Self { plan, strategy, hasher, bits } = self;
        let bits = BitView::new(bits.words());
        BloomFilter { plan: *plan, strategy: *strategy, hasher: *hasher, bits }
    }
}

impl<S: Strategy, B: BitsMut> BloomFilter<S, B> {
    /// Returns the words of the filter for writing, for example to fill the words from a file.
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.bits.words_mut()
    }
}

impl<S: Strategy, B: Bits> fmt::Debug for BloomFilter<S, B> {
    /// Formats kind, capacity, rates, items and fill, estimated from at most the first 64 KiB.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan.part(debug::DEBUG_BYTES).unwrap_or(self.plan);
        let words = &self.bits.words()[..plan.bits().div_ceil(64) as usize];
        let strategy: S = strategy::for_plan(&plan);
        let ones: u64 = words.iter().map(|word| u64::from(word.get().count_ones())).sum();
        let state = DebugState {
            items: strategy.estimate_items(words),
            fill: ones as f64 / plan.bits() as f64,
            rate: strategy.estimate_rate(words),
        };
        state.of_part(&plan, &self.plan).fmt("Bloom", &self.plan, self.hasher, f)
    }
}

impl<S: Strategy, B: Bits> Filter for BloomFilter<S, B> {
    plan_and_hasher!();

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.strategy.contains(self.bits.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        check_words(answers, hashes.len());
        self.strategy.contains_each(self.bits.words(), hashes, answers);
    }

    fn is_empty(&self) -> bool {
        self.bits.words().iter().all(|word| word.get() == 0)
    }

    fn estimate_items(&self) -> f64 {
        self.strategy.estimate_items(self.bits.words())
    }

    fn estimate_rate(&self) -> f64 {
        self.strategy.estimate_rate(self.bits.words())
    }

    fn fill(&self) -> f64 {
        self.bits.count_ones() as f64 / self.plan.bits() as f64
    }
}

impl<S: Strategy, B: BitsMut> Insert for BloomFilter<S, B> {
    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.strategy.insert(self.bits.words_mut(), hash)
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        check_words(answers, hashes.len());
        self.strategy.insert_each(self.bits.words_mut(), hashes, answers);
    }
}

impl<S: Strategy, B: BitsMut> Clear for BloomFilter<S, B> {
    fn clear(&mut self) {
        self.bits.words_mut().fill(0);
    }
}

impl<S: Strategy, B: BitsMut, C: Bits> Merge<BloomFilter<S, C>> for BloomFilter<S, B> {
    fn merge(&mut self, other: &BloomFilter<S, C>) -> Result<(), MergeError> {
        MergeError::check_layouts(self.layout(), other.layout())?;
        for (word, other) in self.bits.words_mut().iter_mut().zip(other.bits.words()) {
            *word |= other.get();
        }
        Ok(())
    }
}

impl<S: Strategy, B: Bits> FilterWords for BloomFilter<S, B> {
    fn each_words_from<E>(
        &self,
        start: u64,
        each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        B::Word::each_slice(words_from(self.bits.words(), start), each)
    }
}

impl<S: Strategy, B: Bits<Word = u64>> Variant<B> for BloomFilter<S, B> {
    one_run!(BloomFilter<S, BitView<'a>>);
}
