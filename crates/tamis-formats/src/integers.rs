//! Exact sets of integers from bitmaps of other programs: one bit a value, from 0 on.

use std::borrow::Cow;
use std::io;

use tamis::{Answers, DenseSet, Order, OutOfRange, RangeError};

use crate::contents::{ChangeError, Contents, FilterInfo};
use crate::decode_options::DecodeOptions;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};

/// An exact set of integers, one bit each from 0 on, that grows as far as the program that it is from lets it.
///
/// # Examples
///
/// ```
/// use tamis_formats::{java_bitmap, redis_bits};
///
/// let mut array = java_bitmap::decode(&[0; 5])?;
/// assert!(array.insert(39)?);
/// assert!(array.insert(40).is_err(), "an array has its length");
/// let mut string = redis_bits::decode(&[0; 5])?;
/// assert!(string.insert(40)?, "SETBIT makes a string longer");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerBitmap {
    // Invariant: from 0 to the end of a byte.
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

    /// Returns the greatest value that may be inserted.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Inserts a value; true if it is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the value is above the limit, or there is no memory for a longer bitmap.
    pub fn insert(&mut self, value: u64) -> Result<bool, ChangeError> {
        if value > self.limit {
            return Err(self.refused(value));
        }
        self.grow(value)?;
        self.set.insert(value).map_err(out_of_range)
    }

    /// Removes a value; true if it was in.
    pub fn remove(&mut self, value: u64) -> bool {
        self.set.remove(value)
    }

    pub(crate) fn insert_each(
        &mut self,
        keys: &[impl AsRef<[u8]>],
        answers: &mut Answers,
    ) -> Result<(), ChangeError> {
        let values: Vec<Option<u64>> = keys.iter().map(|key| value(key.as_ref())).collect();
        let fits = |it: &Option<u64>| it.filter(|&value| value <= self.limit);
        let good: Vec<u64> = values.iter().map_while(fits).collect();
        if let Some(&max) = good.iter().max() {
            // Once for all of them: each time every byte is copied.
            self.grow(max)?;
        }
        self.set.insert_each(&good, answers).map_err(out_of_range)?;
        match values.get(good.len()) {
            None => Ok(()),
            Some(Some(above)) => Err(self.refused(*above)),
            Some(None) => Err(no_value()),
        }
    }

    pub(crate) fn contains_each(&self, keys: &[impl AsRef<[u8]>], answers: &mut Answers) {
        // No bitmap has a bit for the greatest of all.
        let value = |key: &_| value(AsRef::<[u8]>::as_ref(key)).unwrap_or(u64::MAX);
        self.set.contains_each(&keys.iter().map(value).collect::<Vec<_>>(), answers);
    }

    /// Adds all values of another.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if one is above the limit, or there is no memory for a longer bitmap; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<(), ChangeError> {
        if let Some(max) = other.set.max() {
            if max > self.limit {
                return Err(self.refused(max));
            }
            self.grow(max)?;
        }
        for value in &other.set {
            self.set.insert(value).map_err(out_of_range)?;
        }
        Ok(())
    }

    pub(crate) fn info(&self) -> FilterInfo {
        let (count, bits) = (self.set.len(), self.set.range().end() + 1);
        FilterInfo {
            rule: "exact set of integers, a bit each".into(),
            bits,
            fill: count as f64 / bits as f64,
            items: count as f64,
            more: min_and_max(self.set.min(), self.set.max()),
            ..FilterInfo::default()
        }
    }

    /// Makes room for a value, to the end of its byte.
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
            "{value} is outside 0..={}, as far as this bitmap reaches: items above fail in the original too",
            self.limit
        ))
    }
}

/// Never what comes of it, where a set has grown so far before.
fn out_of_range(error: OutOfRange) -> ChangeError {
    ChangeError::refused(error.to_string())
}

/// Returns the least and the greatest of a set, to be shown.
pub(crate) fn min_and_max(min: Option<u64>, max: Option<u64>) -> Vec<(&'static str, String)> {
    let ends = [("least", min), ("greatest", max)];
    ends.into_iter().filter_map(|(name, end)| Some((name, end?.to_string()))).collect()
}

/// Returns the integer that a key is: 32 bits with a sign, or 64 without. `None` for other keys and for negative ones.
pub(crate) fn value(key: &[u8]) -> Option<u64> {
    if let Ok(bytes) = key.try_into() {
        return Some(u64::from_le_bytes(bytes));
    }
    key.try_into().ok().and_then(|bytes| i32::from_le_bytes(bytes).try_into().ok())
}

pub(crate) fn no_value() -> ChangeError {
    ChangeError::refused(
        "negative or no integer: such items have no bit, and fail in the original too",
    )
}

/// Reads a bitmap whose first bit stands for 0.
pub(crate) fn decode(bytes: &[u8], order: Order) -> Result<DenseSet, DecodeError> {
    DenseSet::from_bytes(0, bytes, order).map_err(|error| DecodeError {
        field: "bits",
        at: 0,
        kind: match error {
            RangeError::OutOfMemory(memory) => DecodeErrorKind::Memory(memory),
            RangeError::Empty { .. } => DecodeErrorKind::Truncated { expected: 1, found: 0 },
        },
    })
}

/// Makes an empty bitmap of so many values, the greatest of which is `max` at most; as short as can be if none are told.
pub(crate) fn create(items: Option<u64>, max: u64) -> Result<DenseSet, EncodeError> {
    let last = last_of(items, max)?;
    let failed = |error| EncodeError::NoPlace(format!("{error}: plan fewer items").into());
    DenseSet::new(0..=last | 7).map_err(failed)
}

/// The last of so many values.
fn last_of(items: Option<u64>, max: u64) -> Result<u64, EncodeError> {
    let last = items.unwrap_or(1).max(1) - 1;
    if last > max {
        let why = format!("{} items are too many: {} at most", last + 1, max + 1);
        return Err(EncodeError::NoPlace(why.into()));
    }
    Ok(last)
}

/// Writes an exact set of integers, each a value of `what` and at most `max`, as a bitmap: of its own length, or if it has
/// none of as many values as are told, or more.
pub(crate) fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    what: &str,
    max: u64,
    order: Order,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let no_place = |why: String| Err(EncodeError::NoPlace(why.into()));
    let check = |greatest: Option<u64>| match greatest {
        Some(found) if found > max => {
            no_place(format!("{found} is no value of {what}: {max} at most"))
        }
        _ => Ok(greatest.unwrap_or(0)),
    };
    let set = match contents {
        Contents::Integers(bitmap) => {
            check(bitmap.set.max())?;
            Cow::Borrowed(&bitmap.set)
        }
        Contents::Roaring(roaring) => {
            let last = check(roaring.set.max())?.max(last_of(options.items, max)?);
            let dense = roaring.set.to_dense(0..=last | 7);
            Cow::Owned(dense.map_err(|error| EncodeError::NoPlace(error.to_string().into()))?)
        }
        _ => {
            let why = "a bitmap holds integers alone: build one from the items";
            return Err(EncodeError::NoPlace(why.into()));
        }
    };
    Ok(out.write_all(&set.to_bytes(order))?)
}
