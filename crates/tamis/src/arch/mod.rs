//! SIMD kernels, prefetches and huge pages. All `unsafe` code of this crate is here.
//!
//! A kernel takes slices and has a scalar version with the same signature in [`scalar`]. The table
//! of kernels is chosen once per process, by the features of the CPU. Answers and bytes never
//! depend on this choice. Kernels are generic over [`Word`], so that the same code reads owned,
//! mapped and shared bits.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx512;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod batch;
pub(crate) mod counters;
pub(crate) mod cuckoo;
pub(crate) mod digests;
pub(crate) mod memory;
pub(crate) mod partition;
pub(crate) mod places;
pub(crate) mod scalar;
pub(crate) mod select;
pub(crate) mod sip;
mod unaligned;

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use std::sync::atomic::{AtomicU8, Ordering};

pub use memory::{allocation_bytes, prefetch};
pub(crate) use memory::{prefetch_index, prefetch_lines, prefetch_write};
pub(crate) use unaligned::{bits_at, flip_bits_at};

use crate::bits::Word;
// The list of levels is a `Vec`.
#[cfg(all(target_arch = "x86_64", not(any(feature = "std", test, miri, loom))))]
use crate::no_std::*;
use crate::strategy::SplitBlock;
use crate::sync::AtomicU64;

/// The kernels that read words of type `W`.
///
/// Answers are bit masks. Item `i` is bit `i % 64` of word `i / 64`. A kernel overwrites
/// `hashes.len().div_ceil(64)` words.
pub(crate) struct Kernels<W: Word> {
    /// Tests items in 512-bit blocks. The answer is 1 if the item is present.
    pub contains_512: fn(words: &[W], hashes: &[u64], answers: &mut [u64]),
    /// Tests items in 256-bit blocks with Parquet's rule.
    pub contains_256: fn(words: &[W], hashes: &[u64], answers: &mut [u64]),
}

/// The kernels that write. No other thread may access the words at the same time.
pub(crate) struct OwnedKernels {
    /// Sets the bits of items in 512-bit blocks. The answer is 1 if the item is new.
    pub insert_512: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
    /// Sets the bits of items in 256-bit blocks with Parquet's rule.
    pub insert_256: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
}

/// An instruction set that has its own kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    Scalar = 1,
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    Avx2 = 2,
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    Avx512 = 3,
}

impl Level {
    pub(crate) fn owned(self) -> &'static OwnedKernels {
        match self {
            Level::Scalar => &scalar::KERNELS,
            #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
            Level::Avx2 => &avx2::KERNELS,
            #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
            Level::Avx512 => &avx512::KERNELS,
        }
    }

    pub(crate) fn readers<W: Word>(self) -> Kernels<W> {
        match self {
            Level::Scalar => scalar::readers(),
            #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
            Level::Avx2 => avx2::readers(),
            #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
            Level::Avx512 => avx512::readers(),
        }
    }
}

/// Zero until the first call of [`level`], then a [`Level`]. `Relaxed` is sufficient, because every
/// thread computes the same value.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Returns the best level of this CPU.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    match LEVEL.load(Ordering::Relaxed) {
        3 => Level::Avx512,
        2 => Level::Avx2,
        1 => Level::Scalar,
        _ => detect(),
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    Level::Scalar
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
#[cold]
#[inline(never)]
fn detect() -> Level {
    let best = *available().last().expect("scalar is always available");
    LEVEL.store(best as u8, Ordering::Relaxed);
    best
}

/// Tests whether the CPU has a feature. Without the standard library, it tests whether every CPU
/// has it for which the program is compiled.
#[cfg(all(target_arch = "x86_64", any(feature = "std", test), not(miri), not(loom)))]
macro_rules! has {
    ($feature:tt) => {
        is_x86_feature_detected!($feature)
    };
}
#[cfg(all(target_arch = "x86_64", not(any(feature = "std", test)), not(miri), not(loom)))]
macro_rules! has {
    ($feature:tt) => {
        cfg!(target_feature = $feature)
    };
}

