//! Batch kernels of the cuckoo filter: they compute the keys of items, and test whether the keys
//! are present.
//!
//! The rules are those of `filter/cuckoo/table.rs` and `filter/cuckoo/lanes.rs`. That code is used
//! if there is no kernel.

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::avx2;
pub(crate) use crate::arch::cuckoo_keys::{BATCH, Keys, Pairs};
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use crate::arch::level::{Level, level};

/// Computes the keys of at most [`BATCH`] hashes. Returns false, without effect, if this CPU has no
/// kernel.
#[inline]
pub(crate) fn keys(pairs: &Pairs, hashes: &[u64], keys: &mut Keys) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level() >= Level::Avx2 {
        // SAFETY: this level or a better one was detected.
        unsafe { avx2::keys(pairs, hashes, keys) };
        return true;
    }
    let _ = (pairs, hashes, keys);
    false
}

/// Tests a batch of items, as `Table::contains` does. Returns false, without effect, if this CPU
/// has no kernel.
pub(crate) fn contains_pairs(
    words: &[u64],
    pairs: &Pairs,
    hashes: &[u64],
    answers: &mut [u64],
) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level() >= Level::Avx2 {
        // SAFETY: this level or a better one was detected.
        unsafe { avx2::contains_pairs(words, pairs, hashes, answers) };
        return true;
    }
    let _ = (words, pairs, hashes, answers);
    false
}
