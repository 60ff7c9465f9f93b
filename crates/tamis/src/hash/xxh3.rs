//! XXH3-64 for short items, inlined; longer ones go to `xxhash-rust`.
//!
//! An 8-byte item is two multiplications once this inlines into the caller's loop, and the same
//! arithmetic runs in vectors in `arch`. Source: the XXH3 specification (xxHash 0.8), "XXH3
//! algorithm for inputs of 4 to 8 bytes".

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The words of XXH3's default secret at bytes 8, 16 (the only ones this length uses), XORed.
const SECRET_8_XOR_16: u64 = 0x1cad_21f7_2c81_017c ^ 0xdb97_9083_e96d_d4de;

/// `PRIME_MX2`, the multiplier of the `rrmxmx` mixer.
pub(crate) const MX2: u64 = 0x9fb2_1c65_1e98_df25;

/// Hashes `bytes` as `XXH3_64bits_withSeed` does.
#[inline]
pub(super) fn hash(bytes: &[u8], seed: u64) -> u64 {
    if let Ok(word) = <[u8; 8]>::try_from(bytes) {
        // Two overlapping halves, exchanged: for eight bytes that is a rotation.
        return mix(u64::from_le_bytes(word).rotate_left(32) ^ flip(seed), 8);
    }
    xxh3_64_with_seed(bytes, seed)
}

/// What an item of 4 to 8 bytes is XORed with before mixing.
#[inline]
pub(super) const fn flip(seed: u64) -> u64 {
    let seed = seed ^ ((seed as u32).swap_bytes() as u64) << 32;
    SECRET_8_XOR_16.wrapping_sub(seed)
}

/// The final mixer of items of 4 to 8 bytes.
#[inline]
pub(crate) const fn mix(keyed: u64, len_bytes: u64) -> u64 {
    let h = keyed ^ keyed.rotate_left(49) ^ keyed.rotate_left(24);
    let h = h.wrapping_mul(MX2);
    let h = (h ^ ((h >> 35) + len_bytes)).wrapping_mul(MX2);
    h ^ (h >> 28)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_the_reference_crate(bytes: Vec<u8>, seed: u64) {
            prop_assert_eq!(hash(&bytes, seed), xxh3_64_with_seed(&bytes, seed));
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
