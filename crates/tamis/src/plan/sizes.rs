//! How large a filter of each kind is: one `match` a question, the formulas in `rates`.

use super::rates::{approximate_classic_rate, blocks_rate, classic_rate};
use super::search::{smallest, smallest_from};
use super::{LANES, MAX_BITS};
use crate::cuckoo::{Table, plan as cuckoo};
use crate::geometry::Geometry;
use crate::growing::prefixes::Growth;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::strategy::Kind;

/// The most probes of a classic filter.
const MAX_PROBES: u32 = 255;

/// Slots of a cuckoo filter's bucket: two take the fewest bits.
const USUAL_BUCKET: u32 = 2;

/// Bits before the blocks of a window filter: one line of clock (`window/mod.rs`).
const WINDOW_HEAD_BITS: u64 = 512;

/// Returns the geometry in which this kind is planned unless another is asked for. That of a classic
/// filter and of a window depends on the rate.
pub(super) fn usual_geometry(kind: Kind, items: u64, rate: f64) -> Geometry {
    match kind {
        Kind::SplitBlock | Kind::Parquet => Geometry::Probes(LANES),
        Kind::Classic => Geometry::Probes((-rate.log2()).floor().clamp(1.0, 255.0) as u32),
        Kind::Counting => Geometry::Counters(4),
        // The bits follow with the size.
        Kind::Cuckoo => Geometry::Slots { bits: 8, bucket: USUAL_BUCKET },
        Kind::Growing => {
            growing_geometry(rate).unwrap_or(Geometry::Prefixes { bits: 64, split_at: 1 })
        }
        Kind::Window => {
            best_window(items, rate).map_or(Geometry::Slices(3), |(_, geometry)| geometry)
        }
    }
}

/// Returns the fewest bits, and their geometry, that keep `rate` at `items`, in the usual geometry of the kind.
pub(super) fn fewest_usual(kind: Kind, items: u64, rate: f64) -> Option<(u64, Geometry)> {
    match kind {
        Kind::Window => best_window(items, rate),
        _ => fewest(kind, usual_geometry(kind, items, rate), items, rate),
    }
}

/// Returns the fewest bits, and the geometry, that keep `rate` at `items`.
pub(super) fn fewest(
    kind: Kind,
    geometry: Geometry,
    items: u64,
    rate: f64,
) -> Option<(u64, Geometry)> {
    match (kind, geometry) {
        (Kind::Classic, _) => best_classic(items, rate),
        (_, Geometry::Slots { bucket, .. }) => {
            cuckoo::plan(bucket, items, rate).as_ref().map(geometry_of)
        }
        (_, Geometry::Prefixes { .. }) => {
            let growth = Growth::for_rate(rate)?;
            (items <= growth.max_entries()).then(|| (growth.bits_at(items), growth.geometry()))
        }
        (_, Geometry::Probes(_) | Geometry::Counters(_) | Geometry::Slices(_)) => {
            fewest_within(kind, geometry, items, rate, MAX_BITS).map(|bits| (bits, geometry))
        }
    }
    .filter(|&(bits, _)| bits <= MAX_BITS)
}

/// Returns the bits of the largest filter of this kind and geometry within `max_bytes`.
pub(super) fn usable_bits(kind: Kind, geometry: Geometry, max_bytes: u64) -> Option<u64> {
    let bits = match (kind, geometry) {
        (Kind::Classic, _) | (_, Geometry::Slots { .. } | Geometry::Prefixes { .. }) => {
            (max_bytes / 8).saturating_mul(64).min(MAX_BITS)
        }
        (_, Geometry::Probes(_) | Geometry::Counters(_) | Geometry::Slices(_)) => {
            let place_bits = place_bits(kind, geometry);
            let left = max_bytes.saturating_sub(head_bits(geometry) / 8);
            match (left / (place_bits / 8)).min(max_places(kind, geometry)) {
                0 => 0,
                places => head_bits(geometry) + places * place_bits,
            }
        }
    };
    (bits > 0).then_some(bits)
}

