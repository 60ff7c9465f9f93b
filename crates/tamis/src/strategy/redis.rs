//! The probes of RedisBloom: double hashing with an exact remainder.
//!
//! An item is two hashes `a` and `b`. Probe `i` is `(a + i·b mod 2⁶⁴) mod m`. A division for each probe would cost more
//! than the memory access. So the remainder is computed with a multiplication by the reciprocal of `m`, which is
//! computed once for each layer.
//!
//! Source: Kirsch and Mitzenmacher, "Less Hashing, Same Performance" (2006). The remainder: Granlund and Montgomery,
//! "Division by Invariant Integers using Multiplication" (1994), section 4.

use super::scale;
use crate::answers::{filter_ones, ones};
use crate::arch::prefetch_index;
use crate::bits::{get_bit, set_bit};
use crate::hash::murmur2;

/// The two hashes that represent an item in a [`RedisBloom`](crate::RedisBloom), computed once for each item.
///
/// Filters of very old servers use 32-bit hashes, so a hash is valid only for the filter that [computed
/// it](crate::RedisBloom::hash).
///
/// # Examples
///
/// ```
/// let hash = tamis::RedisHash::of(b"a");
/// assert_eq!(hash.parts(), (0x4292_cee2_27b9_150a, 0x7e9b_5270_31f5_0c11));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RedisHash {
    a: u64,
    b: u64,
}

impl RedisHash {
    /// Hashes the bytes of an item with MurmurHash64A, as every filter created since version 2 does.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let a = murmur2::hash64(bytes, SEED);
        Self { a, b: murmur2::hash64(bytes, a) }
    }

    /// Hashes the bytes of an item with the 32-bit MurmurHash2, as filters without FORCE64 do.
    #[must_use]
    pub fn of_32_bits(bytes: &[u8]) -> Self {
        let a = murmur2::hash32(bytes, SEED_32);
        Self { a: u64::from(a), b: u64::from(murmur2::hash32(bytes, a)) }
    }

    /// Returns the first hash and the step.
    #[must_use]
    pub const fn parts(self) -> (u64, u64) {
        (self.a, self.b)
    }
}

/// The seeds of the first hash. The first hash is the seed of the second.
const SEED: u64 = 0xc6a4_a793_5bd1_e995;
const SEED_32: u32 = 0x9747_b28c;

/// The rule from a hash to the bits of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DoubleHashing {
    // Invariant: at least 1, and at most 2⁶³, so that twice a remainder's bound does not overflow.
    modulus: u64,
    /// ⌊(2⁶⁴ − 1) / modulus⌋.
    reciprocal: u64,
    probes: u32,
}

impl DoubleHashing {
    /// Creates the rule for `probes` probes below `modulus`, which is between 1 and 2⁶³.
    pub(crate) fn new(modulus: u64, probes: u32) -> Self {
        debug_assert!(
            (1..=1 << 63).contains(&modulus),
            "a layer has bits, and fits an address space"
        );
        Self { modulus, reciprocal: u64::MAX / modulus, probes }
    }

    /// Returns `x mod modulus`, exactly.
    #[inline(always)]
    fn reduce(self, x: u64) -> u64 {
        // The quotient is exact or one too small: the reciprocal is at most 1 below 2⁶⁴/m, and times x < 2⁶⁴ this is
        // less than one.
        let r = x.wrapping_sub(scale(x, self.reciprocal).wrapping_mul(self.modulus));
        if r >= self.modulus { r - self.modulus } else { r }
    }

    /// Returns the bit numbers of `hash`. Each is below the modulus.
    #[inline(always)]
    fn probes(self, hash: RedisHash) -> impl Iterator<Item = u64> {
        self.probes_from(0, hash)
    }

    /// Returns the bit numbers of `hash` from probe `first` on.
    #[inline(always)]
    fn probes_from(self, first: u32, hash: RedisHash) -> impl Iterator<Item = u64> {
        let mut x = hash.a.wrapping_add(hash.b.wrapping_mul(first.into()));
        (first..self.probes).map(move |_| {
            let bit = self.reduce(x);
            x = x.wrapping_add(hash.b);
            bit
        })
    }

    /// Tests whether all bits of `hash` are set.
    #[inline]
    pub(crate) fn contains(self, words: &[u64], hash: RedisHash) -> bool {
        self.probes(hash).all(|bit| get_bit(words, bit))
    }

