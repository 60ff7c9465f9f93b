//! The rate of double hashing. For the hashes `a` and `b`, probe `i` is `a + i·b` modulo the number of bits.
//!
//! Let m be the number of bits, k the number of probes and f the fill. Three effects raise the rate
//! above fᵏ:
//!
//! * **Repeated probes.** If `r·b` is a multiple of m for a small `r`, the probes visit only `r` positions. For each
//!   divisor `r` of m, φ(r) of the m residues of `b` give exactly `r` positions.
//! * **Sums that wrap.** The sum has W bits. Each wrap of the sum moves the position by w = 2ᵂ mod m. Because of the
//!   wraps, the probes repeat if `r·b ≡ t·w` modulo m for some `t`. Two probes that repeat because of wraps are equal
//!   only if the sum has wrapped `t` times between the two probes. If m is a power of two, w is 0 and wraps have no
//!   effect.
//! * **Aligned items.** If an inserted item has the same step as an absent item, the positions of both items can differ
//!   by a multiple of the step. The probability of two aligned items is about 1/m² for each inserted item. If the two
//!   items are aligned, nearly all bits of the absent item are set.
//!
//! Some rules count positions in the opposite direction while the sum is negative. For a rule that changes the
//! direction, the positions of an item are on two progressions.
//!
//! The number of positions depends on where the sum wraps. The formulas average the number of positions over a fixed
//! sample of starts and steps. For filters above a few thousand bits, the result differs from simulations by a few per
//! cent. The rates of filters with at most [`MEASURED_BITS`] bits are measured.
//!
//! Source: Kirsch and Mitzenmacher, "Less Hashing, Same Performance" (2006); Dillinger and Manolios,
//! "Bloom Filters in Probabilistic Verification" (2004), §5.

use tamis::Modulus;

use crate::rules::rates::measure::{is_set, measure};
use crate::rules::rates::residues::{power_of_two, sample, solve, times};
use crate::rules::rates::{EstimatedRate, chance};

/// The sums of a rule, before the reduction to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sums {
    /// The sums do not overflow.
    Exact,
    /// The sums keep only the given number of low bits.
    Wrapped(u32),
    /// The sums are signed integers of the given number of bits. All bits of a negative sum are flipped.
    Flipped(u32),
    /// The sums are signed integers of the given number of bits. The absolute value of the sum is used.
    Absolute(u32),
}

/// Double hashing with `probes` probes in `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progression {
    pub(crate) bits: Modulus,
    pub(crate) probes: u32,
    pub(crate) sums: Sums,
}

/// The largest number of bits for which the rate is measured. In a small filter, more than two items often share
/// positions.
pub(crate) const MEASURED_BITS: u64 = 4096;

/// The largest number of probes within which a repetition of the step is considered. Chance seldom sets all bits of
/// more than 12 positions.
const MAX_REPEATED: u64 = 12;

/// The largest number of probes that is considered. More than 48 probes hardly change the effects of repeated probes.
const MAX_PROBES: u32 = 48;

/// The number of samples of starts and steps for each of the two effects, repeated probes and aligned items.
const SAMPLES: u32 = if cfg!(fuzzing) { 2 } else { 32 };

/// The largest number of filters of a file for which the excess of the rate is computed. The computation takes up to a
/// few milliseconds per filter.
pub(crate) const MOST_COMPUTED: usize = 64;

/// A filter whose rate is computed.
pub(crate) struct Filled {
    pub(crate) rule: Progression,
    /// The share of set bits.
    pub(crate) fill: f64,
    /// The number of items of the filter.
    pub(crate) items: f64,
}

impl Filled {
    /// Computes the rate.
    pub(crate) fn rate(&self) -> f64 {
        self.rule.rate(self.fill, self.items)
    }

    /// Tests whether the rate differs from the rate of independent probes, or must be measured.
    fn is_costly(&self) -> bool {
        self.rule.bits.bits() <= MEASURED_BITS || self.rule.has_excess(self.fill, self.items)
    }
}

