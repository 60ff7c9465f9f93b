//! The traits of storage, which give access to the words for reading and for writing.

use std::fmt;

use crate::arch::memory::{Lines, Pages};
use crate::bits::word::Word;

/// Bits that can be read.
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

/// Bits in memory of their own: [`Bitmap`](crate::Bitmap) and
/// [`AtomicBitmap`](crate::AtomicBitmap). A filter over these bits can be created empty. Programs
/// cannot implement the trait.
pub trait NewBits: Bits + Sized {
    #[doc(hidden)]
    fn zeroed_on(len_bits: u64, pages: Pages) -> Result<Self, OutOfMemory>;
}

/// Bits that one owner sets and clears.
pub trait BitsMut: Bits<Word = u64> {
    /// Returns the words for writing.
    fn words_mut(&mut self) -> &mut [u64];
}

/// Returns the memory of an allocation of `len_bits` bits, in bytes.
pub(crate) fn heap_bytes(len_bits: u64) -> u64 {
    let len_words = usize::try_from(len_bits.div_ceil(64)).unwrap_or(usize::MAX);
    Lines::heap_bytes(len_words)
}

/// Returns the words from word number `start` to the last word. Returns an empty slice if `start`
/// is past the last word.
pub(crate) fn words_from<W>(words: &[W], start: u64) -> &[W] {
    usize::try_from(start).ok().and_then(|start| words.get(start..)).unwrap_or_default()
}

/// The error if memory cannot be allocated.
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
