//! The default hash. An item of up to eight bytes is a number, which the finalizer of SplitMix64
//! mixes. Longer items are mixed by multiplications, each folded to 64 bits.
//!
//! ```text
//! fold(x, y) = low half XOR high half of the 128-bit product x · y
//!
//!   up to 8 bytes   hash = finalizer(a ^ (k0 + length · k1))     a = the bytes, little-endian
//!
//!   9 to 16         mixed = fold(a ^ k0, b ^ k1)                a = the first eight bytes
//!                                                               b = the last eight bytes
//!   17 to 128       mixed = the sum of folds, one fold for each half of a pair (`sum_of_pairs`)
//!   longer          mixed = fold(a ^ k0, k1)                    a = XXH3-64 of the bytes, seed 0
//!                   hash = fold(mixed, G ^ length)              length in bytes
//! ```
//!
//! G is 2⁶⁴ divided by the golden ratio. SplitMix64 derives k0 and k1 from the seed.
//!
//! The finalizer is a bijection: two items of the same length of up to eight bytes never have equal
//! hashes. The finalizer needs only products modulo 2⁶⁴, so vector instructions hash eight integers
//! at a time.
//!
//! Two items of up to 128 bytes that collide under one seed collide under another seed only by
//! chance. For two lengths of up to eight bytes, the XOR of the keys of both lengths depends on the
//! seed. For longer items, the seed changes both factors of the first fold, and no constant difference
//! between two items cancels this effect. Items of over 128 bytes that collide under XXH3 collide
//! under every seed. The mix hash does not protect against items that an attacker chooses. SipHash
//! protects against items that an attacker chooses.
//!
//! Items of 17 to 128 bytes are read in pairs of 16 bytes, one half of a pair from each end of the
//! item. Bytes in the middle of an item may be read twice:
//!
//! ```text
//!  pair 0     1     2                   2     1     0       pair 1 above 32 bytes (its second half
//! |·····|·····|·····|··· item ···|·····|·····|·····|       above 48), 2 above 64, 3 above 96
//! ```
//!
//! For 33 to 48 bytes, the second half of pair 1 is left out: the other three halves contain its
//! bytes. The hash of a UUID as text then takes a sixth less time (on Emerald Rapids 3.2 ns instead
//! of 3.8 ns).
//!
//! Sources: SplitMix64 (Steele, Lea, Flood, 2014), whose finalizer is variant 13 of David Stafford;
//! wyhash (Wang Yi, 2019) and XXH3 for the multiplication with folding; XXH3 ("XXH3 algorithm for
//! medium inputs") for the layout of the pairs and the secret words. `docs/formats/tamis.md` defines
//! the function for other programs.

use std::hint::select_unpredictable;

use crate::arch::mix::finalize;

/// The first 16 words of XXH3's default secret.
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

/// 2⁶⁴ divided by the golden ratio. The constant is part of a factor of the last fold, and the step
/// of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The words that the hash derives from a seed: k0 and k1.
pub(super) type Keys = [u64; 2];

/// Derives the keys of a seed. k0 is the first output of SplitMix64 that starts at `seed`. k1 is
/// the first of the following outputs that [mixes well](is_mixing).
pub(super) const fn keys(seed: u64) -> Keys {
    let first = seed.wrapping_add(GOLDEN);
    let mut state = first.wrapping_add(GOLDEN);
    while !is_mixing(finalize(state)) {
        state = state.wrapping_add(GOLDEN);
    }
    [finalize(first), finalize(state)]
}

/// Returns true if products with this factor are well mixed: the halves of the factor differ, and 8
/// to 56 bits of the factor are set.
///
/// The product of 2⁶⁴ − 1 and any nonzero factor folds to 64 set bits. Many products of a number
/// with equal halves also fold to 64 set bits. About one in 2³² random factors fails the test.
const fn is_mixing(factor: u64) -> bool {
    let ones = factor.count_ones();
    factor as u32 as u64 != factor >> 32 && 8 <= ones && ones <= 56
}

/// Returns the seed from which these keys are derived. A hasher stores only the keys.
pub(super) const fn seed([first, _]: Keys) -> u64 {
    let z = first ^ first >> 31 ^ first >> 62;
    let z = z.wrapping_mul(FACTOR_1_INVERSE);
    let z = (z ^ z >> 27 ^ z >> 54).wrapping_mul(FACTOR_0_INVERSE);
    (z ^ z >> 30 ^ z >> 60).wrapping_sub(GOLDEN)
}

/// The inverses of the finalizer's factors, modulo 2⁶⁴.
const FACTOR_0_INVERSE: u64 = 0x96de_1b17_3f11_9089;
const FACTOR_1_INVERSE: u64 = 0x3196_42b2_d24d_8ec3;