/// Computes the rates of the filters of one file in bounded time. Returns the rates, and the standard deviation of the
/// sum of the rates divided by the sum.
///
/// `rate_of` computes or measures the rate of the filter at an index. If there are more than [`MOST_COMPUTED`] filters,
/// `rate_of` is called only for a sample. The sample consists of the filters with the highest rates, and of evenly
/// spaced filters among the remaining filters. A filter outside the sample gets the excess of the previous filter in
/// the sample, in inverse proportion to the number of bits. The excess is the difference of a rate from the rate of
/// independent probes.
pub(crate) fn rates_of(
    filters: &[Filled],
    mut rate_of: impl FnMut(usize, &Filled) -> f64,
) -> (Vec<f64>, f64) {
    const HIGHEST: usize = MOST_COMPUTED * 3 / 4;
    let mut rates: Vec<f64> =
        filters.iter().map(|it| it.fill.powf(it.rule.probes.into())).collect();
    let mut costly: Vec<usize> = (0..filters.len()).filter(|&i| filters[i].is_costly()).collect();
    costly.sort_by(|&one, &other| rates[other].total_cmp(&rates[one]));
    let step = match costly.len() {
        ..=MOST_COMPUTED => 1,
        many => (many - HIGHEST).div_ceil(MOST_COMPUTED - HIGHEST),
    };
    let (mut scaled, mut samples, mut sum_of_parts) = (0.0, Vec::new(), 0.0);
    for (place, &i) in costly.iter().enumerate() {
        let m = filters[i].rule.bits.bits() as f64;
        let behind = place.checked_sub(HIGHEST);
        if behind.is_none_or(|behind| behind.is_multiple_of(step)) {
            let rate = rate_of(i, &filters[i]);
            scaled = (rate - rates[i]) * m;
            rates[i] = rate;
        } else {
            rates[i] = (rates[i] + scaled / m).clamp(0.0, 1.0);
        }
        if behind.is_some() && step > 1 {
            sum_of_parts += 1.0 / m;
            samples.push(scaled);
        }
    }
    let (n, sum) = (samples.len() as f64, rates.iter().sum::<f64>());
    if samples.is_empty() || sum == 0.0 {
        return (rates, 0.0);
    }
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n;
    // The variance is not divided by the number of samples, because filters of a few sizes have a far higher excess
    // than all other filters.
    (rates, variance.sqrt() * sum_of_parts / sum)
}

/// A position of an item relative to the first hash of the item. The flag is true if the sum is negative, so that the
/// position is counted in the opposite direction.
type Offset = (bool, u64);

impl Progression {
    /// Estimates the rate of a filter with the bits `words`. `fill` is the probability that a probe
    /// finds a set bit.
    pub(crate) fn estimate_rate(&self, words: &[u64], fill: f64) -> EstimatedRate {
        let bits = self.bits.bits();
        let items = -(-fill).ln_1p() * bits as f64 / f64::from(self.probes);
        let std_error = chance(fill, bits, self.probes);
        if bits > MEASURED_BITS || !(fill > 0.0 && fill < 1.0) {
            return EstimatedRate { rate: self.rate(fill, items), std_error };
        }
        let computed = || self.rate(fill, items);
        measure(std_error, computed, |random| self.test(words, random.next(), random.next()))
    }

    /// Computes the rate of a filter of `items` items. `fill` is the share of set bits.
    pub(crate) fn rate(&self, fill: f64, items: f64) -> f64 {
        let at_once = fill.powf(self.probes.into());
        (at_once + self.excess(fill, items)).min(1.0)
    }

    /// Computes the excess of the rate over the rate of independent probes. Returns 0 if the excess is below five per
    /// mille.
    pub(crate) fn excess(&self, fill: f64, items: f64) -> f64 {
        match self.has_excess(fill, items) {
            true => self.repeated(fill) + self.aligned(fill, items),
            false => 0.0,
        }
    }

    /// Tests whether the rate may differ from the rate of independent probes by at least five per mille.
    fn has_excess(&self, fill: f64, items: f64) -> bool {
        if !(fill > 0.0 && fill < 1.0) || self.probes < 2 {
            return false;
        }
        let m = self.bits.bits() as f64;
        // `most` is an upper bound for the effects of repeated probes and of aligned items.
        let most = fill / (1.0 - fill).powi(2) + 12.0 * items / m / (1.0 - fill);
        most / m >= 0.005 * fill.powf(self.probes.into())
    }

