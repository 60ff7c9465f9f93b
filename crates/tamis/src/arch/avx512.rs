//! Kernels for AVX-512 with VBMI and BITALG (Ice Lake, Zen 4 and later). A block of the default
//! filter is one register. One instruction tests a bit in each lane of the block.
//!
//! `vpmultishiftqb` extracts eight bit numbers, one byte each, from an item's spread hash. The
//! eight bytes with the bit numbers are copied to every lane. `vpshufbitqmb` tests all eight bit
//! numbers in every lane, which gives 64 answers. For each i, only the answer of bit number i in
//! lane i is used. The eight answers that are used form a diagonal of the 64 answers.
//!
//! Vector units execute two instructions in a cycle. A test with shift, rotation and test would
//! take three instructions. The test with `vpshufbitqmb` takes one instruction.
//!
//! The table lists the measured cycles for eight items on an Intel Xeon (Emerald Rapids). Each part ran
//! alone in a loop, with all data in the L1 cache.
//!
//! ```text
//! hash of an integer (`arch/mix.rs`)                                        8.3
//! locate: the block and the bit numbers of each item                        5.4
//! test                                                                     14.6
//!   only the loads (block start, bit numbers, block): two loads a cycle    11.9
//!   only `vpshufbitqmb`: one execution port                                 8.6
//!   with the mask in a general register instead of memory                  17.2
//!   with shift, rotation and test instead of `vpshufbitqmb`                17.5
//! locate and test of the same eight items                                  45
//! ```
//!
//! The loads limit the test. If the same eight items are located and tested together, the loads wait
//! for the stores. Therefore the kernel locates a whole batch before it tests the batch.
//!
//! llvm-mca 19 predicts that `vpshufbitqmb` is the fastest test on both families of CPUs. Predicted
//! cycles for eight items:
//!
//! ```text
//!                                                  Sapphire Rapids   Zen 4
//! locate                                                       7.1     4.1
//! test with `vpshufbitqmb`                                    10.2    12.1
//! test with shift, rotation and test                          16.1    20.5
//! test in two AVX2 halves                                     32.2    30.3
//! insert                                                      24.1    23.3
//! ```
//!
//! Therefore all CPUs with AVX-512 use the same kernels.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::arch::avx2;
use crate::arch::batch::{BATCH, Located};
use crate::arch::kernels::{Kernels, OwnedKernels, as_cells};
use crate::arch::prefetch::prefetch_address;
use crate::arch::sync::AtomicU64;
use crate::bits::Word;
use crate::strategy::block_rules::split_block;

pub(super) static KERNELS: OwnedKernels = OwnedKernels {
    // SAFETY: this table is used only if the CPU supports AVX-512.
    insert_512: |words, hashes, answers| unsafe { insert_512(words, hashes, answers) },
    insert_256: avx2::KERNELS.insert_256,
};

pub(super) fn readers<W: Word>() -> Kernels<W> {
    Kernels {
        // SAFETY: this table is used only if the CPU supports AVX-512.
        contains_512: |words, hashes, answers| unsafe { contains_512(words, hashes, answers) },
        contains_256: avx2::readers().contains_256,
    }
}

/// The answers that a test uses: bit `9 i` is the answer of number i in lane i.
const DIAGONAL: u64 = 0x8040_2010_0804_0201;

/// The position of each lane's bit number in the spread hash, as bytes for `vpmultishiftqb`.
const STARTS: u64 = {
    let (mut starts, mut i) = (0, 0);
    while i < 8 {
        starts |= split_block::SHIFTS[i] << (8 * i);
        i += 1;
    }
    starts
};

/// The constants of single lookups and inserts.
#[repr(C, align(64))]
struct Lanes {
    shifts: [u64; 8],
    one: u64,
}

static LANES: Lanes = Lanes { shifts: split_block::SHIFTS, one: 1 };

