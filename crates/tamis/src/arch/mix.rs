//! The finalizer of SplitMix64. The mix hash applies the finalizer to the integer XOR a key.
//!
//! The table lists the cycles that llvm-mca 19 predicts for eight integers. The first row is the fold
//! hash, the previous default.
//!
//! ```text
//!                                             Sapphire Rapids   Zen 4
//! two folds, four products of 32 bits each               20.2    14.7
//! AVX-512, `vpmullq`                                      9.2     4.0
//! AVX2, three products of 32 bits each                   20.2     9.1
//! ```

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::level::{Level, level};

/// The shifts and the factors of the finalizer: variant 13 of Stafford, "Better Bit Mixing" (2011),
/// which SplitMix64 uses (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators",
/// 2014, §5).
const SHIFTS: [u32; 3] = [30, 27, 31];
const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Applies the finalizer to one number.
#[inline(always)]
pub(crate) const fn finalize(number: u64) -> u64 {
    let z = (number ^ (number >> SHIFTS[0])).wrapping_mul(FACTORS[0]);
    let z = (z ^ (z >> SHIFTS[1])).wrapping_mul(FACTORS[1]);
    z ^ (z >> SHIFTS[2])
}

/// A primitive integer of 1, 2, 4 or 8 bytes.
///
/// # Safety
///
/// The type has no padding: the AVX-512 kernel reads all bytes of an array by a pointer.
pub(crate) unsafe trait Integer: Copy {
    /// Returns the bits of the integer, extended by zeros.
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($int:ty, $unsigned:ty;)*) => { $(
        // SAFETY: a primitive integer has no padding.
        unsafe impl Integer for $int {
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
        }
    )* };
}

integers!(u8, u8; i8, u8; u16, u16; i16, u16; u32, u32; i32, u32; u64, u64; i64, u64;);

/// Applies the finalizer to each integer XOR `key`, and writes the results to `hashes`.
pub(crate) fn finalize_each<I: Integer>(integers: &[I], key: u64, hashes: &mut [u64]) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    match level() {
        // SAFETY: the CPU supports the features of the detected level.
        Level::Avx512 => return unsafe { wide::finalize_each(integers, key, hashes) },
        // SAFETY: the CPU supports the features of the detected level.
        Level::Avx2 => return unsafe { half::finalize_each(integers, key, hashes) },
        Level::Scalar => {}
    }
    one_by_one(integers, key, hashes);
}

#[inline(always)]
fn one_by_one<I: Integer>(integers: &[I], key: u64, hashes: &mut [u64]) {
    for (hash, integer) in hashes.iter_mut().zip(integers) {
        *hash = finalize(integer.bits() ^ key);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod half {
    use super::Integer;

    /// The compiler makes vector instructions of the loop.
    #[target_feature(enable = "avx2")]
    pub(super) fn finalize_each<I: Integer>(integers: &[I], key: u64, hashes: &mut [u64]) {
        super::one_by_one(integers, key, hashes);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod wide {
    use std::arch::x86_64::*;

    use super::{FACTORS, Integer, SHIFTS};

    // The kernel is written in intrinsics. In a build for this CPU, the compiler prefers vectors of
    // 256 bits for a loop that it vectorises itself.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
    pub(super) fn finalize_each<I: Integer>(integers: &[I], key: u64, hashes: &mut [u64]) {
        let (eights, rest) = integers.as_chunks::<8>();
        let (hashes_of_eights, hashes_of_rest) = hashes.as_chunks_mut::<8>();
        let key_lanes = _mm512_set1_epi64(key as i64);
        let factors = FACTORS.map(|factor| _mm512_set1_epi64(factor as i64));
        for (eight, hashes) in eights.iter().zip(hashes_of_eights) {
            let z = _mm512_xor_si512(load_8(eight), key_lanes);
            let z = _mm512_xor_si512(z, _mm512_srli_epi64::<{ SHIFTS[0] }>(z));
            let z = _mm512_mullo_epi64(z, factors[0]);
            let z = _mm512_xor_si512(z, _mm512_srli_epi64::<{ SHIFTS[1] }>(z));
            let z = _mm512_mullo_epi64(z, factors[1]);
            let z = _mm512_xor_si512(z, _mm512_srli_epi64::<{ SHIFTS[2] }>(z));
            // SAFETY: the array has 64 bytes, and `storeu` needs no alignment.
            unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().cast(), z) };
        }
        super::one_by_one(rest, key, hashes_of_rest);
    }

    /// Reads eight integers into eight lanes, extended by zeros.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn load_8<I: Integer>(eight: &[I; 8]) -> __m512i {
        let first: *const u8 = eight.as_ptr().cast();
        // SAFETY: each load reads exactly the bytes of the array, and needs no alignment.
        unsafe {
            match size_of::<I>() {
                1 => _mm512_cvtepu8_epi64(_mm_loadu_si64(first)),
                2 => _mm512_cvtepu16_epi64(_mm_loadu_si128(first.cast())),
                4 => _mm512_cvtepu32_epi64(_mm256_loadu_si256(first.cast())),
                8 => _mm512_loadu_si512(first.cast()),
                _ => unreachable!("an integer of at most eight bytes"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_same<I: Integer>(integers: impl Iterator<Item = I>) {
        let integers: Vec<I> = integers.collect();
        for len in 0..integers.len() {
            let mut expected = vec![0; len];
            one_by_one(&integers[..len], 77, &mut expected);
            let mut hashes = vec![0; len];
            finalize_each(&integers[..len], 77, &mut hashes);
            assert_eq!(hashes, expected, "{len} of {} bytes", size_of::<I>());
        }
    }

    #[test]
    fn many_integers_are_finalized_as_one_by_one() {
        let random = || (0..40_u64).map(finalize);
        assert_same(random());
        assert_same(random().map(|x| x as i64));
        assert_same(random().map(|x| x as u32));
        assert_same(random().map(|x| x as i32));
        assert_same(random().map(|x| x as u16));
        assert_same(random().map(|x| x as i16));
        assert_same(random().map(|x| x as u8));
        assert_same(random().map(|x| x as i8));
    }
}
