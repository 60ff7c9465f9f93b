//! The traits of filters, for generic code. The methods of the traits take hashes or items, one at
//! a time or in batches.
//!
//! Every filter also has the methods of the traits as inherent methods (`inherent.rs`), which need
//! no import. The modules `bloom`, `cuckoo`, `growing` and `window` contain the kinds of filters.
//! The module `any` contains a filter whose kind is chosen at run time.

mod accepting;
pub(crate) mod any;
pub(crate) mod bloom;
pub(crate) mod cuckoo;
pub(crate) mod debug;
mod error;
pub(crate) mod growing;
mod inherent;
mod pointers;
mod refusing;
pub(crate) mod removed;
pub(crate) mod variant;
pub(crate) mod window;

use crate::batch::answers::Answers;
use crate::batch::chunks::{
    CHUNK, count_chunks, count_ones, each_chunk, try_count_chunks, try_each_chunk, words_of,
};
use crate::hash::Hasher;
use crate::item::Item;
use crate::plan::Plan;
use crate::plan::layout::Layout;
pub use error::{InsertError, MergeError, NoRoom};
pub use removed::Removed;

/// Defines the first methods of [`Filter`] for a type with the fields `plan` and `hasher`.
macro_rules! plan_and_hasher {
    () => {
        fn plan(&self) -> &Plan {
            &self.plan
        }

        #[inline]
        fn hasher(&self) -> Hasher {
            self.hasher
        }
    };
}
pub(crate) use plan_and_hasher;

/// A set that may report an absent item as present, but never reports an inserted item as absent.
///
/// `&mut F` and `Box<F>` implement the traits of a filter `F`, so generic code also takes `&mut
/// filter` and `Box<dyn TryInsert>`. `&F`, `Rc<F>` and `Arc<F>` implement `Filter` and `Count`.
///
/// [`AnyFilter`](crate::AnyFilter) is a filter whose kind the program chooses at run time. A program
/// can save, load and create an `AnyFilter` of any kind, and a batch matches on the kind once.
///
/// # Examples
///
/// ```
/// use tamis::{Bloom, Growing, TryInsert};
///
/// fn insert_words(filter: &mut impl TryInsert) -> Result<usize, tamis::InsertError> {
///     filter.try_insert_all(&["to", "be", "or", "not", "to", "be"])
/// }
///
/// assert_eq!(insert_words(&mut Bloom::for_items(100, 0.001)?)?, 4);
/// let mut chosen: Box<dyn TryInsert> = Box::new(Growing::new(0.001)?);
/// assert_eq!(insert_words(&mut chosen)?, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Filter {
    /// Returns the plan that the filter was created with.
    fn plan(&self) -> &Plan;

    /// Returns the hash function.
    fn hasher(&self) -> Hasher;

    /// Returns the layout. Two filters of equal layout can be merged.
    fn layout(&self) -> Layout {
        let plan = self.plan();
        // A growing filter has no fixed size. Growing filters with equal rates can be merged, even
        // if they hold different numbers of items.
        let bits = if plan.kind().grows() { 0 } else { plan.bits() };
        Layout { kind: plan.kind(), bits, geometry: plan.geometry(), hasher: self.hasher() }
    }

    /// Tests whether an item with this hash may have been inserted.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Tests a batch of hashes and writes the answers to a bit mask. The answer for hash `i` is bit
    /// `i % 64` of word `i / 64`.
    ///
    /// # Panics
    ///
    /// Panics if the length of `answers` is not one word for each 64 hashes, rounded up.
    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]);

    /// Tests whether `item` may have been inserted. A result of false is always correct. For an
    /// absent item, the result is true with the probability [`estimate_rate`](Self::estimate_rate).
    // This method is always inlined, together with the hash function. `Hasher::hash` documents the
    // reason for inlining.
    #[inline(always)]
    fn contains<I: Item + ?Sized>(&self, item: &I) -> bool
    where
        Self: Sized,
    {
        self.contains_hash(self.hasher().hash_item(item))
    }

    /// Tests many items. A batch is several times as fast as single tests. Answer `i` is the answer
    /// for `items[i]`.
    fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers)
    where
        Self: Sized,
    {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        each_chunk(&mut &*self, hasher, items, words, |filter, hashes, words| {
            filter.contains_hashes(hashes, words);
        });
    }

    /// Returns true if [`contains_each`](Self::contains_each) would return true for every item of
    /// `items`. Returns true for an empty slice. Tests batches of up to 1024 items and stops after
    /// the first batch with an absent item.
    fn contains_all<I: Item>(&self, items: &[I]) -> bool
    where
        Self: Sized,
    {
        let is_all = try_each_chunk(&mut &*self, self.hasher(), items, |filter, _, hashes| {
            let words = &mut [0; CHUNK / 64][..hashes.len().div_ceil(64)];
            filter.contains_hashes(hashes, words);
            if count_ones(words) == hashes.len() { Ok(()) } else { Err(()) }
        });
        is_all.is_ok()
    }

    /// Returns true if the filter holds no item. An empty filter returns false for every tested
    /// item. Reads the bits up to the first set bit.
    fn is_empty(&self) -> bool {
        self.fill() == 0.0
    }

    /// Estimates how many distinct items the filter holds, from its bits. Reads all bits.
    ///
    /// The estimate is infinite if every bit is set.
    fn estimate_items(&self) -> f64;

    /// Estimates the current false positive rate from the bits. The rate is a probability. Reads
    /// all bits.
    fn estimate_rate(&self) -> f64;

    /// Returns the share of bits that are set. Reads all bits.
    fn fill(&self) -> f64;

    /// Returns true if the [current rate](Self::estimate_rate) is above the [highest
    /// rate](Plan::rate_limit) expected of a filter at capacity. Reads all bits.
    fn is_over_rate(&self) -> bool {
        self.estimate_rate() > self.plan().rate_limit()
    }
}

