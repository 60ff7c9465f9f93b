//! SipHash-1-3 of eight items at once. Each item is in one lane of vector registers.
//!
//! ```text
//! items:  lane 0 | word 0 | word 1 | … | tail and length |        one round a word, then three rounds
//!         lane 1 | word 0 | tail and length |                     a lane whose item has ended keeps its state
//! ```
//!
//! The rounds of one item depend on each other. Therefore, if items are hashed one by one, most
//! execution units of a core are idle. Hashing a line of 59 bytes took 21 ns one by one, and takes
//! 9 ns with the AVX-512 kernel of this module.
//!
//! Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), §2. SipHash-1-3 has
//! one round for each word and three rounds at the end. The 128-bit output is the same as in the
//! authors' reference code.

use siphasher::{sip, sip128};

use crate::arch::level::Level;

/// The number of items that are hashed at once.
pub(crate) const LANES: usize = 8;

/// Hashes an item with SipHash-1-3 to `N` words. `N` is 1 or 2.
// `hash_one` is not inlined. When `hash_one` was inlined at several places, the hash to 128 bits
// took 1 to 2 ns more than without inlining.
#[inline(never)]
pub(crate) fn hash_one<const N: usize>([k0, k1]: [u64; 2], item: &[u8]) -> [u64; N] {
    let words = if N == 1 {
        [sip::SipHasher13::new_with_keys(k0, k1).hash(item), 0]
    } else {
        let hash = sip128::SipHasher13::new_with_keys(k0, k1).hash(item);
        [hash.h1, hash.h2]
    };
    std::array::from_fn(|word| words[word])
}

/// Hashes eight items with SipHash-1-3 to `N` words each. `N` is 1 or 2. Word `w` of item `i` is
/// `[w][i]`.
pub(crate) fn hash_8<const N: usize>(
    level: Level,
    key: [u64; 2],
    items: [&[u8]; LANES],
) -> [[u64; LANES]; N] {
    match level {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        // SAFETY: the CPU supports the features of `level`.
        Level::Avx512 => unsafe { wide::hash_8(key, items) },
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        // SAFETY: the CPU supports the features of `level`.
        Level::Avx2 => unsafe { half::hash_8(key, items) },
        Level::Scalar => hash_8_scalar(key, items),
    }
}

/// Hashes the items one by one.
fn hash_8_scalar<const N: usize>(key: [u64; 2], items: [&[u8]; LANES]) -> [[u64; LANES]; N] {
    let mut hashes = [[0; LANES]; N];
    for (i, item) in items.into_iter().enumerate() {
        for (hashes, word) in hashes.iter_mut().zip(hash_one::<N>(key, item)) {
            hashes[i] = word;
        }
    }
    hashes
}

/// The constants of SipHash, for the vector kernels.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod state {
    /// The initial state (§2), before the key is XORed into the state.
    const START: [u64; 4] = [
        0x736f_6d65_7073_6575,
        0x646f_7261_6e64_6f6d,
        0x6c79_6765_6e65_7261,
        0x7465_6462_7974_6573,
    ];

    /// The constant that is XORed into `v1` before the second word of a hash.
    pub(super) const BETWEEN: u64 = 0xdd;

    /// Returns the state for `key` before the first word of an item. `N` is the number of words of
    /// a hash: 1 or 2.
    pub(super) const fn start<const N: usize>([k0, k1]: [u64; 2]) -> [u64; 4] {
        let wide = if N == 1 { 0 } else { 0xee };
        [START[0] ^ k0, START[1] ^ k1 ^ wide, START[2] ^ k0, START[3] ^ k1]
    }

    /// Returns the constant that is XORed into `v2` after the last word of an item.
    pub(super) const fn end<const N: usize>() -> u64 {
        if N == 1 { 0xff } else { 0xee }
    }
}

