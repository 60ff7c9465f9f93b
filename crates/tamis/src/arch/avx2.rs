//! Kernels for AVX2: half a block of the default filter, or a whole Parquet block, is one register.

use std::arch::asm;
use std::arch::x86_64::*;

use super::memory::prefetch_address;
use super::{Kernels, OwnedKernels, scalar};
use crate::bits::Word;
use crate::hash::MX2;
use crate::strategy::{Parquet, SplitBlock};

pub(super) static KERNELS: OwnedKernels = OwnedKernels {
    // SAFETY: this table is used only after the level was detected.
    hash_u64: |items, flip, hashes| unsafe { hash_u64(items, flip, hashes) },
    // SAFETY: this table is used only after the level was detected.
    hash_u32: |items, flip, hashes| unsafe { hash_u32(items, flip, hashes) },
    // SAFETY: this table is used only after the level was detected.
    insert_512: |words, hashes, answers| unsafe { insert::<Half512>(words, hashes, answers) },
    // SAFETY: this table is used only after the level was detected.
    insert_256: |words, hashes, answers| unsafe { insert::<Whole256>(words, hashes, answers) },
};

pub(super) fn readers<W: Word>() -> Kernels<W> {
    Kernels {
        // SAFETY: this table is used only after the level was detected.
        contains_512: |words, hashes, answers| unsafe {
            contains::<W, Half512>(words, hashes, answers);
        },
        // SAFETY: this table is used only after the level was detected.
        contains_256: |words, hashes, answers| unsafe {
            contains::<W, Whole256>(words, hashes, answers);
        },
    }
}

/// A block geometry in registers of 256 bits.
trait Geometry {
    /// Registers a block.
    const REGISTERS: usize;
    fn block(hash: u64, blocks: usize) -> usize;
    /// # Safety
    ///
    /// The CPU has AVX2.
    unsafe fn masks(hash: u64) -> [__m256i; 2];
}

/// The default filter: 512 bits, eight 64-bit lanes.
struct Half512;

impl Geometry for Half512 {
    const REGISTERS: usize = 2;

    #[inline(always)]
    fn block(hash: u64, blocks: usize) -> usize {
        SplitBlock::block(hash, blocks)
    }

    #[inline(always)]
    unsafe fn masks(hash: u64) -> [__m256i; 2] {
        // SAFETY: AVX2 by this function's contract; the shifts are 64 readable bytes.
        unsafe {
            let spread = _mm256_set1_epi64x(SplitBlock::spread(hash) as i64);
            let one = _mm256_set1_epi64x(1);
            let low_six = _mm256_set1_epi64x(63);
            let shifts = SplitBlock::SHIFTS.as_ptr().cast::<__m256i>();
            [0, 1].map(|half| {
                let count = _mm256_srlv_epi64(spread, _mm256_loadu_si256(shifts.add(half)));
                _mm256_sllv_epi64(one, _mm256_and_si256(count, low_six))
            })
        }
    }
}

/// Parquet: 256 bits, eight 32-bit lanes.
struct Whole256;

impl Geometry for Whole256 {
    const REGISTERS: usize = 1;

    #[inline(always)]
    fn block(hash: u64, blocks: usize) -> usize {
        Parquet::block(hash, blocks)
    }

    #[inline(always)]
    unsafe fn masks(hash: u64) -> [__m256i; 2] {
        // SAFETY: AVX2 by this function's contract; the salts are 32 readable bytes.
        unsafe {
            let salts = _mm256_loadu_si256(Parquet::SALTS.as_ptr().cast());
            let product = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts);
            let mask = _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(product));
            [mask, _mm256_setzero_si256()]
        }
    }
}

const BATCH: usize = 64;

#[target_feature(enable = "avx2")]
pub(super) fn contains_one_512<W: Word>(words: &[W], hash: u64) -> bool {
    let blocks = words.len() / 8;
    assert!(blocks > 0, "a filter has a block");
    // SAFETY: the block is below the number of whole blocks.
    unsafe { holds::<W, Half512>(words, hash, Half512::block(hash, blocks) * 8) }
}

