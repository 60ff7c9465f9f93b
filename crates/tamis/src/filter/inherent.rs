//! Defines the trait methods also as inherent methods, so that users of a filter import no trait.
//!
//! `impl_each` repeats a block of methods for each of several types. Each inherent method calls the
//! trait method by its full path, because `self.contains(item)` would call the inherent method
//! itself. Methods for single items are inlined as in the trait, because a call costs as much as
//! the lookup.

use crate::batch::answers::Answers;
use crate::batch::chunks::{try_each_chunk, words_of};
use crate::bits::{AtomicBitmap, BitView, Bits, BitsMut};
use crate::filter::any::AnyFilter;
use crate::filter::bloom::{BloomFilter, Counting};
use crate::filter::cuckoo::Cuckoo;
use crate::filter::growing::Growing;
use crate::filter::window::Window;
use crate::filter::{
    Clear, Count, Filter, Insert, InsertError, Merge, MergeError, Remove, Removed, TryInsert,
};
use crate::hash::Hasher;
use crate::item::Item;
use crate::plan::layout::Layout;
use crate::plan::{Plan, PlanError};
use crate::strategy::Strategy;

/// Writes one `impl` block for each type of a list. The generic parameters of a type are written
/// before the type, in brackets.
macro_rules! impl_each {
    ($([$($generics:tt)*] $filter:ty),*; $methods:tt) => {
        $(impl<$($generics)*> $filter $methods)*
    };
}

// Methods of every filter.
impl_each! {
    [S: Strategy, B: Bits] BloomFilter<S, B>,
    [B: Bits<Word = u64>] Counting<B>,
    [B: Bits<Word = u64>] Cuckoo<B>,
    [B: Bits<Word = u64>] Growing<B>,
    [B: Bits<Word = u64>] Window<B>,
    [B: Bits<Word = u64>] AnyFilter<B>;
    {
        /// Returns the plan that the filter was created with. Takes constant time.
        #[inline]
        pub fn plan(&self) -> &Plan {
            Filter::plan(self)
        }

        /// Returns the number of distinct items that the filter holds at the planned rate:
        /// [`Plan::items`]. Takes constant time.
        #[inline]
        pub fn capacity(&self) -> u64 {
            Filter::plan(self).items()
        }

        /// Returns the hash function of the filter. Takes constant time.
        #[inline]
        pub fn hasher(&self) -> Hasher {
            Filter::hasher(self)
        }

        /// Returns the layout. Two filters of equal layout can be merged. Takes constant time.
        pub fn layout(&self) -> Layout {
            Filter::layout(self)
        }

        /// Tests whether `item` may have been inserted. A result of false is always correct. For an
        /// absent item, the result is true with the probability
        /// [`estimate_rate`](Self::estimate_rate).
        #[inline(always)]
        pub fn contains<I: Item + ?Sized>(&self, item: &I) -> bool {
            Filter::contains(self, item)
        }

        /// Tests whether an item with this hash may have been inserted. The hash must be computed
        /// with [`hasher`](Self::hasher).
        #[inline(always)]
        pub fn contains_hash(&self, hash: u64) -> bool {
            Filter::contains_hash(self, hash)
        }

        /// Tests many items. A batch is several times as fast as single tests. Answer `i` is the
        /// answer for `items[i]`.
        ///
        /// Replaces the earlier content of `answers` and reuses the memory of `answers`.
        pub fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
            Filter::contains_each(self, items, answers);
        }

        /// Tests many items on the threads of rayon's pool. The answers equal the answers of
        /// [`contains_each`](Self::contains_each). A batch of up to 8192 items runs on one thread.
        #[cfg(all(feature = "rayon", not(loom)))]
        pub fn par_contains_each<I: Item + Sync>(&self, items: &[I], answers: &mut Answers)
        where
            Self: Sync,
        {
            crate::batch::parallel::contains_each(self, items, answers);
        }

        /// Returns true if every item of `items` may have been inserted. Returns true for an empty
        /// slice. Tests batches of up to 1024 items and stops after the first batch with an absent
        /// item.
        ///
        /// Use [`contains_each`](Self::contains_each) for one answer per item.
        pub fn contains_all<I: Item>(&self, items: &[I]) -> bool {
            Filter::contains_all(self, items)
        }

        /// Returns true if no bit is set. An empty filter returns false for every item. Takes
        /// constant time if the filter counts its items. Reads the bits up to the first set bit if
        /// the filter does not count its items.
        pub fn is_empty(&self) -> bool {
            Filter::is_empty(self)
        }

        /// Estimates how many distinct items the filter holds. The estimate is infinite if every
        /// bit is set. Reads all bits, unless the filter counts its items.
        pub fn estimate_items(&self) -> f64 {
            Filter::estimate_items(self)
        }

        /// Estimates the current false positive rate, a probability. Reads all bits, unless the
        /// filter counts its items.
        pub fn estimate_rate(&self) -> f64 {
            Filter::estimate_rate(self)
        }

        /// Returns the used share of the filter's bits, counters or slots, from 0 to 1. For a
        /// growing filter, returns the current rate divided by the planned rate. Reads all bits,
        /// unless the filter counts its items.
        pub fn fill(&self) -> f64 {
            Filter::fill(self)
        }

        /// Returns true if the [current rate](Self::estimate_rate) is above the [highest
        /// rate](Plan::rate_limit) expected of a filter at capacity. Takes as long as
        /// [`estimate_rate`](Self::estimate_rate).
        pub fn is_over_rate(&self) -> bool {
            Filter::is_over_rate(self)
        }
    }
}