/// A filter that accepts every item.
///
/// `&SharedBloom` also implements `Insert`, so threads can insert through a shared reference, as
/// threads can write through a `&File`.
pub trait Insert: TryInsert {
    /// Inserts an item by its hash. Returns true if the item is new to the filter.
    fn insert_hash(&mut self, hash: u64) -> bool;

    /// Inserts many hashes in order. Bit `i` of the mask is set if hash `i` was new.
    ///
    /// # Panics
    ///
    /// Panics if the length of `answers` is not one word for each 64 hashes, rounded up.
    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]);

    /// Inserts `item`. Returns true if the item is new to the filter. A result of true is always
    /// correct. For a new item, the result is false with the probability of the current false
    /// positive rate.
    #[inline]
    fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool
    where
        Self: Sized,
    {
        let hash = self.hasher().hash_item(item);
        self.insert_hash(hash)
    }

    /// Inserts many items in order. A batch is several times as fast as single inserts. Answer `i`
    /// is true if `items[i]` was new.
    fn insert_each<I: Item>(&mut self, items: &[I], answers: &mut Answers)
    where
        Self: Sized,
    {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        each_chunk(self, hasher, items, words, |filter, hashes, words| {
            filter.insert_hashes(hashes, words);
        });
    }

    /// Inserts many items in order, as [`insert_each`](Self::insert_each) does. Returns the number
    /// of new items.
    fn insert_all<I: Item>(&mut self, items: &[I]) -> usize
    where
        Self: Sized,
    {
        count_chunks(self, self.hasher(), items, |filter, hashes, words| {
            filter.insert_hashes(hashes, words);
        })
    }
}

/// A filter that may refuse items for lack of space. Every filter that supports inserts implements
/// `TryInsert`.
///
/// A filter that never refuses an item also implements [`Insert`], whose methods return no errors.
pub trait TryInsert: Filter {
    /// Inserts an item by its hash. Returns true if the item is new to the filter.
    ///
    /// # Errors
    ///
    /// [`InsertError`] if the filter has no space for the item. On error, the filter is unchanged.
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError>;

