//! Blocks of the size of a register, for filters that store several of these blocks side by side.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::arch::avx2::parquet;
use crate::arch::prefetch::prefetch_lines;
use crate::batch::answers::check_words;
use crate::batch::prefetching::GROUP;

/// A narrow block, or the bits of an item in a narrow block: eight lanes of 16 bits.
#[derive(Clone, Copy)]
pub(in crate::arch) struct Narrow(__m128i);

/// A block of Parquet's rule: eight lanes of 32 bits.
#[derive(Clone, Copy)]
pub(in crate::arch) struct Wide(__m256i);

impl Narrow {
    pub(in crate::arch) const WORDS: usize = 2;

    /// Returns the bit of `hash` in each lane. AVX2 cannot shift each 16-bit lane by a different
    /// number, so the bit is looked up byte by byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn mask(hash: u64) -> Self {
        let low = _mm_cvtsi32_si128(hash as i32);
        // Bytes 2i and 2i + 1 of `numbers` both contain the bit number of lane i.
        let numbers = _mm_unpacklo_epi8(low, _mm_srli_epi32::<4>(low));
        let numbers = _mm_and_si128(numbers, _mm_set1_epi8(15));
        let numbers = _mm_unpacklo_epi8(numbers, numbers);
        // The upper byte of a lane contains bits 8 to 15.
        let numbers = _mm_xor_si128(numbers, _mm_set1_epi16(0x0800));
        let bits = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0);
        Narrow(_mm_shuffle_epi8(bits, numbers))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn load(words: &[u64; 2]) -> Self {
        // SAFETY: `words` has 16 readable bytes, and `loadu` needs no alignment.
        Narrow(unsafe { _mm_loadu_si128(words.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn store(self, words: &mut [u64; 2]) {
        // SAFETY: `words` has 16 writable bytes, and `storeu` needs no alignment.
        unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), self.0) };
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn and(self, other: Self) -> Self {
        Narrow(_mm_and_si128(self.0, other.0))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn or(self, other: Self) -> Self {
        Narrow(_mm_or_si128(self.0, other.0))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn xor(self, other: Self) -> Self {
        Narrow(_mm_xor_si128(self.0, other.0))
    }

    /// Returns the bits of `self` that `other` does not contain.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn without(self, other: Self) -> Self {
        Narrow(_mm_andnot_si128(other.0, self.0))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn is_zero(self) -> bool {
        _mm_testz_si128(self.0, self.0) == 1
    }

    /// Returns true if `self` contains all bits of `other`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn holds(self, other: Self) -> bool {
        _mm_testc_si128(self.0, other.0) == 1
    }

    /// Returns the block if `is_kept` is true, and an empty block if `is_kept` is false.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn masked(self, is_kept: bool) -> Self {
        self.and(Narrow(_mm_set1_epi64x(-i64::from(is_kept))))
    }
}

impl Wide {
    pub(in crate::arch) const WORDS: usize = 4;

    /// Returns the bit of `hash` in each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn mask(hash: u64) -> Self {
        Wide(parquet::bits(hash))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn load(words: &[u64; 4]) -> Self {
        // SAFETY: `words` has 32 readable bytes, and `loadu` needs no alignment.
        Wide(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn store(self, words: &mut [u64; 4]) {
        // SAFETY: `words` has 32 writable bytes, and `storeu` needs no alignment.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) };
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn or(self, other: Self) -> Self {
        Wide(_mm256_or_si256(self.0, other.0))
    }

    /// Returns true if `self` contains all bits of `other`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn holds(self, other: Self) -> bool {
        _mm256_testc_si256(self.0, other.0) == 1
    }

    /// Returns the block if `is_kept` is true, and an empty block if `is_kept` is false.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn masked(self, is_kept: bool) -> Self {
        Wide(_mm256_and_si256(self.0, _mm256_set1_epi64x(-i64::from(is_kept))))
    }
}

/// The minimum size of a filter for prefetches. A filter that fits in the L2 cache needs no
/// prefetches, because the CPU hides the latency of the L2 cache.
const PREFETCH_FROM_WORDS: usize = (1 << 18) / 8;

/// The prefetch distance, in items.
const AHEAD: usize = 2 * GROUP;

/// Writes the answer to each hash, in order, to a bit mask. In a large filter, prefetches the words
/// at the `place` of a later hash. This function is the AVX2 version of `in_batches`, because
/// `in_batches` is not compiled for AVX2.
///
/// # Panics
///
/// If the length of `answers` is not one word for each 64 hashes, rounded up.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn each_ahead(
    words: *const [u64],
    place: impl Fn(u64) -> Range<usize>,
    hashes: &[u64],
    answers: &mut [u64],
    mut answer: impl FnMut(u64) -> bool,
) {
    check_words(answers, hashes.len());
    let is_large = words.len() >= PREFETCH_FROM_WORDS && hashes.len() > 1;
    if is_large {
        for &hash in hashes.iter().take(AHEAD) {
            prefetch_lines(words, place(hash));
        }
    }
    for (word, first) in answers.iter_mut().zip((0..hashes.len()).step_by(64)) {
        let mut mask = 0;
        for (i, &hash) in hashes[first..].iter().take(64).enumerate() {
            if is_large && let Some(&hash) = hashes.get(first + i + AHEAD) {
                prefetch_lines(words, place(hash));
            }
            mask |= u64::from(answer(hash)) << i;
        }
        *word = mask;
    }
}
