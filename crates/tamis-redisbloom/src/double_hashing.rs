//! Computes the probes of RedisBloom with double hashing and an exact remainder.
//!
//! Two hashes `a` and `b` represent an item. Probe `i` is `(a + i·b mod 2⁶⁴) mod m`.
//!
//! Source: Kirsch and Mitzenmacher, "Less Hashing, Same Performance" (2006).

use tamis::{Modulus, prefetch};

use crate::murmur2;

/// The two hashes that represent an item in a [`RedisBloom`](crate::RedisBloom).
///
/// Filters of very old servers use 32-bit hashes. Pass a hash only to the filter that [computed the
/// hash](crate::RedisBloom::hash).
///
/// # Examples
///
/// ```
/// let hash = tamis_redisbloom::RedisHash::of(b"a");
/// assert_eq!(hash.parts(), (0x4292_cee2_27b9_150a, 0x7e9b_5270_31f5_0c11));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RedisHash {
    a: u64,
    b: u64,
}

impl RedisHash {
    /// Hashes the bytes of an item with MurmurHash64A. All filters since RedisBloom 2 use
    /// MurmurHash64A.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let a = murmur2::hash64(bytes, SEED);
        Self { a, b: murmur2::hash64(bytes, a) }
    }

    /// Hashes the bytes of an item with the 32-bit MurmurHash2. Only filters of very old servers,
    /// without the option FORCE64, use the 32-bit hash.
    #[must_use]
    pub fn of_32_bits(bytes: &[u8]) -> Self {
        let a = murmur2::hash32(bytes, SEED_32);
        Self { a: u64::from(a), b: u64::from(murmur2::hash32(bytes, a)) }
    }

    /// Returns the first hash `a` and the second hash `b`, which is the step between probes.
    #[must_use]
    pub const fn parts(self) -> (u64, u64) {
        (self.a, self.b)
    }
}

/// The seeds of an item's first hash, for hashes of 64 and 32 bits. The first hash is the seed of
/// the second hash.
const SEED: u64 = 0xc6a4_a793_5bd1_e995;
const SEED_32: u32 = 0x9747_b28c;

/// The rule that computes from a hash the numbers of the filter bits in one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DoubleHashing {
    modulus: Modulus,
    probes: u32,
}

impl DoubleHashing {
    /// Creates the rule for `probes` probes below `modulus`. `modulus` must be from 1 to 2⁶³.
    pub(crate) fn new(modulus: u64, probes: u32) -> Self {
        let modulus = Modulus::new(modulus).expect("1 to 2⁶³ bits");
        Self { modulus, probes }
    }

    /// Returns the numbers of the filter bits that `hash` selects. Each bit number is below the
    /// modulus.
    #[inline(always)]
    fn probes(self, hash: RedisHash) -> impl Iterator<Item = u64> {
        self.probes_from(0, hash)
    }

    /// Returns the numbers of the filter bits that `hash` selects, starting with probe `first`.
    #[inline(always)]
    fn probes_from(self, first: u32, hash: RedisHash) -> impl Iterator<Item = u64> {
        let mut x = hash.a.wrapping_add(hash.b.wrapping_mul(first.into()));
        (first..self.probes).map(move |_| {
            let bit = self.modulus.reduce(x);
            x = x.wrapping_add(hash.b);
            bit
        })
    }

    /// Tests whether all filter bits that `hash` selects are set in `words`.
    #[inline]
    pub(crate) fn contains(self, words: &[u64], hash: RedisHash) -> bool {
        self.probes(hash).all(|bit| get_bit(words, bit))
    }

    /// Sets the filter bits that `hash` selects in `words`. Returns true if at least one of the
    /// selected bits was not set.
    #[inline]
    pub(crate) fn insert(self, words: &mut [u64], hash: RedisHash) -> bool {
        // The insert uses `fold` and not `any`, because `any` would stop at the first unset bit.
        self.probes(hash).fold(false, |missing, bit| missing | set_bit(words, bit))
    }

    /// Prefetches the memory of all probes of `hash`.
    #[inline]
    pub(crate) fn prefetch(self, words: &[u64], hash: RedisHash) {
        for bit in self.probes(hash) {
            prefetch(words, (bit / 64) as usize);
        }
    }

    /// Tests at most 64 hashes. Skips hash `i` unless bit `i` of `selected` is set. Bit `i` of the
    /// result is set if hash `i` is selected, and all filter bits of the probes of hash `i` are set
    /// in `words`.
    ///
    /// The function makes two passes, because a test of an absent item reads two bits on average.
    /// The first pass tests the filter bits of the first two probes of each hash. If the bits of
    /// the first two probes are set, the second pass prefetches and tests the bits of the remaining
    /// probes.
    pub(crate) fn contains_batch(self, words: &[u64], hashes: &[RedisHash], selected: u64) -> u64 {
        let is_set = |bit: u64| get_bit(words, bit);
        let first_probes = |i: usize| self.probes(hashes[i]).take(FIRST_PROBES as usize);
        let others = |i: usize| self.probes_from(FIRST_PROBES, hashes[i]);
        for i in ones(selected) {
            first_probes(i).for_each(|bit| prefetch(words, (bit / 64) as usize));
        }
        let left =
            filter_ones(selected, |i| first_probes(i).fold(true, |all, bit| all & is_set(bit)));
        for i in ones(left) {
            others(i).for_each(|bit| prefetch(words, (bit / 64) as usize));
        }
        filter_ones(left, |i| others(i).all(is_set))
    }
}

/// The number of probes of each hash that the first pass of a batch tests.
const FIRST_PROBES: u32 = 2;

/// Tests whether bit `bit` of `words` is set.
#[inline(always)]
fn get_bit(words: &[u64], bit: u64) -> bool {
    words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
}

/// Sets bit `bit` of `words`. Returns true if the bit was not set.
#[inline(always)]
fn set_bit(words: &mut [u64], bit: u64) -> bool {
    let was_unset = !get_bit(words, bit);
    words[(bit / 64) as usize] |= 1 << (bit % 64);
    was_unset
}

/// Iterates over the numbers of the set bits of `mask`.
fn ones(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// Calls `keep` with the number of each set bit of `mask`. Returns a mask of the bits for
/// which `keep` returned true.
#[inline(always)]
pub(crate) fn filter_ones(mask: u64, mut keep: impl FnMut(usize) -> bool) -> u64 {
    ones(mask).fold(0, |kept, i| kept | u64::from(keep(i)) << i)
}

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
    }

    proptest! {
        #[test]
        fn batches_answer_as_single_hashes(
            items in prop::collection::vec(0..200_u32, 1..=64),
            selected: u64,
            modulus in 1..2000_u64,
            probes in 0..20_u32,
        ) {
            let (rule, mut words) = (DoubleHashing::new(modulus, probes), [0; 32]);
            let hashes: Vec<_> = items.iter().map(|i| RedisHash::of(&i.to_le_bytes())).collect();
            for &hash in hashes.iter().step_by(2) {
                rule.insert(&mut words, hash);
            }
            let selected = selected & u64::MAX >> (64 - hashes.len());
            let found = rule.contains_batch(&words, &hashes, selected);
            for (i, &hash) in hashes.iter().enumerate() {
                let expected = selected >> i & 1 == 1 && rule.contains(&words, hash);
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
