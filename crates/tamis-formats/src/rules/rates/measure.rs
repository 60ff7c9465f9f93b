//! Measures the rate of a filter with random hashes.

use crate::rules::rates::EstimatedRate;

/// A generator of random numbers. The random numbers are the same in every run, so equal filters have equal rates.
///
/// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// The number of bits that a measurement reads. The measurement takes 10 to 30 ms. A fuzz target computes the rates of
/// thousands of filters, so a fuzz target reads only 8,192 bits for each rate.
const READ_BITS: u64 = if cfg!(fuzzing) { 1 << 13 } else { 1 << 22 };

/// The number of bits that the first part of a measurement reads. The first part is enough for most rates.
const FIRST_BITS: u64 = READ_BITS >> 4;

/// The number of false positives after which a measurement ends. After 2,500 false positives, the standard deviation of
/// the measured rate is 2 %.
const ENOUGH: u64 = 2500;

/// The number of false positives from which a measurement is at least as exact as a formula.
const EXACT: u64 = 400;

/// The smallest number of found or expected false positives for which a measurement can contradict the computed rate.
const FEWEST: f64 = 3.0;

/// Measures the rate of a filter. `test` tests a random item. `test` returns whether the filter reports the item as
/// present, and the number of bits that were read.
///
/// If there are too few false positives, returns the computed rate, unless the measurement contradicts the computed
/// rate. `chance` is the standard deviation of the rate by chance, divided by the rate.
pub(crate) fn measure(
    chance: f64,
    computed: impl FnOnce() -> f64,
    mut test: impl FnMut(&mut SplitMix) -> (bool, u32),
) -> EstimatedRate {
    let mut random = SplitMix::new(0);
    let (mut tested, mut found, mut read) = (0_u64, 0_u64, 0_u64);
    let mut test_until = |most| {
        while found < ENOUGH && read < most {
            let (is_found, bits) = test(&mut random);
            tested += 1;
            found += u64::from(is_found);
            read += u64::from(bits);
        }
        (tested as f64, found)
    };
    let measured = |tested: f64, found: u64| EstimatedRate {
        rate: found as f64 / tested,
        std_error: (chance.powi(2) + 1.0 / found as f64).sqrt(),
    };
    let (tested, found) = test_until(FIRST_BITS);
    if found >= EXACT {
        return measured(tested, found);
    }
    let computed = computed().min(1.0);
    let stands = EstimatedRate { rate: computed, std_error: chance };
    let is_learnt_by_more =
        (computed * tested).max(found as f64) * READ_BITS as f64 >= FEWEST * FIRST_BITS as f64;
    if !is_learnt_by_more {
        return stands;
    }
    let (tested, found) = test_until(READ_BITS);
    let (count, expected) = (found as f64, computed * tested);
    let is_contradiction =
        count >= FEWEST && (count - expected).powi(2) > 9.0 * expected.max(count.min(1.0));
    if found >= EXACT || is_contradiction { measured(tested, found) } else { stands }
}

/// Tests whether a bit is set.
#[inline]
pub(crate) fn is_set(words: &[u64], bit: u64) -> bool {
    words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
}

/// Tests bits in order, up to the first clear bit. Returns whether all bits are set, and the number of bits that were
/// read.
#[inline]
pub(crate) fn test_bits(words: &[u64], bits: impl Iterator<Item = u64>) -> (bool, u32) {
    let mut read = 0;
    for bit in bits {
        read += 1;
        if !is_set(words, bit) {
            return (false, read);
        }
    }
    // The number of read bits is at least one, so that a measurement always ends.
    (true, read.max(1))
}
