//! The 64-bit hashes of ORC and Hive.
//!
//! Sources: Appleby, MurmurHash3 (public domain), in a 64-bit variant; Wang, "Integer Hash Function".

use crate::rules::hash::murmur3::mix_64;

/// The seed of the hashes of ORC and Hive.
const SEED: u64 = 104_729;

/// Returns the Murmur3 hash with one lane of 64 bits instead of two lanes.
pub(crate) fn murmur3_64(bytes: &[u8]) -> u64 {
    let scramble = |word: [u8; 8]| {
        let k = u64::from_le_bytes(word).wrapping_mul(0x87c3_7b91_1142_53d5);
        k.rotate_left(31).wrapping_mul(0x4cf5_ad43_2745_937f)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut h = words.iter().fold(SEED, |h, &word| {
        (h ^ scramble(word)).rotate_left(27).wrapping_mul(5).wrapping_add(0x52dc_e729)
    });
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        h ^= scramble(last);
    }
    mix_64(h ^ bytes.len() as u64)
}

/// Returns Wang's hash of an integer. The shifts keep the sign.
pub(crate) fn wang_64(value: i64) -> u64 {
    let mut k = (!value).wrapping_add(value << 21);
    k ^= k >> 24;
    k = k.wrapping_add(k << 3).wrapping_add(k << 8);
    k ^= k >> 14;
    k = k.wrapping_add(k << 2).wrapping_add(k << 4);
    k ^= k >> 28;
    k.wrapping_add(k << 31).cast_unsigned()
}
