//! Sizes of growing filters. The module `prefixes` contains the rule of growth.

use crate::filter::growing::prefixes::growth::Growth;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::geometry::Geometry;
use crate::plan::search::smallest;
use crate::plan::sizing::{Best, Sizing};

/// The formulas of growing filters. The rate determines the rule of growth, and the rule determines
/// the number of bits.
pub(crate) struct GrowingSizing;

impl Sizing for GrowingSizing {
    fn geometry(&self, number: u32) -> Option<Geometry> {
        let (bits, split_at) = (number & 0xff, number >> 8);
        let is_known = (1..=64).contains(&bits) && (1..=1 << 16).contains(&split_at);
        is_known.then_some(Geometry::Prefixes { bits, split_at })
    }

    fn usual_geometry(&self, _: u64, rate: f64) -> Geometry {
        let growth = Growth::for_rate(rate);
        growth.map_or(Geometry::Prefixes { bits: 64, split_at: 1 }, Growth::geometry)
    }

    fn fewest(&self, _: Geometry, items: u64, rate: f64) -> Option<(u64, Geometry)> {
        let growth = Growth::for_rate(rate)?;
        (items <= growth.max_entries()).then(|| (growth.bits_at(items), growth.geometry()))
    }

    fn best(&self, geometry: Geometry, items: u64, bits: u64) -> Best {
        // The search tries the powers of two whose exponents are multiples of an eighth.
        let rate_of = |step: u64| (-(step as f64) / 8.0).exp2();
        let fits = |step: u64| {
            Growth::for_rate(rate_of(step)).is_some_and(|growth| {
                growth.bits_at(items) <= bits && items <= growth.max_entries()
            })
        };
        // `lowest` is the step before the first step whose rate is too low for `bits`.
        let lowest = smallest(1, 8 * 60, |step| !fits(step)).map_or(8 * 60, |step| step - 1);
        match (lowest > 0).then(|| rate_of(lowest)) {
            Some(rate) => {
                let growth = Growth::for_rate(rate).expect("this rate has a rule");
                Best { rate, geometry: growth.geometry(), bits: growth.bits_at(items) }
            }
            None => Best { rate: 1.0, geometry, bits },
        }
    }

    /// Returns the maximum number of items before a growing filter exceeds `max_bytes`.
    fn largest(&self, max_bytes: u64, rate: f64) -> Option<(u64, (u64, Geometry))> {
        let growth = Growth::for_rate(rate)?;
        let max_bits = max_bytes.saturating_mul(8);
        let too_many = |items: u64| growth.bits_at(items) > max_bits;
        let items = match smallest(1, growth.max_entries(), too_many) {
            Some(over) => over - 1,
            None => growth.max_entries(),
        };
        (items > 0).then(|| (items, (growth.bits_at(items), growth.geometry())))
    }

    fn rate_at(&self, geometry: Geometry, _: u64, items: u64) -> f64 {
        Growth::of_geometry(geometry).map_or(1.0, |growth| growth.rate_at(items))
    }

    fn lowest_rate_above(&self, rate: f64) -> Option<f64> {
        Growth::for_rate(rate).is_none().then(Growth::lowest_rate)
    }

    fn is_valid(&self, geometry: Geometry, bits: u64) -> bool {
        bits.is_multiple_of(64) && Growth::of_geometry(geometry).is_some()
    }

    fn cache_lines(&self, _: Geometry) -> u32 {
        // A lookup reads the directory, the page's header, and usually one line of a block.
        3
    }
}