#[target_feature(enable = "avx2")]
pub(super) fn contains_one_256<W: Word>(words: &[W], hash: u64) -> bool {
    let blocks = words.len() / 4;
    assert!(blocks > 0, "a filter has a block");
    // SAFETY: the block is below the number of whole blocks.
    unsafe { holds::<W, Whole256>(words, hash, Whole256::block(hash, blocks) * 4) }
}

#[target_feature(enable = "avx2")]
fn contains<W: Word, G: Geometry>(words: &[W], hashes: &[u64], answers: &mut [u64]) {
    each_batch::<W, G>(words, hashes, answers, |hash, first| {
        // SAFETY: `first` starts a whole block.
        unsafe { holds::<W, G>(words, hash, first) }
    });
}

/// Tells whether the block at word `first` has all bits of `hash`.
///
/// # Safety
///
/// A whole block starts at word `first` of `words`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn holds<W: Word, G: Geometry>(words: &[W], hash: u64, first: usize) -> bool {
    // SAFETY: AVX2 is on.
    let masks = unsafe { G::masks(hash) };
    let mut held = 1;
    for (r, &mask) in masks[..G::REGISTERS].iter().enumerate() {
        let block: __m256i;
        // SAFETY: inside the block. An assembly load of words that other threads may set is as good as
        // four relaxed loads: bits only ever go from 0 to 1.
        unsafe {
            asm!(
                "vmovdqu {block}, ymmword ptr [{at}]",
                block = lateout(ymm_reg) block,
                at = in(reg) words.as_ptr().wrapping_add(first + r * 4),
                options(readonly, nostack, preserves_flags),
            );
        }
        held &= _mm256_testc_si256(block, mask);
    }
    held != 0
}

#[target_feature(enable = "avx2")]
fn insert<G: Geometry>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    // A pointer from here on: no reference to the words may be alive while they are written.
    let words: *mut [u64] = words;
    let base = words.cast::<u64>();
    each_batch::<u64, G>(words, hashes, answers, |hash, first| {
        // SAFETY: AVX2 is on in the caller.
        let masks = unsafe { G::masks(hash) };
        let mut held = 1;
        for (r, &mask) in masks[..G::REGISTERS].iter().enumerate() {
            let at = base.wrapping_add(first + r * 4).cast();
            // SAFETY: `first` starts a whole block, and the words are ours alone.
            unsafe {
                let old = _mm256_loadu_si256(at);
                held &= _mm256_testc_si256(old, mask);
                _mm256_storeu_si256(at, _mm256_or_si256(old, mask));
            }
        }
        held == 0
    });
}

/// Answers each hash, given the first word of its block; the next batch's lines are on their way.
/// The words themselves are not read here.
#[inline]
#[target_feature(enable = "avx2")]
fn each_batch<W: Word, G: Geometry>(
    words: *const [W],
    hashes: &[u64],
    answers: &mut [u64],
    mut answer: impl FnMut(u64, usize) -> bool,
) {
    let blocks = words.len() / (G::REGISTERS * 4);
    assert!(blocks > 0 || hashes.is_empty(), "a filter has a block");
    let locate = |hashes: &[u64], firsts: &mut [usize; BATCH]| {
        for (first, &hash) in firsts.iter_mut().zip(hashes) {
            *first = G::block(hash, blocks) * G::REGISTERS * 4;
            prefetch_address(words.cast::<W>().wrapping_add(*first));
        }
    };
    let mut ring = [[0; BATCH]; 2];
    let mut batches = hashes.chunks(BATCH).zip(answers).enumerate().peekable();
    if let Some((_, (first, _))) = batches.peek() {
        locate(first, &mut ring[0]);
    }
    while let Some((i, (batch, word))) = batches.next() {
        if let Some((_, (next, _))) = batches.peek() {
            locate(next, &mut ring[(i + 1) % 2]);
        }
        let mut mask = 0;
        for (j, (&hash, &first)) in batch.iter().zip(&ring[i % 2]).enumerate() {
            mask |= u64::from(answer(hash, first)) << j;
        }
        *word = mask;
    }
}

#[target_feature(enable = "avx2")]
fn hash_u64(items: &[u64], flip: u64, hashes: &mut [u64]) {
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
fn hash_u32(items: &[u32], flip: u64, hashes: &mut [u64]) {
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
