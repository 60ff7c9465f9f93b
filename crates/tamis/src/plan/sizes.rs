//! How large a filter of each kind is: one `match` a question, the formulas in `rates`.

use super::rates::{blocks_rate, classic_rate};
use super::{LANES, MAX_BITS, smallest};
use crate::cuckoo::{Table, plan as cuckoo};
use crate::growing::prefixes::Growth;
use crate::shape::Shape;
use crate::strategy::Kind;

/// The most probes of a classic filter.
const MAX_PROBES: u32 = 255;

/// Slots of a cuckoo filter's bucket: two take the fewest bits.
const USUAL_BUCKET: u32 = 2;

/// Bits before the blocks of a window filter: one line of clock (`window/mod.rs`).
const WINDOW_HEAD_BITS: u64 = 512;

/// Returns the shape in which this kind is planned unless another is asked for. That of a classic
/// filter and of a window depends on the rate.
pub(super) fn usual_shape(kind: Kind, items: u64, rate: f64) -> Shape {
    match kind {
        Kind::SplitBlock | Kind::Parquet => Shape::Probes(LANES),
        Kind::Classic => Shape::Probes((-rate.log2()).floor().clamp(1.0, 255.0) as u32),
        Kind::Counting => Shape::Counters(4),
        // The bits follow with the size.
        Kind::Cuckoo => Shape::Slots { bits: 8, bucket: USUAL_BUCKET },
        Kind::Growing => growing_shape(rate).unwrap_or(Shape::Prefixes { bits: 64, split_at: 1 }),
        Kind::Window => Shape::Slices(best_slices(items, rate)),
    }
}

/// Returns the fewest bits, and the shape, that keep `rate` at `items`.
pub(super) fn fewest(kind: Kind, shape: Shape, items: u64, rate: f64) -> Option<(u64, Shape)> {
    let bits = match (kind, shape) {
        (Kind::Classic, _) => return best_classic(items, rate),
        (_, Shape::Slots { bucket, .. }) => {
            return cuckoo::plan(bucket, items, rate).as_ref().map(geometry_of);
        }
        (_, Shape::Prefixes { .. }) => {
            let growth = Growth::for_rate(rate)?;
            return (items <= growth.max_entries())
                .then_some((growth.bits_at(items), growth.shape()));
        }
        (_, Shape::Probes(_) | Shape::Counters(_) | Shape::Slices(_)) => {
            let enough = |places: u64| places_rate(kind, shape, items, places) <= rate;
            let places = smallest(1, max_places(kind, shape), enough)?;
            head_bits(shape) + places * place_bits(kind, shape)
        }
    };
    (bits <= MAX_BITS).then_some((bits, shape))
}

/// Returns the bits of the largest filter of this kind and shape within `max_bytes`.
pub(super) fn usable_bits(kind: Kind, shape: Shape, max_bytes: u64) -> Option<u64> {
    let bits = match (kind, shape) {
        (Kind::Classic, _) | (_, Shape::Slots { .. } | Shape::Prefixes { .. }) => {
            (max_bytes / 8).saturating_mul(64).min(MAX_BITS)
        }
        (_, Shape::Probes(_) | Shape::Counters(_) | Shape::Slices(_)) => {
            let place_bits = place_bits(kind, shape);
            let left = max_bytes.saturating_sub(head_bits(shape) / 8);
            match (left / (place_bits / 8)).min(max_places(kind, shape)) {
                0 => 0,
                places => head_bits(shape) + places * place_bits,
            }
        }
    };
    (bits > 0).then_some(bits)
}

/// What is the best of `bits` for some items.
pub(super) struct Best {
    pub rate: f64,
    pub shape: Shape,
    /// Not all of them, if a kind has no filter of just so many.
    pub bits: u64,
}