/// Tests one item. The code uses only the vector registers 16 and above, which need no `vzeroupper`
/// because legacy SSE code cannot access the registers. Without `vzeroupper`, the function can be
/// inlined into code that is compiled for any x86-64 CPU. A function call instead of inlining would
/// double the cost of a test.
///
/// # Safety
///
/// The CPU has AVX-512 F, DQ and BW. `words` contains at least one block.
#[inline(always)]
pub(super) unsafe fn contains_one_512<W: Word>(words: &[W], hash: u64) -> bool {
    let first = split_block::first_word(hash, words.len());
    let flag: u8;
    // SAFETY: `first` starts a whole block, so 64 bytes are readable. Other threads may set bits of
    // the words. The assembly load is equivalent to eight relaxed loads: each 8-byte lane is read
    // whole, and bits only change from 0 to 1.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {spread}",
            "vpbroadcastq zmm17, qword ptr [rip + {lanes} + 64]",
            "vpsrlvq zmm16, zmm16, zmmword ptr [rip + {lanes}]",
            "vprolvq zmm16, zmm17, zmm16",
            "vptestnmq k1, zmm16, zmmword ptr [{block}]",
            "kortestb k1, k1",
            "setz {present}",
            spread = in(reg) split_block::spread(hash),
            lanes = sym LANES,
            block = in(reg) words.as_ptr().wrapping_add(first),
            present = lateout(reg_byte) flag,
            out("xmm16") _, out("xmm17") _, out("k1") _,
            options(readonly, nostack),
        );
    }
    // SAFETY: `setz` writes 0 or 1. Without this hint, a comparison of `flag` would take two more
    // instructions.
    unsafe { std::hint::assert_unchecked(flag <= 1) };
    flag != 0
}

/// Sets the bits of one item. Returns true if at least one bit of the item was not set before. The
/// function is inlined for the same reason as [`contains_one_512`].
///
/// # Safety
///
/// The CPU has AVX-512 F and DQ. `words` contains at least one block and is valid for writing.
#[inline(always)]
pub(super) unsafe fn insert_one_512(words: *mut [u64], hash: u64) -> bool {
    let first = split_block::first_word(hash, words.len());
    let missing: u32;
    // SAFETY: `first` starts a whole block, so 64 bytes are readable and writable.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {spread}",
            "vpbroadcastq zmm17, qword ptr [rip + {lanes} + 64]",
            "vpsrlvq zmm16, zmm16, zmmword ptr [rip + {lanes}]",
            "vmovdqu64 zmm18, zmmword ptr [{block}]",
            "vprolvq zmm16, zmm17, zmm16",
            "vptestnmq k1, zmm16, zmm18",
            "vporq zmm18, zmm16, zmm18",
            "vmovdqu64 zmmword ptr [{block}], zmm18",
            "kmovb {missing:e}, k1",
            spread = in(reg) split_block::spread(hash),
            lanes = sym LANES,
            block = in(reg) words.cast::<u64>().wrapping_add(first),
            missing = lateout(reg) missing,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("k1") _,
            options(nostack, preserves_flags),
        );
    }
    missing != 0
}

