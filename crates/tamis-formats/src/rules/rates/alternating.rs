//! The rate of Redisson's rule. For the hashes a and b, the probes are `a`, `a + b`, `2a + b`, `2a + 2b` and so on,
//! modulo the number of bits m.
//!
//! Let s = a + b. The second, fourth and sixth probes are s, 2s and 3s, and so on. The first, third and fifth probes
//! are a, a + s and a + 2s, and so on. For filters of every size, three effects raise the rate above the fill to the
//! power of the number of probes:
//!
//! * **Uneven fill.** If m is even, the probes 2s, 4s, … are even, so even positions are fuller than odd positions. If
//!   m is a multiple of 4, the probes 4s, 8s, … are multiples of 4, so multiples of 4 are fuller than all other even
//!   positions. Either several probes of an item are in the fuller classes, or no probe of the item is in a fuller
//!   class.
//! * **Shared multiples.** If an inserted item has the s of an absent item, or twice or half of this s, the inserted
//!   item has set many of the positions s, 2s, 3s, … For each pair of an absent item and an inserted item, each of the
//!   relations (equal, twice and half) has the probability 1/m. In a full filter, a few per cent of all absent items
//!   share multiples with an inserted item.
//! * **Repeated probes.** Probes repeat if r·s is a multiple of m for a small r: see [`progression`].
//!
//! The sums have 63 bits and wrap. The averages are taken over a fixed sample of a and b, and of the wraps of the sums.
//!
//! [`progression`]: crate::rules::rates::progression

use tamis::Modulus;

use crate::rules::rates::measure::{measure, test_bits};
use crate::rules::rates::residues::{power_of_two, sample, solve, times};
use crate::rules::rates::{EstimatedRate, chance};

/// The number of bits of a sum. The sum has 64 bits, and its sign bit is cleared.
const WIDTH: u32 = 63;

/// The largest number of classes of positions. A class is a remainder modulo a power of two.
const MAX_CLASSES: u64 = 32;

/// The largest number of probes that is considered. More than 48 probes hardly change the effects.
const MAX_PROBES: u32 = 48;

/// The largest number of multiples of `s` within which a repetition is considered.
const MAX_REPEATED: u64 = 8;

const SAMPLES: u32 = if cfg!(fuzzing) { 2 } else { 128 };

/// The rule of Redisson with `probes` probes in `bits` bits.
pub(crate) struct Alternating {
    pub(crate) bits: Modulus,
    pub(crate) probes: u32,
}

/// The share of set bits in each class. A class is the set of positions with the same remainder modulo the number of
/// classes.
struct ClassFills(Vec<f64>);

impl ClassFills {
    fn new(words: &[u64], bits: u64) -> Self {
        let classes = classes_of(bits);
        let share = |class: u64| {
            let mask =
                (class..64).step_by(classes as usize).fold(0, |mask, bit| mask | 1_u64 << bit);
            let ones: u64 = words.iter().map(|word| u64::from((word & mask).count_ones())).sum();
            ones as f64 * classes as f64 / bits as f64
        };
        Self((0..classes).map(share).collect())
    }

    fn at(&self, bit: u64) -> f64 {
        self.0[(bit % self.0.len() as u64) as usize]
    }

    fn all(&self, bits: &[u64]) -> f64 {
        bits.iter().map(|&bit| self.at(bit)).product()
    }
}

/// Returns the number of classes of positions.
fn classes_of(bits: u64) -> u64 {
    (1 << bits.trailing_zeros().min(63)).min(MAX_CLASSES)
}

/// The value of a or of s, as a residue and as a fraction of the range of the sums.
#[derive(Clone, Copy)]
struct Term {
    residue: u64,
    fraction: f64,
}

impl Alternating {
    /// Estimates the rate of a filter with the bits `words`. `probes_of` returns the bit numbers for a hash.
    pub(crate) fn estimate_rate<I: Iterator<Item = u64>>(
        &self,
        words: &[u64],
        fill: f64,
        probes_of: impl Fn((u64, u64)) -> I,
    ) -> EstimatedRate {
        let bits = self.bits.bits();
        let std_error = chance(fill, bits, self.probes);
        if !(fill > 0.0 && fill < 1.0) || self.probes < 2 {
            return EstimatedRate::independent(fill, bits, self.probes);
        }
        let computed = || self.rate(&ClassFills::new(words, bits), fill);
        measure(std_error, computed, |random| {
            test_bits(words, probes_of((random.next(), random.next())))
        })
    }

    /// Computes the rate of a filter whose share of set bits is `fill`.
    pub(crate) fn rate_at_fill(&self, fill: f64) -> f64 {
        if !(fill > 0.0 && fill < 1.0) || self.probes < 2 {
            return fill.powf(self.probes.into());
        }
        let classes = classes_of(self.bits.bits());
        let mut probes = vec![0_u64; classes as usize];
        for bit in self.all_classes(classes).flatten() {
            probes[(bit % classes) as usize] += 1;
        }
        // Each class gets a share of the probes of all items, and a share of the bits.
        let draws = -(-fill).ln_1p() / f64::from(self.probes) / classes as f64;
        let fills = probes.iter().map(|&probes| -(-draws * probes as f64).exp_m1()).collect();
        self.rate(&ClassFills(fills), fill)
    }

