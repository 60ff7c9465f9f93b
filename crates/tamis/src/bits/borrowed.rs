//! Bits in borrowed memory, for example of a mapped file.

use crate::bits::storage::Bits;

/// Read-only bits in borrowed words.
///
/// # Examples
///
/// ```
/// use tamis::{BitView, Bits};
///
/// let mapped = [0b11_u64, 0];
/// assert_eq!(BitView::new(&mapped).count_ones(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitView<'a> {
    words: &'a [u64],
}

impl<'a> BitView<'a> {
    /// Borrows `words`. Constant time.
    #[must_use]
    pub const fn new(words: &'a [u64]) -> Self {
        Self { words }
    }
}

impl Bits for BitView<'_> {
    type Word = u64;

    #[inline]
    fn words(&self) -> &[u64] {
        self.words
    }
}