/// Computes the blocks of up to [`BATCH`] hashes and prefetches the cache lines of these blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi")]
fn locate<const CUT: bool>(words: *const [u64], hashes: &[u64], located: &mut Located) {
    let cut = _mm512_set1_epi64(STARTS as i64);
    let gamma = _mm512_set1_epi64(split_block::GAMMA as i64);
    let blocks = words.len() / 8;
    let (hashes_8, rest) = hashes.as_chunks::<8>();
    for (i, hashes) in hashes_8.iter().enumerate() {
        let hash = load_8(hashes);
        let start = match u32::try_from(blocks) {
            Ok(blocks) => {
                // Computes the high half of a product of 64 by 32 bits, in two steps of 32 by 32
                // bits.
                let blocks = _mm512_set1_epi64(i64::from(blocks));
                let low = _mm512_srli_epi64::<32>(multiply_32(hash, blocks));
                let high = multiply_32(_mm512_srli_epi64::<32>(hash), blocks);
                let block = _mm512_srli_epi64::<32>(_mm512_add_epi64(high, low));
                _mm512_slli_epi64::<6>(block)
            }
            Err(_) => load_8(&hashes.map(|hash| split_block::block(hash, blocks) as u64 * 64)),
        };
        let spread = multiply_32(hash, gamma);
        let lanes = if CUT { _mm512_multishift_epi64_epi8(cut, spread) } else { spread };
        store_8(&mut located.starts[i * 8..], start);
        store_8(&mut located.lanes[i * 8..], lanes);
    }
    if !rest.is_empty() {
        // The last group of hashes is padded to eight hashes. The caller discards the answers of
        // the padding.
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        let mut tail = Located::NONE;
        locate::<CUT>(words, &padded, &mut tail);
        let first = hashes_8.len() * 8;
        located.starts[first..first + 8].copy_from_slice(&tail.starts[..8]);
        located.lanes[first..first + 8].copy_from_slice(&tail.lanes[..8]);
    }
    if words.len() * 8 > PREFETCH_FROM_BYTES {
        for &start in &located.starts[..hashes.len()] {
            prefetch_address(words.cast::<u64>().wrapping_byte_add(start as usize));
        }
    }
}

/// The minimum size of a filter for prefetches. A filter that fits in the L2 cache needs no
/// prefetches, because the CPU hides the latency of the L2 cache.
const PREFETCH_FROM_BYTES: usize = 1 << 20;

