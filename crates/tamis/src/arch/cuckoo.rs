//! The batches of the cuckoo filter: where items lie, and whether they are in.
//!
//! The rules are those of `cuckoo/table.rs` and `cuckoo/lanes.rs`, which answer wherever there is no kernel.

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use super::{Level, avx2, level};

/// The numbers of a table in which every bucket is one read, and slots are counted in 32 bits.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri), not(loom))),
    expect(dead_code, reason = "only kernels read them")
)]
pub(crate) struct Pairs {
    /// How many buckets start in a half.
    pub starts: u64,
    /// The first slot of the right half.
    pub right: u64,
    pub fingerprints: u64,
    /// What a fingerprint is multiplied by on the way to the other bucket.
    pub multiplier: u64,
    /// The bits of a slot.
    pub width: u64,
    /// Times a fingerprint, plus the offsets, it is what a bucket full of it holds.
    pub spread: u64,
    pub offsets: u64,
    /// The lowest bit of every slot of a bucket.
    pub ones: u64,
    /// The highest bit of every slot of a bucket.
    pub highs: u64,
}

/// How many items a batch of keys has.
pub(crate) const BATCH: usize = 64;

/// The keys of a batch: what `Table::key` returns, item by item.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Keys {
    pub fingerprints: [u64; BATCH],
    /// The first slots of the left and of the right buckets.
    pub starts: [[u64; BATCH]; 2],
}

impl Keys {
    pub(crate) const NONE: Self = Self { fingerprints: [0; BATCH], starts: [[0; BATCH]; 2] };
}

/// Finds the keys of at most [`BATCH`] hashes; false, and nothing done, if this CPU has no kernel for it.
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

/// Tells which items are in one of their buckets, as `Table::contains` does; false, and nothing done, if this
/// CPU has no kernel for it.
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