// Methods of filters that accept every item.
impl_each! {
    [S: Strategy, B: BitsMut] BloomFilter<S, B>,
    [B: BitsMut] Counting<B>,
    [B: BitsMut] Window<B>;
    {
        /// Inserts `item`. Returns true if the item is new to the filter. If `insert` returns true,
        /// the item is certainly new. For a new item, `insert` returns false with the probability
        /// of the current false positive rate.
        #[inline]
        pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
            Insert::insert(self, item)
        }

        /// Inserts an item by its hash, computed with [`hasher`](Self::hasher). Returns true if the
        /// item is new to the filter.
        #[inline]
        pub fn insert_hash(&mut self, hash: u64) -> bool {
            Insert::insert_hash(self, hash)
        }

        /// Inserts many items in order. A batch is several times as fast as single inserts. Answer
        /// `i` is true if `items[i]` was new.
        pub fn insert_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
            Insert::insert_each(self, items, answers);
        }

        /// Inserts many items in order. A batch is several times as fast as single inserts. Returns
        /// the number of new items.
        pub fn insert_all<I: Item>(&mut self, items: &[I]) -> usize {
            Insert::insert_all(self, items)
        }
    }
}

// Methods of filters that may refuse items.
impl_each! {
    [B: BitsMut] Cuckoo<B>,
    [B: BitsMut] Growing<B>,
    [B: BitsMut] AnyFilter<B>;
    {
        /// Inserts `item`. Returns true if the item is new to the filter. A result of true is
        /// always correct. For a new item, the result is false with the probability of the current
        /// false positive rate.
        ///
        /// # Errors
        ///
        /// [`InsertError`] if the filter has no space for the item. On error, the filter is
        /// unchanged.
        #[inline]
        pub fn try_insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
            TryInsert::try_insert(self, item)
        }

        /// Inserts an item by its hash, computed with [`hasher`](Self::hasher). Returns true if the
        /// item is new to the filter.
        ///
        /// # Errors
        ///
        /// Returns the errors of [`try_insert`](Self::try_insert).
        #[inline]
        pub fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
            TryInsert::try_insert_hash(self, hash)
        }

        /// Inserts many items in order. A batch is several times as fast as single inserts. Answer
        /// `i` is true if `items[i]` was new.
        ///
        /// # Errors
        ///
        /// [`InsertError`] at the first item for which the filter has no space. The first
        /// [`inserted`](InsertError::inserted) items of the batch were inserted, and `answers`
        /// contains the answers of the inserted items.
        pub fn try_insert_each<I: Item>(
            &mut self,
            items: &[I],
            answers: &mut Answers,
        ) -> Result<(), InsertError> {
            TryInsert::try_insert_each(self, items, answers)
        }

        /// Inserts many items in order. A batch is several times as fast as single inserts. Returns
        /// the number of new items.
        ///
        /// # Errors
        ///
        /// Returns the errors of [`try_insert_each`](Self::try_insert_each).
        pub fn try_insert_all<I: Item>(&mut self, items: &[I]) -> Result<usize, InsertError> {
            TryInsert::try_insert_all(self, items)
        }

        /// Inserts every item of an iterator, in batches. Returns the number of new items.
        ///
        /// # Errors
        ///
        /// [`InsertError`] at the first item for which the filter has no space. The first
        /// [`inserted`](InsertError::inserted) items of the iterator were inserted. The iterator may
        /// have advanced by up to 1024 items after the refused item.
        pub fn try_extend<I: Item>(
            &mut self,
            items: impl IntoIterator<Item = I>,
        ) -> Result<u64, InsertError> {
            crate::batch::extend::try_extend(self, items)
        }
    }
}

