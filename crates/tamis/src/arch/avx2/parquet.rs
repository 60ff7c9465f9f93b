//! Kernels of Parquet's filter: a block is one register.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::arch::avx2::batches::each_batch;
use crate::arch::batch::Located;
use crate::bits::Word;
use crate::strategy::block_rules::parquet::{SALTS, WORDS, block};

#[target_feature(enable = "avx2")]
pub(in crate::arch) fn contains_one_256<W: Word>(words: &[W], hash: u64) -> bool {
    let blocks = words.len() / WORDS;
    assert!(blocks > 0, "a filter has at least one block");
    // SAFETY: the number of the block is below the number of whole blocks.
    unsafe { holds(words, hash, block(hash, blocks) * WORDS) }
}

#[target_feature(enable = "avx2")]
pub(super) fn contains<W: Word>(words: &[W], hashes: &[u64], answers: &mut [u64]) {
    let locate = |hashes: &[u64], located: &mut Located| locate(words.len(), hashes, located);
    each_batch(words, hashes, answers, locate, |located, len, coming| {
        let mut mask = 0;
        for (i, (&start, &hash)) in located.starts.iter().zip(&located.lanes).take(len).enumerate()
        {
            if i % 8 == 0 {
                coming.prefetch_8(i);
            }
            // SAFETY: `locate` wrote the start of a whole block to `start`.
            mask |= u64::from(unsafe { holds(words, hash, start as usize / 8) }) << i;
        }
        mask
    });
}

#[target_feature(enable = "avx2")]
pub(super) fn insert(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    // From this line on, this function accesses the words through a pointer. No reference to the
    // words may be live during a write.
    let words: *mut [u64] = words;
    let locate = |hashes: &[u64], located: &mut Located| locate(words.len(), hashes, located);
    each_batch(words, hashes, answers, locate, |located, len, coming| {
        let mut mask = 0;
        for (i, (&start, &hash)) in located.starts.iter().zip(&located.lanes).take(len).enumerate()
        {
            if i % 8 == 0 {
                coming.prefetch_8(i);
            }
            let block = words.cast::<u8>().wrapping_add(start as usize).cast();
            let bits = bits(hash);
            // SAFETY: `locate` wrote the start of a whole block to `start`, and the words are
            // borrowed uniquely.
            unsafe {
                let old = _mm256_loadu_si256(block);
                _mm256_storeu_si256(block, _mm256_or_si256(old, bits));
                mask |= u64::from(_mm256_testc_si256(old, bits) == 0) << i;
            }
        }
        mask
    });
}

/// Computes the blocks of at most one batch of hashes, in a filter of `len_words` words.
#[inline]
fn locate(len_words: usize, hashes: &[u64], located: &mut Located) {
    let blocks = len_words / WORDS;
    assert!(blocks > 0, "a filter has a block");
    let slots = located.starts.iter_mut().zip(&mut located.lanes);
    for ((start, lanes), &hash) in slots.zip(hashes) {
        *start = block(hash, blocks) as u64 * 32;
        *lanes = hash;
    }
}

/// Returns the bit of `hash` in each 32-bit lane.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn bits(hash: u64) -> __m256i {
    // SAFETY: `SALTS` has 32 readable bytes.
    let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
    let product = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts);
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(product))
}

/// Tests whether the block at word `first` contains all bits of `hash`.
///
/// # Safety
///
/// A whole block starts at word `first` of `words`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn holds<W: Word>(words: &[W], hash: u64, first: usize) -> bool {
    let block: __m256i;
    // SAFETY: the 32 bytes are inside the block. Other threads may set bits of the words. The
    // assembly load is equivalent to four relaxed loads, because bits only change from 0 to 1.
    unsafe {
        asm!(
            "vmovdqu {block}, ymmword ptr [{at}]",
            block = lateout(ymm_reg) block,
            at = in(reg) words.as_ptr().wrapping_add(first),
            options(readonly, nostack, preserves_flags),
        );
    }
    _mm256_testc_si256(block, bits(hash)) != 0
}
