//! Operations on whole ranges of values. The operations process one word at a time.

use std::ops::RangeInclusive;

use crate::bits::{Bits as _, BitsMut as _};
use crate::exact::integer_set::dense::DenseSet;
use crate::exact::integer_set::error::OutOfRange;

impl DenseSet {
    /// Inserts every value of `range`. Returns the number of new values. An empty range inserts
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if a part of `range` is outside the set's range. On error, the set is
    /// unchanged.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut set = tamis::DenseSet::new(0..=999)?;
    /// assert_eq!(set.insert_range(100..=299)?, 200);
    /// assert_eq!(set.remove_range(250..=5_000), 50);
    /// assert!(set.contains_range(100..=249) && !set.contains_range(100..=250));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_range(&mut self, range: RangeInclusive<u64>) -> Result<u64, OutOfRange> {
        if range.is_empty() {
            return Ok(0);
        }
        let bits = self.check(*range.start())?..=self.check(*range.end())?;
        let mut new = 0;
        for_each_mask(bits, |at, mask| {
            let word = &mut self.bits.words_mut()[at];
            new += u64::from((mask & !*word).count_ones());
            *word |= mask;
            true
        });
        Ok(new)
    }

    /// Removes every value of `range`. Returns the number of values that were in the set. `range`
    /// may extend beyond the set's range.
    pub fn remove_range(&mut self, range: RangeInclusive<u64>) -> u64 {
        let mut removed = 0;
        if let Some(bits) = self.clip(&range) {
            for_each_mask(bits, |at, mask| {
                let word = &mut self.bits.words_mut()[at];
                removed += u64::from((mask & *word).count_ones());
                *word &= !mask;
                true
            });
        }
        removed
    }

    /// Returns true if the set holds every value of `range`. Returns true for an empty range.
    #[must_use]
    pub fn contains_range(&self, range: RangeInclusive<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let (Some(first), Some(last)) = (self.bit_of(*range.start()), self.bit_of(*range.end()))
        else {
            return false;
        };
        for_each_mask(first..=last, |at, mask| self.bits.words()[at] & mask == mask)
    }

    /// Counts the values of `range` that the set holds. `range` may extend beyond the set's range.
    #[must_use]
    pub fn count_range(&self, range: RangeInclusive<u64>) -> u64 {
        let mut count = 0;
        if let Some(bits) = self.clip(&range) {
            for_each_mask(bits, |at, mask| {
                count += u64::from((self.bits.words()[at] & mask).count_ones());
                true
            });
        }
        count
    }

    /// Returns the bit numbers of the part of `range` that is inside the set's range.
    fn clip(&self, range: &RangeInclusive<u64>) -> Option<RangeInclusive<u64>> {
        let first = self.first.max(*range.start());
        let last = self.last.min(*range.end());
        (!range.is_empty() && first <= last).then(|| first - self.first..=last - self.first)
    }
}

/// Calls `visit` with the number of each word that contains some of `bits`, and with the mask of
/// the bits that the word contains. Stops if `visit` returns false. Returns true if every call of
/// `visit` returned true.
fn for_each_mask(bits: RangeInclusive<u64>, mut visit: impl FnMut(usize, u64) -> bool) -> bool {
    let (first, last) = bits.into_inner();
    (first / 64..=last / 64).all(|at| {
        let low = if at == first / 64 { first % 64 } else { 0 };
        let high = if at == last / 64 { last % 64 } else { 63 };
        visit(at as usize, u64::MAX << low & u64::MAX >> (63 - high))
    })
}
