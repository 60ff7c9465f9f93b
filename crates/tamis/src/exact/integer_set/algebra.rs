//! Set operations: and, or, exclusive or, and-not, not. The loops process whole words, and the
//! compiler vectorizes these loops.

use crate::bits::{Bits as _, BitsMut as _};
use crate::exact::integer_set::dense::DenseSet;
use crate::exact::integer_set::error::RangeMismatch;

impl DenseSet {
    /// Keeps only the values that both sets hold.
    ///
    /// # Errors
    ///
    /// [`RangeMismatch`] if the ranges of the two sets differ. On error, the set is unchanged. The
    /// methods [`or`](Self::or), [`xor`](Self::xor) and [`and_not`](Self::and_not) return the same
    /// error as `and`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::DenseSet;
    ///
    /// let mut customers = DenseSet::new(0..=99)?;
    /// customers.insert_range(10..=20)?;
    /// let mut blocked = DenseSet::new(0..=99)?;
    /// blocked.insert_range(15..=99)?;
    /// customers.and_not(&blocked)?;
    /// assert_eq!(customers.iter().collect::<Vec<_>>(), [10, 11, 12, 13, 14]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn and(&mut self, other: &Self) -> Result<(), RangeMismatch> {
        self.combine(other, |a, b| a & b)
    }

    /// Inserts the values that `other` holds.
    ///
    /// # Errors
    ///
    /// [`RangeMismatch`] if the ranges of the two sets differ. On error, the set is unchanged.
    pub fn or(&mut self, other: &Self) -> Result<(), RangeMismatch> {
        self.combine(other, |a, b| a | b)
    }

    /// Replaces the set by the values that exactly one of the two sets holds.
    ///
    /// # Errors
    ///
    /// [`RangeMismatch`] if the ranges of the two sets differ. On error, the set is unchanged.
    pub fn xor(&mut self, other: &Self) -> Result<(), RangeMismatch> {
        self.combine(other, |a, b| a ^ b)
    }

    /// Removes the values that `other` holds.
    ///
    /// # Errors
    ///
    /// [`RangeMismatch`] if the ranges of the two sets differ. On error, the set is unchanged.
    pub fn and_not(&mut self, other: &Self) -> Result<(), RangeMismatch> {
        self.combine(other, |a, b| a & !b)
    }

    /// Replaces the set by its complement: the values of the range that the set does not hold.
    pub fn not(&mut self) {
        let unused_bits = 63 - (self.last - self.first) % 64;
        let words = self.bits.words_mut();
        for word in &mut *words {
            *word = !*word;
        }
        // A range holds at least one value, so there is always a last word.
        if let Some(last) = words.last_mut() {
            *last &= u64::MAX >> unused_bits;
        }
    }

    #[inline]
    fn combine(
        &mut self,
        other: &Self,
        combine: impl Fn(u64, u64) -> u64,
    ) -> Result<(), RangeMismatch> {
        if self.range() != other.range() {
            return Err(RangeMismatch { expected: self.range(), found: other.range() });
        }
        for (word, &other) in self.bits.words_mut().iter_mut().zip(other.bits.words()) {
            *word = combine(*word, other);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_over_other_ranges_do_not_combine() {
        let mut one = DenseSet::new(0..=63).unwrap();
        let two = DenseSet::new(0..=64).unwrap();
        one.insert(3).unwrap();
        assert!(one.or(&two).is_err() && one.and(&two).is_err());
        assert!(one.xor(&two).is_err() && one.and_not(&two).is_err());
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn a_complement_stays_within_the_range() {
        for last in [0, 1, 62, 63, 64, 127, 128, 1000] {
            let mut set = DenseSet::new(0..=last).unwrap();
            set.not();
            assert_eq!((set.len(), set.max()), (last + 1, Some(last)));
            set.not();
            assert!(set.is_empty());
        }
    }
}
