//! The operations of a filter of any format.

use std::any::Any;
use std::fmt;

use tamis::Answers;

use crate::errors::ChangeError;
use crate::filters::filter_info::FilterInfo;

/// A filter with the data that its file stores. The module of each kind of filter implements `StoredFilter`.
/// [`Contents`](crate::Contents) holds a filter of any kind.
///
/// A key is the byte form of an item that the original system hashes: see [`Funnel`](crate::Funnel).
pub trait StoredFilter: Any + Clone + fmt::Debug + PartialEq + Send + Sync {
    /// The reason why filters of this kind never merge, and what to do instead of a merge. `None` if filters of this
    /// kind may merge.
    const MERGE_REFUSAL: Option<&'static str> = None;

    /// Tests for each item of a batch whether the item may be in the filter. Writes the results to `answers`.
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers);

    /// Inserts a batch of items in order. Writes to `answers` for each item whether the item is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if an item cannot be inserted. The items before the rejected item have been inserted.
    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError>;

    /// Merges all items of `other` into the filter. If the layouts differ, returns false and changes nothing.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the layouts are equal but the filters cannot merge. If the merge fails, the filter is
    /// unchanged.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        let _ = other;
        Ok(false)
    }

    /// Returns the image of a filter that only a Tamis server supports, for
    /// [`RedisValue::Tamis`](crate::RedisValue::Tamis). Returns `None` for all filters except the filters that only a
    /// Tamis server supports.
    fn server_image(&self) -> Option<Vec<u8>> {
        None
    }

    /// Computes the report about the filter from the bits. Linear time.
    fn info(&self) -> FilterInfo;

    /// Returns the planned rate if the present rate exceeds the planned rate by more than chance explains.
    ///
    /// `info` is the report about `self`. `planned` is the planned rate that the caller gives. If `planned` is `None`,
    /// the planned rate in the file is used.
    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        planned.or(info.rate_planned).filter(|&planned| info.is_over(planned))
    }
}
