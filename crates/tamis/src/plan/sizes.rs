//! How large a filter of each kind is: one `match` a question, the formulas in `rates`.

use super::rates::{blocks_rate, classic_rate};
use super::{LANES, MAX_BITS, smallest};
use crate::shape::Shape;
use crate::strategy::Kind;

/// The most probes of a classic filter.
const MAX_PROBES: u32 = 255;

/// Bits before the blocks of a window filter: one line of clock (`window/mod.rs`).
pub(crate) const WINDOW_HEAD_BITS: u64 = 512;

/// Returns the shape in which this kind is planned unless another is asked for. That of a classic
/// filter and of a window depends on the rate.
pub(super) fn usual_shape(kind: Kind, items: u64, rate: f64) -> Shape {
    match kind {
        Kind::SplitBlock | Kind::Parquet => Shape::Probes(LANES),
        Kind::Classic => Shape::Probes((-rate.log2()).floor().clamp(1.0, 255.0) as u32),
        Kind::Counting => Shape::Counters(4),
        Kind::Window => Shape::Slices(best_slices(items, rate)),
    }
}

/// Returns the fewest bits, and the shape, that keep `rate` at `items`.
pub(super) fn fewest(kind: Kind, shape: Shape, items: u64, rate: f64) -> Option<(u64, Shape)> {
    let bits = match (kind, shape) {
        (Kind::Classic, _) => return best_classic(items, rate),
        (_, Shape::Counters(counter_bits)) => {
            fewest_blocks(Kind::SplitBlock, items, rate)? * 512 * u64::from(counter_bits)
        }
        (_, Shape::Slices(slices)) => {
            let in_slice = items.div_ceil(u64::from(slices));
            let blocks = fewest_blocks(Kind::SplitBlock, in_slice, slice_rate(slices, rate))?;
            WINDOW_HEAD_BITS + blocks * slice_block_bits(slices)
        }
        (kind, Shape::Probes(_)) => fewest_blocks(kind, items, rate)? * block_bits(kind),
    };
    (bits <= MAX_BITS).then_some((bits, shape))
}

/// Returns the bits of the largest filter of this kind and shape within `max_bytes`.
pub(super) fn usable_bits(kind: Kind, shape: Shape, max_bytes: u64) -> Option<u64> {
    let blocks_of = |block_bits: u64, max_bytes: u64, max_blocks: u64| {
        (max_bytes / (block_bits / 8)).min(max_blocks) * block_bits
    };
    let bits = match (kind, shape) {
        (Kind::Classic, _) => (max_bytes / 8).saturating_mul(64).min(MAX_BITS),
        (_, Shape::Counters(counter_bits)) => {
            let block_bits = 512 * u64::from(counter_bits);
            blocks_of(block_bits, max_bytes, MAX_BITS / block_bits)
        }
        (_, Shape::Slices(slices)) => {
            let block_bits = slice_block_bits(slices);
            let left = max_bytes.saturating_sub(WINDOW_HEAD_BITS / 8);
            match blocks_of(block_bits, left, MAX_BITS / block_bits - 1) {
                0 => 0,
                bits => WINDOW_HEAD_BITS + bits,
            }
        }
        (kind, Shape::Probes(_)) => blocks_of(block_bits(kind), max_bytes, max_blocks(kind)),
    };
    (bits > 0).then_some(bits)
}

/// Returns the lowest rate of `items` in `bits`, and the shape that reaches it.
pub(super) fn best(kind: Kind, shape: Shape, items: u64, bits: u64) -> (f64, Shape) {
    if kind != Kind::Classic {
        return (rate_of(kind, shape, bits, items), shape);
    }
    let ideal = bits as f64 / items as f64 * std::f64::consts::LN_2;
    let low = (ideal.floor() as u32).clamp(1, MAX_PROBES);
    (low..=(low + 1).min(MAX_PROBES))
        .map(|probes| (classic_rate(items, bits, probes), Shape::Probes(probes)))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .expect("at least one number of probes")
}