/// Returns the lowest rate of `items` in `bits`, and how it is reached.
pub(super) fn best(kind: Kind, shape: Shape, items: u64, bits: u64) -> Best {
    match (kind, shape) {
        (Kind::Classic, _) => best_classic_in(items, bits),
        (_, Shape::Slots { bucket, .. }) => {
            match cuckoo::plan_items_in(bucket, items, bits.saturating_sub(64)) {
                Some(table) => {
                    let (bits, shape) = geometry_of(&table);
                    Best { rate: cuckoo::rate_at(&table, items), shape, bits }
                }
                None => Best { rate: 1.0, shape, bits },
            }
        }
        (_, Shape::Prefixes { .. }) => {
            // In steps of an eighth of a bit.
            let rate_of = |step: u64| (-(step as f64) / 8.0).exp2();
            let fits = |step: u64| {
                Growth::for_rate(rate_of(step)).is_some_and(|growth| {
                    growth.bits_at(items) <= bits && items <= growth.max_entries()
                })
            };
            // The first step that is too low a rate, less one.
            let lowest = smallest(1, 8 * 60, |step| !fits(step)).map_or(8 * 60, |step| step - 1);
            match (lowest > 0).then(|| rate_of(lowest)) {
                Some(rate) => {
                    let growth = Growth::for_rate(rate).expect("it fits");
                    Best { rate, shape: growth.shape(), bits: growth.bits_at(items) }
                }
                None => Best { rate: 1.0, shape, bits },
            }
        }
        _ => Best { rate: rate_of(kind, shape, bits, items), shape, bits },
    }
}

fn best_classic_in(items: u64, bits: u64) -> Best {
    let ideal = bits as f64 / items as f64 * std::f64::consts::LN_2;
    let low = (ideal.floor() as u32).clamp(1, MAX_PROBES);
    (low..=(low + 1).min(MAX_PROBES))
        .map(|probes| {
            let rate = classic_rate(items, bits, probes);
            Best { rate, shape: Shape::Probes(probes), bits }
        })
        .min_by(|a, b| a.rate.total_cmp(&b.rate))
        .expect("at least one number of probes")
}