// Methods of filters that store copies of an item.
impl_each! {
    [B: BitsMut] Cuckoo<B>,
    [B: BitsMut] AnyFilter<B>;
    {
        /// Inserts `item`, even if the filter already reports the item as present. A cuckoo filter
        /// stores one more copy. For every other kind, the method is the same as
        /// [`try_insert`](Self::try_insert). Returns true if the item is new to the filter.
        ///
        /// # Errors
        ///
        /// Returns the errors of [`try_insert`](Self::try_insert).
        #[inline]
        pub fn try_insert_copy<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
            let hash = self.hasher().hash_item(item);
            TryInsert::try_insert_copy_hash(self, hash)
        }

        /// Inserts an item by its hash, as [`try_insert_copy`](Self::try_insert_copy) does.
        ///
        /// # Errors
        ///
        /// Returns the errors of [`try_insert`](Self::try_insert).
        #[inline]
        pub fn try_insert_copy_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
            TryInsert::try_insert_copy_hash(self, hash)
        }

        /// Inserts many items in order, as [`try_insert_copy`](Self::try_insert_copy) does. Answer
        /// `i` is true if `items[i]` was new.
        ///
        /// # Errors
        ///
        /// Returns the errors of [`try_insert_each`](Self::try_insert_each).
        pub fn try_insert_copy_each<I: Item>(
            &mut self,
            items: &[I],
            answers: &mut Answers,
        ) -> Result<(), InsertError> {
            let (hasher, words) = (self.hasher(), answers.reset(items.len()));
            try_each_chunk(self, hasher, items, |filter, first, hashes| {
                let words = words_of(words, first, hashes.len());
                TryInsert::try_insert_copy_hashes(filter, hashes, words)
                    .map_err(|error| InsertError { inserted: error.inserted + first, ..error })
            })
        }
    }
}

// Methods that change the whole filter.
impl_each! {
    [S: Strategy, B: BitsMut] BloomFilter<S, B>,
    [S: Strategy] BloomFilter<S, AtomicBitmap>,
    [B: BitsMut] Counting<B>,
    [B: BitsMut] Cuckoo<B>,
    [B: BitsMut] Growing<B>,
    [B: BitsMut] Window<B>,
    [B: BitsMut] AnyFilter<B>;
    {
        /// Removes all items but keeps the plan and the hasher. A window filter also keeps its
        /// current time. Writes all bits, except in a growing filter, whose pages are freed.
        ///
        /// # Panics
        ///
        /// Panics if a growing filter cannot allocate its first page.
        pub fn clear(&mut self) {
            Clear::clear(self);
        }

        /// Merges the items of `other` into `self`. `other` is a filter of the same type as `self`,
        /// over any storage. Merging takes time proportional to the size of both filters.
        ///
        /// # Errors
        ///
        /// [`MergeError`] if the [layouts](Self::layout) differ, or if `self` has no space for the
        /// items of `other`. On error, both filters are unchanged.
        pub fn merge<Other>(&mut self, other: &Other) -> Result<(), MergeError>
        where
            Self: Merge<Other>,
        {
            Merge::merge(self, other)
        }
    }
}

// Methods of filters that count items.
impl_each! {
    [B: Bits<Word = u64>] Counting<B>,
    [B: Bits<Word = u64>] Cuckoo<B>;
    {
        /// Returns an upper bound of the number of times that `item` was inserted. If the result
        /// equals [`max_count`](Self::max_count), the true number may be higher.
        #[inline(always)]
        pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
            Count::count(self, item)
        }

        /// Returns an upper bound of the number of times that an item with this hash was inserted,
        /// as [`count`](Self::count) does.
        #[inline]
        pub fn count_hash(&self, hash: u64) -> u64 {
            Count::count_hash(self, hash)
        }

        /// Returns the highest count that the filter can store. If the count of an item is the
        /// highest count, the item may have been inserted more often than the count says.
        pub fn max_count(&self) -> u64 {
            Count::max_count(self)
        }
    }
}

