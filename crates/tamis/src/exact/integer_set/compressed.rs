//! Compressed sets of integers. The memory of a compressed set grows with the number of values, not
//! with the range of the values.

use std::fmt;
use std::ops::{BitAndAssign, BitOrAssign, BitXorAssign, RangeInclusive, SubAssign};

use roaring::RoaringTreemap;

use crate::batch::answers::{Answers, answer_each};
use crate::bits::{BitsMut as _, set_bit};
use crate::exact::integer_set::dense::DenseSet;
use crate::exact::integer_set::error::RangeError;

/// An exact set of `u64` values, compressed as Roaring bitmaps.
///
/// Each block of 65 536 values is stored as a sorted list, a bitmap or a list of runs, whichever is
/// smallest. A value takes 2 bytes in a sparse block and 1 bit in a dense block. A run of
/// consecutive values takes almost no memory. A compressed set has the methods of [`DenseSet`], but
/// no fixed range. Values that are far apart in `u64` take some hundred bytes each. For values that
/// are far apart, a hash set takes less memory than a compressed set.
///
/// # Examples
///
/// ```
/// use tamis::CompressedSet;
///
/// let mut ids = CompressedSet::new();
/// assert!(ids.insert(u64::MAX) && !ids.insert(u64::MAX));
/// assert_eq!(ids.insert_range(1_000_000_000..=1_099_999_999), 100_000_000);
/// assert_eq!(ids.len(), 100_000_001);
/// assert_eq!(ids.select(0), Some(1_000_000_000));
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct CompressedSet {
    map: RoaringTreemap,
}

impl CompressedSet {
    /// Creates an empty set, without an allocation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the approximate memory of the set, in bytes. Visits each non-empty block of 65 536
    /// values.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.map
            .bitmaps()
            .map(|(_, bitmap)| {
                let of = bitmap.statistics();
                // The crate roaring reports the capacity of a list as if an entry had 4 bytes, but
                // an entry has 2 bytes.
                MAP_BYTES
                    + u64::from(of.n_containers) * STRETCH_BYTES
                    + of.n_bytes_array_containers / 2
                    + u64::from(of.n_bitset_containers) * (65_536 / 8)
                    + of.n_bytes_run_containers
            })
            .sum()
    }

    /// Inserts `value`. Returns true if the value is new.
    #[inline]
    pub fn insert(&mut self, value: u64) -> bool {
        self.map.insert(value)
    }

    /// Removes `value`. Returns true if the set contained the value.
    #[inline]
    pub fn remove(&mut self, value: u64) -> bool {
        self.map.remove(value)
    }

    /// Returns true if the set holds `value`.
    #[inline]
    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        self.map.contains(value)
    }

    /// Inserts many values in order. Answer `i` is true if `values[i]` was new.
    pub fn insert_each<T: Copy + Into<u64>>(&mut self, values: &[T], new: &mut Answers) {
        answer_each(values, new.reset(values.len()), |&value| self.insert(value.into()));
    }

    /// Tests many values. Answer `i` is true if the set holds `values[i]`.
    pub fn contains_each<T: Copy + Into<u64>>(&self, values: &[T], answers: &mut Answers) {
        let words = answers.reset(values.len());
        answer_each(values, words, |&value| self.contains(value.into()));
    }

    /// Inserts every value of `range`. Returns the number of new values. An empty range inserts
    /// nothing.
    ///
    /// Time and memory grow with the range: about 3.5 MB and a few milliseconds for each 2³²
    /// values. A set that holds a large part of the `u64` range does not fit in memory.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut ids = tamis::CompressedSet::new();
    /// assert_eq!(ids.insert_range(0..=u64::from(u32::MAX)), 1 << 32);
    /// assert!((3_000_000..4_000_000).contains(&ids.memory_bytes()));
    /// ```
    pub fn insert_range(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.map.insert_range(range)
    }

    /// Removes every value of `range`. Returns the number of removed values.
    pub fn remove_range(&mut self, range: RangeInclusive<u64>) -> u64 {
        if range.is_empty() { 0 } else { self.map.remove_range(range) }
    }

    /// Returns true if the set holds every value of `range`. Returns true for an empty range.
    #[must_use]
    pub fn contains_range(&self, range: RangeInclusive<u64>) -> bool {
        range.is_empty() || self.map.contains_range(range)
    }

    /// Counts the values of `range` that the set holds.
    #[must_use]
    pub fn count_range(&self, range: RangeInclusive<u64>) -> u64 {
        if range.is_empty() { 0 } else { self.map.range_cardinality(range) }
    }

    /// Keeps only the values that both sets hold.
    pub fn and(&mut self, other: &Self) {
        self.map.bitand_assign(&other.map);
    }

    /// Inserts the values that `other` holds.
    pub fn or(&mut self, other: &Self) {
        self.map.bitor_assign(&other.map);
    }

    /// Replaces the set by the values that exactly one of the two sets holds.
    pub fn xor(&mut self, other: &Self) {
        self.map.bitxor_assign(&other.map);
    }

    /// Removes the values that `other` holds.
    pub fn and_not(&mut self, other: &Self) {
        self.map.sub_assign(&other.map);
    }

    /// Replaces the set by its complement within `range`: the values of `range` that the set does
    /// not hold. Values outside `range` are removed. Takes as long as
    /// [inserting](Self::insert_range) the range.
    pub fn not(&mut self, range: RangeInclusive<u64>) {
        let mut complement = Self::new();
        complement.insert_range(range);
        complement.and_not(self);
        *self = complement;
    }

    /// Returns the number of values. Visits each non-empty block of 65 536 values.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.map.len()
    }

    /// Returns true if the set holds no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the lowest value.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        self.map.min()
    }

    /// Returns the highest value.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.map.max()
    }

    /// Counts the values at or below `value`. Visits each non-empty block of 65 536 values below
    /// `value`.
    #[must_use]
    pub fn rank(&self, value: u64) -> u64 {
        self.map.rank(value)
    }

    /// Returns the value at index `n` in ascending order. Index 0 is the lowest value. Returns
    /// `None` if the set holds at most `n` values.
    #[must_use]
    pub fn select(&self, n: u64) -> Option<u64> {
        self.map.select(n)
    }

    /// Iterates over the values in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.map.iter()
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// Returns the set as a [`DenseSet`] over `range`. The result does not contain values outside
    /// `range`.
    ///
    /// # Errors
    ///
    /// [`RangeError`] if the range is empty or its bits do not fit in memory.
    pub fn to_dense(&self, range: RangeInclusive<u64>) -> Result<DenseSet, RangeError> {
        let (first, last) = (*range.start(), *range.end());
        let mut dense = DenseSet::new(range)?;
        let words = dense.bits.words_mut();
        let mut values = self.map.iter();
        values.advance_to(first);
        for value in values.take_while(|&value| value <= last) {
            set_bit(words, value - first);
        }
        Ok(dense)
    }
}

