//! Sizes of split-block filters and of Parquet's filters.

use crate::plan::blocks::{BlockSizing, Blocks};
use crate::plan::geometry::Geometry;
use crate::plan::rates::LANES;

/// The formulas for the sizes of split-block filters.
pub(crate) const SPLIT_BLOCK: BlockSizing = BlockSizing {
    geometry: |number| (number == LANES).then_some(Geometry::Probes(LANES)),
    usual: &[Geometry::Probes(LANES)],
    blocks: |_| Blocks::PLAIN,
};

/// The formulas for the sizes of Parquet's filters.
pub(crate) const PARQUET: BlockSizing = BlockSizing {
    // Parquet's rule computes the block from 32 bits of the hash. The Parquet file format stores at
    // most 2³¹ − 1 bytes for a filter.
    blocks: |_| Blocks { lane_bits: 32, max_places: (1 << 31) / 32 - 1, ..Blocks::PLAIN },
    ..SPLIT_BLOCK
};