    /// Returns the increase of the rate by repeated probes.
    fn repeated(&self, fill: f64) -> f64 {
        let (m, k, wrap) = (self.bits.bits(), self.considered_probes(), self.wrap());
        let at_once = fill.powf(k.into());
        let (mut sum, mut seen) = (0.0, Vec::new());
        let mut offsets = Vec::new();
        for r in 1..u64::from(k).min(MAX_REPEATED + 1) {
            let wraps = if wrap == 0 { 0 } else { r };
            let from = seen.len();
            for b in (0..=wraps).flat_map(|t| solve(r, times(t.cast_signed(), wrap, m), m)) {
                if !seen.contains(&b) {
                    seen.push(b);
                }
            }
            for &b in &seen[from..] {
                for [start, step, ..] in (0..SAMPLES).map(sample) {
                    self.offsets(b, start, step, &mut offsets);
                    offsets.sort_unstable();
                    offsets.dedup();
                    sum += fill.powi(offsets.len() as i32) - at_once;
                }
            }
        }
        // If each wrap moves the positions, probes after the considered probes repeat only for steps that are nearer to
        // a fraction of the range.
        let nearer = if wrap == 0 { 1.0 } else { f64::from(k) / f64::from(self.probes) };
        sum / f64::from(SAMPLES) / m as f64 * nearer
    }

    /// Returns the increase of the rate by items with the same step or with the opposite step.
    fn aligned(&self, fill: f64, items: f64) -> f64 {
        let (m, k, wrap) = (self.bits.bits(), self.considered_probes() as i32, self.wrap());
        let (at_once, clear) = (fill.powi(k), 1.0 - fill);
        let shared = |count: i32| {
            let n = f64::from(count);
            // The increase of the rate if one item has set `count` of the bits. One or two shared bits do not raise the
            // rate above the rate of independent probes.
            fill.powi(k - count)
                - at_once
                - n * fill.powi(k - 1) * clear
                - n * (n - 1.0) / 2.0 * fill.powi(k - 2) * clear * clear
        };
        let wraps: &[i64] = if wrap == 0 { &[0] } else { &[-1, 0, 1] };
        let (mut absent, mut item, mut distances) = (Vec::new(), Vec::new(), Vec::new());
        let mut sum = 0.0;
        for [start, step, item_start, item_step, b, _] in (0..SAMPLES).map(sample) {
            let b = (b * m as f64) as u64;
            self.offsets(b, start, step, &mut absent);
            for (sign, &wrapped) in
                [1, -1].into_iter().flat_map(|it| wraps.iter().map(move |w| (it, w)))
            {
                let of_item = (times(sign, b, m) + times(wrapped, wrap, m)) % m;
                self.offsets(of_item, item_start, item_step, &mut item);
                for is_opposite in [false, true] {
                    distances.clear();
                    for (&(sign, x), probe) in absent.iter().zip(0_u32..) {
                        let of_sign = item.iter().filter(|it| (it.0 != sign) == is_opposite);
                        distances.extend(of_sign.map(|&(_, y)| {
                            let y = if is_opposite { y } else { m - y };
                            ((x + y) % m, probe)
                        }));
                    }
                    distances.sort_unstable();
                    distances.dedup();
                    for same in distances.chunk_by(|one, other| one.0 == other.0) {
                        if same.len() > 2 {
                            sum += shared(same.len() as i32);
                        }
                    }
                }
            }
        }
        sum / f64::from(SAMPLES) * items / (m as f64 * m as f64)
    }

    /// Returns the distance by which a wrap of the sum moves the position.
    fn wrap(&self) -> u64 {
        match self.sums {
            Sums::Exact => 0,
            Sums::Wrapped(width) | Sums::Flipped(width) | Sums::Absolute(width) => {
                power_of_two(width, self.bits.bits())
            }
        }
    }

    fn considered_probes(&self) -> u32 {
        self.probes.min(MAX_PROBES)
    }

    /// Computes the positions of an item relative to the first hash of the item. `b` is the residue of the step.
    /// `start` and `step` are the first hash and the step, as fractions of the range of the sums.
    fn offsets(&self, b: u64, start: f64, step: f64, offsets: &mut Vec<Offset>) {
        let (m, wrap) = (self.bits.bits(), self.wrap());
        offsets.clear();
        offsets.extend((0..i64::from(self.considered_probes())).map(|i| {
            let sum = start + i as f64 * step;
            let (wraps, is_negative) = match self.sums {
                Sums::Exact => (0.0, false),
                Sums::Wrapped(_) => (sum.floor(), false),
                // The negative integers are the second half of the range of the sums.
                Sums::Flipped(_) | Sums::Absolute(_) => (sum.round(), sum < sum.round()),
            };
            (is_negative, (times(i, b, m) + times(-(wraps as i64), wrap, m)) % m)
        }));
    }

