//! The rate of enhanced double hashing. For the hashes a and b, probe i is a + i·b + (i³ − i)/6 modulo the number of
//! bits m.
//!
//! The cubic term separates the probes of two items whose sequences overlap. Two effects raise the rate above the rate
//! of distinct random positions:
//!
//! * Probes of one item repeat.
//! * An absent item and an inserted item have equal values of a, and values of b that differ by a multiple of a simple
//!   fraction of m.
//!
//! Source: Dillinger and Manolios, "Bloom Filters in Probabilistic Verification" (2004), section 5.2.

use tamis::Modulus;

use crate::rules::probe_rule::fill;
use crate::rules::rates::measure::{measure, test_bits};
use crate::rules::rates::progression::MEASURED_BITS;
use crate::rules::rates::residues::solve;
use crate::rules::rates::{EstimatedRate, chance};

/// Enhanced double hashing with `probes` probes in `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enhanced {
    pub(crate) bits: Modulus,
    pub(crate) probes: u32,
}

/// The largest number of probes that is considered. More than 48 probes hardly change the effects.
const MAX_PROBES: u32 = 48;

impl Enhanced {
    /// Returns the bit numbers of an item with the hashes `a` and `b`.
    #[inline]
    pub(crate) fn each_probe(&self, a: u32, b: u32) -> impl Iterator<Item = u64> {
        let (bits, mut sum, mut step) = (self.bits, u64::from(a), u64::from(b));
        (1..=u64::from(self.probes)).map(move |i| {
            let bit = bits.reduce(sum);
            sum += step;
            step += i;
            bit
        })
    }

    /// Estimates the rate of a filter with the bits `words`.
    pub(crate) fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let bits = self.bits.bits();
        let fill = fill(words, bits);
        let std_error = chance(fill, bits, self.probes);
        if bits > MEASURED_BITS || !(fill > 0.0 && fill < 1.0) {
            return EstimatedRate { rate: self.rate(fill), std_error };
        }
        let computed = || self.rate(fill);
        measure(std_error, computed, |random| {
            let hashes = random.next();
            test_bits(words, self.each_probe(hashes as u32, (hashes >> 32) as u32))
        })
    }

    /// Computes the rate of a filter whose share of set bits is `fill`.
    fn rate(&self, fill: f64) -> f64 {
        if !(fill > 0.0 && fill < 1.0) {
            return fill;
        }
        let (m, k) = (self.bits.bits() as f64, self.probes);
        let items = -(-fill).ln_1p() * m / f64::from(k);
        let all_distinct = self.all_set(fill, k);
        (all_distinct + self.repeated(fill) + self.aligned(fill, items)).clamp(0.0, 1.0)
    }

    /// Returns the probability that `count` distinct positions are all set.
    fn all_set(&self, fill: f64, count: u32) -> f64 {
        let m = self.bits.bits() as f64;
        let set = fill * m;
        (0..count).map(|i| ((set - f64::from(i)) / (m - f64::from(i))).max(0.0)).product()
    }

    /// Returns the increase of the rate by repeated probes of an item. The increase is the sum over all values of b for
    /// which two probes of an item are equal.
    fn repeated(&self, fill: f64) -> f64 {
        let (m, k) = (self.bits.bits(), u64::from(self.considered_probes()));
        let cubic = |i: u64| (i * i * i - i) / 6;
        let equal_at = |i: u64, j: u64| {
            let difference = (cubic(j) - cubic(i)) % m;
            solve(j - i, (m - difference) % m, m)
        };
        let pairs = (1..k).flat_map(|j| (0..j).map(move |i| (i, j)));
        let mut steps: Vec<u64> = pairs.flat_map(|(i, j)| equal_at(i, j)).collect();
        steps.sort_unstable();
        steps.dedup();
        let all_distinct = self.all_set(fill, k as u32);
        let mut positions = Vec::new();
        let excess = steps.into_iter().map(|b| {
            positions.clear();
            let at =
                |i| ((u128::from(i) * u128::from(b) + u128::from(cubic(i))) % u128::from(m)) as u64;
            positions.extend((0..k).map(at));
            positions.sort_unstable();
            positions.dedup();
            self.all_set(fill, positions.len() as u32) - all_distinct
        });
        excess.sum::<f64>() / m as f64
    }

    /// Returns the increase of the rate by items that share many positions with an absent item. If the values of b
    /// differ by a multiple of m/d, every d-th probe can be equal.
    fn aligned(&self, fill: f64, items: f64) -> f64 {
        let (m, k) = (self.bits.bits(), self.considered_probes());
        let (at_once, clear) = (fill.powi(k as i32), 1.0 - fill);
        let shared = |count: u32| {
            let (n, k, rest) = (f64::from(count), k as i32, (k - count) as i32);
            // One or two shared positions do not raise the rate above the rate of independent probes.
            let expected = at_once
                + n * fill.powi(k - 1) * clear
                + n * (n - 1.0) / 2.0 * fill.powi(k - 2) * clear * clear;
            (fill.powi(rest) - expected).max(0.0)
        };
        let divisors = (1..=k).filter(|&d| m.is_multiple_of(d.into()));
        let sum: f64 = divisors
            .map(|d| {
                let multiples = (1..=d).filter(|&i| is_coprime(i, d)).count() as f64;
                let counts = (0..d).map(|first| (k - first).div_ceil(d));
                multiples * counts.filter(|&count| count > 2).map(shared).sum::<f64>()
            })
            .sum();
        sum * items / (m as f64 * m as f64)
    }

    fn considered_probes(&self) -> u32 {
        self.probes.min(MAX_PROBES)
    }
}

fn is_coprime(a: u32, b: u32) -> bool {
    if b == 0 { a == 1 } else { is_coprime(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::rates::measure::SplitMix;

    /// Fills a filter with random items. Returns the computed and the measured rate.
    fn rates(bits: u64, probes: u32, items: u32) -> (f64, f64) {
        let rule = Enhanced { bits: Modulus::new(bits).unwrap(), probes };
        let mut random = SplitMix::new(bits);
        let (mut found, mut computed, mut tested) = (0, 0.0, 0);
        const FILTERS: u32 = 8;
        for _ in 0..FILTERS {
            let mut words = vec![0_u64; bits.div_ceil(64) as usize];
            for _ in 0..items {
                let hashes = random.next();
                for bit in rule.each_probe(hashes as u32, (hashes >> 32) as u32) {
                    words[(bit / 64) as usize] |= 1 << (bit % 64);
                }
            }
            computed += rule.rate(fill(&words, bits)) / f64::from(FILTERS);
            for _ in 0..1_000_000 {
                let hashes = random.next();
                let probes = rule.each_probe(hashes as u32, (hashes >> 32) as u32);
                found += u32::from(test_bits(&words, probes).0);
                tested += 1;
            }
        }
        (computed, f64::from(found) / f64::from(tested))
    }

    #[test]
    fn the_computed_rate_is_the_measured_one() {
        // With 20 probes, nearly all false positives share both hashes with an inserted item. With 4,200 bits, items
        // share every second to seventh probe.
        for (bits, probes, items) in
            [(4_200, 20, 145), (4_201, 7, 400), (5_000, 14, 100), (5_040, 10, 300), (700, 12, 20)]
        {
            let (computed, measured) = rates(bits, probes, items);
            let found = measured * 8e6;
            let within = 0.1 + 4.0 / found.sqrt();
            let ratio = computed / measured;
            assert!(
                (ratio - 1.0).abs() < within,
                "{bits} {probes} {items}: {computed:e} {measured:e}"
            );
        }
    }
}
