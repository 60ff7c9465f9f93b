//! An exact set of integers from the bitmap of another program. Bit `i` stands for the integer `i`.

use tamis::{Answers, DenseSet, OutOfRange, RangeError};

use crate::errors::ChangeError;
use crate::filters::filter_info::{FilterInfo, ItemCount};
use crate::filters::stored_filter::StoredFilter;
use crate::items::integer_keys::{min_and_max, no_value, value};

/// An exact set of integers with one bit for each integer from 0. The set grows up to the limit of the program that
/// wrote the file.
///
/// # Examples
///
/// ```
/// use tamis_formats::{java_bitmap, redis_bits};
///
/// let mut array = java_bitmap::decode(&[0; 5])?;
/// assert!(array.insert(39)?);
/// assert!(array.insert(40).is_err(), "an array does not grow");
/// let mut string = redis_bits::decode(&[0; 5])?;
/// assert!(string.insert(40)?, "SETBIT makes a string longer");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerBitmap {
    // Invariant: the range starts at 0 and ends at the end of a byte.
    set: DenseSet,
    limit: u64,
}

impl IntegerBitmap {
    pub(crate) fn new(set: DenseSet, limit: u64) -> Self {
        Self { set, limit }
    }

    /// Returns the values.
    #[must_use]
    pub fn values(&self) -> &DenseSet {
        &self.set
    }

    /// Returns the largest value that can be inserted.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Inserts a value. Returns true if the value is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the value is above the limit, or if the bitmap must grow and the allocation fails.
    pub fn insert(&mut self, value: u64) -> Result<bool, ChangeError> {
        if value > self.limit {
            return Err(self.refused(value));
        }
        self.grow(value)?;
        self.set.insert(value).map_err(out_of_range)
    }

    /// Removes a value. Returns true if the value was present.
    pub fn remove(&mut self, value: u64) -> bool {
        self.set.remove(value)
    }

    /// Extends the bitmap to the end of the byte that contains the bit of `value`.
    fn grow(&mut self, value: u64) -> Result<(), ChangeError> {
        if value <= *self.set.range().end() {
            return Ok(());
        }
        let failed = |error| match error {
            RangeError::OutOfMemory(memory) => ChangeError::Memory(memory),
            error => ChangeError::refused(error.to_string()),
        };
        let mut grown = DenseSet::new(0..=value | 7).map_err(failed)?;
        for value in &self.set {
            grown.insert(value).map_err(out_of_range)?;
        }
        self.set = grown;
        Ok(())
    }

    fn refused(&self, value: u64) -> ChangeError {
        ChangeError::refused(format!(
            "{value} is outside 0..={}, the range of this bitmap: the original rejects it too",
            self.limit
        ))
    }
}

impl StoredFilter for IntegerBitmap {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        // No bitmap has a bit for the largest `u64`.
        let value = |key: &&[u8]| value(key).unwrap_or(u64::MAX);
        self.set.contains_each(&keys.iter().map(value).collect::<Vec<_>>(), answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        let values: Vec<Option<u64>> = keys.iter().map(|key| value(key)).collect();
        let fits = |it: &Option<u64>| it.filter(|&value| value <= self.limit);
        let good: Vec<u64> = values.iter().map_while(fits).collect();
        if let Some(&max) = good.iter().max() {
            // The bitmap grows once for the whole batch, because each growth copies every byte.
            self.grow(max)?;
        }
        self.set.insert_each(&good, answers).map_err(out_of_range)?;
        match values.get(good.len()) {
            None => Ok(()),
            Some(Some(above)) => Err(self.refused(*above)),
            Some(None) => Err(no_value()),
        }
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        if let Some(max) = other.set.max() {
            if max > self.limit {
                return Err(self.refused(max));
            }
            self.grow(max)?;
        }
        for value in &other.set {
            self.set.insert(value).map_err(out_of_range)?;
        }
        Ok(true)
    }

    fn info(&self) -> FilterInfo {
        let (count, bits) = (self.set.len(), self.set.range().end() + 1);
        FilterInfo {
            layout: "exact set of integers, a bit each".into(),
            bits,
            fill: count as f64 / bits as f64,
            items: count as f64,
            items_are: ItemCount::Exact,
            details: min_and_max(self.set.min(), self.set.max()),
            ..FilterInfo::default()
        }
    }
}

/// Converts an error that cannot occur after [`grow`](IntegerBitmap::grow).
fn out_of_range(error: OutOfRange) -> ChangeError {
    ChangeError::refused(error.to_string())
}
