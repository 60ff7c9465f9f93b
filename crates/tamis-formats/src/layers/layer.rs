//! One Bloom filter of a file that stores its capacity and its planned rate.

use crate::foreign_bloom::ForeignBloom;

/// A filter, and what its file says of the plan behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The filter.
    pub filter: ForeignBloom,
    /// For how many items it was planned.
    pub capacity: u64,
    /// For which rate it was planned.
    pub rate: f64,
    /// How many new items were added; `None` if its file does not count them.
    pub added: Option<u64>,
}

impl Layer {
    /// Returns how many new items were added. 0 if the file does not count them.
    pub(super) fn added(&self) -> u64 {
        self.added.unwrap_or(0)
    }
}