/// What is the best of `bits` for some items.
pub(super) struct Best {
    pub rate: f64,
    pub geometry: Geometry,
    /// Not all of them, if a kind has no filter of just so many.
    pub bits: u64,
}

/// Returns the lowest rate of `items` in `bits`, and how it is reached.
pub(super) fn best(kind: Kind, geometry: Geometry, items: u64, bits: u64) -> Best {
    match (kind, geometry) {
        (Kind::Classic, _) => best_classic_in(items, bits),
        (_, Geometry::Slots { bucket, .. }) => {
            match cuckoo::plan_items_in(bucket, items, bits.saturating_sub(64)) {
                Some(table) => {
                    let (bits, geometry) = geometry_of(&table);
                    Best { rate: cuckoo::rate_at(&table, items), geometry, bits }
                }
                None => Best { rate: 1.0, geometry, bits },
            }
        }
        (_, Geometry::Prefixes { .. }) => {
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
                    Best { rate, geometry: growth.geometry(), bits: growth.bits_at(items) }
                }
                None => Best { rate: 1.0, geometry, bits },
            }
        }
        _ => Best { rate: rate_of(kind, geometry, bits, items), geometry, bits },
    }
}

fn best_classic_in(items: u64, bits: u64) -> Best {
    let ideal = bits as f64 / items as f64 * std::f64::consts::LN_2;
    let low = (ideal.floor() as u32).clamp(1, MAX_PROBES);
    (low..=(low + 1).min(MAX_PROBES))
        .map(|probes| {
            let rate = classic_rate(items, bits, probes);
            Best { rate, geometry: Geometry::Probes(probes), bits }
        })
        .min_by(|a, b| a.rate.total_cmp(&b.rate))
        .expect("at least one number of probes")
}

/// Computes the rate of a filter that holds `items` distinct items; a window holds them spread evenly.
pub(super) fn rate_of(kind: Kind, geometry: Geometry, bits: u64, items: u64) -> f64 {
    match (kind, geometry) {
        (Kind::Classic, geometry) => classic_rate(items, bits, geometry.to_number()),
        (_, Geometry::Slots { .. }) => {
            cuckoo_table(geometry, bits).map_or(1.0, |table| cuckoo::rate_at(&table, items))
        }
        (_, Geometry::Prefixes { .. }) => {
            Growth::of_geometry(geometry).map_or(1.0, |it| it.rate_at(items))
        }
        (_, Geometry::Probes(_) | Geometry::Counters(_) | Geometry::Slices(_)) => {
            places_rate(kind, geometry, items, places(kind, geometry, bits)).0
        }
    }
}

/// Tells whether there is a filter of this geometry.
pub(super) fn is_valid(kind: Kind, geometry: Geometry, bits: u64) -> bool {
    if bits == 0
        || bits > MAX_BITS
        || Geometry::from_number(kind, geometry.to_number()) != Some(geometry)
    {
        return false;
    }
    match (kind, geometry) {
        (Kind::Classic, _) => true,
        (_, Geometry::Slots { .. }) => cuckoo_table(geometry, bits).is_some(),
        (_, Geometry::Prefixes { .. }) => {
            bits.is_multiple_of(64) && Growth::of_geometry(geometry).is_some()
        }
        (_, Geometry::Probes(_) | Geometry::Counters(_) | Geometry::Slices(_)) => {
            let places_bits = bits.saturating_sub(head_bits(geometry));
            places_bits.is_multiple_of(place_bits(kind, geometry))
                && (1..=max_places(kind, geometry)).contains(&places(kind, geometry, bits))
        }
    }
}

