//! A filter whose kind is known only at run time, for programs and files.

use crate::answers::Answers;
use crate::bits::{BitView, Bitmap, Bits, BitsMut};
use crate::bloom::Bloom;
use crate::filter::{Filter, Insert, Merge, MergeError};
use crate::hash::Hasher;
use crate::item::Item;
use crate::plan::{Plan, PlanError};
use crate::strategy::{Classic, Kind, Parquet, SplitBlock};

/// One of the concrete filters, over storage `B`. The kind is matched once a batch, not once an item.
///
/// # Examples
///
/// ```
/// use tamis::{AnyFilter, Filter, Hasher, Insert, Kind, Plan};
///
/// let mut seen = AnyFilter::new(&Plan::new(1_000, 0.000_001)?, Hasher::default())?;
/// seen.insert("tamis");
/// assert!(seen.contains("tamis"));
/// assert_eq!(seen.plan().kind(), Kind::Classic);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnyFilter<B = Bitmap> {
    /// The default.
    SplitBlock(Bloom<SplitBlock, B>),
    /// Parquet's geometry.
    Parquet(Bloom<Parquet, B>),
    /// Any number of bits and probes.
    Classic(Bloom<Classic, B>),
}

/// Runs an expression on whichever concrete filter it is.
macro_rules! with_filter {
    ($any:expr, $filter:ident => $body:expr) => {
        match $any {
            AnyFilter::SplitBlock($filter) => $body,
            AnyFilter::Parquet($filter) => $body,
            AnyFilter::Classic($filter) => $body,
        }
    };
}

impl AnyFilter<Bitmap> {
    /// Makes an empty filter of the plan's kind.
    ///
    /// # Errors
    ///
    /// [`PlanError::Memory`] if there is not enough of it.
    pub fn new(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        Ok(match plan.kind() {
            Kind::SplitBlock => AnyFilter::SplitBlock(Bloom::new(plan, hasher)?),
            Kind::Parquet => AnyFilter::Parquet(Bloom::new(plan, hasher)?),
            Kind::Classic => AnyFilter::Classic(Bloom::new(plan, hasher)?),
        })
    }
}

impl<'a> AnyFilter<BitView<'a>> {
    /// Uses words that lie elsewhere, such as in a mapped file, without a copy.
    ///
    /// # Errors
    ///
    /// [`PlanError::Geometry`] if the plan has not as many bits as `words`.
    pub fn view(plan: &Plan, hasher: Hasher, words: &'a [u64]) -> Result<Self, PlanError> {
        Ok(match plan.kind() {
            Kind::SplitBlock => AnyFilter::SplitBlock(Bloom::view(plan, hasher, words)?),
            Kind::Parquet => AnyFilter::Parquet(Bloom::view(plan, hasher, words)?),
            Kind::Classic => AnyFilter::Classic(Bloom::view(plan, hasher, words)?),
        })
    }
}

impl<B: Bits> AnyFilter<B> {
    /// Returns the storage.
    pub fn bits(&self) -> &B {
        with_filter!(self, filter => filter.bits())
    }
}

impl<B: BitsMut> AnyFilter<B> {
    /// Returns the words for writing, such as to read them from a file.
    pub fn words_mut(&mut self) -> &mut [u64] {
        with_filter!(self, filter => filter.words_mut())
    }
}

impl<B: Bits> Filter for AnyFilter<B> {
    fn plan(&self) -> &Plan {
        with_filter!(self, filter => filter.plan())
    }

    fn hasher(&self) -> Hasher {
        with_filter!(self, filter => filter.hasher())
    }

    fn contains_hash(&self, hash: u64) -> bool {
        with_filter!(self, filter => filter.contains_hash(hash))
    }

    fn prefetch_hash(&self, hash: u64) {
        with_filter!(self, filter => filter.prefetch_hash(hash));
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        with_filter!(self, filter => filter.contains_hashes(hashes, answers));
    }

    fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        with_filter!(self, filter => filter.contains_each(items, answers));
    }

    fn estimate_items(&self) -> f64 {
        with_filter!(self, filter => filter.estimate_items())
    }

    fn estimate_rate(&self) -> f64 {
        with_filter!(self, filter => filter.estimate_rate())
    }

    fn fill(&self) -> f64 {
        with_filter!(self, filter => filter.fill())
    }
}

impl<B: BitsMut> Insert for AnyFilter<B> {
    fn insert_hash(&mut self, hash: u64) -> bool {
        with_filter!(self, filter => filter.insert_hash(hash))
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        with_filter!(self, filter => filter.insert_hashes(hashes, answers));
    }

    fn insert_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
        with_filter!(self, filter => filter.insert_each(items, answers));
    }
}

impl<B: BitsMut, C: Bits> Merge<AnyFilter<C>> for AnyFilter<B> {
    fn merge(&mut self, other: &AnyFilter<C>) -> Result<(), MergeError> {
        match (&mut *self, other) {
            (AnyFilter::SplitBlock(one), AnyFilter::SplitBlock(two)) => one.merge(two),
            (AnyFilter::Parquet(one), AnyFilter::Parquet(two)) => one.merge(two),
            (AnyFilter::Classic(one), AnyFilter::Classic(two)) => one.merge(two),
            _ => Err(MergeError { expected: self.layout(), found: other.layout() }),
        }
    }
}
