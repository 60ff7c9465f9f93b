//! Hash functions from bytes to 64 or 128 bits. A filter computes one hash for each item.

mod fold;
mod items;
mod mix;

use std::fmt;

use crate::arch::mix::{Integer, finalize_each};
use crate::arch::sip;

/// A hash function with its seed or key. The hasher maps an item's bytes to 64 bits.
///
/// The hasher is part of a filter's [`Layout`](crate::Layout) and is stored in the filter's file.
/// Filters with different hashers cannot be merged.
///
/// # Examples
///
/// ```
/// use tamis::Hasher;
///
/// assert_eq!(Hasher::default(), Hasher::mix(0));
/// assert_eq!(Hasher::xxh3(0).hash(b""), 0x2d06_8005_38d3_94c2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hasher {
    function: HashFunction,
    /// The key, or the seed followed by zero. The mix hash and the fold hash store two keys that are
    /// derived from the seed.
    words: [u64; 2],
}

/// A hash function and its number in files. A number is never reused for another function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum HashFunction {
    /// XXH3, 64 bits.
    Xxh3 = 1,
    /// SipHash-1-3 with a secret key, for items that an attacker may choose.
    Sip13 = 2,
    /// XXH64, which Parquet's filters use with seed 0.
    Xxh64 = 3,
    /// The fold hash, 64 bits: the default before the mix hash.
    Fold = 4,
    /// The mix hash, 64 bits: the finalizer of SplitMix64 for items of up to eight bytes, and folded
    /// multiplications for longer items. The mix hash is the default, and the fastest of these
    /// functions for items of up to 128 bytes.
    Mix = 5,
}

impl Hasher {
    /// Returns the mix hash, the default function, with `seed`. Filters with the same seed have the
    /// same false positives.
    ///
    /// Two items of the same length of up to eight bytes, for example two `u64`, never have equal
    /// hashes. Items of over 128 bytes that collide under XXH3 collide under every seed. The mix
    /// hash has no secret: for items that an attacker may choose, use [`keyed`](Self::keyed).
    ///
    /// This crate defines the mix hash; `docs/formats/tamis.md` specifies the function for other
    /// programs.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Hasher;
    ///
    /// let hasher = Hasher::mix(7);
    /// // An integer has the hash of its little-endian bytes.
    /// assert_eq!(hasher.hash_item(&258_u64), hasher.hash(&[2, 1, 0, 0, 0, 0, 0, 0]));
    /// assert_ne!(hasher.hash(b"a"), Hasher::mix(8).hash(b"a"));
    /// ```
    #[must_use]
    pub const fn mix(seed: u64) -> Self {
        Self { function: HashFunction::Mix, words: mix::keys(seed) }
    }

    /// Returns the fold hash with `seed`, which was the default before the mix hash. Tamis files
    /// from that time use the fold hash.
    #[must_use]
    pub const fn fold(seed: u64) -> Self {
        Self { function: HashFunction::Fold, words: mix::keys(seed) }
    }

    /// Returns XXH3 with `seed`. Tamis files from releases before the fold hash use XXH3.
    #[must_use]
    pub const fn xxh3(seed: u64) -> Self {
        Self { function: HashFunction::Xxh3, words: [seed, 0] }
    }

    /// Returns SipHash-1-3 with `key`: two random words that an attacker must not know.
    #[must_use]
    pub const fn sip13(key: [u64; 2]) -> Self {
        Self { function: HashFunction::Sip13, words: key }
    }

    /// Returns the keyed hash that Tamis currently prefers, with a secret `key`. The currently
    /// preferred keyed hash is SipHash-1-3.
    ///
    /// Without the key, an attacker cannot compute hashes, and therefore cannot choose items that
    /// collide. Code that needs a keyed hash calls this function. [`from_parts`](Self::from_parts)
    /// restores the function whose number is stored in a file.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Hasher;
    ///
    /// assert!(Hasher::keyed([1, 2]).is_keyed() && !Hasher::default().is_keyed());
    /// assert_ne!(Hasher::keyed([1, 2]).hash(b"a"), Hasher::keyed([1, 3]).hash(b"a"));
    /// ```
    #[must_use]
    pub const fn keyed(key: [u64; 2]) -> Self {
        Self::sip13(key)
    }

    /// Returns true if hashes depend on a secret key.
    #[must_use]
    pub const fn is_keyed(&self) -> bool {
        matches!(self.function, HashFunction::Sip13)
    }

