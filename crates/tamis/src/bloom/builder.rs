//! The builder of Bloom filters, for what [`Bloom::for_items`] does not ask.

use std::marker::PhantomData;

use super::Bloom;
use crate::bits::{AtomicBitmap, Bitmap, Pages};
use crate::hash::Hasher;
use crate::plan::{Plan, PlanError};
use crate::strategy::{SplitBlock, Strategy};

impl Bloom {
    /// Starts a filter that keeps `rate`, a probability, until it holds `items` distinct items.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Bloom, Classic};
    ///
    /// let mut seen = Bloom::builder(1_000, 0.01).seed(7).build()?;
    /// seen.insert("tamis");
    ///
    /// // At low rates the classic filter takes far fewer bits.
    /// let rare = Bloom::builder(1_000, 1e-6).strategy::<Classic>().build()?;
    /// assert!(rare.plan().bits() < Bloom::builder(1_000, 1e-6).plan()?.bits());
    ///
    /// let shared = Bloom::builder(1_000, 0.01).build_shared()?;
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| shared.insert("left"));
    ///     threads.spawn(|| shared.insert("right"));
    /// });
    /// assert!(shared.contains_all(&["left", "right"]));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn builder(items: u64, rate: f64) -> BloomBuilder {
        BloomBuilder {
            items,
            rate,
            hasher: Hasher::default(),
            pages: Pages::Huge,
            strategy: PhantomData,
        }
    }
}

/// A Bloom filter that is described and not yet made: see [`Bloom::builder`].
///
/// The kind is that of its type, so that the plan always fits the filter.
#[derive(Clone, Debug)]
#[must_use]
pub struct BloomBuilder<S = SplitBlock> {
    items: u64,
    rate: f64,
    hasher: Hasher,
    pages: Pages,
    strategy: PhantomData<S>,
}

impl<S: Strategy> BloomBuilder<S> {
    /// Sets the hash function. The last call of this, [`seed`](Self::seed) and [`key`](Self::key) counts.
    pub const fn hasher(mut self, hasher: Hasher) -> Self {
        self.hasher = hasher;
        self
    }

    /// Sets the seed of the default hash function; 0 if it is not set.
    ///
    /// Filters of different seeds have different false positives, and do not merge.
    pub const fn seed(self, seed: u64) -> Self {
        self.hasher(Hasher::fold(seed))
    }

    /// Sets a secret key of the keyed hash function, [`Hasher::keyed`], for items that an attacker may choose.
    pub const fn key(self, key: [u64; 2]) -> Self {
        self.hasher(Hasher::keyed(key))
    }

    /// Sets whether Linux is asked for huge pages, as it is if this is not called.
    ///
    /// A lookup in a large filter is faster with them. Without them a filter of which little is used takes
    /// less memory, since pages of 4 KiB are mapped when they are first touched, and not 2 MiB at once. Filters below
    /// 4 MiB, and other systems, never have them.
    pub const fn huge_pages(mut self, is_on: bool) -> Self {
        self.pages = if is_on { Pages::Huge } else { Pages::Small };
        self
    }

    /// Sets the strategy: [`SplitBlock`] (the default), [`Parquet`](crate::Parquet) or
    /// [`Classic`](crate::Classic).
    pub fn strategy<T: Strategy>(self) -> BloomBuilder<T> {
        let Self { items, rate, hasher, pages, .. } = self;
        BloomBuilder { items, rate, hasher, pages, strategy: PhantomData }
    }

    /// Returns the plan of the filter, which says how large it will be.
    ///
    /// # Errors
    ///
    /// As for [`Plan::for_kind`].
    pub fn plan(&self) -> Result<Plan, PlanError> {
        Plan::for_kind(S::KIND, self.items, self.rate)
    }

    /// Makes the filter, empty.
    ///
    /// # Errors
    ///
    /// As for [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough of it.
    pub fn build(&self) -> Result<Bloom<S>, PlanError> {
        let plan = self.plan()?;
        Bloom::restore(&plan, self.hasher, Bitmap::zeroed_on(plan.bits(), self.pages)?)
    }

    /// Makes the filter, empty, for threads to insert into through shared references:
    /// [`SharedBloom`](crate::SharedBloom).
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build).
    pub fn build_shared(&self) -> Result<Bloom<S, AtomicBitmap>, PlanError> {
        let plan = self.plan()?;
        Bloom::restore(&plan, self.hasher, AtomicBitmap::zeroed_on(plan.bits(), self.pages)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits as _;
    use crate::kind::Kind;
    use crate::strategy::{Classic, Parquet};

    #[test]
    fn each_option_reaches_the_filter() {
        let builder = Bloom::builder(1_000, 0.01);
        assert_eq!(builder.build().unwrap(), Bloom::for_items(1_000, 0.01).unwrap());
        assert_eq!(builder.clone().seed(0).build().unwrap().hasher(), Hasher::default());
        assert_ne!(builder.clone().seed(u64::MAX).build().unwrap().hasher(), Hasher::default());
        assert!(builder.clone().seed(1).key([1, 2]).build().unwrap().hasher().is_keyed());
        let hasher = Hasher::xxh64(9);
        assert_eq!(builder.clone().hasher(hasher).build_shared().unwrap().hasher(), hasher);
        let parquet = builder.clone().seed(3).strategy::<Parquet>().build().unwrap();
        assert_eq!((parquet.plan().kind(), parquet.capacity()), (Kind::Parquet, 1_000));
        assert_eq!(parquet.hasher(), builder.clone().seed(3).build().unwrap().hasher());
        assert_eq!(builder.strategy::<Classic>().plan().unwrap().kind(), Kind::Classic);
        assert!(Bloom::builder(1, 1.0).build().is_err());
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
