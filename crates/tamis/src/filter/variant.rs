//! The trait that `AnyFilter` requires of the filter of each kind.

use crate::bits::{BitsMut, heap_bytes};
use crate::filter::FilterWords;
use crate::filter::Removed;

/// The methods that [`AnyFilter`](crate::AnyFilter) needs from a filter over storage `B`, in
/// addition to the public traits.
pub(crate) trait Variant<B>: FilterWords {
    /// The type of the same filter over borrowed words.
    type View<'a>
    where
        Self: 'a;

    /// Borrows the filter. Returns `None` if the words of the filter are not contiguous.
    fn view(&self) -> Option<Self::View<'_>>;

    /// Returns the heap memory of the filter, in bytes, as
    /// [`allocation_bytes`](crate::allocation_bytes) counts it.
    fn heap_bytes(&self) -> u64 {
        heap_bytes(self.plan().bits())
    }

    /// Sets the current time of a filter that forgets items.
    fn advance(&mut self, _now_millis: u64) {}

    /// Returns an upper bound of the number of times that an item with this hash was inserted.
    /// Returns `None` if the kind of the filter does not count items.
    fn count_hash(&self, _hash: u64) -> Option<u64> {
        None
    }

    /// Returns the highest count. Returns `None` if the kind of the filter does not count items.
    fn max_count(&self) -> Option<u64> {
        None
    }

    /// Removes an item by its hash. Returns `None` if the kind of the filter does not support
    /// removal.
    fn remove_hash(&mut self, _hash: u64) -> Option<Removed>
    where
        B: BitsMut,
    {
        None
    }
}

/// Implements the methods of [`Variant`] for a filter whose words are contiguous.
macro_rules! one_run {
    ($view:ty) => {
        type View<'a>
            = $view
        where
            Self: 'a;

        fn view(&self) -> Option<Self::View<'_>> {
            Some(self.as_view())
        }
    };
}
pub(crate) use one_run;

/// Implements the methods of [`Variant`] for a filter that counts and removes items.
macro_rules! counts {
    () => {
        fn count_hash(&self, hash: u64) -> Option<u64> {
            Some(crate::filter::Count::count_hash(self, hash))
        }

        fn max_count(&self) -> Option<u64> {
            Some(crate::filter::Count::max_count(self))
        }

        fn remove_hash(&mut self, hash: u64) -> Option<Removed>
        where
            B: BitsMut,
        {
            Some(crate::filter::Remove::remove_hash(self, hash))
        }
    };
}
pub(crate) use counts;
