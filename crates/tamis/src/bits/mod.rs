//! Storage of bits: owned, shared between threads, or borrowed.
//!
//! Bit `i` is bit `i % 64` of word `i / 64`, least significant first. On disk a word is little-endian. Storage does not
//! know what a bit means.

mod atomic;
mod borrowed;
mod owned;

use std::fmt;

use crate::sync::{AtomicU64, Ordering};
pub use atomic::AtomicBitmap;
pub use borrowed::BitView;
pub use owned::Bitmap;

/// A readable word of bits: plain, or one that other threads may change at the same time.
pub trait Word: sealed::Sealed + Send + Sync + 'static {
    /// Returns the present bits.
    fn get(&self) -> u64;
}

impl Word for u64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        *self
    }
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        // Relaxed: bits only change from 0 to 1, and no other data is published through them.
        self.load(Ordering::Relaxed)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for crate::sync::AtomicU64 {}
}

/// Readable bits.
pub trait Bits {
    /// The type of a word.
    type Word: Word;

    /// Returns the words. Bit 0 is the lowest bit of the first word.
    fn words(&self) -> &[Self::Word];

    /// Returns the number of bits, a multiple of 64.
    fn len_bits(&self) -> u64 {
        self.words().len() as u64 * 64
    }

    /// Counts the bits that are set. Reads all bits.
    fn count_ones(&self) -> u64 {
        self.words().iter().map(|word| u64::from(word.get().count_ones())).sum()
    }
}

/// Bits that one owner sets and clears.
pub trait BitsMut: Bits<Word = u64> {
    /// Returns the words for writing.
    fn words_mut(&mut self) -> &mut [u64];
}

pub(crate) use crate::arch::memory::Pages;

/// Returns the memory of an allocation of `len_bits` bits, in bytes.
pub(crate) fn heap_bytes(len_bits: u64) -> u64 {
    let len_words = usize::try_from(len_bits.div_ceil(64)).unwrap_or(usize::MAX);
    crate::arch::memory::Lines::heap_bytes(len_words)
}

/// Returns true if bit `bit` of `words` is set.
#[inline(always)]
pub(crate) fn get_bit<W: Word>(words: &[W], bit: u64) -> bool {
    words[(bit / 64) as usize].get() >> (bit % 64) & 1 == 1
}

/// Sets bit `bit` of `words`. Returns true if it was not set.
#[inline(always)]
pub(crate) fn set_bit(words: &mut [u64], bit: u64) -> bool {
    let word = &mut words[(bit / 64) as usize];
    let was_unset = *word >> (bit % 64) & 1 == 0;
    *word |= 1 << (bit % 64);
    was_unset
}

/// Returns the words from number `start` on, or none if there are fewer.
pub(crate) fn words_from(words: &[u64], start: u64) -> &[u64] {
    usize::try_from(start).ok().and_then(|start| words.get(start..)).unwrap_or_default()
}

/// The memory cannot be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The number of requested bytes.
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        write!(f, "cannot allocate {bytes} bytes: plan fewer items or a higher rate")
    }
}

impl std::error::Error for OutOfMemory {}