/// Returns all levels that this CPU supports, scalar first.
#[cfg(any(test, all(target_arch = "x86_64", not(miri), not(loom))))]
pub(crate) fn available() -> Vec<Level> {
    #[allow(unused_mut)]
    let mut levels = vec![Level::Scalar];
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        // Each level uses the kernels and features of the lower level, so it also requires the
        // lower level. This is necessary because a hypervisor may hide any single feature.
        if has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") {
            levels.push(Level::Avx2);
        }
        if levels.contains(&Level::Avx2)
            && has!("avx512f")
            && has!("avx512dq")
            && has!("avx512bw")
            && has!("avx512vl")
            && has!("avx512vbmi")
            && has!("avx512bitalg")
        {
            levels.push(Level::Avx512);
        }
    }
    levels
}

/// Runs a loop that is compiled for the features of this CPU. The rest of the crate is compiled for
/// any x86-64. Code that is inlined into `run` may use the shifts of BMI2 and the vectors of AVX2
/// or AVX-512.
#[inline(always)]
pub(crate) fn run_wide<R>(run: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn by_avx2<R>(run: impl FnOnce() -> R) -> R {
            run()
        }
        // Hashing integers takes 0.58 ns an item with AVX-512 and 0.87 ns with AVX2 (Sapphire
        // Rapids).
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512dq,avx512bw,avx512vl")]
        fn by_avx512<R>(run: impl FnOnce() -> R) -> R {
            run()
        }
        match level() {
            // SAFETY: the level was detected with these features.
            Level::Avx512 => return unsafe { by_avx512(run) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { by_avx2(run) },
            Level::Scalar => {}
        }
    }
    run()
}

/// Returns the writing kernels of this CPU.
pub(crate) fn kernels() -> &'static OwnedKernels {
    level().owned()
}

/// Tests one item in 512-bit blocks with the kernel of `level`. This CPU must support the level. A
/// caller can store the level in a field. This saves a load and three branches in the loop around
/// the call.
///
/// Here and in the functions below, the words must contain at least one block. The assembly has no
/// bounds check. A check before it took 4 to 20 % more time. Only a strategy calls these functions.
/// Only a `Bloom` has a strategy, and it passes the words of its plan (`strategy/mod.rs`).
#[inline(always)]
pub(crate) fn contains_one_512<W: Word>(level: Level, words: &[W], hash: u64) -> bool {
    debug_assert!(words.len() >= SplitBlock::WORDS);
    match level {
        // SAFETY: the level was detected, and there is a block.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx512 => unsafe { avx512::contains_one_512(words, hash) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx2 => unsafe { avx2::contains_one_512(words, hash) },
        Level::Scalar => contains_one_512_by_call(words, hash),
    }
}

// Not inlined, like the two functions below, so that the remaining code can be inlined into any
// caller.
#[inline(never)]
fn contains_one_512_by_call<W: Word>(words: &[W], hash: u64) -> bool {
    scalar::contains_one_512(words, hash)
}

/// Tests one item in 256-bit blocks with Parquet's rule.
#[inline(never)]
pub(crate) fn contains_one_256<W: Word>(words: &[W], hash: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level() >= Level::Avx2 {
        // SAFETY: this level or a better one was detected.
        return unsafe { avx2::contains_one_256(words, hash) };
    }
    scalar::contains_one_256(words, hash)
}

/// Sets the bits of one item in 512-bit blocks. Returns true if at least one of them was not set.
#[inline(always)]
pub(crate) fn insert_one_512(level: Level, words: &mut [u64], hash: u64) -> bool {
    debug_assert!(words.len() >= SplitBlock::WORDS);
    match level {
        // SAFETY: the level was detected, there is a block, and `words` is borrowed uniquely.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx512 => unsafe { avx512::insert_one_512(words, hash) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx2 => unsafe { avx2::insert_one_512(words, hash) },
        Level::Scalar => insert_one_512_by_call(words, hash),
    }
}

#[inline(never)]
fn insert_one_512_by_call(words: &mut [u64], hash: u64) -> bool {
    scalar::insert_one_512(words, hash)
}

