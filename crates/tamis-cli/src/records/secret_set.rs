//! An exact set of hashes that resists hashes chosen by an attacker.
//!
//! An attacker can compute the hashes of a filter without a key, and can search for items whose
//! hashes have equal high bits. A [`DigestSet`] places a digest by its high bits, so n hashes with
//! equal high bits take n² steps. A `SecretSet` stores each hash under a secret permutation, which
//! is random in each run. An attacker who does not know the permutation cannot choose hashes that
//! collide in the set.

use tamis::{Answers, DigestSet, OutOfMemory};

use crate::arguments::hash_key::random_words;
use crate::exit::Failure;

/// A set of hashes, stored under a secret permutation.
pub struct SecretSet {
    set: DigestSet<u64>,
    permutation: Permutation,
    permuted: Vec<u64>,
}

impl SecretSet {
    /// Creates an empty set that uses at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// A message if the system provides no random bytes.
    pub fn within(max_bytes: u64) -> Result<Self, Failure> {
        let permutation = Permutation::new([random_words()?, random_words()?]);
        Ok(Self { set: DigestSet::within(max_bytes), permutation, permuted: Vec::new() })
    }

    /// Inserts hashes in order. Writes to `new` whether each hash is new.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the set would exceed its memory.
    pub fn insert_each(&mut self, hashes: &[u64], new: &mut Answers) -> Result<(), OutOfMemory> {
        self.permuted.clear();
        self.permuted.extend(hashes.iter().map(|&hash| self.permutation.apply(hash)));
        self.set.insert_each(&self.permuted, new)
    }

    /// Counts the hashes in the set.
    pub fn len(&self) -> u64 {
        self.set.len()
    }

    /// Passes all hashes to `each` in batches, and frees the memory of the set step by step. The
    /// order is different in each run.
    pub fn drain_each(self, mut each: impl FnMut(&[u64])) {
        let (permutation, mut hashes) = (self.permutation, self.permuted);
        self.set.drain_each(|permuted| {
            hashes.clear();
            hashes.extend(permuted.iter().map(|&word| permutation.invert(word)));
            each(&hashes);
        });
    }
}

/// A permutation of the 64-bit words, selected by a key.
#[derive(Clone, Copy)]
struct Permutation {
    added: [u64; ROUNDS],
    factors: [u64; ROUNDS],
    inverses: [u64; ROUNDS],
}

/// Number of rounds. After two rounds, some words that differ only in their highest bits still get
/// the same place in the set.
const ROUNDS: usize = 3;

impl Permutation {
    fn new(key: [[u64; ROUNDS]; 2]) -> Self {
        // An odd number has an inverse modulo 2⁶⁴.
        let [added, factors] = [key[0], key[1].map(|word| word | 1)];
        Self { added, factors, inverses: factors.map(inverse) }
    }

    fn apply(&self, word: u64) -> u64 {
        (0..ROUNDS).fold(word, |word, round| {
            let word = (word ^ self.added[round]).wrapping_mul(self.factors[round]);
            word ^ word >> 32
        })
    }

    fn invert(&self, word: u64) -> u64 {
        (0..ROUNDS).rev().fold(word, |word, round| {
            let word = word ^ word >> 32;
            word.wrapping_mul(self.inverses[round]) ^ self.added[round]
        })
    }
}

/// Returns the inverse of an odd number modulo 2⁶⁴.
fn inverse(odd: u64) -> u64 {
    // An odd number is its own inverse in the lowest three bits. Each step of Newton's method
    // doubles the correct bits.
    (0..5).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_set_hands_out_the_hashes_that_went_in() {
        let hashes: Vec<u64> = (0..1000).chain(u64::MAX - 1000..=u64::MAX).collect();
        let mut set = SecretSet::within(u64::MAX).unwrap();
        let mut new = Answers::new();
        set.insert_each(&hashes, &mut new).unwrap();
        assert_eq!(new.ones().count(), hashes.len());
        set.insert_each(&hashes, &mut new).unwrap();
        assert_eq!((new.ones().count(), set.len()), (0, hashes.len() as u64));
        let mut drained = Vec::new();
        set.drain_each(|hashes| drained.extend_from_slice(hashes));
        drained.sort_unstable();
        assert_eq!(drained, hashes);
    }

    /// 10,000 random words occupy about 9,270 of 2¹⁶ places.
    #[test]
    fn hashes_that_differ_in_few_bits_are_spread_over_all_places() {
        let permutation = Permutation::new([
            [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0x94d0_49bb_1331_11eb],
            [0x8cb9_2ba7_2f3d_8dd7, 0x2545_f491_4f6c_dd1d, 0xbf58_476d_1ce4_e5b9],
        ]);
        for shift in [0, 8, 16, 24, 32, 40, 48, 50] {
            let places: HashSet<u64> =
                (0..10_000_u64).map(|i| permutation.apply(i << shift) >> 48).collect();
            assert!(places.len() > 8000, "shift {shift}: {}", places.len());
        }
    }
}