    /// Tests a random item. Returns whether the filter reports the item as present, and the number of bits that were
    /// read.
    fn test(&self, words: &[u64], a: u64, b: u64) -> (bool, u32) {
        let mut sum = a;
        let shift = |width: u32| 64 - width;
        for probe in 0..self.probes {
            let value = match self.sums {
                // An exact sum does not overflow, so the residues of both hashes replace the hashes.
                Sums::Exact => {
                    let m = self.bits.bits();
                    (u128::from(a % m) + u128::from(b % m) * u128::from(probe)) as u64
                }
                Sums::Wrapped(width) => sum << shift(width) >> shift(width),
                Sums::Flipped(width) => {
                    let signed = (sum << shift(width)).cast_signed() >> shift(width);
                    (if signed < 0 { !signed } else { signed }).cast_unsigned()
                }
                Sums::Absolute(width) => {
                    ((sum << shift(width)).cast_signed() >> shift(width)).unsigned_abs()
                }
            };
            if !is_set(words, self.bits.reduce(value)) {
                return (false, probe + 1);
            }
            sum = sum.wrapping_add(b);
        }
        (true, self.probes)
    }

    /// Returns the binary logarithm of the number of values that are reduced to positions. Returns `None` if the number
    /// of values is far larger than the number of positions.
    pub(crate) fn log2_values(&self) -> Option<u32> {
        let width = match self.sums {
            Sums::Exact => return None,
            Sums::Wrapped(width) => width,
            Sums::Flipped(width) | Sums::Absolute(width) => width - 1,
        };
        Some(width).filter(|&width| width <= 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a half-full filter of `words` words.
    fn half_full(words: u64) -> Filled {
        let bits = Modulus::new(words * 64).unwrap();
        let rule = Progression { bits, probes: 7, sums: Sums::Wrapped(64) };
        Filled { rule, fill: 0.5, items: words as f64 * 64.0 * 0.1 }
    }

    #[test]
    fn very_many_probes_seldom_repeat() {
        for (words, probes) in [(41, 100), (101, 200)] {
            let bits = Modulus::new(words * 64).unwrap();
            let rule = Progression { bits, probes, sums: Sums::Wrapped(64) };
            let mut random = crate::rules::rates::measure::SplitMix::new(7);
            let bits: Vec<u64> = (0..words).map(|_| random.next()).collect();
            let tested = 20_000_000;
            let found = (0..tested).filter(|_| rule.test(&bits, random.next(), random.next()).0);
            let measured = found.count() as f64 / f64::from(tested);
            let ratio = rule.rate(0.5, 1e-9) / measured;
            assert!((0.8..1.6).contains(&ratio), "{words} {probes}: {ratio}");
        }
    }

    #[test]
    fn the_rates_of_few_filters_are_computed() {
        let few: Vec<Filled> = (1..=MOST_COMPUTED as u64).map(|i| half_full(10 * i)).collect();
        let (rates, error) = rates_of(&few, |_, filter| filter.rate());
        assert_eq!(rates, few.iter().map(Filled::rate).collect::<Vec<_>>());
        assert_eq!(error, 0.0);
        assert_eq!(rates_of(&[], |_, _| panic!()), (vec![], 0.0));
    }

    #[test]
    fn the_rates_of_many_filters_are_estimated_with_their_error() {
        let mut random = crate::rules::rates::measure::SplitMix::new(1);
        let many: Vec<Filled> = (0..5_000).map(|_| half_full(8 + random.next() % 24)).collect();
        let (rates, error) = rates_of(&many, |_, filter| filter.rate());
        let of_sizes: f64 = (8..32).map(|words| half_full(words).rate()).sum();
        let (sum, expected) = (rates.iter().sum::<f64>(), of_sizes * 5_000.0 / 24.0);
        assert!(error > 0.0 && error < 1.0, "{error}");
        let difference = (sum / expected - 1.0).abs();
        assert!(difference < 3.0 * error + 0.01, "{sum} {expected} {error}");
    }
}
