//! Batch kernels of the cuckoo filter. The kernels compute the keys of items, and test whether
//! these keys are present.
//!
//! The kernels follow the rules of `filter/cuckoo/table.rs` and `filter/cuckoo/lanes.rs`. If this
//! CPU has no kernel, the scalar code of `table.rs` and `lanes.rs` runs instead of a kernel.

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::avx2;
pub(crate) use crate::arch::cuckoo_keys::{BATCH, Keys, Pairs};
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::level::{Level, level};

/// Computes the keys of at most [`BATCH`] hashes. If this CPU has no kernel, returns false and
/// writes nothing.
#[inline]
pub(crate) fn keys(pairs: &Pairs, hashes: &[u64], keys: &mut Keys) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level() >= Level::Avx2 {
        // SAFETY: the detected level is AVX2 or higher.
        unsafe { avx2::keys(pairs, hashes, keys) };
        return true;
    }
    let _ = (pairs, hashes, keys);
    false
}

/// Tests a batch of items. If this CPU has no kernel, returns false and writes nothing.
pub(crate) fn contains_pairs(
    words: &[u64],
    pairs: &Pairs,
    hashes: &[u64],
    answers: &mut [u64],
) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level() >= Level::Avx2 {
        // SAFETY: the detected level is AVX2 or higher.
        unsafe { avx2::contains_pairs(words, pairs, hashes, answers) };
        return true;
    }
    let _ = (words, pairs, hashes, answers);
    false
}
