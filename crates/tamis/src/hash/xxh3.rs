//! XXH3-64 of items of up to 128 bytes, inlined; longer ones go to `xxhash-rust`.
//!
//! An 8-byte item is two multiplications once this inlines into the caller's loop, and the same
//! arithmetic runs in vectors in `arch`. Items of 17 to 128 bytes are halves of 16 bytes from both
//! ends, one multiplication each:
//!
//! ```text
//!  pair 0     1     2                   2     1     0       pair 1 above 32 bytes, 2 above 64,
//! |·····|·····|·····|··· item ···|·····|·····|·····|       3 above 96; they may overlap
//! ```
//!
//! Source: the XXH3 specification (xxHash 0.8), "XXH3 algorithm for small inputs" and "for medium
//! inputs".

use std::hint::select_unpredictable;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The words of XXH3's default secret that items of up to 128 bytes use.
const SECRET: [u64; 16] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
    0xcb00_c391_bb52_283c,
    0xa32e_531b_8b65_d088,
    0x4ef9_0da2_9748_6471,
    0xd8ac_dea9_46ef_1938,
    0x3f34_9ce3_3f76_faa8,
    0x1d4f_0bc7_c7bb_dcf9,
    0x3159_b4cd_4be0_518a,
    0x6473_78d9_c97e_9fc8,
];

/// `PRIME64_1`, by which a length is multiplied.
const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;

/// `PRIME_MX1`, the multiplier of the avalanche.
const MX1: u64 = 0x1656_6791_9e37_79f9;

/// `PRIME_MX2`, the multiplier of the `rrmxmx` mixer.
pub(crate) const MX2: u64 = 0x9fb2_1c65_1e98_df25;

/// Hashes `bytes` as `XXH3_64bits_withSeed` does.
#[inline(always)]
pub(super) fn hash(bytes: &[u8], seed: u64) -> u64 {
    match bytes.len() {
        17..=128 => hash_17_to_128(bytes, seed),
        // Two overlapping halves, exchanged: for eight bytes that is a rotation.
        8 => mix(read(bytes, 0).rotate_left(32) ^ flip(seed), 8),
        _ => hash_other(bytes, seed),
    }
}

/// What an item of 4 to 8 bytes is XORed with before mixing.
#[inline]
pub(super) const fn flip(seed: u64) -> u64 {
    let seed = seed ^ ((seed as u32).swap_bytes() as u64) << 32;
    (SECRET[1] ^ SECRET[2]).wrapping_sub(seed)
}

/// The final mixer of items of 4 to 8 bytes.
#[inline]
pub(crate) const fn mix(keyed: u64, len_bytes: u64) -> u64 {
    let h = keyed ^ keyed.rotate_left(49) ^ keyed.rotate_left(24);
    let h = h.wrapping_mul(MX2);
    let h = (h ^ ((h >> 35) + len_bytes)).wrapping_mul(MX2);
    h ^ (h >> 28)
}

// Nested, so that each pair is in the code once, whatever the length.
#[inline(always)]
fn hash_17_to_128(bytes: &[u8], seed: u64) -> u64 {
    let mut sum = (bytes.len() as u64).wrapping_mul(PRIME_1).wrapping_add(pair::<0>(bytes, seed));
    if bytes.len() > 32 {
        sum = sum.wrapping_add(pair::<1>(bytes, seed));
        if bytes.len() > 48 {
            // Addresses lie around 64 bytes, half below and half above it: two multiplications in vain
            // cost less than a branch that goes wrong every other time.
            let third = pair::<2>(bytes, seed);
            sum = sum.wrapping_add(select_unpredictable(bytes.len() > 64, third, 0));
            if bytes.len() > 96 {
                sum = sum.wrapping_add(pair::<3>(bytes, seed));
            }
        }
    }
    avalanche(sum)
}

/// Mixes the 16 bytes that start at `16 * I` with those that end so far before the end.
#[inline(always)]
fn pair<const I: usize>(bytes: &[u8], seed: u64) -> u64 {
    let first = mix_16(bytes, 16 * I, [SECRET[4 * I], SECRET[4 * I + 1]], seed);
    let at = bytes.len() - 16 * (I + 1);
    first.wrapping_add(mix_16(bytes, at, [SECRET[4 * I + 2], SECRET[4 * I + 3]], seed))
}

#[inline(always)]
fn mix_16(bytes: &[u8], at: usize, [low, high]: [u64; 2], seed: u64) -> u64 {
    let low = read(bytes, at) ^ low.wrapping_add(seed);
    fold(low, read(bytes, at + 8) ^ high.wrapping_sub(seed))
}

/// Reads the little-endian word at byte `at`.
#[inline(always)]
fn read(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Both halves of the product, XORed.
#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
const fn avalanche(h: u64) -> u64 {
    let h = (h ^ h >> 37).wrapping_mul(MX1);
    h ^ h >> 32
}

// Out of line, so that the lengths above stay small in their callers.
#[inline(never)]
fn hash_other(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_length_equals_the_reference_crate(
            bytes in prop::collection::vec(any::<u8>(), 300),
            seed: u64,
        ) {
            for len in 0..=bytes.len() {
                for seed in [0, seed] {
                    let expected = xxh3_64_with_seed(&bytes[..len], seed);
                    prop_assert_eq!(hash(&bytes[..len], seed), expected, "{} bytes", len);
                }
            }
        }

        #[test]
        fn eight_bytes_equal_the_reference_crate(word: u64, seed: u64) {
            let bytes = word.to_le_bytes();
            prop_assert_eq!(hash(&bytes, seed), xxh3_64_with_seed(&bytes, seed));
        }

        #[test]
        fn four_bytes_mix_as_a_doubled_word(word: u32, seed: u64) {
            let doubled = u64::from(word) << 32 | u64::from(word);
            let expected = xxh3_64_with_seed(&word.to_le_bytes(), seed);
            prop_assert_eq!(mix(doubled ^ flip(seed), 4), expected);
        }
    }
}
