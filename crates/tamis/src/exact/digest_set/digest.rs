//! The digests of a [`DigestSet`](super::DigestSet): 64-bit or 128-bit hashes.

use std::fmt;

use crate::arch::{self, digests};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// A hash that is wide enough to represent an item: `u64` or `u128`.
///
/// In a set of `n` items, about n²/2⁶⁵ pairs have the same 64-bit digest. For 60 million items, the
/// expected number of pairs with the same digest is 10⁻⁴.
pub trait Digest: Copy + Eq + fmt::Debug + Send + Sync + sealed::Sealed + 'static {
    /// The width of the digest in bits.
    const BITS: u32;

    /// Returns the 64 bits of the digest that determine its place in the table: all bits of a
    /// 64-bit digest, or the high half of a 128-bit digest. Filters use the result as the hash of
    /// the item.
    fn hash64(self) -> u64;
}

mod sealed {
    pub trait Sealed {
        /// The number of 64-bit words in a digest.
        const WORDS: usize;
        fn insert_each(words: &mut [u64], digests: &[Self], answers: &mut [u64])
        where
            Self: Sized;
        fn insert_absent(words: &mut [u64], digests: &[Self])
        where
            Self: Sized;
        fn taken_words(line: &[u64]) -> usize;
        fn contains(words: &[u64], digest: Self) -> bool;
        fn of(slot: &[u64]) -> Self;
        fn to_u128(self) -> u128;
        /// Returns the digest in the lowest bits of `wide`.
        fn from_u128(wide: u128) -> Self;
    }
}

impl Digest for u64 {
    const BITS: u32 = 64;

    #[inline]
    fn hash64(self) -> u64 {
        self
    }
}

impl sealed::Sealed for u64 {
    const WORDS: usize = 1;

    fn insert_each(words: &mut [u64], digests: &[u64], answers: &mut [u64]) {
        digests::insert_64(arch::level(), words, digests, answers);
    }

    fn insert_absent(words: &mut [u64], digests: &[u64]) {
        digests::insert_absent(words, digests.iter().map(|&digest| [digest]));
    }

    #[inline(always)]
    fn taken_words(line: &[u64]) -> usize {
        digests::taken_words::<1>(line)
    }

    fn contains(words: &[u64], digest: u64) -> bool {
        digests::contains(words, [digest])
    }

    #[inline]
    fn of(slot: &[u64]) -> u64 {
        slot[0]
    }

    fn to_u128(self) -> u128 {
        u128::from(self)
    }

    fn from_u128(wide: u128) -> u64 {
        wide as u64
    }
}

impl Digest for u128 {
    const BITS: u32 = 128;

    #[inline]
    fn hash64(self) -> u64 {
        (self >> 64) as u64
    }
}

impl sealed::Sealed for u128 {
    const WORDS: usize = 2;

    fn insert_each(words: &mut [u64], digests: &[u128], answers: &mut [u64]) {
        digests::insert_128(arch::level(), words, digests, answers);
    }

    fn insert_absent(words: &mut [u64], digests: &[u128]) {
        digests::insert_absent(words, digests.iter().map(|&digest| digests::halves(digest)));
    }

    #[inline(always)]
    fn taken_words(line: &[u64]) -> usize {
        digests::taken_words::<2>(line)
    }

    fn contains(words: &[u64], digest: u128) -> bool {
        digests::contains(words, digests::halves(digest))
    }

    #[inline]
    fn of(slot: &[u64]) -> u128 {
        u128::from(slot[0]) << 64 | u128::from(slot[1])
    }

    fn to_u128(self) -> u128 {
        self
    }

    fn from_u128(wide: u128) -> u128 {
        wide
    }
}

/// Estimates how many of `items` distinct items have the same digest of `bits` bits as an earlier
/// item. For n items and w bits, the estimate is n²/2^(w+1), as for a random function.
///
/// For the 64-bit mix hash of items of over eight bytes, the true number may be up to twice the
/// estimate, because the mix hash reduces a 128-bit product to 64 bits twice.
#[must_use]
pub fn expected_collisions(items: u64, bits: u32) -> f64 {
    let (n, w) = (items as f64, f64::from(bits));
    n * n * (-(w + 1.0)).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_collisions_grow_with_the_square_of_the_items() {
        assert!(expected_collisions(60_000_000, 64) < 1e-4);
        assert!(expected_collisions(61_000_000, 64) > 1e-4);
        assert!(expected_collisions(u64::MAX, 128) <= 0.5);
    }
}
