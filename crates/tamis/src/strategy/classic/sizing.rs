//! Sizes of classic filters.

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::geometry::Geometry;
use crate::plan::rates::{approximate_classic_rate, classic_rate};
use crate::plan::search::{fewer, smallest_from};
use crate::plan::sizing::{Best, MAX_BITS, Sample, Sizing};

/// The maximum number of probes of a classic filter.
const MAX_PROBES: u32 = 255;

/// The formulas of classic filters. A classic filter can have any number of bits and up to
/// `MAX_PROBES` probes.
pub(crate) struct ClassicSizing;

impl Sizing for ClassicSizing {
    fn geometry(&self, number: u32) -> Option<Geometry> {
        (1..=MAX_PROBES).contains(&number).then_some(Geometry::Probes(number))
    }

    fn usual_geometry(&self, _: u64, rate: f64) -> Geometry {
        Geometry::Probes((-rate.log2()).floor().clamp(1.0, f64::from(MAX_PROBES)) as u32)
    }

    /// Uses the approximate formula for the rate. The approximate result is never below the exact
    /// rate, and the exact formula takes a hundred times as long as the approximate formula.
    fn fewest(&self, _: Geometry, items: u64, rate: f64) -> Option<(u64, Geometry)> {
        let low = (-rate.log2()).floor().clamp(1.0, f64::from(MAX_PROBES - 1)) as u32;
        let geometries = [low, low + 1].map(Geometry::Probes);
        let guesses = [low, low + 1].map(|probes| bits_by_mean(items, rate, probes));
        fewer(guesses, geometries, MAX_BITS, |geometry, guess, max_bits| {
            let rate_of = |bits| approximate_classic_rate(items, bits, geometry.to_number());
            smallest_from(guess, max_bits, rate, rate_of)
        })
    }

    fn best(&self, _: Geometry, items: u64, bits: u64) -> Best {
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

    fn rate_at(&self, geometry: Geometry, bits: u64, items: u64) -> f64 {
        classic_rate(items, bits, geometry.to_number())
    }

    fn is_valid(&self, _: Geometry, _: u64) -> bool {
        true
    }

    fn sample(&self, geometry: Geometry, bits: u64, items: u64) -> Option<Sample> {
        let draws = items as f64 * f64::from(geometry.to_number());
        Some(Sample { parts: 1.0, bits: bits as f64, draws, rate_deviation: 0.0 })
    }

    fn part_bits(&self, _: Geometry, max_bits: u64) -> Option<u64> {
        Some(max_bits)
    }

    fn cache_lines(&self, geometry: Geometry) -> u32 {
        geometry.to_number()
    }
}

/// Estimates the number of bits of a classic filter.
pub(crate) fn estimate_bits(items: u64, rate: f64) -> f64 {
    bits_by_mean(items, rate, (-rate.log2()).round().clamp(1.0, f64::from(MAX_PROBES)) as u32)
}

/// Estimates how many bits keep `rate` with this number of probes. The estimate uses only the mean
/// number of set bits.
fn bits_by_mean(items: u64, rate: f64, probes: u32) -> f64 {
    let k = f64::from(probes);
    -k * items as f64 / (-rate.powf(1.0 / k)).ln_1p()
}
