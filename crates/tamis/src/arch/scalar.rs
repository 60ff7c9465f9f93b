//! The kernels in plain Rust. The kernels in plain Rust define the results of all other kernels.
//! CPUs without SIMD kernels use these kernels in plain Rust.

use crate::arch::kernels::{Kernels, OwnedKernels};
use crate::arch::sync::{AtomicU64, Ordering};
use crate::batch::answers::answer_each;
use crate::bits::Word;
use crate::strategy::block_rules::{parquet, split_block};

pub(crate) static KERNELS: OwnedKernels = OwnedKernels { insert_512, insert_256 };

pub(crate) fn readers<W: Word>() -> Kernels<W> {
    Kernels { contains_512, contains_256 }
}

#[inline]
pub(crate) fn contains_one_512<W: Word>(words: &[W], hash: u64) -> bool {
    let (block, mask) = split_block::locate(hash, words.len() / 8);
    holds(&words[block * 8..block * 8 + 8], &mask)
}

#[inline]
pub(crate) fn insert_one_512(words: &mut [u64], hash: u64) -> bool {
    let (block, mask) = split_block::locate(hash, words.len() / 8);
    set(&mut words[block * 8..block * 8 + 8], &mask)
}

#[inline]
pub(crate) fn contains_one_256<W: Word>(words: &[W], hash: u64) -> bool {
    let (block, mask) = parquet::locate(hash, words.len() / 4);
    holds(&words[block * 4..block * 4 + 4], &mask)
}

#[inline]
pub(crate) fn insert_one_256(words: &mut [u64], hash: u64) -> bool {
    let (block, mask) = parquet::locate(hash, words.len() / 4);
    set(&mut words[block * 4..block * 4 + 4], &mask)
}

#[inline]
pub(crate) fn insert_one_512_shared(words: &[AtomicU64], hash: u64) -> bool {
    let (block, mask) = split_block::locate(hash, words.len() / 8);
    let block = &words[block * 8..block * 8 + 8];
    let new = !holds(block, &mask);
    for (word, mask) in block.iter().zip(mask) {
        // `Relaxed` is sufficient: see `bits/atomic.rs`. `fetch_or` is not needed, because no other
        // thread writes this block at the same time.
        word.store(word.get() | mask, Ordering::Relaxed);
    }
    new
}

pub(crate) fn contains_512<W: Word>(words: &[W], hashes: &[u64], answers: &mut [u64]) {
    answer_each(hashes, answers, |&hash| contains_one_512(words, hash));
}

pub(crate) fn insert_512(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    answer_each(hashes, answers, |&hash| insert_one_512(words, hash));
}

pub(crate) fn insert_512_shared(words: &[AtomicU64], hashes: &[u64], answers: &mut [u64]) {
    answer_each(hashes, answers, |&hash| insert_one_512_shared(words, hash));
}

pub(crate) fn contains_256<W: Word>(words: &[W], hashes: &[u64], answers: &mut [u64]) {
    answer_each(hashes, answers, |&hash| contains_one_256(words, hash));
}

pub(crate) fn insert_256(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    answer_each(hashes, answers, |&hash| insert_one_256(words, hash));
}

/// Tests whether every bit of `mask` is set, without a branch.
#[inline]
fn holds<W: Word>(block: &[W], mask: &[u64]) -> bool {
    block.iter().zip(mask).fold(0, |missing, (word, mask)| missing | (mask & !word.get())) == 0
}

/// Sets every bit of `mask`. Returns true if at least one bit of `mask` was not set before.
#[inline]
fn set(block: &mut [u64], mask: &[u64]) -> bool {
    let mut missing = 0;
    for (word, mask) in block.iter_mut().zip(mask) {
        missing |= mask & !*word;
        *word |= mask;
    }
    missing != 0
}
