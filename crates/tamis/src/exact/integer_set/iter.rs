//! Iterators over the values of a set, in order.

use std::iter::FusedIterator;

use crate::bits::Bits as _;
use crate::exact::integer_set::dense::DenseSet;

/// An iterator over the values of a [`DenseSet`], in ascending order.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    words: std::slice::Iter<'a, u64>,
    word: u64,
    // The value that bit 0 of `word` represents. After the last word, `base` may wrap around to
    // zero, but the iterator no longer uses `base`.
    base: u64,
}

impl Iterator for Values<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.word == 0 {
            self.word = *self.words.next()?;
            self.base = self.base.wrapping_add(64);
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(self.base + u64::from(bit))
    }
}

impl FusedIterator for Values<'_> {}

/// An iterator over the non-empty words of a [`DenseSet`], in ascending order. The iterator yields
/// pairs: the value that bit 0 of the word represents, and the word.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    words: std::iter::Enumerate<std::slice::Iter<'a, u64>>,
    first: u64,
}

impl Iterator for Words<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        self.words
            .find(|&(_, &word)| word != 0)
            .map(|(at, &word)| (self.first + at as u64 * 64, word))
    }
}

impl FusedIterator for Words<'_> {}

impl DenseSet {
    /// Iterates over the values in ascending order. Skipping a part of the range without values
    /// takes one step for each 64-bit word.
    #[must_use]
    pub fn iter(&self) -> Values<'_> {
        let before_first = self.first.wrapping_sub(64);
        Values { words: self.bits.words().iter(), word: 0, base: before_first }
    }

    /// Iterates over the non-empty words. Reading a set by words is faster than reading the set by
    /// values.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut set = tamis::DenseSet::new(1_000..=2_000)?;
    /// set.insert_range(1_000..=1_002)?;
    /// set.insert(1_999)?;
    /// assert_eq!(set.words().collect::<Vec<_>>(), [(1_000, 0b111), (1_960, 1 << 39)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        Words { words: self.bits.words().iter().enumerate(), first: self.first }
    }
}

impl<'a> IntoIterator for &'a DenseSet {
    type Item = u64;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}