    /// Returns XXH64 with `seed`.
    #[must_use]
    pub const fn xxh64(seed: u64) -> Self {
        Self { function: HashFunction::Xxh64, words: [seed, 0] }
    }

    /// Returns the function's number in files, and its seed or key as 16 little-endian bytes.
    ///
    /// A number is never reused for another function. For a function with a seed, the last eight
    /// bytes are zero. A file must contain the key, because without the key the filter cannot test
    /// items.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Hasher;
    ///
    /// let (number, seed) = Hasher::mix(7).to_parts();
    /// assert_eq!((number, seed[0]), (5, 7));
    /// assert_eq!(Hasher::from_parts(number, seed), Some(Hasher::mix(7)));
    /// assert_eq!(Hasher::from_parts(99, seed), None);
    /// ```
    #[must_use]
    pub const fn to_parts(&self) -> (u8, [u8; 16]) {
        let [low, high] = match self.function {
            HashFunction::Mix | HashFunction::Fold => [mix::seed(self.words), 0],
            _ => self.words,
        };
        (self.function as u8, ((high as u128) << 64 | low as u128).to_le_bytes())
    }

    /// Restores a hasher from its number and its seed or key. Returns `None` if no release writes
    /// this number with these bytes.
    #[must_use]
    pub const fn from_parts(number: u8, seed: [u8; 16]) -> Option<Self> {
        let words = u128::from_le_bytes(seed);
        let (low, high) = (words as u64, (words >> 64) as u64);
        match (number, high) {
            (1, 0) => Some(Hasher::xxh3(low)),
            (2, _) => Some(Hasher::sip13([low, high])),
            (3, 0) => Some(Hasher::xxh64(low)),
            (4, 0) => Some(Hasher::fold(low)),
            (5, 0) => Some(Hasher::mix(low)),
            _ => None,
        }
    }

    /// Returns the hash function.
    #[must_use]
    pub const fn function(&self) -> HashFunction {
        self.function
    }

    /// Hashes `bytes`. The default hash takes about a nanosecond for up to 16 bytes, and less than
    /// 0.1 ns for each further byte.
    // This method is always inlined, like its callers, so that a loop computes the seed-dependent
    // values only once. For a single lookup of text, inlining saves a seventh of the time.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        match self.function {
            HashFunction::Mix => mix::hash(bytes, self.words),
            // The call passes the words instead of `self`, because a reference to `self` would
            // force every caller to keep the hasher on the stack.
            function => hash_otherwise(function, self.words, bytes),
        }
    }

    /// Hashes the little-endian bytes of an integer without writing them to memory.
    #[inline(always)]
    pub(crate) fn hash_integer<I: Integer>(&self, integer: I) -> u64 {
        match self.function {
            HashFunction::Mix => {
                mix::hash_number(integer.bits(), size_of::<I>() as u64, self.words)
            }
            function => hash_integer_otherwise(function, self.words, integer),
        }
    }

    /// Hashes the little-endian bytes of each integer.
    pub(crate) fn hash_integer_each<I: Integer>(&self, integers: &[I], hashes: &mut [u64]) {
        assert_eq!(integers.len(), hashes.len(), "one hash an item");
        let (function, words) = (self.function, self.words);
        if function == HashFunction::Mix {
            let key = mix::key_of_numbers(size_of::<I>() as u64, words);
            return finalize_each(integers, key, hashes);
        }
        for (hash, &integer) in hashes.iter_mut().zip(integers) {
            *hash = hash_integer_otherwise(function, words, integer);
        }
    }

    /// Hashes `bytes` to 128 bits, for sets so large that 64-bit hashes would collide.
    ///
    /// With the mix hash and the fold hash, the result is XXH3-128 with the seed.
    /// [`hash`](Self::hash) cannot be computed from either half of the result.
    #[must_use]
    pub fn hash128(&self, bytes: &[u8]) -> u128 {
        let [a, _] = self.words;
        match self.function {
            HashFunction::Mix | HashFunction::Fold => {
                xxhash_rust::xxh3::xxh3_128_with_seed(bytes, mix::seed(self.words))
            }
            HashFunction::Xxh3 => xxhash_rust::xxh3::xxh3_128_with_seed(bytes, a),
            HashFunction::Sip13 => joined(sip::hash_one(self.words, bytes)),
            HashFunction::Xxh64 => joined([xxh64(a, bytes), xxh64(!a, bytes)]),
        }
    }
}