    fn rate(&self, fills: &ClassFills, fill: f64) -> f64 {
        let items = -(-fill).ln_1p() * self.bits.bits() as f64 / f64::from(self.probes);
        (self.at_once(fills) + self.repeated(fills) + self.shared(fills, items)).min(1.0)
    }

    /// Returns the rate without repeated probes and without shared multiples. The returned rate is the mean over the
    /// classes of a and s.
    fn at_once(&self, fills: &ClassFills) -> f64 {
        let classes = fills.0.len() as u64;
        let rates = self.all_classes(classes).map(|bits| fills.all(&bits));
        rates.sum::<f64>() / (classes * classes) as f64
    }

    /// Iterates over the probes of items with all classes of a and s. A wrap of a sum does not change the class,
    /// because 2⁶³ and m are multiples of the number of classes.
    fn all_classes(&self, classes: u64) -> impl Iterator<Item = Vec<u64>> {
        let probes = u64::from(self.probes);
        let pairs = (0..classes).flat_map(move |a| (0..classes).map(move |s| (a, s)));
        pairs.map(move |(a, s)| {
            let even = |i: u64| a + i / 2 * s;
            let odd = |i: u64| i.div_ceil(2) * s;
            (0..probes).map(|i| if i.is_multiple_of(2) { even(i) } else { odd(i) }).collect()
        })
    }

    /// Returns the increase of the rate by repeated probes.
    fn repeated(&self, fills: &ClassFills) -> f64 {
        let (m, wrap) = (self.bits.bits(), power_of_two(WIDTH, self.bits.bits()));
        let (mut sum, mut seen) = (0.0, Vec::new());
        for r in 1..=u64::from(self.probes / 2).min(MAX_REPEATED) {
            let from = seen.len();
            for s in (0..=r).flat_map(|t| solve(r, times(t.cast_signed(), wrap, m), m)) {
                if !seen.contains(&s) {
                    seen.push(s);
                }
            }
            for &residue in &seen[from..] {
                for [a, start, step, ..] in (0..SAMPLES).map(sample) {
                    let [a, s] = [
                        Term { residue: (a * m as f64) as u64, fraction: start },
                        Term { residue, fraction: step },
                    ];
                    let mut bits = self.positions(a, s);
                    let all = fills.all(&bits);
                    bits.sort_unstable();
                    bits.dedup();
                    sum += fills.all(&bits) - all;
                }
            }
        }
        sum / f64::from(SAMPLES) / m as f64
    }

    /// Returns the increase of the rate by items that share multiples of s.
    fn shared(&self, fills: &ClassFills, items: f64) -> f64 {
        let (m, wrap) = (self.bits.bits(), power_of_two(WIDTH, self.bits.bits()));
        let multiples = i64::from(self.considered_probes() / 2);
        let (mut sum, mut seen) = (0.0, Vec::new());
        for [a, start, step, item_step, s, _] in (0..SAMPLES).map(sample) {
            let [a, s] = [
                Term { residue: (a * m as f64) as u64, fraction: start },
                Term { residue: (s * m as f64) as u64, fraction: step },
            ];
            let bits = self.positions(a, s);
            let all = fills.all(&bits);
            if all == 0.0 {
                // If one of the bits is in a class without set bits, the rate is 0.
                continue;
            }
            seen.clear();
            for (of_absent, of_item) in
                (1..=multiples).flat_map(|one| (1..=multiples).map(move |other| (one, other)))
            {
                let wraps = |multiple: i64, step: f64| (multiple as f64 * step) as i64;
                let wraps = wraps(of_absent, s.fraction) - wraps(of_item, item_step);
                let same = (times(of_absent, s.residue, m) + times(-wraps, wrap, m)) % m;
                for residue in solve(of_item.cast_unsigned(), same, m) {
                    if seen.contains(&residue) {
                        continue;
                    }
                    seen.push(residue);
                    let item = self.positions(a, Term { residue, fraction: item_step });
                    let is_shared = |&(at, &bit): &(usize, &u64)| {
                        at % 2 == 1 && item.iter().skip(1).step_by(2).any(|&it| it == bit)
                    };
                    let shared: Vec<f64> = bits
                        .iter()
                        .enumerate()
                        .filter(is_shared)
                        .map(|(_, &bit)| fills.at(bit))
                        .collect();
                    if shared.len() > 1 {
                        // A single shared bit does not raise the rate above the rate of independent probes.
                        let by_chance: f64 = shared.iter().map(|fill| (1.0 - fill) / fill).sum();
                        sum += all * (1.0 / shared.iter().product::<f64>() - 1.0 - by_chance);
                    }
                }
            }
        }
        sum / f64::from(SAMPLES) * items / m as f64
    }

    fn considered_probes(&self) -> u32 {
        self.probes.min(MAX_PROBES)
    }

    /// Returns the bit numbers of an item, in order.
    fn positions(&self, a: Term, s: Term) -> Vec<u64> {
        let (m, wrap) = (self.bits.bits(), power_of_two(WIDTH, self.bits.bits()));
        let probe = |i: i64| {
            let (first, multiple) = if i % 2 == 0 { (1, i / 2) } else { (0, i / 2 + 1) };
            let sum = first as f64 * a.fraction + multiple as f64 * s.fraction;
            (times(first, a.residue, m)
                + times(multiple, s.residue, m)
                + times(-(sum as i64), wrap, m))
                % m
        };
        (0..i64::from(self.considered_probes())).map(probe).collect()
    }
}
