//! The classic Bloom filter: any number of bits, any number of probes.
//!
//! Probe `i` is the high half of `mix(hash + i·γ) × bits`. Each probe is mixed separately, so that
//! probes neither repeat nor follow a fixed step. With double hashing, probes of small filters
//! would repeat or follow a fixed step.
//!
//! Source: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors" (1970).

pub(crate) mod sizing;

use crate::arch::prefetch_index;
use crate::bits::{AtomicBitmap, Word, get_bit, set_bit};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::rates::same_hash_rate;
use crate::plan::{Kind, Plan};
use crate::strategy::block_rules::scale::scale;
use crate::strategy::rule::{Construct, Strategy, Token};

/// The classic Bloom filter with `bits` bits and `probes` probes for each item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classic {
    bits: u64,
    probes: u32,
}

impl Classic {
    /// Returns the bit numbers of `hash`. Each bit number is below the number of bits.
    #[inline]
    pub(crate) fn probes(self, hash: u64) -> impl Iterator<Item = u64> + Clone {
        (0..u64::from(self.probes)).map(move |i| {
            let x = hash.wrapping_add(i.wrapping_mul(GAMMA));
            scale((x ^ x >> 32).wrapping_mul(MULTIPLIER), self.bits)
        })
    }
}

/// The constant γ of the probes: 2⁶⁴ divided by the golden ratio, rounded to an odd number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The multiplier is from Steele and Vigna, "Computationally easy, spectrally good multipliers"
/// (2021), table 6.
const MULTIPLIER: u64 = 0xd134_2543_de82_ef95;

/// The number of items that are prefetched before the first of these items is read.
const BATCH: usize = 32;

impl Construct for Classic {
    fn for_plan(plan: &Plan, _: Token) -> Self {
        Self { bits: plan.bits(), probes: plan.probes() }
    }
}

impl Strategy for Classic {
    const KIND: Kind = Kind::Classic;

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: u64) -> bool {
        self.probes(hash).all(|bit| get_bit(words, bit))
    }

    fn contains_each<W: Word>(&self, words: &[W], hashes: &[u64], answers: &mut [u64]) {
        for (word, hashes) in answers.iter_mut().zip(hashes.chunks(64)) {
            *word = 0;
            for (i, &hash) in hashes.iter().enumerate() {
                if i % BATCH == 0 {
                    hashes[i..].iter().take(BATCH).for_each(|&hash| self.prefetch(words, hash));
                }
                *word |= u64::from(self.contains(words, hash)) << i;
            }
        }
    }

    #[inline]
    fn insert(&self, words: &mut [u64], hash: u64) -> bool {
        let mut missing = false;
        for bit in self.probes(hash) {
            missing |= set_bit(words, bit);
        }
        missing
    }

    fn insert_each(&self, words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        for (word, hashes) in answers.iter_mut().zip(hashes.chunks(64)) {
            *word = 0;
            for (i, &hash) in hashes.iter().enumerate() {
                if i % BATCH == 0 {
                    hashes[i..].iter().take(BATCH).for_each(|&hash| self.prefetch(words, hash));
                }
                *word |= u64::from(self.insert(words, hash)) << i;
            }
        }
    }

    #[inline]
    fn insert_shared(&self, bits: &AtomicBitmap, hash: u64) -> bool {
        bits.set_bits(self.probes(hash))
    }

    #[inline]
    fn prefetch<W: Word>(&self, words: &[W], hash: u64) {
        for bit in self.probes(hash) {
            prefetch_index(words, (bit / 64) as usize);
        }
    }

    fn estimate_items<W: Word>(&self, words: &[W]) -> f64 {
        let (m, k) = (self.bits as f64, f64::from(self.probes));
        -(m / k) * (-(ones(words) / m)).ln_1p()
    }

    fn estimate_rate<W: Word>(&self, words: &[W]) -> f64 {
        let fill = ones(words) / self.bits as f64;
        let of_probes = fill.powi(self.probes as i32);
        (of_probes + same_hash_rate(self.estimate_items(words), fill)).min(1.0)
    }
}

fn ones<W: Word>(words: &[W]) -> f64 {
    words.iter().map(|word| u64::from(word.get().count_ones())).sum::<u64>() as f64
}