    /// Sets the bits of `hash`. Returns true if one of them was not set.
    #[inline]
    pub(crate) fn insert(self, words: &mut [u64], hash: RedisHash) -> bool {
        // `fold`, not `any`: every probe must be set.
        self.probes(hash).fold(false, |missing, bit| missing | set_bit(words, bit))
    }

    /// Prefetches the memory of all probes of `hash`.
    #[inline]
    pub(crate) fn prefetch(self, words: &[u64], hash: RedisHash) {
        for bit in self.probes(hash) {
            prefetch_index(words, (bit / 64) as usize);
        }
    }

    /// Tests up to 64 hashes: those whose bits in `asked` are set. Returns a mask with the bits of the hashes that have
    /// all bits set.
    ///
    /// It makes two passes. Testing an absent item reads two bits on average, so the other bits are prefetched only if
    /// the first two are set.
    pub(crate) fn contains_batch(self, words: &[u64], hashes: &[RedisHash], asked: u64) -> u64 {
        let is_set = |bit: u64| get_bit(words, bit);
        let first_probes = |i: usize| self.probes(hashes[i]).take(FIRST_PROBES as usize);
        let others = |i: usize| self.probes_from(FIRST_PROBES, hashes[i]);
        for i in ones([asked].into_iter()) {
            first_probes(i).for_each(|bit| prefetch_index(words, (bit / 64) as usize));
        }
        let left = filter_ones(asked, |i| first_probes(i).fold(true, |all, bit| all & is_set(bit)));
        for i in ones([left].into_iter()) {
            others(i).for_each(|bit| prefetch_index(words, (bit / 64) as usize));
        }
        filter_ones(left, |i| others(i).all(is_set))
    }
}

/// How many probes the first pass tests.
const FIRST_PROBES: u32 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn probes_are_those_of_plain_division(
            a: u64,
            b: u64,
            modulus in prop_oneof![1..=1_u64 << 63, 1..1000_u64, (0..=63_u32).prop_map(|n| 1 << n)],
            probes in 0..50_u32,
        ) {
            let rule = DoubleHashing::new(modulus, probes);
            let found: Vec<u64> = rule.probes(RedisHash { a, b }).collect();
            let plain = |i: u32| a.wrapping_add(b.wrapping_mul(u64::from(i))) % modulus;
            prop_assert_eq!(found, (0..probes).map(plain).collect::<Vec<_>>());
        }

        #[test]
        fn the_largest_numbers_are_reduced_exactly(below in 0..1000_u64, modulus in 1..=1_u64 << 63) {
            let rule = DoubleHashing::new(modulus, 1);
            prop_assert_eq!(rule.reduce(u64::MAX - below), (u64::MAX - below) % modulus);
            let multiple = modulus * (u64::MAX / modulus);
            for x in [multiple - 1, multiple, multiple.saturating_add(1)] {
                prop_assert_eq!(rule.reduce(x), x % modulus);
            }
        }
    }

    proptest! {
        #[test]
        fn batches_answer_as_single_hashes(
            items in prop::collection::vec(0..200_u32, 1..=64),
            asked: u64,
            modulus in 1..2000_u64,
            probes in 0..20_u32,
        ) {
            let (rule, mut words) = (DoubleHashing::new(modulus, probes), [0; 32]);
            let hashes: Vec<_> = items.iter().map(|i| RedisHash::of(&i.to_le_bytes())).collect();
            for &hash in hashes.iter().step_by(2) {
                rule.insert(&mut words, hash);
            }
            let asked = asked & u64::MAX >> (64 - hashes.len());
            let found = rule.contains_batch(&words, &hashes, asked);
            for (i, &hash) in hashes.iter().enumerate() {
                let expected = asked >> i & 1 == 1 && rule.contains(&words, hash);
                prop_assert_eq!(found >> i & 1 == 1, expected);
            }
        }
    }

    #[test]
    fn an_inserted_hash_is_contained() {
        let (rule, mut words) = (DoubleHashing::new(1152, 8), [0; 18]);
        let hash = RedisHash::of(b"item");
        assert!(!rule.contains(&words, hash));
        assert!(rule.insert(&mut words, hash), "new");
        assert!(rule.contains(&words, hash));
        assert!(!rule.insert(&mut words, hash), "not new");
    }

    #[test]
    fn old_hashes_have_32_bits() {
        let (a, b) = RedisHash::of_32_bits(b"item").parts();
        assert!(a <= u64::from(u32::MAX) && b <= u64::from(u32::MAX));
        assert_ne!(RedisHash::of_32_bits(b"item"), RedisHash::of(b"item"));
    }
}