    /// Inserts many hashes in order. Bit `i` of the mask is set if hash `i` was new.
    ///
    /// # Errors
    ///
    /// [`InsertError`] for the first hash for which the filter has no space. All hashes before the
    /// refused hash were inserted, and the mask contains the answers of the inserted hashes.
    ///
    /// # Panics
    ///
    /// Panics if the length of `answers` is not one word for each 64 hashes, rounded up.
    fn try_insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64])
    -> Result<(), InsertError>;

    /// Inserts an item by its hash, even if the filter already reports the item as present. A cuckoo
    /// filter stores one more copy. For every other filter, the method is the same as
    /// [`try_insert_hash`](Self::try_insert_hash).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_insert_hash`](Self::try_insert_hash).
    #[inline]
    fn try_insert_copy_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        self.try_insert_hash(hash)
    }

    /// Inserts many hashes in order, as [`try_insert_copy_hash`](Self::try_insert_copy_hash) does.
    /// Bit `i` of the mask is set if hash `i` was new.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_insert_hashes`](Self::try_insert_hashes).
    ///
    /// # Panics
    ///
    /// Panics if the length of `answers` is not one word for each 64 hashes, rounded up.
    fn try_insert_copy_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        self.try_insert_hashes(hashes, answers)
    }

    /// Inserts `item`. Returns true if the item is new to the filter. A result of true is always
    /// correct. For a new item, the result is false with the probability of the current false
    /// positive rate.
    ///
    /// A counting filter counts each insert. A cuckoo filter stores nothing for an item that it
    /// reports as present, so a program that removes items uses
    /// [`try_insert_copy_hash`](Self::try_insert_copy_hash).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_insert_hash`](Self::try_insert_hash).
    #[inline]
    fn try_insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError>
    where
        Self: Sized,
    {
        let hash = self.hasher().hash_item(item);
        self.try_insert_hash(hash)
    }

    /// Inserts many items in order. A batch is several times as fast as single inserts. Answer `i`
    /// is true if `items[i]` was new.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_insert_hashes`](Self::try_insert_hashes).
    fn try_insert_each<I: Item>(
        &mut self,
        items: &[I],
        answers: &mut Answers,
    ) -> Result<(), InsertError>
    where
        Self: Sized,
    {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        try_each_chunk(self, hasher, items, |filter, first, hashes| {
            filter
                .try_insert_hashes(hashes, words_of(words, first, hashes.len()))
                .map_err(|error| InsertError { inserted: error.inserted + first, ..error })
        })
    }

    /// Inserts many items in order, as [`try_insert_each`](Self::try_insert_each) does. Returns the
    /// number of new items.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_insert_hashes`](Self::try_insert_hashes).
    fn try_insert_all<I: Item>(&mut self, items: &[I]) -> Result<usize, InsertError>
    where
        Self: Sized,
    {
        try_count_chunks(self, self.hasher(), items, |filter, first, hashes, words| {
            filter
                .try_insert_hashes(hashes, words)
                .map_err(|error| InsertError { inserted: error.inserted + first, ..error })
        })
    }
}

/// A filter from which items can be removed.
///
/// Remove only items that were inserted. A filter may report an item as present that was never
/// inserted. If the caller removes an item that was never inserted, the filter may report an
/// inserted item as absent.
pub trait Remove: Filter {
    /// Removes an item by its hash. If the item was inserted several times, one copy is removed.
    fn remove_hash(&mut self, hash: u64) -> Removed;

    /// Removes many hashes in order. Bit `i` of the mask is set if the result for hash `i` is
    /// [`Removed::Yes`].
    ///
    /// # Panics
    ///
    /// Panics if the length of `answers` is not one word for each 64 hashes, rounded up.
    fn remove_hashes(&mut self, hashes: &[u64], answers: &mut [u64]);

    /// Removes `item`. If the item was inserted several times, one copy is removed.
    #[inline]
    fn remove<I: Item + ?Sized>(&mut self, item: &I) -> Removed
    where
        Self: Sized,
    {
        let hash = self.hasher().hash_item(item);
        self.remove_hash(hash)
    }

    /// Removes many items in order. A batch is several times as fast as single removals. Answer `i`
    /// is true if `items[i]` was removed.
    fn remove_each<I: Item>(&mut self, items: &[I], answers: &mut Answers)
    where
        Self: Sized,
    {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        each_chunk(self, hasher, items, words, |filter, hashes, words| {
            filter.remove_hashes(hashes, words);
        });
    }

    /// Removes many items in order, as [`remove_each`](Self::remove_each) does. Returns the number
    /// of items with the result [`Removed::Yes`].
    fn remove_all<I: Item>(&mut self, items: &[I]) -> usize
    where
        Self: Sized,
    {
        count_chunks(self, self.hasher(), items, |filter, hashes, words| {
            filter.remove_hashes(hashes, words);
        })
    }
}

/// A filter that counts how often an item was inserted.
pub trait Count: Filter {
    /// Returns an upper bound of the number of times that an item with this hash was inserted. If
    /// the result equals [`max_count`](Self::max_count), the true number may be higher.
    fn count_hash(&self, hash: u64) -> u64;

    /// Returns the highest count that the filter can store. If the count of an item is the highest
    /// count, the item may have been inserted more often than the count says.
    fn max_count(&self) -> u64;

    /// Returns an upper bound of the number of times that `item` was inserted.
    #[inline(always)]
    fn count<I: Item + ?Sized>(&self, item: &I) -> u64
    where
        Self: Sized,
    {
        self.count_hash(self.hasher().hash_item(item))
    }
}

/// A filter that can be emptied and reused.
pub trait Clear: Filter {
    /// Removes all items but keeps the plan and the hasher. A window filter also keeps its current
    /// time. Writes all bits.
    fn clear(&mut self);
}

/// A filter that accepts all items of another filter with the same layout.
pub trait Merge<Other: ?Sized = Self> {
    /// Inserts all items of `other` into `self`.
    ///
    /// # Errors
    ///
    /// [`MergeError`] if the filters cannot be merged. On error, both filters are unchanged.
    fn merge(&mut self, other: &Other) -> Result<(), MergeError>;
}

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