impl DenseSet {
    /// Returns the set in compressed form.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut dense = tamis::DenseSet::new(0..=9_999)?;
    /// dense.insert_range(5..=8_000)?;
    /// let compressed = dense.to_compressed();
    /// assert_eq!(compressed.len(), 7_996);
    /// assert_eq!(compressed.to_dense(0..=9_999)?, dense);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_compressed(&self) -> CompressedSet {
        self.iter().collect()
    }
}

impl FromIterator<u64> for CompressedSet {
    /// Collects values into a set. Collecting is fastest if the values are in ascending order.
    fn from_iter<T: IntoIterator<Item = u64>>(values: T) -> Self {
        Self { map: values.into_iter().collect() }
    }
}

impl IntoIterator for CompressedSet {
    type Item = u64;
    type IntoIter = IntoValues;

    /// Iterates over the values in ascending order.
    fn into_iter(self) -> IntoValues {
        IntoValues { values: self.map.into_iter() }
    }
}

/// An iterator over the values of a consumed [`CompressedSet`], in ascending order.
pub struct IntoValues {
    values: roaring::treemap::IntoIter,
}

impl Iterator for IntoValues {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.values.next()
    }
}

impl fmt::Debug for IntoValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoValues").finish_non_exhaustive()
    }
}

impl Extend<u64> for CompressedSet {
    fn extend<T: IntoIterator<Item = u64>>(&mut self, values: T) {
        self.map.extend(values);
    }
}

impl fmt::Debug for CompressedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompressedSet")
            .field("len", &self.len())
            .field("memory_bytes", &self.memory_bytes())
            .finish()
    }
}

/// The overhead of a block of 65 536 values, in bytes.
const STRETCH_BYTES: u64 = 48;
/// The overhead of a tree node for 2³² values, in bytes.
const MAP_BYTES: u64 = 64;