/// Sets the bits of one item in a block that no other thread writes at the same time. Other threads
/// may read it.
///
/// If two threads wrote one block at the same time, bits would be lost. So the caller holds the
/// lock of the block's stripe.
#[inline]
pub(crate) fn insert_one_512_shared(level: Level, words: &[AtomicU64], hash: u64) -> bool {
    debug_assert!(words.len() >= SplitBlock::WORDS);
    match level {
        // SAFETY: the level was detected, there is a block, and atomic words may be written.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx512 => unsafe { avx512::insert_one_512(as_cells(words), hash) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx2 => unsafe { avx2::insert_one_512(as_cells(words), hash) },
        Level::Scalar => scalar::insert_one_512_shared(words, hash),
    }
}

/// Sets the bits of a batch, as [`insert_one_512_shared`] does. The answer is 1 if the item is new.
pub(crate) fn insert_512_shared(words: &[AtomicU64], hashes: &[u64], answers: &mut [u64]) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    match level() {
        // SAFETY: the level was detected.
        Level::Avx512 => return unsafe { avx512::insert_512_shared(words, hashes, answers) },
        // SAFETY: the level was detected.
        Level::Avx2 => return unsafe { avx2::insert_512_shared(words, hashes, answers) },
        Level::Scalar => {}
    }
    scalar::insert_512_shared(words, hashes, answers);
}

/// The words in the form in which the assembly accesses them: memory that is written through a
/// shared reference.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
fn as_cells(words: &[AtomicU64]) -> *mut [u64] {
    std::ptr::slice_from_raw_parts_mut(words.as_ptr().cast::<u64>().cast_mut(), words.len())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use proptest::prelude::*;

    use super::*;
    use crate::bits::Bitmap;

    fn answers(len: usize) -> Vec<u64> {
        vec![u64::MAX; len.div_ceil(64)]
    }

    /// Inserts the first half of `hashes` and tests all of them, at `level`. Returns all outputs.
    fn run(level: Level, blocks: usize, hashes: &[u64]) -> Vec<Vec<u64>> {
        let half = &hashes[..hashes.len() / 2];
        let mut outputs = Vec::new();
        let kernels = level.owned();
        let readers = level.readers::<u64>();
        let shared_readers = level.readers::<AtomicU64>();
        for (insert, contains, shared, words_per_block) in [
            (kernels.insert_512, readers.contains_512, shared_readers.contains_512, 8),
            (kernels.insert_256, readers.contains_256, shared_readers.contains_256, 4),
        ] {
            let mut bits = Bitmap::zeroed(blocks as u64 * words_per_block * 64).unwrap();
            use crate::bits::{Bits as _, BitsMut as _};
            let mut new = answers(half.len());
            insert(bits.words_mut(), half, &mut new);
            let mut found = answers(hashes.len());
            contains(bits.words(), hashes, &mut found);
            let atomics: Vec<AtomicU64> = bits.words().iter().map(|&w| AtomicU64::new(w)).collect();
            let mut found_shared = answers(hashes.len());
            shared(&atomics, hashes, &mut found_shared);
            assert_eq!(found, found_shared);
            outputs.extend([bits.words().to_vec(), new, found]);
        }
        outputs
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn every_level_gives_the_scalar_bytes_and_answers(
            blocks in 1_usize..3000,
            hashes in prop::collection::vec(any::<u64>(), 0..1500),
        ) {
            let expected = run(Level::Scalar, blocks, &hashes);
            for level in available() {
                prop_assert_eq!(&run(level, blocks, &hashes), &expected, "{:?}", level);
            }
        }

        #[test]
        fn one_item_answers_as_a_batch(hashes in prop::collection::vec(any::<u64>(), 1..300)) {
            for level in available() {
                let (mut one, mut each) = (vec![0_u64; 80], vec![0_u64; 80]);
                for &hash in &hashes {
                    let mut new = [0];
                    scalar::insert_512(&mut each, &[hash], &mut new);
                    prop_assert_eq!(insert_one_512(level, &mut one, hash), new[0] == 1);
                    prop_assert!(contains_one_512(level, &one, hash));
                    for hash in [hash, !hash] {
                        let expected = scalar::contains_one_512(&one, hash);
                        prop_assert_eq!(contains_one_512(level, &one, hash), expected);
                        let expected = scalar::contains_one_256(&one, hash);
                        prop_assert_eq!(contains_one_256(&one, hash), expected);
                    }
                }
                prop_assert_eq!(&one, &each);
            }
        }
    }
}
