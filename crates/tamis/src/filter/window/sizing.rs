//! Sizes of window filters.

use crate::filter::window::clock::Clock;
use crate::plan::blocks::{BlockSizing, Blocks};
use crate::plan::geometry::Geometry;
use crate::strategy::block_rules::narrow::Narrow;

/// The formulas for the sizes of window filters.
///
/// Plans have one or three slices, because a place with one or three slices takes one cache line.
/// At a rate of 1 %, three slices take a seventh less memory than one slice. At rates of about 10⁻⁵
/// and below, one slice takes less memory than three slices, because the lanes are wider.
pub(crate) const SIZING: BlockSizing = BlockSizing {
    geometry: |number| (1..=255).contains(&number).then_some(Geometry::Slices(number)),
    usual: &[Geometry::Slices(3), Geometry::Slices(1)],
    blocks: blocks_of,
};

/// Returns the blocks of a window: one block for each slice of the span, plus one block.
pub(super) fn blocks_of(geometry: Geometry) -> Blocks {
    let slices = geometry.to_number();
    Blocks {
        lane_bits: if slices == 1 { 32 } else { u64::from(Narrow::LANE_BITS) },
        layers: u64::from(slices) + 1,
        head_bits: Clock::WORDS as u64 * 64,
        max_places: u64::MAX,
        slices: Some(slices),
    }
}
