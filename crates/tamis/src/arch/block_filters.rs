//! The kernels of the default filter and of Parquet's filter, chosen by the level of this CPU.

use std::hint::cold_path;

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::kernels::as_cells;
use crate::arch::kernels::{Kernels, OwnedKernels};
use crate::arch::level::{Level, level};
use crate::arch::scalar;
use crate::arch::sync::AtomicU64;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::{avx2, avx512};
use crate::bits::Word;
use crate::strategy::block_rules::split_block;

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

/// Returns the kernels for this CPU that write to filters.
pub(crate) fn kernels() -> &'static OwnedKernels {
    level().owned()
}

/// Tests one item in 512-bit blocks with the kernel of `level`. This CPU must support `level`. A
/// caller can store the level in a field, which saves a load and three branches in the loop around
/// the call.
///
/// For this function and all functions below in this file, the words must contain at least one
/// block. The assembly has no bounds check, because a bounds check before the assembly took 4 to 20
/// % more time. Only a strategy calls the functions of this file. Only a `Bloom` has a strategy,
/// and a `Bloom` passes the words of its plan (`strategy/rule.rs`).
#[inline(always)]
pub(crate) fn contains_one_512<W: Word>(level: Level, words: &[W], hash: u64) -> bool {
    debug_assert!(words.len() >= split_block::WORDS);
    // The hints keep the AVX-512 code in the path of the loop, without jumps: 2.6 ns instead of 2.9 ns
    // for 10,000 items (Emerald Rapids).
    match level {
        // SAFETY: the CPU supports `level`, and `words` contains a block.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx512 => unsafe { avx512::contains_one_512(words, hash) },
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx2 => {
            cold_path();
            // SAFETY: the CPU supports AVX2, and `words` contains a block.
            unsafe { avx2::contains_one_512(words, hash) }
        }
        Level::Scalar => {
            cold_path();
            contains_one_512_by_call(words, hash)
        }
    }
}

// This function is not inlined, so that the remaining code of `contains_one_512` can be inlined
// into any caller.
#[inline(never)]
fn contains_one_512_by_call<W: Word>(words: &[W], hash: u64) -> bool {
    scalar::contains_one_512(words, hash)
}

/// Tests one item in 256-bit blocks with Parquet's rule.
#[inline(never)]
pub(crate) fn contains_one_256<W: Word>(words: &[W], hash: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level() >= Level::Avx2 {
        // SAFETY: the detected level is AVX2 or higher.
        return unsafe { avx2::contains_one_256(words, hash) };
    }
    scalar::contains_one_256(words, hash)
}

/// Sets the bits of one item in 512-bit blocks. Returns true if at least one bit of the item was
/// not set before.
#[inline(always)]
pub(crate) fn insert_one_512(level: Level, words: &mut [u64], hash: u64) -> bool {
    debug_assert!(words.len() >= split_block::WORDS);
    match level {
        // SAFETY: the CPU supports `level`, `words` contains a block, and `words` is borrowed
        // uniquely.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx512 => unsafe { avx512::insert_one_512(words, hash) },
        // SAFETY: the CPU supports AVX2, and `words` is a uniquely borrowed slice with a block.
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
/// may read the block.
///
/// If two threads wrote one block at the same time, bits would be lost. Therefore the caller must
/// hold the lock of the block's stripe.
#[inline]
pub(crate) fn insert_one_512_shared(level: Level, words: &[AtomicU64], hash: u64) -> bool {
    debug_assert!(words.len() >= split_block::WORDS);
    match level {
        // SAFETY: the CPU supports `level`, `words` contains a block, and atomic words may be
        // written.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx512 => unsafe { avx512::insert_one_512(as_cells(words), hash) },
        // SAFETY: the CPU supports AVX2, `words` contains a block, and atomic words may be written.
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        Level::Avx2 => unsafe { avx2::insert_one_512(as_cells(words), hash) },
        Level::Scalar => scalar::insert_one_512_shared(words, hash),
    }
}

/// Sets the bits of a batch, as [`insert_one_512_shared`] does. The answer is 1 if the item is new.
pub(crate) fn insert_512_shared(words: &[AtomicU64], hashes: &[u64], answers: &mut [u64]) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    match level() {
        // SAFETY: the CPU supports the detected level.
        Level::Avx512 => return unsafe { avx512::insert_512_shared(words, hashes, answers) },
        // SAFETY: the CPU supports the detected level.
        Level::Avx2 => return unsafe { avx2::insert_512_shared(words, hashes, answers) },
        Level::Scalar => {}
    }
    scalar::insert_512_shared(words, hashes, answers);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use proptest::prelude::*;

    use super::*;
    use crate::arch::level::available;
    use crate::bits::Bitmap;

    fn answers(len: usize) -> Vec<u64> {
        vec![u64::MAX; len.div_ceil(64)]
    }

    /// Inserts the first half of `hashes` and tests all `hashes`, at `level`. Returns all outputs.
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
