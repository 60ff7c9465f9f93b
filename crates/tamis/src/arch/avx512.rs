//! Kernels for AVX-512 (F, DQ, BW, VL): one block of the default filter is one register.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Kernels, OwnedKernels, prefetch_index, scalar};
use crate::bits::Word;
use crate::hash::{MX2, mix_xxh3};
use crate::strategy::SplitBlock;

pub(super) static KERNELS: OwnedKernels = OwnedKernels {
    name: "avx512",
    // SAFETY (all): this table is used only after the level was detected.
    hash_u64: |items, flip, hashes| unsafe { hash_u64(items, flip, hashes) },
    hash_u32: |items, flip, hashes| unsafe { hash_u32(items, flip, hashes) },
    insert_512: |words, hashes, answers| unsafe { insert_512(words, hashes, answers) },
    insert_256: super::avx2::KERNELS.insert_256,
};

pub(super) fn readers<W: Word>() -> Kernels<W> {
    Kernels {
        // SAFETY: this table is used only after the level was detected.
        contains_512: |words, hashes, answers| unsafe { contains_512(words, hashes, answers) },
        contains_256: super::avx2::readers().contains_256,
    }
}

/// Where in the spread hash each lane's bit number starts, and the bit it selects.
#[repr(C, align(64))]
struct Lanes {
    shifts: [u64; 8],
    one: u64,
}

static LANES: Lanes = Lanes { shifts: SplitBlock::SHIFTS, one: 1 };

/// Tests one item. Registers 16 and up, which legacy code cannot name, need no `vzeroupper`, so this
/// inlines into code compiled for any x86-64: a call would double the cost.
///
/// # Safety
///
/// The CPU has AVX-512 F and DQ.
#[inline(always)]
pub(super) unsafe fn contains_one_512<W: Word>(words: &[W], hash: u64) -> bool {
    let block = SplitBlock::block(hash, words.len() / 8);
    let missing: u32;
    // SAFETY: `block` is below the number of whole blocks, so 64 bytes are readable. An assembly load
    // of words that other threads may set is as good as eight relaxed loads: each 8-byte lane is read
    // whole, and bits only ever go from 0 to 1.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {spread}",
            "vpbroadcastq zmm17, qword ptr [{lanes} + 64]",
            "vpsrlvq zmm16, zmm16, zmmword ptr [{lanes}]",
            "vprolvq zmm16, zmm17, zmm16",
            "vptestnmq k1, zmm16, zmmword ptr [{block}]",
            "kmovb {missing:e}, k1",
            spread = in(reg) SplitBlock::spread(hash),
            lanes = in(reg) &raw const LANES,
            block = in(reg) words.as_ptr().wrapping_add(block * 8),
            missing = lateout(reg) missing,
            out("xmm16") _, out("xmm17") _, out("k1") _,
            options(readonly, nostack, preserves_flags),
        );
    }
    missing == 0
}

/// Sets one item's bits; true if one of them was not set. As [`contains_one_512`], it inlines.
///
/// # Safety
///
/// The CPU has AVX-512 F and DQ.
#[inline(always)]
pub(super) unsafe fn insert_one_512(words: &mut [u64], hash: u64) -> bool {
    let block = SplitBlock::block(hash, words.len() / 8);
    let missing: u32;
    // SAFETY: `block` is below the number of whole blocks, so 64 bytes are readable and writable.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {spread}",
            "vpbroadcastq zmm17, qword ptr [{lanes} + 64]",
            "vpsrlvq zmm16, zmm16, zmmword ptr [{lanes}]",
            "vmovdqu64 zmm18, zmmword ptr [{block}]",
            "vprolvq zmm16, zmm17, zmm16",
            "vptestnmq k1, zmm16, zmm18",
            "vporq zmm18, zmm16, zmm18",
            "vmovdqu64 zmmword ptr [{block}], zmm18",
            "kmovb {missing:e}, k1",
            spread = in(reg) SplitBlock::spread(hash),
            lanes = in(reg) &raw const LANES,
            block = in(reg) words.as_mut_ptr().wrapping_add(block * 8),
            missing = lateout(reg) missing,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("k1") _,
            options(nostack, preserves_flags),
        );
    }
    missing != 0
}

