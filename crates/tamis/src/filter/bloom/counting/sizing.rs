//! Sizes of counting filters.

use crate::plan::blocks::{BlockSizing, Blocks};
use crate::plan::geometry::Geometry;
use crate::strategy::block_rules::narrow::Narrow;

/// The formulas for the sizes of counting filters. A block of a counting filter consists of one
/// narrow block for each bit of a counter.
pub(crate) const SIZING: BlockSizing = BlockSizing {
    geometry: |number| matches!(number, 4 | 8 | 16).then_some(Geometry::Counters(number)),
    usual: &[Geometry::Counters(4)],
    blocks: |geometry| Blocks {
        lane_bits: Narrow::LANE_BITS as u64,
        layers: geometry.to_number() as u64,
        ..Blocks::PLAIN
    },
};
