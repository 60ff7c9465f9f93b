//! The tables of kernels. A table has one function for each operation on a batch.

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::sync::AtomicU64;
use crate::bits::Word;

/// The kernels that read words of type `W`.
///
/// Answers are bit masks. The answer of item `i` is bit `i % 64` of word `i / 64`. A kernel
/// overwrites `hashes.len().div_ceil(64)` words of `answers`.
pub(crate) struct Kernels<W: Word> {
    /// Tests items in 512-bit blocks. The answer is 1 if the item is present.
    pub contains_512: fn(words: &[W], hashes: &[u64], answers: &mut [u64]),
    /// Tests items in 256-bit blocks with Parquet's rule.
    pub contains_256: fn(words: &[W], hashes: &[u64], answers: &mut [u64]),
}

/// The kernels that write to filters. No other thread may access the words while a kernel runs.
pub(crate) struct OwnedKernels {
    /// Sets the bits of items in 512-bit blocks. The answer is 1 if the item is new.
    pub insert_512: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
    /// Sets the bits of items in 256-bit blocks with Parquet's rule.
    pub insert_256: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
}

/// Returns a pointer through which the assembly may write the words. Atomic words may be written
/// through a shared reference.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
pub(in crate::arch) fn as_cells(words: &[AtomicU64]) -> *mut [u64] {
    std::ptr::slice_from_raw_parts_mut(words.as_ptr().cast::<u64>().cast_mut(), words.len())
}
