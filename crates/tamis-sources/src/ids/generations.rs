//! The current generations of all sources of a set.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::generation::Generation;

/// The current generations of a set: one generation for each source.
///
/// An id may be in the generations of several sources. Then [`items`](Self::items) counts the id once for each source.
#[derive(Clone, Debug)]
pub struct Generations(SmallVec<[Arc<Generation>; 1]>);

impl FromIterator<Arc<Generation>> for Generations {
    fn from_iter<I: IntoIterator<Item = Arc<Generation>>>(generations: I) -> Self {
        Self(generations.into_iter().collect())
    }
}

impl Generations {
    /// Returns the generations in the order of their sources.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Generation>> {
        self.0.iter()
    }

    /// Tests whether an id may exist: whether the generation of any source contains the id. The result false is
    /// certain; the result true may be a false positive.
    #[must_use]
    pub fn contains(&self, id: &[u8]) -> bool {
        self.iter().any(|generation| generation.contains(id))
    }

    /// Returns the number of ids, without the deleted ids.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.iter().map(|generation| generation.items()).fold(0, u64::saturating_add)
    }

    /// Returns the number of deleted ids that the filters still contain.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        self.iter().map(|generation| generation.deleted()).sum()
    }

    /// Returns the largest integer id. Returns `None` if no integer id was inserted.
    #[must_use]
    pub fn highest(&self) -> Option<i64> {
        self.iter().filter_map(|generation| generation.highest()).max()
    }

    /// Returns the memory usage of the filters in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.iter().map(|generation| generation.bytes()).sum()
    }

    /// Returns the planned false positive rate: the sum of the planned rates of all generations.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.iter().map(|generation| generation.rate()).sum()
    }

    /// Estimates the present false positive rate from the bits. Each generation reads its bits again only after the
    /// number of its ids has changed by more than 1 %.
    #[must_use]
    pub fn estimate_rate(&self) -> f64 {
        self.iter().map(|generation| generation.estimate_rate()).sum()
    }
}
