//! XXH3 of integers, four at a time.

use std::arch::x86_64::*;

use crate::arch::scalar;
use crate::hash::MX2;

#[target_feature(enable = "avx2")]
pub(super) fn hash_u64(items: &[u64], flip: u64, hashes: &mut [u64]) {
    let key = _mm256_set1_epi64x(flip as i64);
    let (items, items_rest) = items.as_chunks::<4>();
    let (hashes, hashes_rest) = hashes.as_chunks_mut::<4>();
    for (items, hashes) in items.iter().zip(hashes) {
        // SAFETY: 32 readable and 32 writable bytes.
        unsafe {
            let items = _mm256_loadu_si256(items.as_ptr().cast());
            let exchanged = _mm256_shuffle_epi32::<0b10_11_00_01>(items);
            let hash = mix(_mm256_xor_si256(exchanged, key), 8);
            _mm256_storeu_si256(hashes.as_mut_ptr().cast(), hash);
        }
    }
    (scalar::KERNELS.hash_u64)(items_rest, flip, hashes_rest);
}

#[target_feature(enable = "avx2")]
pub(super) fn hash_u32(items: &[u32], flip: u64, hashes: &mut [u64]) {
    let key = _mm256_set1_epi64x(flip as i64);
    let (items, items_rest) = items.as_chunks::<4>();
    let (hashes, hashes_rest) = hashes.as_chunks_mut::<4>();
    for (items, hashes) in items.iter().zip(hashes) {
        // SAFETY: 16 readable and 32 writable bytes.
        unsafe {
            let low = _mm256_cvtepu32_epi64(_mm_loadu_si128(items.as_ptr().cast()));
            let doubled = _mm256_or_si256(low, _mm256_slli_epi64::<32>(low));
            let hash = mix(_mm256_xor_si256(doubled, key), 4);
            _mm256_storeu_si256(hashes.as_mut_ptr().cast(), hash);
        }
    }
    (scalar::KERNELS.hash_u32)(items_rest, flip, hashes_rest);
}

/// `xxh3::mix` on four items.
#[inline]
#[target_feature(enable = "avx2")]
fn mix(keyed: __m256i, len_bytes: i64) -> __m256i {
    let rotated = _mm256_xor_si256(rotate::<49, 15>(keyed), rotate::<24, 40>(keyed));
    let h = multiply(_mm256_xor_si256(keyed, rotated));
    let shifted = _mm256_add_epi64(_mm256_srli_epi64::<35>(h), _mm256_set1_epi64x(len_bytes));
    let h = multiply(_mm256_xor_si256(h, shifted));
    _mm256_xor_si256(h, _mm256_srli_epi64::<28>(h))
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const LEFT: i32, const RIGHT: i32>(x: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_slli_epi64::<LEFT>(x), _mm256_srli_epi64::<RIGHT>(x))
}

/// The low 64 bits of each lane times [`MX2`], in three 32 by 32 bit products.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(x: __m256i) -> __m256i {
    let low = _mm256_set1_epi64x((MX2 & 0xffff_ffff) as i64);
    let high = _mm256_set1_epi64x((MX2 >> 32) as i64);
    let cross = _mm256_add_epi64(
        _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), low),
        _mm256_mul_epu32(x, high),
    );
    _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64::<32>(cross))
}
