//! One Bloom filter of a file that stores its capacity and its planned rate.

use crate::filters::foreign_bloom::ForeignBloom;

/// A filter and its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The filter.
    pub filter: ForeignBloom,
    /// The number of items that the filter was planned for.
    pub capacity: u64,
    /// The false positive rate that the filter was planned for.
    pub rate: f64,
    /// The number of new items that were added. `None` if the file does not count them.
    pub added: Option<u64>,
}

impl Layer {
    /// Returns how many new items were added. 0 if the file does not count them.
    pub(super) fn added(&self) -> u64 {
        self.added.unwrap_or(0)
    }
}
