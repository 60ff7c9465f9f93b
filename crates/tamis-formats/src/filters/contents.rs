//! The contents of a file whose format is known only at run time.

use std::any::Any;
use std::fmt;

use tamis::Answers;

use crate::errors::{ChangeError, EncodeError};
use crate::filters::filter_info::FilterInfo;
use crate::filters::stored_filter::StoredFilter;

/// The filter that a file of any format holds.
///
/// # Examples
///
/// ```
/// use tamis_formats::{Contents, IntegerBitmap, java_bitmap};
///
/// let contents = Contents::new(java_bitmap::decode(&[0b0010_0110])?);
/// assert_eq!(contents.info().items, 3.0);
/// assert_eq!(contents.downcast_ref::<IntegerBitmap>().unwrap().limit(), 7);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub struct Contents(Box<dyn ErasedFilter>);

impl Contents {
    /// Creates contents with `filter`.
    pub fn new(filter: impl StoredFilter) -> Self {
        Self(Box::new(filter))
    }

    /// Returns the filter of type `F`, for a format that stores only this type.
    ///
    /// # Errors
    ///
    /// [`EncodeError::NeedsItems`] with the reason `why` if the type of the filter is not `F`.
    pub(crate) fn filter<F: StoredFilter>(&self, why: &str) -> Result<&F, EncodeError> {
        self.downcast_ref().ok_or_else(|| EncodeError::needs_items(why))
    }

    /// Returns the filter if its type is `F`.
    #[must_use]
    pub fn downcast_ref<F: StoredFilter>(&self) -> Option<&F> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// Returns a mutable reference to the filter if its type is `F`.
    #[must_use]
    pub fn downcast_mut<F: StoredFilter>(&mut self) -> Option<&mut F> {
        (&mut *self.0 as &mut dyn Any).downcast_mut()
    }

    /// Tests for each item of a batch whether the item may be in the filter. Writes the results to `answers`.
    ///
    /// A key is the byte form of an item that the original system hashes: see [`Funnel`](crate::Funnel).
    pub fn contains_each<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Answers) {
        self.0.contains_each(&slices(keys), answers);
    }

    /// Inserts a batch of items in order. Writes to `answers` for each item whether the item is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the filter is full or if the original system would fail. The items before the rejected item
    /// have been inserted.
    pub fn insert_each<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        answers: &mut Answers,
    ) -> Result<(), ChangeError> {
        self.0.insert_each(&slices(keys), answers)
    }

    /// Merges all items of `other` into the filter.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the two filters cannot merge. If the merge fails, `self` is unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), ChangeError> {
        if let Some(why) = self.0.merge_refusal().or(other.0.merge_refusal()) {
            return Err(ChangeError::refused(why));
        }
        if self.0.merge(&*other.0)? {
            return Ok(());
        }
        let (one, other) = (self.info(), other.info());
        Err(ChangeError::refused(format!(
            "layouts differ: {} and {}",
            one.layout_and_size(),
            other.layout_and_size()
        )))
    }

    /// Returns the image of a filter that only a Tamis server supports: see [`StoredFilter::server_image`]. Returns
    /// `None` for all filters except the filters that only a Tamis server supports.
    #[must_use]
    pub fn server_image(&self) -> Option<Vec<u8>> {
        self.0.server_image()
    }

    /// Computes the report about the filter from the bits. Linear time.
    #[must_use]
    pub fn info(&self) -> FilterInfo {
        self.0.info()
    }

    /// Returns the planned rate if the present rate exceeds the planned rate by more than chance explains.
    ///
    /// `info` is the report about `self`. `planned` is the planned rate that the caller gives. If `planned` is `None`,
    /// the planned rate in the file is used. Half of all filters that hold exactly their capacity exceed their planned
    /// rate by chance, so a small excess does not count.
    #[must_use]
    pub fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        self.0.exceeded_rate(info, planned)
    }
}

impl Clone for Contents {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// [`StoredFilter`] as a trait object.
trait ErasedFilter: Any + fmt::Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn ErasedFilter>;
    fn equals(&self, other: &dyn Any) -> bool;
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers);
    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError>;
    fn merge_refusal(&self) -> Option<&'static str>;
    /// Merges `other` if both filters have the same type.
    fn merge(&mut self, other: &dyn Any) -> Result<bool, ChangeError>;
    fn server_image(&self) -> Option<Vec<u8>>;
    fn info(&self) -> FilterInfo;
    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64>;
}

impl<F: StoredFilter> ErasedFilter for F {
    fn boxed(&self) -> Box<dyn ErasedFilter> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<F>().is_some_and(|other| self == other)
    }

    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        StoredFilter::contains_each(self, keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        StoredFilter::insert_each(self, keys, answers)
    }

    fn merge_refusal(&self) -> Option<&'static str> {
        F::MERGE_REFUSAL
    }

    fn merge(&mut self, other: &dyn Any) -> Result<bool, ChangeError> {
        other.downcast_ref().map_or(Ok(false), |other| StoredFilter::merge(self, other))
    }

    fn server_image(&self) -> Option<Vec<u8>> {
        StoredFilter::server_image(self)
    }

    fn info(&self) -> FilterInfo {
        StoredFilter::info(self)
    }

    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        StoredFilter::exceeded_rate(self, info, planned)
    }
}

fn slices(keys: &[impl AsRef<[u8]>]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}
