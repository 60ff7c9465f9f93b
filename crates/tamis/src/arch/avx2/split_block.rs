//! Kernels of the default filter. A register contains half a block.
//!
//! ```text
//! spread hash ×4 ──▶ shifted to each lane's six bits ──▶ lane's word shifted by that number: its bit
//! ```
//!
//! A test shifts the block instead of a mask, which moves the answer of every lane to bit 0 of the
//! lane. Therefore one AND joins the two halves of a block, and one instruction tests the joined
//! bits.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::arch::avx2::batches::each_batch;
use crate::arch::batch::{BATCH, Located};
use crate::arch::kernels::as_cells;
use crate::arch::sync::AtomicU64;
use crate::bits::Word;
use crate::strategy::block_rules::split_block;

/// The constants of the kernels. Every operand is a whole register.
#[repr(C, align(64))]
struct Lanes {
    shifts: [u64; 8],
    low_six: [u64; 4],
    ones: [u64; 4],
}

static LANES: Lanes = Lanes { shifts: split_block::SHIFTS, low_six: [63; 4], ones: [1; 4] };

/// Tests one item. The function is inlined into code that is compiled for any x86-64 CPU, because a
/// call would double the cost.
///
/// # Safety
///
/// The CPU has AVX2. `words` contains at least one block.
#[inline(always)]
pub(in crate::arch) unsafe fn contains_one_512<W: Word>(words: &[W], hash: u64) -> bool {
    let first = split_block::first_word(hash, words.len());
    let flag: u8;
    // SAFETY: `first` starts a whole block, so 64 bytes are readable. Other threads may set bits of
    // the words. The assembly load is equivalent to eight relaxed loads, because bits only change
    // from 0 to 1. The code around the assembly may be compiled for SSE, so the assembly ends with
    // `vzeroupper`, which clobbers all vector registers.
    unsafe {
        asm!(
            "vmovq xmm0, {spread}",
            "vpbroadcastq ymm0, xmm0",
            "vpsrlvq ymm1, ymm0, ymmword ptr [rip + {lanes}]",
            "vpsrlvq ymm0, ymm0, ymmword ptr [rip + {lanes} + 32]",
            "vpand ymm1, ymm1, ymmword ptr [rip + {lanes} + 64]",
            "vpand ymm0, ymm0, ymmword ptr [rip + {lanes} + 64]",
            "vmovdqu ymm2, ymmword ptr [{block}]",
            "vmovdqu ymm3, ymmword ptr [{block} + 32]",
            "vpsrlvq ymm1, ymm2, ymm1",
            "vpsrlvq ymm0, ymm3, ymm0",
            "vpand ymm0, ymm0, ymm1",
            "vptest ymm0, ymmword ptr [rip + {lanes} + 96]",
            "setc {held}",
            "vzeroupper",
            spread = in(reg) split_block::spread(hash),
            lanes = sym LANES,
            block = in(reg) words.as_ptr().wrapping_add(first),
            held = lateout(reg_byte) flag,
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
            out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
            out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(readonly, nostack),
        );
    }
    // SAFETY: `setc` writes 0 or 1. Without this hint, a comparison of `flag` would take two more
    // instructions.
    unsafe { std::hint::assert_unchecked(flag <= 1) };
    flag != 0
}

/// Sets the bits of one item. Returns true if at least one bit of the item was not set before. The
/// function is inlined for the same reason as [`contains_one_512`].
///
/// # Safety
///
/// The CPU has AVX2. `words` contains at least one block and is valid for writing.
#[inline(always)]
pub(in crate::arch) unsafe fn insert_one_512(words: *mut [u64], hash: u64) -> bool {
    let first = split_block::first_word(hash, words.len());
    let flag: u8;
    // SAFETY: `first` starts a whole block, so 64 bytes are readable and writable. The assembly
    // ends with `vzeroupper` for the same reason as in `contains_one_512`.
    unsafe {
        asm!(
            "vmovq xmm0, {spread}",
            "vpbroadcastq ymm0, xmm0",
            "vpsrlvq ymm1, ymm0, ymmword ptr [rip + {lanes}]",
            "vpsrlvq ymm0, ymm0, ymmword ptr [rip + {lanes} + 32]",
            "vpand ymm1, ymm1, ymmword ptr [rip + {lanes} + 64]",
            "vpand ymm0, ymm0, ymmword ptr [rip + {lanes} + 64]",
            "vmovdqa ymm4, ymmword ptr [rip + {lanes} + 96]",
            "vmovdqu ymm2, ymmword ptr [{block}]",
            "vmovdqu ymm3, ymmword ptr [{block} + 32]",
            "vpsllvq ymm5, ymm4, ymm1",
            "vpsllvq ymm6, ymm4, ymm0",
            "vpsrlvq ymm1, ymm2, ymm1",
            "vpsrlvq ymm0, ymm3, ymm0",
            "vpor ymm2, ymm2, ymm5",
            "vpor ymm3, ymm3, ymm6",
            "vmovdqu ymmword ptr [{block}], ymm2",
            "vmovdqu ymmword ptr [{block} + 32], ymm3",
            "vpand ymm0, ymm0, ymm1",
            "vptest ymm0, ymm4",
            "setnc {new}",
            "vzeroupper",
            spread = in(reg) split_block::spread(hash),
            lanes = sym LANES,
            block = in(reg) words.cast::<u64>().wrapping_add(first),
            new = lateout(reg_byte) flag,
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
            out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
            out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack),
        );
    }
    // SAFETY: `setnc` writes 0 or 1.
    unsafe { std::hint::assert_unchecked(flag <= 1) };
    flag != 0
}

