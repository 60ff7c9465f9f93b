//! A Bloom filter whose file stores the capacity and the planned rate.

use crate::filters::foreign_bloom::ForeignBloom;

/// A Bloom filter with its planned capacity and its planned rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The Bloom filter of the layer.
    pub filter: ForeignBloom,
    /// The number of items that the filter was planned for.
    pub capacity: u64,
    /// The false positive rate that the filter was planned for.
    pub rate: f64,
    /// The number of inserted new items. `None` if the file does not store the number of inserted
    /// items.
    pub added: Option<u64>,
}

impl Layer {
    /// Returns the number of inserted new items, or 0 if the file does not store this number.
    pub(super) fn added(&self) -> u64 {
        self.added.unwrap_or(0)
    }
}
