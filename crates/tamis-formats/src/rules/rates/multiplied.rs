//! The rate of rules that multiply a 64-bit state by an odd factor for each probe.
//!
//! Let the number of bits be 2ᵃ · o, with o odd. Because the product wraps at 2⁶⁴, the state modulo 2ᵃ depends only on
//! the previous state modulo 2ᵃ. The states visit the residues modulo 2ᵃ in a fixed order. The bits form 2ᵃ classes of
//! o bits each. If two items are in the same class at some probe, the classes of all following probes of both items are
//! equal:
//!
//! ```text
//! item      5 → 12 → 3 → 7
//! absent        12 → 3 → 7 → 10      the last probe alone leaves the classes of the item
//! ```
//!
//! Within a class, the bit depends on the high bits of the state, so the bit is treated as independent. The rate is the
//! mean, over all first classes, of the product of the fills of the visited classes.

use crate::rules::rates::measure::{SplitMix, is_set, measure, test_bits};
use crate::rules::rates::{EstimatedRate, chance};

/// The number of bits in a class from which all classes are about equally full. If all classes are about equally full,
/// the product of their fills differs from a power of the fill by less than a hundredth.
const WIDE: u64 = 4096;

/// The number of bits that an estimate reads.
const READ_BITS: u64 = if cfg!(fuzzing) { 1 << 13 } else { 1 << 20 };

/// The smallest number of first classes that an estimate uses.
const LEAST_SAMPLES: u64 = 16;

/// A filter whose rule multiplies a state by a factor for each probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiplied<'w> {
    pub(crate) words: &'w [u64],
    pub(crate) bits: u64,
    pub(crate) probes: u32,
    pub(crate) factor: u64,
}

impl Multiplied<'_> {
    /// Estimates the rate of a filter whose share of set bits is `fill`. `probes_of` returns the probes of an item with
    /// a random hash.
    pub(crate) fn estimate_rate<P: Iterator<Item = u64>>(
        &self,
        fill: f64,
        probes_of: impl Fn(u64) -> P,
    ) -> EstimatedRate {
        let std_error = chance(fill, self.bits, self.probes);
        if !(fill > 0.0 && fill < 1.0) {
            return EstimatedRate { rate: fill, std_error };
        }
        measure(
            std_error,
            || self.computed(fill),
            |random| test_bits(self.words, probes_of(random.next())),
        )
    }

    fn computed(&self, fill: f64) -> f64 {
        let classes = 1 << self.bits.trailing_zeros();
        let width = self.bits / classes;
        let independent = fill.powf(self.probes.into());
        // If a hostile file states many probes, the estimate would be slow or would have too few samples.
        let is_costly = LEAST_SAMPLES * width * u64::from(self.probes) > READ_BITS;
        if width >= WIDE || is_costly {
            return independent;
        }
        self.mean_product(classes, width).max(self.shared(fill, classes, width)).max(independent)
    }

    /// Returns the mean product of the fills of the classes that random items visit.
    fn mean_product(&self, classes: u64, width: u64) -> f64 {
        let (mut random, mut read) = (SplitMix::new(1), 0);
        let (mut sum, mut count) = (0.0, 0_u64);
        while read < READ_BITS {
            let (mut class, mut product) = (random.next() % classes, 1.0);
            for _ in 0..self.probes {
                let bits = (0..width).map(|i| class + i * classes);
                let set = bits.filter(|&bit| is_set(self.words, bit)).count();
                product *= set as f64 / width as f64;
                read += width;
                if set == 0 {
                    break;
                }
                class = class.wrapping_mul(self.factor) % classes;
            }
            sum += product;
            count += 1;
        }
        sum / count as f64
    }

    /// Returns the rate of absent items that share almost all classes with an inserted item. The returned rate is a
    /// lower bound for a filter with few items. In a filter with few items, an absent item with a random first class
    /// gives no false positive.
    fn shared(&self, fill: f64, classes: u64, width: u64) -> f64 {
        let items = -(-fill).ln_1p() * self.bits as f64 / f64::from(self.probes);
        let in_class = 1.0 / width as f64;
        let moved = |by: u32| in_class.powf((self.probes - by).into()) * fill.powf(by.into());
        // The sum contains the shifts of the classes by 1 to `probes` − 1 probes, in both directions.
        let both: f64 = (1..self.probes).map(|by| 2.0 * moved(by)).sum();
        (items / classes as f64 * (moved(0) + both)).min(1.0)
    }
}