/// Loads the block of item `$i` of `located`, and the number of the item's bit in each lane.
macro_rules! numbers_of_one {
    ($i:literal) => {
        concat!(
            "mov {start}, qword ptr [{located} + 8*",
            $i,
            "]\n",
            "vpbroadcastq {second}, qword ptr [{located} + 8*",
            $i,
            " + 512]\n",
            "vpsrlvq {first}, {second}, {shifts_first}\n",
            "vpsrlvq {second}, {second}, {shifts_second}\n",
            "vmovdqu {first_half}, ymmword ptr [{words} + {start}]\n",
            "vpand {first}, {first}, {low_six}\n",
            "vpand {second}, {second}, {low_six}\n",
            "vmovdqu {second_half}, ymmword ptr [{words} + {start} + 32]\n",
        )
    };
}

/// Tests item `$i` of eight. `vptest` sets the carry flag if all bits of the item are set. `adc`
/// shifts the carry flag into the lowest bit of the mask.
macro_rules! test_one {
    ($i:literal) => {
        concat!(
            numbers_of_one!($i),
            "vpsrlvq {first}, {first_half}, {first}\n",
            "vpsrlvq {second}, {second_half}, {second}\n",
            "vpand {first}, {first}, {second}\n",
            "vptest {first}, {ones}\n",
            "adc {mask}, {mask}\n",
        )
    };
}

#[target_feature(enable = "avx2")]
pub(super) fn contains<W: Word>(words: &[W], hashes: &[u64], answers: &mut [u64]) {
    let words = std::ptr::slice_from_raw_parts(words.as_ptr().cast::<u64>(), words.len());
    let locate = |hashes: &[u64], located: &mut Located| locate(words.len(), hashes, located);
    each_batch(words, hashes, answers, locate, |located, len, coming| {
        let mut mask = 0_u64;
        // The loop runs from the last item to the first item, in whole groups of eight. The unused
        // entries after the last item also contain starts of valid blocks.
        for i in (0..len).step_by(8).rev() {
            coming.prefetch_8(i);
            // SAFETY: only `locate` writes starts to `located`. Each start is the start of a whole
            // block, or 0. The values for the lanes are 512 bytes behind the starts, and the
            // pointer covers all of `located`. Other threads may set bits of the words, which is
            // sound for the reason in `contains_one_512`.
            unsafe {
                asm!(
                    test_one!(7), test_one!(6), test_one!(5), test_one!(4),
                    test_one!(3), test_one!(2), test_one!(1), test_one!(0),
                    located = in(reg) std::ptr::from_ref(located).cast::<u64>().wrapping_add(i),
                    words = in(reg) words.cast::<u64>(),
                    shifts_first = in(ymm_reg) load_4(&LANES.shifts[..4]),
                    shifts_second = in(ymm_reg) load_4(&LANES.shifts[4..]),
                    low_six = in(ymm_reg) load_4(&LANES.low_six),
                    ones = in(ymm_reg) load_4(&LANES.ones),
                    start = out(reg) _,
                    first = out(ymm_reg) _,
                    second = out(ymm_reg) _,
                    first_half = out(ymm_reg) _,
                    second_half = out(ymm_reg) _,
                    mask = inout(reg) mask,
                    options(readonly, nostack),
                );
            }
        }
        mask & (u64::MAX >> (BATCH - len))
    });
}

#[target_feature(enable = "avx2")]
pub(super) fn insert(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    // SAFETY: `words` is borrowed uniquely.
    unsafe { insert_each(words, hashes, answers) }
}

/// Sets the bits of hashes in blocks that no other thread writes at the same time.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn insert_512_shared(words: &[AtomicU64], hashes: &[u64], answers: &mut [u64]) {
    // SAFETY: atomic words may be written through a shared reference.
    unsafe { insert_each(as_cells(words), hashes, answers) }
}

/// Sets the bits of item `$i` of `located`. Sets byte `$i` of `new` to 1 if at least one bit of the
/// item was not set before.
macro_rules! set_one {
    ($i:literal) => {
        concat!(
            numbers_of_one!($i),
            "vpsllvq {first}, {ones}, {first}\n",
            "vpsllvq {second}, {ones}, {second}\n",
            "vpandn {missing}, {first_half}, {first}\n",
            "vpor {first_half}, {first_half}, {first}\n",
            "vpandn {first}, {second_half}, {second}\n",
            "vpor {second_half}, {second_half}, {second}\n",
            "vpor {missing}, {missing}, {first}\n",
            "vmovdqu ymmword ptr [{words} + {start}], {first_half}\n",
            "vmovdqu ymmword ptr [{words} + {start} + 32], {second_half}\n",
            "vptest {missing}, {missing}\n",
            "setnz byte ptr [{new} + ",
            $i,
            "]\n",
        )
    };
}