/// The AVX-512 kernel, with one item in each lane of a register.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod wide {
    use std::arch::x86_64::*;

    use super::LANES;
    use super::state::{BETWEEN, end, start};

    // The code uses loops instead of closures, because the compiler does not compile a closure with
    // the CPU features of the function around the closure.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,bmi2")]
    pub(super) fn hash_8<const N: usize>(
        key: [u64; 2],
        items: [&[u8]; LANES],
    ) -> [[u64; LANES]; N] {
        let [v0, v1, v2, v3] = start::<N>(key);
        let mut state = [broadcast(v0), broadcast(v1), broadcast(v2), broadcast(v3)];
        let (mut lens, mut last_word) = ([0; LANES], 0);
        for (len, item) in lens.iter_mut().zip(items) {
            *len = item.len() as u64;
            last_word = last_word.max(item.len() / 8);
        }
        let lens = from_words(lens);
        let tail_at = _mm512_srli_epi64::<3>(lens);
        let len_byte = _mm512_slli_epi64::<56>(lens);
        for first in (0..=last_word).step_by(8) {
            let mut rows = [_mm512_setzero_si512(); LANES];
            for (row, item) in rows.iter_mut().zip(items) {
                *row = load(item, first * 8);
            }
            let words = transpose(rows);
            for (i, &word) in words.iter().enumerate().take(last_word - first + 1) {
                let at = broadcast((first + i) as u64);
                let is_tail = _mm512_cmpeq_epi64_mask(tail_at, at);
                let goes_on = _mm512_cmpge_epu64_mask(tail_at, at);
                let word = _mm512_mask_or_epi64(word, is_tail, word, len_byte);
                let mut next = state;
                next[3] = _mm512_xor_si512(next[3], word);
                next = round(next);
                next[0] = _mm512_xor_si512(next[0], word);
                // The compiler merges the masked moves below into the last operations of `round`.
                for (held, next) in state.iter_mut().zip(next) {
                    *held = _mm512_mask_mov_epi64(*held, goes_on, next);
                }
            }
        }
        state[2] = _mm512_xor_si512(state[2], broadcast(end::<N>()));
        let mut hashes = [[0; LANES]; N];
        for (i, hashes) in hashes.iter_mut().enumerate() {
            if i > 0 {
                state[1] = _mm512_xor_si512(state[1], broadcast(BETWEEN));
            }
            state = round(round(round(state)));
            let [v0, v1, v2, v3] = state;
            let sum = _mm512_xor_si512(_mm512_xor_si512(v0, v1), _mm512_xor_si512(v2, v3));
            // SAFETY: the array is 64 writable bytes, and `storeu` needs no alignment.
            unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().cast(), sum) };
        }
        hashes
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn broadcast(word: u64) -> __m512i {
        _mm512_set1_epi64(word as i64)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn from_words(words: [u64; LANES]) -> __m512i {
        // SAFETY: the array is 64 readable bytes, and `loadu` needs no alignment.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    /// Loads 64 bytes that start at byte `at` of an item. Bytes beyond the end of the item are
    /// zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    fn load(item: &[u8], at: usize) -> __m512i {
        let left = item.len().saturating_sub(at).min(64);
        if left == 0 {
            // If the mask suppresses all bytes of a load and the address is not mapped, the load
            // costs hundreds of cycles.
            return _mm512_setzero_si512();
        }
        let within = _bzhi_u64(u64::MAX, left as u32);
        // SAFETY: the mask selects only bytes of the item. Bytes outside the item are not read and
        // cannot fault.
        unsafe { _mm512_maskz_loadu_epi8(within, item.as_ptr().wrapping_add(at).cast()) }
    }

    /// Transposes rows into columns. Word `w` of row `r` becomes word `r` of column `w`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
        let (mut columns, mut pairs) = (rows, rows);
        // Each pair contains alternating words of two adjacent rows. The first four pairs contain
        // the even words, and the last four pairs contain the odd words.
        for i in 0..4 {
            pairs[i] = _mm512_unpacklo_epi64(rows[2 * i], rows[2 * i + 1]);
            pairs[4 + i] = _mm512_unpackhi_epi64(rows[2 * i], rows[2 * i + 1]);
        }
        for odd in 0..2 {
            let (a, b) = (pairs[4 * odd], pairs[4 * odd + 1]);
            let (c, d) = (pairs[4 * odd + 2], pairs[4 * odd + 3]);
            // Each 128-bit quarter contains one word of each of two rows.
            let ab = [_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b)];
            let cd = [_mm512_shuffle_i64x2::<0x88>(c, d), _mm512_shuffle_i64x2::<0xdd>(c, d)];
            for quarter in 0..2 {
                let (ab, cd) = (ab[quarter], cd[quarter]);
                columns[2 * quarter + odd] = _mm512_shuffle_i64x2::<0x88>(ab, cd);
                columns[4 + 2 * quarter + odd] = _mm512_shuffle_i64x2::<0xdd>(ab, cd);
            }
        }
        columns
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn round([mut v0, mut v1, mut v2, mut v3]: [__m512i; 4]) -> [__m512i; 4] {
        v0 = _mm512_add_epi64(v0, v1);
        v2 = _mm512_add_epi64(v2, v3);
        v1 = _mm512_xor_si512(_mm512_rol_epi64::<13>(v1), v0);
        v3 = _mm512_xor_si512(_mm512_rol_epi64::<16>(v3), v2);
        v0 = _mm512_rol_epi64::<32>(v0);
        v2 = _mm512_add_epi64(v2, v1);
        v0 = _mm512_add_epi64(v0, v3);
        v1 = _mm512_xor_si512(_mm512_rol_epi64::<17>(v1), v2);
        v3 = _mm512_xor_si512(_mm512_rol_epi64::<21>(v3), v0);
        v2 = _mm512_rol_epi64::<32>(v2);
        [v0, v1, v2, v3]
    }
}

