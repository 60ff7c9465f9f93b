//! What a filter of any format can do.

use std::any::Any;
use std::fmt;

use tamis::Answers;

use crate::errors::ChangeError;
use crate::filters::filter_info::FilterInfo;

/// A filter as its file stores it. The module of each kind of filter implements this trait.
/// [`Contents`](crate::Contents) holds any of them.
///
/// A key is an item as the bytes that the original system hashes: see [`Funnel`](crate::Funnel).
pub trait StoredFilter: Any + Clone + fmt::Debug + PartialEq + Send + Sync {
    /// The reason if filters of this kind never merge, and what to do instead.
    const MERGE_REFUSAL: Option<&'static str> = None;

    /// Tests a batch of items and writes to `answers` which of them may be in the filter.
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers);

    /// Inserts a batch of items in order and writes to `answers` which of them are new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if an item cannot be inserted. The items before it have been inserted.
    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError>;

    /// Adds all items of `other`. Returns false, and changes nothing, if the layouts differ.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the layouts are equal and the filters still cannot merge; nothing has
    /// changed.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        let _ = other;
        Ok(false)
    }

    /// Returns the image of a filter of a Tamis server that no file stores:
    /// [`RedisValue::Tamis`](crate::RedisValue::Tamis). Returns `None` for any other filter.
    fn server_image(&self) -> Option<Vec<u8>> {
        None
    }

    /// Reads from the bits what is reported about the filter. Linear time.
    fn info(&self) -> FilterInfo;

    /// Returns the planned rate if the present rate is above it by more than chance explains.
    ///
    /// `info` describes this filter. `planned` is the rate that the caller gives. Without it, the
    /// planned rate in the file is used.
    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        planned.or(info.rate_planned).filter(|&planned| info.is_over(planned))
    }
}
