//! The words of a filter, which a file stores.

use crate::filter::Filter;

/// A filter whose words can be written, for example to a file.
///
/// The words, the [plan](Filter::plan) and the [hasher](Filter::hasher) are the whole state of a
/// filter. [`AnyFilter::restore`](crate::AnyFilter::restore) creates a filter from them.
pub trait FilterWords: Filter {
    /// Passes the words to `each`, in order and in one or more parts, beginning with word number
    /// `start`. Skipping words takes no time, except in a growing filter that has grown. A growing
    /// filter that has grown reads the header of each skipped page.
    ///
    /// Other threads may insert into a shared filter meanwhile. The words contain every item whose
    /// insert returned before the call.
    ///
    /// # Errors
    ///
    /// Returns the first error of `each`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Bloom, FilterWords};
    ///
    /// let filter = Bloom::for_items(1_000, 0.01)?;
    /// let mut words = 0;
    /// let Ok(()) = filter.each_words_from(100, |part| {
    ///     words += part.len() as u64;
    ///     Ok::<(), std::convert::Infallible>(())
    /// });
    /// assert_eq!(words, filter.len_words() - 100);
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    fn each_words_from<E>(
        &self,
        start: u64,
        each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E>;

    /// Returns how many words [`each_words_from`](Self::each_words_from) passes to its callback if
    /// `start` is 0.
    fn len_words(&self) -> u64 {
        self.plan().bits().div_ceil(64)
    }
}