// Methods of filters that remove items.
impl_each! {
    [B: BitsMut] Counting<B>,
    [B: BitsMut] Cuckoo<B>;
    {
        /// Removes `item`. If the item was inserted several times, one copy is removed.
        ///
        /// Remove only items that were inserted. If the caller removes an item that was never
        /// inserted, the filter may report an inserted item as absent.
        #[inline]
        pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> Removed {
            Remove::remove(self, item)
        }

        /// Removes an item by its hash, as [`remove`](Self::remove) does.
        #[inline]
        pub fn remove_hash(&mut self, hash: u64) -> Removed {
            Remove::remove_hash(self, hash)
        }

        /// Removes many items in order. A batch is several times as fast as single removals. Answer
        /// `i` is true if the result for `items[i]` is [`Removed::Yes`].
        pub fn remove_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
            Remove::remove_each(self, items, answers);
        }

        /// Removes many items in order. A batch is several times as fast as single removals.
        /// Returns the number of removed items.
        pub fn remove_all<I: Item>(&mut self, items: &[I]) -> usize {
            Remove::remove_all(self, items)
        }
    }
}

// Methods of filters over borrowed words.
impl_each! {
    ['a, S: Strategy] BloomFilter<S, BitView<'a>>,
    ['a] Counting<BitView<'a>>,
    ['a] Cuckoo<BitView<'a>>,
    ['a] Growing<BitView<'a>>,
    ['a] Window<BitView<'a>>,
    ['a] AnyFilter<BitView<'a>>;
    {
        /// Creates a filter over borrowed words, for example of a mapped file, without a copy.
        /// Takes constant time, except for cuckoo filters and growing filters, which read all words
        /// once.
        ///
        /// # Errors
        ///
        /// [`PlanError::OtherKind`] if the kind of the plan is not the kind of the filter;
        /// [`PlanError::Geometry`] if `words` has another number of bits than the plan;
        /// [`PlanError::Words`] if no filter of the plan's kind can have the words.
        pub fn view(plan: &Plan, hasher: Hasher, words: &'a [u64]) -> Result<Self, PlanError> {
            Self::restore(plan, hasher, BitView::new(words))
        }
    }
}

/// Methods of a filter that several threads share. Insert methods take `&self`.
impl<S: Strategy> BloomFilter<S, AtomicBitmap> {
    /// Inserts `item` from any thread. Returns true if the item is new to the filter.
    ///
    /// If several threads insert the same new item at the same time, exactly one of the calls
    /// returns true.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&self, item: &I) -> bool {
        Insert::insert(&mut &*self, item)
    }

    /// Inserts an item by its hash, computed with [`hasher`](Self::hasher), from any thread.
    /// Returns true if the item is new to the filter.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        Insert::insert_hash(&mut &*self, hash)
    }

    /// Inserts many items from any thread. The fastest way to insert is a batch of thousands of
    /// items. Answer `i` is true if `items[i]` was new.
    pub fn insert_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        Insert::insert_each(&mut &*self, items, answers);
    }

    /// Inserts many items from any thread, as [`insert_each`](Self::insert_each) does. Returns the
    /// number of new items.
    pub fn insert_all<I: Item>(&self, items: &[I]) -> usize {
        Insert::insert_all(&mut &*self, items)
    }
}

impl<B: Bits<Word = u64>> AnyFilter<B> {
    /// Returns an upper bound of the number of copies of `item`, as [`Count::count`] does. Returns
    /// `None` if the kind of the filter does not count items.
    #[inline]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> Option<u64> {
        self.count_hash(self.hasher().hash_item(item))
    }
}

impl<B: BitsMut> AnyFilter<B> {
    /// Removes `item`, as [`Remove::remove`] does. Returns `None` if the kind of the filter does
    /// not support removal.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> Option<Removed> {
        let hash = self.hasher().hash_item(item);
        self.remove_hash(hash)
    }
}
