//! A word for each of eight lanes, in two registers of AVX2.

use std::arch::x86_64::*;

use crate::strategy::SplitBlock;

/// Eight words: a block of the default filter, or a slice of a block of counters.
#[derive(Clone, Copy)]
pub(in crate::arch) struct Slice(__m256i, __m256i);

impl Slice {
    /// The number of the bit of `hash` in each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn numbers(hash: u64) -> Self {
        let spread = _mm256_set1_epi64x(SplitBlock::spread(hash) as i64);
        let [a, b, c, d, e, f, g, h] = SplitBlock::SHIFTS.map(|shift| shift as i64);
        let six = _mm256_set1_epi64x(63);
        Slice(
            _mm256_and_si256(_mm256_srlv_epi64(spread, _mm256_setr_epi64x(a, b, c, d)), six),
            _mm256_and_si256(_mm256_srlv_epi64(spread, _mm256_setr_epi64x(e, f, g, h)), six),
        )
    }

    /// The bits of these numbers.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn bits(self) -> Self {
        let one = _mm256_set1_epi64x(1);
        Slice(_mm256_sllv_epi64(one, self.0), _mm256_sllv_epi64(one, self.1))
    }

    /// The bit of `hash` in each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn mask(hash: u64) -> Self {
        Self::numbers(hash).bits()
    }

    /// Tells whether the bit of each lane's number is set: the block is shifted and not a mask, so that one
    /// test is enough.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn holds(self, numbers: Self) -> bool {
        let (first, second) =
            (_mm256_srlv_epi64(self.0, numbers.0), _mm256_srlv_epi64(self.1, numbers.1));
        _mm256_testc_si256(_mm256_and_si256(first, second), _mm256_set1_epi64x(1)) == 1
    }

    /// All of it, or nothing.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn masked(self, is_kept: bool) -> Self {
        let all = _mm256_set1_epi64x(-i64::from(is_kept));
        self.zip(Slice(all, all), |a, b| _mm256_and_si256(a, b))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn zip(
        self,
        other: Self,
        join: impl Fn(__m256i, __m256i) -> __m256i,
    ) -> Self {
        Slice(join(self.0, other.0), join(self.1, other.1))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| _mm256_and_si256(a, b))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| _mm256_or_si256(a, b))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| _mm256_xor_si256(a, b))
    }

    /// What is in `self` and not in `other`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn without(self, other: Self) -> Self {
        self.zip(other, |a, b| _mm256_andnot_si256(b, a))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn is_zero(self) -> bool {
        let all = _mm256_or_si256(self.0, self.1);
        _mm256_testz_si256(all, all) == 1
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn load(words: &[u64; 8]) -> Self {
        let start = words.as_ptr().cast::<__m256i>();
        // SAFETY: 64 readable bytes, and `loadu` asks for no alignment.
        unsafe { Slice(_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn store(self, words: &mut [u64; 8]) {
        let start = words.as_mut_ptr().cast::<__m256i>();
        // SAFETY: 64 writable bytes, and `storeu` asks for no alignment.
        unsafe {
            _mm256_storeu_si256(start, self.0);
            _mm256_storeu_si256(start.add(1), self.1);
        }
    }
}
