//! Bits with one owner.

use std::fmt;

use crate::arch::memory::{Lines, Pages};
use crate::bits::storage::{Bits, BitsMut, NewBits, OutOfMemory, heap_bytes};

/// A vector of bits on whole cache lines. All bits are initially 0.
///
/// A bitmap above 4 MiB asks Linux for huge pages, so that most lookups need no page-table walk.
///
/// # Examples
///
/// ```
/// use tamis::{Bitmap, Bits, BitsMut};
///
/// let mut bits = Bitmap::zeroed(100)?;
/// bits.words_mut()[0] = 0b101;
/// assert_eq!((bits.len_bits(), bits.count_ones()), (128, 2));
/// # Ok::<(), tamis::OutOfMemory>(())
/// ```
pub struct Bitmap {
    lines: Lines,
}

impl Bitmap {
    /// Allocates `len_bits` zeroed bits, rounded up to whole words.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the memory cannot be allocated.
    pub fn zeroed(len_bits: u64) -> Result<Self, OutOfMemory> {
        Self::zeroed_on(len_bits, Pages::Huge)
    }

    /// Returns the memory of the bits, in bytes, as [`allocation_bytes`](crate::allocation_bytes)
    /// counts memory. Constant time.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        heap_bytes(self.len_bits())
    }
}

#[cfg(not(loom))]
impl Bitmap {
    /// Creates an empty vector, without an allocation.
    #[cfg(feature = "rayon")]
    pub(crate) const fn empty() -> Self {
        Self { lines: Lines::empty() }
    }

    pub(super) fn from_lines(lines: Lines) -> Self {
        Self { lines }
    }

    pub(super) fn into_lines(self) -> Lines {
        self.lines
    }
}

impl NewBits for Bitmap {
    fn zeroed_on(len_bits: u64, pages: Pages) -> Result<Self, OutOfMemory> {
        let len_words = len_bits.div_ceil(64);
        usize::try_from(len_words)
            .ok()
            .and_then(|len_words| Lines::zeroed_on(len_words, pages))
            .map(|lines| Self { lines })
            .ok_or(OutOfMemory { bytes: len_words.saturating_mul(8) })
    }
}

impl Bits for Bitmap {
    type Word = u64;

    #[inline]
    fn words(&self) -> &[u64] {
        &self.lines
    }
}

impl BitsMut for Bitmap {
    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        &mut self.lines
    }
}

impl Clone for Bitmap {
    /// Copies all bits.
    ///
    /// # Panics
    ///
    /// If there is no memory for a copy. To get an error instead of a panic, use [`Bitmap::zeroed`]
    /// and a merge.
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.len_bits()).expect("memory for a copy");
        copy.words_mut().copy_from_slice(self.words());
        copy
    }
}

impl PartialEq for Bitmap {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Bitmap {}

impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bitmap")
            .field("len_bits", &self.len_bits())
            .field("ones", &self.count_ones())
            .finish()
    }
}