/// Tests item `$i` of eight. The result is written to memory. Later, one vector load reads eight
/// results.
macro_rules! test_one {
    ($i:literal) => {
        concat!(
            "mov {start}, qword ptr [{starts} + 8*",
            $i,
            "]\n",
            "vpbroadcastq {numbers}, qword ptr [{starts} + 8*",
            $i,
            " + 512]\n",
            "vmovdqu64 {block}, zmmword ptr [{words} + {start}]\n",
            "vpshufbitqmb {found}{{{diagonal}}}, {block}, {numbers}\n",
            "kmovq qword ptr [{to} + 8*",
            $i,
            "], {found}\n",
        )
    };
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi,avx512bitalg")]
fn contains_512<W: Word>(words: &[W], hashes: &[u64], answers: &mut [u64]) {
    let words = std::ptr::slice_from_raw_parts(words.as_ptr().cast::<u64>(), words.len());
    each_batch::<true>(words, hashes, answers, |located, len| {
        let mut found = Located::NONE.starts;
        for i in (0..len).step_by(8) {
            // SAFETY: `locate` wrote the starts of whole blocks to `located`, in whole groups of
            // eight. `locate` wrote the bit numbers 512 bytes after the starts. The pointer covers
            // all of `located`, not only its first field. Other threads may set bits of the words,
            // which is sound for the reason in `contains_one_512`.
            unsafe {
                asm!(
                    test_one!(0), test_one!(1), test_one!(2), test_one!(3),
                    test_one!(4), test_one!(5), test_one!(6), test_one!(7),
                    starts = in(reg) std::ptr::from_ref(located).cast::<u64>().wrapping_add(i),
                    words = in(reg) words.cast::<u64>(),
                    to = in(reg) found.as_mut_ptr().wrapping_add(i),
                    diagonal = in(kreg) DIAGONAL,
                    start = out(reg) _,
                    numbers = out(zmm_reg) _,
                    block = out(zmm_reg) _,
                    found = out(kreg) _,
                    options(nostack, preserves_flags),
                );
            }
        }
        let diagonal = _mm512_set1_epi64(DIAGONAL as i64);
        let mut answer = 0;
        for i in (0..BATCH).step_by(8) {
            let eight = u64::from(_mm512_cmpeq_epi64_mask(load_8(&found[i..]), diagonal));
            answer |= std::hint::black_box(eight) << i;
        }
        answer
    });
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi")]
fn insert_512(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    // SAFETY: `words` is borrowed uniquely.
    unsafe { insert_each_512(words, hashes, answers) }
}

/// Sets the bits of hashes in blocks that no other thread writes at the same time.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn insert_512_shared(words: &[AtomicU64], hashes: &[u64], answers: &mut [u64]) {
    // SAFETY: atomic words may be written through a shared reference.
    unsafe { insert_each_512(as_cells(words), hashes, answers) }
}

/// # Safety
///
/// `words` is valid for writing.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi")]
unsafe fn insert_each_512(words: *mut [u64], hashes: &[u64], answers: &mut [u64]) {
    let shifts = load_8(&split_block::SHIFTS);
    let one = _mm512_set1_epi64(1);
    let first = words.cast::<u64>();
    each_batch::<false>(words, hashes, answers, |located, len| {
        let mut missing = [0_u8; BATCH];
        for (i, missing) in missing[..len].iter_mut().enumerate() {
            // SAFETY: `locate` wrote the start of a whole block to `located`, and the block may be
            // written.
            unsafe {
                asm!(
                    "vpbroadcastq {mask}, qword ptr [{spread}]",
                    "vmovdqu64 {lanes}, zmmword ptr [{block}]",
                    "vpsrlvq {mask}, {mask}, {shifts}",
                    "vprolvq {mask}, {one}, {mask}",
                    "vptestnmq {new}, {mask}, {lanes}",
                    "vporq {lanes}, {mask}, {lanes}",
                    "vmovdqu64 zmmword ptr [{block}], {lanes}",
                    "kmovb byte ptr [{missing}], {new}",
                    mask = out(zmm_reg) _,
                    lanes = out(zmm_reg) _,
                    new = out(kreg) _,
                    spread = in(reg) &raw const located.lanes[i],
                    shifts = in(zmm_reg) shifts,
                    one = in(zmm_reg) one,
                    block = in(reg) first.wrapping_byte_add(located.starts[i] as usize),
                    missing = in(reg) &raw mut *missing,
                    options(nostack, preserves_flags),
                );
            }
        }
        // SAFETY: `missing` has 64 readable bytes.
        let missing = unsafe { _mm512_loadu_si512(missing.as_ptr().cast()) };
        _mm512_test_epi8_mask(missing, missing)
    });
}

/// Calls `answer` with the [`Located`] values of each batch of hashes. Before each call of
/// `answer`, prefetches the cache lines of the next batch.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi")]
fn each_batch<const CUT: bool>(
    words: *const [u64],
    hashes: &[u64],
    answers: &mut [u64],
    mut answer: impl FnMut(&Located, usize) -> u64,
) {
    assert!(words.len() >= 8 || hashes.is_empty(), "a filter has a block");
    let mut ring = [Located::NONE; 2];
    let mut batches = hashes.chunks(BATCH).enumerate();
    let Some((_, first)) = batches.next() else { return };
    locate::<CUT>(words, first, &mut ring[0]);
    let mut len = first.len();
    for (i, next) in batches {
        locate::<CUT>(words, next, &mut ring[i % 2]);
        answers[i - 1] = answer(&ring[(i - 1) % 2], len);
        len = next.len();
    }
    let last = hashes.len().div_ceil(BATCH) - 1;
    answers[last] = answer(&ring[last % 2], len) & (u64::MAX >> (BATCH - len));
}

/// Returns the products of the low halves of the lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn multiply_32(a: __m512i, b: __m512i) -> __m512i {
    let product;
    // The intrinsic would compile to three operations instead of one: a mask for each factor and a
    // 64-bit multiplication. SAFETY: the assembly accesses only registers.
    unsafe {
        asm!(
            "vpmuludq {product}, {a}, {b}",
            product = lateout(zmm_reg) product,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    product
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_8(words: &[u64]) -> __m512i {
    let words = &words[..8];
    // SAFETY: 64 bytes are readable, and `loadu` needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_8(words: &mut [u64], value: __m512i) {
    let words = &mut words[..8];
    // SAFETY: 64 bytes are writable, and `storeu` needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) };
}