/// The operands of [`set_one`] for each item, starting at item number `$from`.
macro_rules! set_from {
    ($from:expr, $words:ident, $located:ident, $new:ident, $($item:literal)+) => {
        asm!(
            $(set_one!($item),)+
            located = in(reg) std::ptr::from_ref($located).cast::<u64>().wrapping_add($from),
            words = in(reg) $words.cast::<u64>(),
            new = in(reg) $new.as_mut_ptr().wrapping_add($from),
            shifts_first = in(ymm_reg) load_4(&LANES.shifts[..4]),
            shifts_second = in(ymm_reg) load_4(&LANES.shifts[4..]),
            low_six = in(ymm_reg) load_4(&LANES.low_six),
            ones = in(ymm_reg) load_4(&LANES.ones),
            start = out(reg) _,
            first = out(ymm_reg) _,
            second = out(ymm_reg) _,
            first_half = out(ymm_reg) _,
            second_half = out(ymm_reg) _,
            missing = out(ymm_reg) _,
            options(nostack),
        )
    };
}

/// # Safety
///
/// `words` is valid for writing.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn insert_each(words: *mut [u64], hashes: &[u64], answers: &mut [u64]) {
    let locate = |hashes: &[u64], located: &mut Located| locate(words.len(), hashes, located);
    each_batch(words, hashes, answers, locate, |located, len, coming| {
        let mut new = [0_u8; BATCH];
        let whole = len & !7;
        for i in (0..whole).step_by(8) {
            coming.prefetch_8(i);
            // SAFETY: `locate` wrote the starts of whole blocks to `located`, and these blocks may
            // be written. `new` has a byte for each item.
            unsafe { set_from!(i, words, located, new, 0 1 2 3 4 5 6 7) };
        }
        for i in whole..len {
            // SAFETY: as in the loop above, for one item instead of eight items.
            unsafe { set_from!(i, words, located, new, 0) };
        }
        let halves = [0, BATCH / 2].map(|from| {
            // SAFETY: each half of `new` has 32 readable bytes.
            let new = unsafe { _mm256_loadu_si256(new[from..].as_ptr().cast()) };
            // Each byte is 0 or 1. The shift moves the lowest bit of each byte to the highest bit.
            _mm256_movemask_epi8(_mm256_slli_epi16::<7>(new)) as u32
        });
        u64::from(halves[1]) << 32 | u64::from(halves[0])
    });
}

/// Computes the blocks of up to [`BATCH`] hashes, in a filter of `len_words` words.
#[inline]
#[target_feature(enable = "avx2")]
fn locate(len_words: usize, hashes: &[u64], located: &mut Located) {
    let len_blocks = len_words / split_block::WORDS;
    assert!(len_blocks > 0, "a filter has a block");
    let gamma = _mm256_set1_epi64x(split_block::GAMMA as i64);
    let (hashes_4, rest) = hashes.as_chunks::<4>();
    if let Ok(blocks) = u32::try_from(len_blocks) {
        let blocks = _mm256_set1_epi64x(i64::from(blocks));
        for (i, hashes) in hashes_4.iter().enumerate() {
            let hash = load_4(hashes);
            // Computes the high half of a product of 64 by 32 bits, in two steps of 32 by 32 bits.
            let low = _mm256_srli_epi64::<32>(multiply_32(hash, blocks));
            let high = multiply_32(_mm256_srli_epi64::<32>(hash), blocks);
            let block = _mm256_srli_epi64::<32>(_mm256_add_epi64(high, low));
            store_4(&mut located.starts[i * 4..], _mm256_slli_epi64::<6>(block));
            store_4(&mut located.lanes[i * 4..], multiply_32(hash, gamma));
        }
        for (i, &hash) in (hashes_4.len() * 4..).zip(rest) {
            locate_one(len_blocks, hash, i, located);
        }
    } else {
        for (i, &hash) in hashes.iter().enumerate() {
            locate_one(len_blocks, hash, i, located);
        }
    }
}

#[inline]
fn locate_one(len_blocks: usize, hash: u64, i: usize, located: &mut Located) {
    located.starts[i] = split_block::block(hash, len_blocks) as u64 * 64;
    located.lanes[i] = split_block::spread(hash);
}

/// Returns the products of the low halves of the lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn multiply_32(a: __m256i, b: __m256i) -> __m256i {
    let product;
    // The intrinsic would compile to three operations instead of one: a mask for each factor and a
    // 64-bit multiplication. SAFETY: the assembly accesses only registers.
    unsafe {
        asm!(
            "vpmuludq {product}, {a}, {b}",
            product = lateout(ymm_reg) product,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    product
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_4(words: &[u64]) -> __m256i {
    let words = &words[..4];
    // SAFETY: `words` has 32 readable bytes, and `loadu` needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_4(words: &mut [u64], value: __m256i) {
    let words = &mut words[..4];
    // SAFETY: `words` has 32 writable bytes, and `storeu` needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), value) };
}