/// Computes the rate of a filter that holds `items` distinct items; a window holds them spread evenly.
pub(super) fn rate_of(kind: Kind, shape: Shape, bits: u64, items: u64) -> f64 {
    match (kind, shape) {
        (Kind::Classic, shape) => classic_rate(items, bits, shape.to_number()),
        (_, Shape::Counters(counter_bits)) => {
            blocks_rate(items, bits / (512 * u64::from(counter_bits)), 64)
        }
        (_, Shape::Slices(slices)) => {
            let blocks = (bits - WINDOW_HEAD_BITS) / slice_block_bits(slices);
            let of_slice = blocks_rate(items.div_ceil(u64::from(slices)), blocks, 64);
            1.0 - (1.0 - of_slice).powi(slices as i32 + 1)
        }
        (kind, Shape::Probes(_)) => {
            blocks_rate(items, bits / block_bits(kind), block_bits(kind) / u64::from(LANES))
        }
    }
}

/// Tells whether there is a filter of this geometry.
pub(super) fn is_valid(kind: Kind, shape: Shape, bits: u64) -> bool {
    if bits == 0 || bits > MAX_BITS || Shape::from_number(kind, shape.to_number()) != Some(shape) {
        return false;
    }
    match (kind, shape) {
        (Kind::Classic, _) => true,
        (_, Shape::Counters(counter_bits)) => bits.is_multiple_of(512 * u64::from(counter_bits)),
        (_, Shape::Slices(slices)) => {
            bits > WINDOW_HEAD_BITS
                && (bits - WINDOW_HEAD_BITS).is_multiple_of(slice_block_bits(slices))
        }
        (kind, Shape::Probes(_)) => {
            bits.is_multiple_of(block_bits(kind)) && bits / block_bits(kind) <= max_blocks(kind)
        }
    }
}

/// Bits of a block of a filter that sets one bit in each of eight lanes.
const fn block_bits(kind: Kind) -> u64 {
    match kind {
        Kind::Parquet => 256,
        _ => 512,
    }
}

/// Bits of the blocks that a window filter has at one place: a block of each slice.
pub(crate) const fn slice_block_bits(slices: u32) -> u64 {
    512 * (slices as u64 + 1)
}

const fn max_blocks(kind: Kind) -> u64 {
    match kind {
        // Its rule takes the block from 32 bits of the hash; 2³¹ − 1 bytes is what its files can say.
        Kind::Parquet => (1 << 31) / 32 - 1,
        _ => MAX_BITS / 512,
    }
}

fn fewest_blocks(kind: Kind, items: u64, rate: f64) -> Option<u64> {
    let lane_bits = block_bits(kind) / u64::from(LANES);
    smallest(1, max_blocks(kind), |blocks| blocks_rate(items, blocks, lane_bits) <= rate)
}

/// The rate of one slice of which `slices` and one more together keep `rate`.
fn slice_rate(slices: u32, rate: f64) -> f64 {
    -((-rate).ln_1p() / (f64::from(slices) + 1.0)).exp_m1()
}

/// Returns the number of slices for a window: fewer slices hold more of what is already forgotten,
/// more slices share the rate among them and are a line more a lookup each. At 1 % the memory is lowest
/// at six, and four take 1 % more.
fn best_slices(items: u64, rate: f64) -> u32 {
    let bits = |slices: u32| {
        fewest(Kind::Window, Shape::Slices(slices), items, rate).map_or(u64::MAX, |(bits, _)| bits)
    };
    let least = (1..=8).map(bits).min().expect("eight numbers of slices");
    (1..=8).find(|&slices| bits(slices) <= least.saturating_add(least / 32)).unwrap_or(4)
}

/// Returns the fewest bits, with their probes, that keep `rate` at `items`.
fn best_classic(items: u64, rate: f64) -> Option<(u64, Shape)> {
    let ideal = -rate.log2();
    let low = (ideal.floor() as u32).clamp(1, MAX_PROBES);
    (low..=(low + 1).min(MAX_PROBES))
        .filter_map(|probes| {
            let bits = smallest(1, MAX_BITS, |bits| classic_rate(items, bits, probes) <= rate)?;
            Some((bits, probes))
        })
        .min()
        .map(|(bits, probes)| (bits, Shape::Probes(probes)))
}