impl fmt::Display for Hasher {
    /// Formats the function and its seed, but never a secret key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.words[0];
        match self.function {
            HashFunction::Mix => write!(f, "mix seed {}", mix::seed(self.words)),
            HashFunction::Fold => write!(f, "fold seed {}", mix::seed(self.words)),
            HashFunction::Xxh3 => write!(f, "xxh3 seed {seed}"),
            HashFunction::Sip13 => f.write_str("siphash-1-3 with a key"),
            HashFunction::Xxh64 => write!(f, "xxh64 seed {seed}"),
        }
    }
}

impl fmt::Debug for Hasher {
    /// Formats like [`Display`](fmt::Display), because logs must not contain a secret key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher({self})")
    }
}

impl Default for Hasher {
    /// Returns the mix hash with seed 0.
    fn default() -> Self {
        Hasher::mix(0)
    }
}

/// Hashes `bytes` with a function that is not the default.
// This function is not inlined, so that the default hash is inlined into its callers.
#[inline(never)]
fn hash_otherwise(function: HashFunction, [a, b]: [u64; 2], bytes: &[u8]) -> u64 {
    match function {
        HashFunction::Mix => mix::hash(bytes, [a, b]),
        HashFunction::Fold => fold::hash(bytes, [a, b]),
        HashFunction::Xxh3 => xxhash_rust::xxh3::xxh3_64_with_seed(bytes, a),
        HashFunction::Xxh64 => xxh64(a, bytes),
        HashFunction::Sip13 => {
            let [hash] = sip::hash_one([a, b], bytes);
            hash
        }
    }
}

// This function is marked cold, so that the code for the default hash keeps the integer in a
// register.
#[cold]
fn hash_integer_otherwise<I: Integer>(function: HashFunction, words: [u64; 2], integer: I) -> u64 {
    hash_otherwise(function, words, &integer.bits().to_le_bytes()[..size_of::<I>()])
}

/// Joins the low word and the high word of a 128-bit hash.
#[inline(always)]
fn joined([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn xxh64(seed: u64, bytes: &[u8]) -> u64 {
    xxhash_rust::xxh64::xxh64(bytes, seed)
}

#[cfg(test)]
mod tests {
    use siphasher::sip::SipHasher13;

    use super::*;

    #[test]
    fn parts_restore_every_hasher() {
        let seeded = [Hasher::mix(9), Hasher::fold(9), Hasher::xxh3(u64::MAX), Hasher::xxh64(5)];
        for hasher in seeded.into_iter().chain([Hasher::sip13([1 << 63, 2])]) {
            let (number, seed) = hasher.to_parts();
            assert_eq!(Hasher::from_parts(number, seed), Some(hasher));
        }
        let mut seed = [0; 16];
        seed[8] = 1;
        assert_eq!(Hasher::from_parts(1, seed), None, "a seed has eight bytes");
        assert_eq!(Hasher::from_parts(0, [0; 16]), None);
    }

    #[test]
    fn siphash_matches_the_reference_crate() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let expected = SipHasher13::new_with_keys(key[0], key[1]).hash(b"tamis");
        assert_eq!(Hasher::sip13(key).hash(b"tamis"), expected);
        assert_ne!(Hasher::sip13([0, 1]).hash(b"tamis"), expected);
    }

    #[test]
    fn a_batch_hashes_to_128_bits_as_single_items_do() {
        let bytes: Vec<u8> = (0..400).map(|i| (i * 7) as u8).collect();
        let items: Vec<&[u8]> = (0..100).map(|i| &bytes[i..i + i * 3]).collect();
        for hasher in [Hasher::mix(9), Hasher::xxh3(7), Hasher::sip13([1, 2]), Hasher::xxh64(5)] {
            for len in [0, 1, 7, 8, 9, 100] {
                let mut hashes = vec![0; len];
                hasher.hash128_each(&items[..len], &mut hashes);
                let expected: Vec<u128> =
                    items[..len].iter().map(|item| hasher.hash128(item)).collect();
                assert_eq!(hashes, expected, "{hasher:?}");
            }
        }
    }

    #[test]
    fn wide_hashes_differ_by_hasher_and_seed() {
        let hashers = [Hasher::xxh3(0), Hasher::xxh3(1), Hasher::sip13([0, 0]), Hasher::xxh64(0)];
        let wide: std::collections::HashSet<u128> =
            hashers.iter().map(|hasher| hasher.hash128(b"tamis")).collect();
        assert_eq!(wide.len(), hashers.len());
    }
}