/// The bits of a cuckoo filter, those of its slots and a spare word, which reads may touch; and its geometry.
pub(crate) fn geometry_of(table: &Table) -> (u64, Geometry) {
    let geometry = Geometry::Slots { bits: table.slot_bits(), bucket: table.bucket() };
    (table.len_bits() + 64, geometry)
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

/// Returns the table of a cuckoo filter of this geometry and so many bits, if there is one.
pub(crate) fn cuckoo_table(geometry: Geometry, bits: u64) -> Option<Table> {
    let Geometry::Slots { bits: slot_bits, bucket } = geometry else { return None };
    let slots_bits = bits.checked_sub(64)?;
    if !slots_bits.is_multiple_of(u64::from(slot_bits)) {
        return None;
    }
    Table::from_slots(bucket, slot_bits, slots_bits / u64::from(slot_bits))
}

fn growing_geometry(rate: f64) -> Option<Geometry> {
    Growth::for_rate(rate).map(Growth::geometry)
}

/// Bits of a lane: an item sets one in each of the eight of a block.
///
/// A block of a counting filter has several bits a counter, and a window has one for each slice: they are so narrow that all of
/// it is one cache line, where it can be.
pub(super) const fn lane_bits(kind: Kind, geometry: Geometry) -> u64 {
    match (kind, geometry) {
        (Kind::Parquet, _) | (_, Geometry::Slices(1)) => 32,
        (_, Geometry::Counters(_) | Geometry::Slices(_)) => 16,
        _ => 64,
    }
}

/// Bits of all that lies at the place of an item: a block, with all bits of its counters, or of each slice.
pub(super) const fn place_bits(kind: Kind, geometry: Geometry) -> u64 {
    let layers = match geometry {
        Geometry::Counters(counter_bits) => counter_bits as u64,
        Geometry::Slices(slices) => slices as u64 + 1,
        _ => 1,
    };
    LANES as u64 * lane_bits(kind, geometry) * layers
}

/// Bits before the places.
const fn head_bits(geometry: Geometry) -> u64 {
    match geometry {
        Geometry::Slices(_) => WINDOW_HEAD_BITS,
        _ => 0,
    }
}

/// How many places so many bits are.
pub(super) const fn places(kind: Kind, geometry: Geometry, bits: u64) -> u64 {
    bits.saturating_sub(head_bits(geometry)) / place_bits(kind, geometry)
}

/// Returns the most bits of whole places, up to so many; 0 if there is no room for one.
pub(super) const fn whole_places(kind: Kind, geometry: Geometry, max_bits: u64) -> u64 {
    match places(kind, geometry, max_bits) {
        0 => 0,
        places => head_bits(geometry) + places * place_bits(kind, geometry),
    }
}

const fn max_places(kind: Kind, geometry: Geometry) -> u64 {
    match kind {
        // Its rule takes the block from 32 bits of the hash; 2³¹ − 1 bytes is what its files can say.
        Kind::Parquet => (1 << 31) / 32 - 1,
        _ => places(kind, geometry, MAX_BITS),
    }
}

/// Returns the rate of a filter with this number of places, and its slope. In a window, `items` spread evenly
/// over the slices, and a lookup asks one slice more.
fn places_rate(kind: Kind, geometry: Geometry, items: u64, places: u64) -> (f64, f64) {
    let lane_bits = lane_bits(kind, geometry);
    let Geometry::Slices(slices) = geometry else { return blocks_rate(items, places, lane_bits) };
    let (of_slice, slope) = blocks_rate(items.div_ceil(u64::from(slices)), places, lane_bits);
    // 1 − (1 − r)ⁿ, which would lose the digits of a low rate.
    let n = f64::from(slices) + 1.0;
    let rate = -(n * (-of_slice).ln_1p()).exp_m1();
    (rate, slope * n * of_slice * (1.0 - rate) / ((1.0 - of_slice) * rate))
}

/// Returns the fewest bits, and at most `max_bits`, with which a kind that has places keeps `rate`.
pub(super) fn fewest_within(
    kind: Kind,
    geometry: Geometry,
    items: u64,
    rate: f64,
    max_bits: u64,
) -> Option<u64> {
    let guess = first_places(kind, geometry, items, rate);
    fewest_places(kind, geometry, items, rate, guess, max_bits)
}

/// Returns the fewest bits, and at most `max_bits`, of places that keep `rate`, from a guess of the places.
fn fewest_places(
    kind: Kind,
    geometry: Geometry,
    items: u64,
    rate: f64,
    guess: f64,
    max_bits: u64,
) -> Option<u64> {
    let most = places(kind, geometry, max_bits).min(max_places(kind, geometry));
    let rate_of = |places| places_rate(kind, geometry, items, places);
    let places = smallest_from(guess, most, rate, rate_of)?;
    Some(head_bits(geometry) + places * place_bits(kind, geometry))
}

/// Guesses how many places keep `rate`: within three per cent of the result at most rates.
fn first_places(kind: Kind, geometry: Geometry, items: u64, rate: f64) -> f64 {
    let (items, rate) = match geometry {
        Geometry::Slices(slices) => {
            let n = f64::from(slices);
            (items as f64 / n, -((-rate).ln_1p() / (n + 1.0)).exp_m1())
        }
        _ => (items as f64, rate),
    };
    let l = lane_bits(kind, geometry) as f64;
    // How much of a lane is filled at this rate, and by how many items.
    let filled = rate.sqrt().sqrt().sqrt();
    let even = -l * (-filled).ln_1p();
    let mean = if even < 1.5 {
        // Few blocks have more than two items: of mean λ, E f is about (λ + 127λ²)/L⁸.
        ((1.0 + 508.0 * rate * l.powi(8)).sqrt() - 1.0) / 254.0
    } else {
        // E f is about f + f″·mean/2; the last term is fitted.
        even * (1.0 - (8.0 * (1.0 - filled) - 1.0) / (2.0 * l * filled))
            + (1.0 - filled - (1.0 + l / 16.0) * filled * filled) / (0.28 + 0.11 * even)
    };
    items / mean
}

/// Returns the fewest bits of a window of one or three slices, with which a place is just one cache line:
/// three take a seventh less at 1 %, and from about 10⁻⁵ on one takes less, for its wider lanes.
fn best_window(items: u64, rate: f64) -> Option<(u64, Geometry)> {
    let geometries = [3, 1].map(Geometry::Slices);
    let guesses = geometries.map(|geometry| first_places(Kind::Window, geometry, items, rate));
    fewer(guesses, geometries, |geometry, guess, max_bits| {
        fewest_places(Kind::Window, geometry, items, rate, guess, max_bits)
    })
}

/// Returns the fewest bits, with their probes, that keep `rate` at `items` by the approximate formula.
///
/// The exact rate is never above it, and takes a hundred times as long.
fn best_classic(items: u64, rate: f64) -> Option<(u64, Geometry)> {
    let low = (-rate.log2()).floor().clamp(1.0, f64::from(MAX_PROBES - 1)) as u32;
    let geometries = [low, low + 1].map(Geometry::Probes);
    let guesses = [low, low + 1].map(|probes| classic_bits(items, rate, probes));
    fewer(guesses, geometries, |geometry, guess, max_bits| {
        let rate_of = |bits| approximate_classic_rate(items, bits, geometry.to_number());
        smallest_from(guess, max_bits, rate, rate_of)
    })
}

/// Finds which of two geometries takes fewer bits, the first one of equals. `settle` finds the fewest bits of a
/// geometry from a guess, up to a limit.
fn fewer(
    guesses: [f64; 2],
    geometries: [Geometry; 2],
    settle: impl Fn(Geometry, f64, u64) -> Option<u64>,
) -> Option<(u64, Geometry)> {
    // The better guess first: then one step shows that the other geometry takes more.
    let first = usize::from(guesses[1] < guesses[0]);
    let of = |i: usize, max_bits| settle(geometries[i], guesses[i], max_bits).map(|bits| (bits, i));
    let found = of(first, MAX_BITS);
    let other = of(1 - first, found.map_or(MAX_BITS, |(bits, _)| bits));
    found.into_iter().chain(other).min().map(|(bits, i)| (bits, geometries[i]))
}

/// Computes about how many bits a classic filter takes.
pub(super) fn about_classic_bits(items: u64, rate: f64) -> f64 {
    classic_bits(items, rate, (-rate.log2()).round().clamp(1.0, f64::from(MAX_PROBES)) as u32)
}

/// Computes about how many bits of this number of probes keep `rate`, from the mean alone.
fn classic_bits(items: u64, rate: f64, probes: u32) -> f64 {
    let k = f64::from(probes);
    -k * items as f64 / (-rate.powf(1.0 / k)).ln_1p()
}