/// How many items' lines are asked for before the first of them is read.
const BATCH: usize = 64;

/// What a batch needs of its items: the first word of the block, and the spread hash.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Located {
    words: [u64; BATCH],
    spread: [u64; BATCH],
}

/// Finds the blocks of up to [`BATCH`] hashes and asks for their lines.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn locate<W: Word>(words: &[W], hashes: &[u64], located: &mut Located) {
    let blocks = words.len() / 8;
    let mut i = 0;
    if let Ok(blocks) = u32::try_from(blocks) {
        let blocks = _mm512_set1_epi64(i64::from(blocks));
        let gamma = _mm512_set1_epi64(SplitBlock::GAMMA as i64);
        while i + 8 <= hashes.len() {
            let hash = load_8(&hashes[i..]);
            // The high half of a 64 by 32 bit product, in two 32 by 32 steps.
            let low = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hash, blocks));
            let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), blocks);
            let block = _mm512_srli_epi64::<32>(_mm512_add_epi64(high, low));
            store_8(&mut located.words[i..], _mm512_slli_epi64::<3>(block));
            store_8(&mut located.spread[i..], _mm512_mullo_epi64(hash, gamma));
            i += 8;
        }
    }
    for i in i..hashes.len() {
        located.words[i] = SplitBlock::block(hashes[i], blocks) as u64 * 8;
        located.spread[i] = SplitBlock::spread(hashes[i]);
    }
    for &first in &located.words[..hashes.len()] {
        prefetch_index(words, first as usize);
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn contains_512<W: Word>(words: &[W], hashes: &[u64], answers: &mut [u64]) {
    let shifts = load_8(&SplitBlock::SHIFTS);
    let one = _mm512_set1_epi64(1);
    each_batch(words, hashes, answers, |located, len| {
        let mut missing = [0xff_u8; BATCH];
        for i in 0..len {
            let mask = mask(located.spread[i], shifts, one);
            let block = words.as_ptr().wrapping_add(located.words[i] as usize);
            let lanes: __mmask8;
            // SAFETY: `locate` put a whole block's first word here. Shared words: see above.
            unsafe {
                asm!(
                    "vptestnmq {lanes}, {mask}, zmmword ptr [{block}]",
                    lanes = lateout(kreg) lanes,
                    mask = in(zmm_reg) mask,
                    block = in(reg) block,
                    options(readonly, nostack, preserves_flags),
                );
            }
            missing[i] = lanes;
        }
        zero_bytes(&missing)
    });
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn insert_512(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    let shifts = load_8(&SplitBlock::SHIFTS);
    let one = _mm512_set1_epi64(1);
    let first = words.as_mut_ptr();
    each_batch(words, hashes, answers, |located, len| {
        let mut missing = [0_u8; BATCH];
        for i in 0..len {
            let mask = mask(located.spread[i], shifts, one);
            let block = first.wrapping_add(located.words[i] as usize);
            // SAFETY: `locate` put a whole block's first word here, and `words` is ours alone.
            unsafe {
                let old = _mm512_loadu_si512(block.cast());
                _mm512_storeu_si512(block.cast(), _mm512_or_si512(old, mask));
                missing[i] = _mm512_testn_epi64_mask(old, mask);
            }
        }
        !zero_bytes(&missing)
    });
}

/// Runs `answer` on each batch of located hashes, the next batch's lines being on their way.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn each_batch<W: Word>(
    words: &[W],
    hashes: &[u64],
    answers: &mut [u64],
    mut answer: impl FnMut(&Located, usize) -> u64,
) {
    assert!(words.len() >= 8 || hashes.is_empty(), "a filter has a block");
    let mut ring = [Located { words: [0; BATCH], spread: [0; BATCH] }; 2];
    let mut batches = hashes.chunks(BATCH).enumerate();
    let Some((_, first)) = batches.next() else { return };
    locate(words, first, &mut ring[0]);
    let mut len = first.len();
    for (i, next) in batches {
        locate(words, next, &mut ring[i % 2]);
        answers[i - 1] = answer(&ring[(i - 1) % 2], len);
        len = next.len();
    }
    let last = hashes.len().div_ceil(BATCH) - 1;
    answers[last] = answer(&ring[last % 2], len) & (u64::MAX >> (BATCH - len));
}

/// One bit in each lane, its number taken from six bits of the spread hash.
#[inline]
#[target_feature(enable = "avx512f")]
fn mask(spread: u64, shifts: __m512i, one: __m512i) -> __m512i {
    // The rotation takes its count modulo 64: no AND with 63 is needed.
    _mm512_rolv_epi64(one, _mm512_srlv_epi64(_mm512_set1_epi64(spread as i64), shifts))
}

/// Bit `i` is set where byte `i` is zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn zero_bytes(bytes: &[u8; BATCH]) -> u64 {
    // SAFETY: 64 readable bytes.
    let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    _mm512_testn_epi8_mask(bytes, bytes)
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn hash_u64(items: &[u64], flip: u64, hashes: &mut [u64]) {
    let key = _mm512_set1_epi64(flip as i64);
    let (items, items_rest) = items.as_chunks::<8>();
    let (hashes, hashes_rest) = hashes.as_chunks_mut::<8>();
    for (items, hashes) in items.iter().zip(hashes) {
        let keyed = _mm512_xor_si512(_mm512_rol_epi64::<32>(load_8(items)), key);
        store_8(hashes, mix(keyed, 8));
    }
    for (hash, item) in hashes_rest.iter_mut().zip(items_rest) {
        *hash = mix_xxh3(item.rotate_left(32) ^ flip, 8);
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn hash_u32(items: &[u32], flip: u64, hashes: &mut [u64]) {
    let key = _mm512_set1_epi64(flip as i64);
    let (items, items_rest) = items.as_chunks::<8>();
    let (hashes, hashes_rest) = hashes.as_chunks_mut::<8>();
    for (items, hashes) in items.iter().zip(hashes) {
        // SAFETY: 32 readable bytes.
        let narrow = unsafe { _mm256_loadu_si256(items.as_ptr().cast()) };
        let low = _mm512_cvtepu32_epi64(narrow);
        let doubled = _mm512_or_si512(low, _mm512_slli_epi64::<32>(low));
        store_8(hashes, mix(_mm512_xor_si512(doubled, key), 4));
    }
    (scalar::KERNELS.hash_u32)(items_rest, flip, hashes_rest);
}

/// `xxh3::mix` on eight items.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn mix(keyed: __m512i, len_bytes: i64) -> __m512i {
    let mx2 = _mm512_set1_epi64(MX2 as i64);
    // 0x96 is the truth table of a three-way XOR.
    let h = _mm512_ternarylogic_epi64::<0x96>(
        keyed,
        _mm512_rol_epi64::<49>(keyed),
        _mm512_rol_epi64::<24>(keyed),
    );
    let h = _mm512_mullo_epi64(h, mx2);
    let shifted = _mm512_add_epi64(_mm512_srli_epi64::<35>(h), _mm512_set1_epi64(len_bytes));
    let h = _mm512_mullo_epi64(_mm512_xor_si512(h, shifted), mx2);
    _mm512_xor_si512(h, _mm512_srli_epi64::<28>(h))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_8(words: &[u64]) -> __m512i {
    let words = &words[..8];
    // SAFETY: 64 readable bytes, and `loadu` asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_8(words: &mut [u64], value: __m512i) {
    let words = &mut words[..8];
    // SAFETY: 64 writable bytes, and `storeu` asks for no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) };
}