/// The AVX2 kernel, with four items at a time, one item in each lane of a register.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod half {
    use std::arch::x86_64::*;

    use super::LANES;
    use super::state::{BETWEEN, end, start};

    #[target_feature(enable = "avx2")]
    pub(super) fn hash_8<const N: usize>(
        key: [u64; 2],
        items: [&[u8]; LANES],
    ) -> [[u64; LANES]; N] {
        let mut hashes = [[0; LANES]; N];
        for (half, items) in items.as_chunks::<4>().0.iter().enumerate() {
            for (hashes, half_hashes) in hashes.iter_mut().zip(hash_4::<N>(key, items)) {
                hashes[4 * half..4 * half + 4].copy_from_slice(&half_hashes);
            }
        }
        hashes
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn hash_4<const N: usize>(key: [u64; 2], items: &[&[u8]; 4]) -> [[u64; 4]; N] {
        let [v0, v1, v2, v3] = start::<N>(key);
        let mut state = [broadcast(v0), broadcast(v1), broadcast(v2), broadcast(v3)];
        let (mut tails, mut tails_at, mut last_word) = ([0; 4], [0; 4], 0);
        for ((tail, tail_at), item) in tails.iter_mut().zip(&mut tails_at).zip(items) {
            (*tail, *tail_at) = (self::tail(item), item.len() as u64 / 8);
            last_word = last_word.max(item.len() / 8);
        }
        let (tails, tails_at) = (from_words(tails), from_words(tails_at));
        for first in (0..=last_word).step_by(4) {
            let mut rows = [_mm256_setzero_si256(); 4];
            for (row, item) in rows.iter_mut().zip(items) {
                *row = load(item, first * 8);
            }
            let words = transpose(rows);
            for (i, &word) in words.iter().enumerate().take(last_word - first + 1) {
                let at = broadcast((first + i) as u64);
                let is_tail = _mm256_cmpeq_epi64(tails_at, at);
                let has_ended = _mm256_cmpgt_epi64(at, tails_at);
                // `load` returns zero for the word of the tail.
                let word = _mm256_or_si256(word, _mm256_and_si256(is_tail, tails));
                let mut next = state;
                next[3] = _mm256_xor_si256(next[3], word);
                next = round(next);
                next[0] = _mm256_xor_si256(next[0], word);
                for (held, next) in state.iter_mut().zip(next) {
                    *held = _mm256_blendv_epi8(next, *held, has_ended);
                }
            }
        }
        state[2] = _mm256_xor_si256(state[2], broadcast(end::<N>()));
        let mut hashes = [[0; 4]; N];
        for (i, hashes) in hashes.iter_mut().enumerate() {
            if i > 0 {
                state[1] = _mm256_xor_si256(state[1], broadcast(BETWEEN));
            }
            state = round(round(round(state)));
            let [v0, v1, v2, v3] = state;
            let sum = _mm256_xor_si256(_mm256_xor_si256(v0, v1), _mm256_xor_si256(v2, v3));
            // SAFETY: the array is 32 writable bytes, and `storeu` needs no alignment.
            unsafe { _mm256_storeu_si256(hashes.as_mut_ptr().cast(), sum) };
        }
        hashes
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn broadcast(word: u64) -> __m256i {
        _mm256_set1_epi64x(word as i64)
    }

    /// Returns the last word of an item: the bytes after the whole words, and the length in the
    /// highest byte.
    #[inline]
    fn tail(item: &[u8]) -> u64 {
        let (bits, len) = (item.len() % 8 * 8, item.len() as u64);
        let bytes = match item.last_chunk::<8>() {
            // The value is shifted in two steps, because a single shift by 64 bits would overflow.
            Some(last) => u64::from_le_bytes(*last) >> 1 >> (63 - bits),
            None => item.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        bytes | len << 56
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn from_words(words: [u64; 4]) -> __m256i {
        // SAFETY: the array is 32 readable bytes, and `loadu` needs no alignment.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    /// Loads four words that start at byte `at` of an item. A word that is not completely inside
    /// the item is zero.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(item: &[u8], at: usize) -> __m256i {
        let left = item.len().saturating_sub(at) / 8;
        if left == 0 {
            // A comment in `wide::load` gives the reason for this branch.
            return _mm256_setzero_si256();
        }
        let is_within =
            _mm256_cmpgt_epi64(_mm256_set1_epi64x(left as i64), _mm256_setr_epi64x(0, 1, 2, 3));
        // SAFETY: the mask selects only words of the item. Words outside the item are not read and
        // cannot fault.
        unsafe { _mm256_maskload_epi64(item.as_ptr().wrapping_add(at).cast(), is_within) }
    }

    /// Transposes rows into columns. Word `w` of row `r` becomes word `r` of column `w`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        let (ab_even, ab_odd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
        let (cd_even, cd_odd) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
        [
            _mm256_permute2x128_si256::<0x20>(ab_even, cd_even),
            _mm256_permute2x128_si256::<0x20>(ab_odd, cd_odd),
            _mm256_permute2x128_si256::<0x31>(ab_even, cd_even),
            _mm256_permute2x128_si256::<0x31>(ab_odd, cd_odd),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(word: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi64::<LEFT>(word), _mm256_srli_epi64::<RIGHT>(word))
    }

    /// Swaps the halves of each word, which is a rotation by 32 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn swap(word: __m256i) -> __m256i {
        _mm256_shuffle_epi32::<0b10_11_00_01>(word)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn round([mut v0, mut v1, mut v2, mut v3]: [__m256i; 4]) -> [__m256i; 4] {
        v0 = _mm256_add_epi64(v0, v1);
        v2 = _mm256_add_epi64(v2, v3);
        v1 = _mm256_xor_si256(rotate::<13, 51>(v1), v0);
        v3 = _mm256_xor_si256(rotate::<16, 48>(v3), v2);
        v0 = swap(v0);
        v2 = _mm256_add_epi64(v2, v1);
        v0 = _mm256_add_epi64(v0, v3);
        v1 = _mm256_xor_si256(rotate::<17, 47>(v1), v2);
        v3 = _mm256_xor_si256(rotate::<21, 43>(v3), v0);
        v2 = swap(v2);
        [v0, v1, v2, v3]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Hasher;
    use crate::arch::level::available;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        #[test]
        fn every_level_hashes_as_one_by_one(
            key in any::<[u64; 2]>(),
            items in prop::array::uniform8(prop_oneof![
                8 => prop::collection::vec(any::<u8>(), 0..140),
                1 => prop::collection::vec(any::<u8>(), 0..700),
            ]),
        ) {
            let hasher = Hasher::sip13(key);
            // Each item is a separate allocation, so that a sanitizer finds a read beyond the end
            // of the item.
            let items = items.map(Vec::into_boxed_slice);
            let items = items.each_ref().map(|item| &item[..]);
            for level in available() {
                let [hashes] = hash_8::<1>(level, key, items);
                prop_assert_eq!(hashes, items.map(|item| hasher.hash(item)), "{:?}", level);
                let [low, high] = hash_8::<2>(level, key, items);
                let expected = items.map(|item| hasher.hash128(item));
                prop_assert_eq!(low, expected.map(|hash| hash as u64), "{:?}", level);
                prop_assert_eq!(high, expected.map(|hash| (hash >> 64) as u64), "{:?}", level);
            }
        }
    }
}