/// Hashes `bytes`.
// This function is always inlined, so that a loop around the call computes the key-dependent values
// only once.
#[inline(always)]
pub(super) fn hash(bytes: &[u8], keys: Keys) -> u64 {
    let len = bytes.len();
    let mixed = match len {
        17..=128 => sum_of_pairs(bytes, keys),
        9..=16 => fold_pair(read_8(bytes, 0), read_8(bytes, len - 8), keys),
        0..=8 => return hash_number(small_number(bytes), len as u64, keys),
        _ => fold_pair(xxh3(bytes), 0, keys),
    };
    finish_folds(mixed, len as u64)
}

/// Hashes `len` bytes, at most eight, given as a little-endian number.
#[inline(always)]
pub(super) const fn hash_number(number: u64, len: u64, keys: Keys) -> u64 {
    finalize(number ^ key_of_numbers(len, keys))
}

/// Returns the key of all numbers of `len` bytes. Each length has its own key, because a number and
/// the same number with a zero byte appended are different items.
#[inline(always)]
pub(super) const fn key_of_numbers(len: u64, [k0, k1]: Keys) -> u64 {
    k0.wrapping_add(len.wrapping_mul(k1))
}

#[inline(always)]
pub(super) const fn fold_pair(a: u64, b: u64, [k0, k1]: Keys) -> u64 {
    fold(a ^ k0, b ^ k1)
}

#[inline(always)]
pub(super) const fn finish_folds(mixed: u64, len: u64) -> u64 {
    fold(mixed, GOLDEN ^ len)
}

/// Returns the XOR of both halves of the 128-bit product of `x` and `y`.
#[inline(always)]
const fn fold(x: u64, y: u64) -> u64 {
    let product = x as u128 * y as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Returns the sum of the folds of an item of 17 to 128 bytes.
// The conditions are nested, so that the code of each half of a pair exists only once.
#[inline(always)]
pub(super) fn sum_of_pairs(bytes: &[u8], keys: Keys) -> u64 {
    let mut sum = first_half::<0>(bytes, keys).wrapping_add(second_half::<0>(bytes, keys));
    if bytes.len() > 32 {
        sum = sum.wrapping_add(first_half::<1>(bytes, keys));
        if bytes.len() > 48 {
            sum = sum.wrapping_add(second_half::<1>(bytes, keys));
            // About half of all web addresses are shorter than 64 bytes, and half are longer than
            // 64 bytes. Two unneeded multiplications take less time than a branch that is
            // mispredicted every second time.
            let pair_2 = first_half::<2>(bytes, keys).wrapping_add(second_half::<2>(bytes, keys));
            sum = sum.wrapping_add(select_unpredictable(bytes.len() > 64, pair_2, 0));
            if bytes.len() > 96 {
                sum = sum.wrapping_add(first_half::<3>(bytes, keys));
                sum = sum.wrapping_add(second_half::<3>(bytes, keys));
            }
        }
    }
    sum
}

/// Mixes the 16 bytes at offset `16 * I`.
#[inline(always)]
fn first_half<const I: usize>(bytes: &[u8], keys: Keys) -> u64 {
    mix_16(bytes, 16 * I, [SECRET[4 * I], SECRET[4 * I + 1]], keys)
}

/// Mixes the 16 bytes that end `16 * I` bytes before the end of the item.
#[inline(always)]
pub(super) fn second_half<const I: usize>(bytes: &[u8], keys: Keys) -> u64 {
    let at = bytes.len() - 16 * (I + 1);
    mix_16(bytes, at, [SECRET[4 * I + 2], SECRET[4 * I + 3]], keys)
}

#[inline(always)]
fn mix_16(bytes: &[u8], at: usize, [s0, s1]: [u64; 2], [k0, k1]: Keys) -> u64 {
    // The keys are added to the secret words instead of XORed. With XOR, some pairs of items would
    // have equal hashes under every seed. In each such pair of items, the words of two places are
    // exchanged, and each word is XORed with both secret words.
    let (k0, k1) = (s0.wrapping_add(k0), s1.wrapping_add(k1));
    fold_pair(read_8(bytes, at), read_8(bytes, at + 8), [k0, k1])
}

#[inline(always)]
fn read_8(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Returns up to eight bytes as a little-endian number.
#[inline(always)]
pub(super) fn small_number(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // The two halves may overlap. The overlapping bits are equal, so the OR is correct.
        let [first, last] = [*first, *last].map(|half| u64::from(u32::from_le_bytes(half)));
        return first | last << (8 * (len - 4));
    }
    let Some(&last) = bytes.last() else { return 0 };
    let at = |i: usize| u64::from(bytes[i]) << (8 * i);
    at(0) | at(len / 2) | u64::from(last) << (8 * (len - 1))
}

// This function is not inlined, so that the code for short items stays small in the callers.
#[inline(never)]
fn xxh3(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[cfg(test)]
mod tests;