/// Computes the rate of a filter that holds `items` distinct items; a window holds them spread evenly.
pub(super) fn rate_of(kind: Kind, shape: Shape, bits: u64, items: u64) -> f64 {
    match (kind, shape) {
        (Kind::Classic, shape) => classic_rate(items, bits, shape.to_number()),
        (_, Shape::Slots { .. }) => {
            cuckoo_table(shape, bits).map_or(1.0, |table| cuckoo::rate_at(&table, items))
        }
        (_, Shape::Prefixes { .. }) => Growth::of_shape(shape).map_or(1.0, |it| it.rate_at(items)),
        (_, Shape::Probes(_) | Shape::Counters(_) | Shape::Slices(_)) => {
            places_rate(kind, shape, items, places(kind, shape, bits))
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
        (_, Shape::Slots { .. }) => cuckoo_table(shape, bits).is_some(),
        (_, Shape::Prefixes { .. }) => bits.is_multiple_of(64) && Growth::of_shape(shape).is_some(),
        (_, Shape::Probes(_) | Shape::Counters(_) | Shape::Slices(_)) => {
            let places_bits = bits.saturating_sub(head_bits(shape));
            places_bits.is_multiple_of(place_bits(kind, shape))
                && (1..=max_places(kind, shape)).contains(&places(kind, shape, bits))
        }
    }
}

/// The bits of a cuckoo filter, those of its slots and a spare word, which reads may touch; and its shape.
pub(crate) fn geometry_of(table: &Table) -> (u64, Shape) {
    let shape = Shape::Slots { bits: table.slot_bits(), bucket: table.bucket() };
    (table.len_bits() + 64, shape)
}

/// Returns the largest cuckoo filter of usual buckets within `max_bytes`, and its items.
pub(super) fn largest_cuckoo(max_bytes: u64, rate: f64) -> Option<(Table, u64)> {
    let max_bits = (max_bytes / 8).saturating_mul(64).min(MAX_BITS).checked_sub(64)?;
    cuckoo::plan_in(USUAL_BUCKET, max_bits, rate)
}

/// Returns how many items a growing filter takes before it passes `max_bytes`.
pub(super) fn most_growing(max_bytes: u64, rate: f64) -> Option<u64> {
    let growth = Growth::for_rate(rate)?;
    let max_bits = max_bytes.saturating_mul(8);
    let too_many = |items: u64| growth.bits_at(items) > max_bits;
    let most = match smallest(1, growth.max_entries(), too_many) {
        Some(over) => over - 1,
        None => growth.max_entries(),
    };
    (most > 0).then_some(most)
}

/// Returns the table of a cuckoo filter of this shape and so many bits, if there is one.
pub(crate) fn cuckoo_table(shape: Shape, bits: u64) -> Option<Table> {
    let Shape::Slots { bits: slot_bits, bucket } = shape else { return None };
    let slots_bits = bits.checked_sub(64)?;
    if !slots_bits.is_multiple_of(u64::from(slot_bits)) {
        return None;
    }
    Table::from_slots(bucket, slot_bits, slots_bits / u64::from(slot_bits))
}

fn growing_shape(rate: f64) -> Option<Shape> {
    Growth::for_rate(rate).map(Growth::shape)
}

/// Bits of a lane: an item sets one in each of the eight of a block.
///
/// A block of a counting filter has several bits a counter, and a window has one for each slice: they are so narrow that all of
/// it is one cache line, where it can be.
pub(super) const fn lane_bits(kind: Kind, shape: Shape) -> u64 {
    match (kind, shape) {
        (Kind::Parquet, _) | (_, Shape::Slices(1)) => 32,
        (_, Shape::Counters(_) | Shape::Slices(_)) => 16,
        _ => 64,
    }
}

/// Bits of all that lies at the place of an item: a block, with all bits of its counters, or of each slice.
pub(super) const fn place_bits(kind: Kind, shape: Shape) -> u64 {
    let layers = match shape {
        Shape::Counters(counter_bits) => counter_bits as u64,
        Shape::Slices(slices) => slices as u64 + 1,
        _ => 1,
    };
    LANES as u64 * lane_bits(kind, shape) * layers
}

/// Bits before the places.
const fn head_bits(shape: Shape) -> u64 {
    match shape {
        Shape::Slices(_) => WINDOW_HEAD_BITS,
        _ => 0,
    }
}

/// How many places so many bits are.
pub(super) const fn places(kind: Kind, shape: Shape, bits: u64) -> u64 {
    bits.saturating_sub(head_bits(shape)) / place_bits(kind, shape)
}

/// Returns the most bits of whole places, up to so many; 0 if there is no room for one.
pub(super) const fn whole_places(kind: Kind, shape: Shape, max_bits: u64) -> u64 {
    match places(kind, shape, max_bits) {
        0 => 0,
        places => head_bits(shape) + places * place_bits(kind, shape),
    }
}

const fn max_places(kind: Kind, shape: Shape) -> u64 {
    match kind {
        // Its rule takes the block from 32 bits of the hash; 2³¹ − 1 bytes is what its files can say.
        Kind::Parquet => (1 << 31) / 32 - 1,
        _ => places(kind, shape, MAX_BITS),
    }
}

/// The rate of so many places; all slices of a window, and one more, hold their share of `items`.
fn places_rate(kind: Kind, shape: Shape, items: u64, places: u64) -> f64 {
    let lane_bits = lane_bits(kind, shape);
    let Shape::Slices(slices) = shape else { return blocks_rate(items, places, lane_bits) };
    let of_slice = blocks_rate(items.div_ceil(u64::from(slices)), places, lane_bits);
    // 1 − (1 − r)ⁿ, which would lose the digits of a low rate.
    -((f64::from(slices) + 1.0) * (-of_slice).ln_1p()).exp_m1()
}

/// Returns the number of slices for a window: one or three, with which a place is just one cache line, whichever
/// takes fewer bits: three, a seventh less at 1 %, and from about 10⁻⁵ on one, for its wider lanes.
fn best_slices(items: u64, rate: f64) -> u32 {
    let bits = |slices: &u32| {
        fewest(Kind::Window, Shape::Slices(*slices), items, rate).map_or(u64::MAX, |(bits, _)| bits)
    };
    [3, 1].into_iter().min_by_key(bits).expect("two numbers of slices")
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
