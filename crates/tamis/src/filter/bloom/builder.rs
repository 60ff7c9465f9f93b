//! The builder of Bloom filters, for options that [`BloomFilter::for_items`] does not have.

use std::marker::PhantomData;

use crate::bits::{Bitmap, NewBits, Pages};
use crate::filter::bloom::filter::BloomFilter;
use crate::hash::Hasher;
use crate::plan::{Plan, PlanError};
use crate::strategy::{SplitBlock, Strategy};

impl<S: Strategy, B: NewBits> BloomFilter<S, B> {
    /// Starts a builder for a filter that keeps `rate`, a probability, until the filter holds
    /// `items` distinct items. `items` is any integer, for example `urls.len()`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Bloom, ClassicBloom, SharedBloom};
    ///
    /// let mut seen = Bloom::builder(1_000, 0.01).seed(7).build()?;
    /// seen.insert("tamis");
    ///
    /// // At low rates, a classic filter takes far fewer bits than the default filter.
    /// let rare = ClassicBloom::builder(1_000, 1e-6).build()?;
    /// assert!(rare.plan().bits() < Bloom::builder(1_000, 1e-6).plan()?.bits());
    ///
    /// let shared = SharedBloom::builder(1_000, 0.01).key([1, 2]).build()?;
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| shared.insert("left"));
    ///     threads.spawn(|| shared.insert("right"));
    /// });
    /// assert!(shared.contains_all(&["left", "right"]));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn builder(items: impl TryInto<u64>, rate: f64) -> BloomBuilder<S, B> {
        BloomBuilder {
            items: items.try_into().ok(),
            rate,
            hasher: Hasher::default(),
            pages: Pages::Huge,
            filter: PhantomData,
        }
    }
}

/// The options of a Bloom filter that is not yet created: see [`BloomFilter::builder`].
///
/// The type parameters determine the kind and the storage, so the plan always matches the filter.
#[derive(Clone, Debug)]
#[must_use]
pub struct BloomBuilder<S = SplitBlock, B = Bitmap> {
    /// `None` if the number of items is not a `u64`.
    items: Option<u64>,
    rate: f64,
    hasher: Hasher,
    pages: Pages,
    filter: PhantomData<fn() -> (S, B)>,
}

impl<S: Strategy, B: NewBits> BloomBuilder<S, B> {
    /// Sets the hash function. The last call of `hasher`, [`seed`](Self::seed) or
    /// [`key`](Self::key) takes effect.
    pub const fn hasher(mut self, hasher: Hasher) -> Self {
        self.hasher = hasher;
        self
    }

    /// Sets the seed of the default hash function. The default seed is 0.
    ///
    /// Filters with different seeds have different false positives and cannot be merged.
    pub const fn seed(self, seed: u64) -> Self {
        self.hasher(Hasher::mix(seed))
    }

    /// Sets a secret key and the keyed hash function, [`Hasher::keyed`]. Use a secret key if an
    /// attacker may choose the items.
    pub const fn key(self, key: [u64; 2]) -> Self {
        self.hasher(Hasher::keyed(key))
    }

    /// Sets whether to ask Linux for huge pages. Without a call of `huge_pages`, the builder asks
    /// for huge pages.
    ///
    /// Huge pages make a lookup in a large filter faster. Without huge pages, a sparsely used
    /// filter takes less memory: Linux maps 4 KiB at the first access to a page, instead of 2 MiB.
    /// Filters below 4 MiB do not use huge pages. Systems other than Linux ignore the option for
    /// huge pages.
    pub const fn huge_pages(mut self, is_on: bool) -> Self {
        self.pages = if is_on { Pages::Huge } else { Pages::Small };
        self
    }

    /// Returns the plan of the filter. The plan contains the size of the filter.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::for_kind`].
    pub fn plan(&self) -> Result<Plan, PlanError> {
        Plan::for_kind(S::KIND, self.items.ok_or(PlanError::Items)?, self.rate)
    }

    /// Creates an empty filter with the options of the builder.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough
    /// memory.
    pub fn build(&self) -> Result<BloomFilter<S, B>, PlanError> {
        BloomFilter::from_plan_on(&self.plan()?, self.hasher, self.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits as _;
    use crate::filter::bloom::{Bloom, ClassicBloom, ParquetBloom, SharedBloom};
    use crate::plan::kind::Kind;

    #[test]
    fn each_option_reaches_the_filter() {
        let builder = Bloom::builder(1_000, 0.01);
        assert_eq!(builder.build().unwrap(), Bloom::for_items(1_000, 0.01).unwrap());
        assert_eq!(builder.clone().seed(0).build().unwrap().hasher(), Hasher::default());
        assert_ne!(builder.clone().seed(u64::MAX).build().unwrap().hasher(), Hasher::default());
        assert!(builder.clone().seed(1).key([1, 2]).build().unwrap().hasher().is_keyed());
        let hasher = Hasher::xxh64(9);
        let shared = SharedBloom::builder(1_000, 0.01).hasher(hasher).build().unwrap();
        assert_eq!(shared.hasher(), hasher);
        let parquet = ParquetBloom::builder(1_000, 0.01).seed(3).build().unwrap();
        assert_eq!((parquet.plan().kind(), parquet.capacity()), (Kind::Parquet, 1_000));
        assert_eq!(parquet.hasher(), builder.seed(3).build().unwrap().hasher());
        assert_eq!(ClassicBloom::builder(1, 0.01).plan().unwrap().kind(), Kind::Classic);
        assert!(Bloom::builder(1, 1.0).build().is_err());
        assert_eq!(Bloom::builder(-1, 0.01).build(), Err(PlanError::Items));
    }

    #[test]
    fn pages_of_any_size_hold_the_same_filter() {
        let builder = Bloom::builder(5_000_000, 0.01);
        let (mut huge, mut small) =
            (builder.build().unwrap(), builder.huge_pages(false).build().unwrap());
        assert!(small.bits().len_bits() > 4 << 23);
        assert_eq!((huge.insert(&1_u8), small.insert(&1_u8)), (true, true));
        assert_eq!(huge, small);
    }
}
