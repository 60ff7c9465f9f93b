//! The methods of the traits as inherent ones, so that a user of a filter imports no trait.
//!
//! Each forwards to the trait's method by its full name: `self.contains(item)` in here would call itself.
//! Those of single items are inlined as the trait's are, since a call would cost as much as the lookup.

use crate::answers::Answers;
use crate::any::AnyFilter;
use crate::bits::{AtomicBitmap, Bits, BitsMut};
use crate::bloom::{Bloom, Counting};
use crate::cuckoo::Cuckoo;
use crate::filter::{
    Clear, Count, Filter, Insert, InsertError, Merge, MergeError, Remove, Removed, TryInsert,
};
use crate::growing::Growing;
use crate::hash::Hasher;
use crate::item::Item;
use crate::layout::Layout;
use crate::plan::Plan;
use crate::strategy::Strategy;
use crate::window::Window;

/// What every filter answers: [`Filter`].
macro_rules! filter_methods {
    () => {
        /// Returns the plan the filter was made by. Constant time.
        #[inline]
        pub fn plan(&self) -> &Plan {
            Filter::plan(self)
        }

        /// Returns how many distinct items keep the planned rate: [`Plan::items`]. Constant time.
        #[inline]
        pub fn capacity(&self) -> u64 {
            Filter::plan(self).items()
        }

        /// Returns the hash function. Constant time.
        #[inline]
        pub fn hasher(&self) -> Hasher {
            Filter::hasher(self)
        }

        /// Returns what another filter must share to be merged with this one. Constant time.
        pub fn layout(&self) -> Layout {
            Filter::layout(self)
        }

        /// Tests whether `item` may have been inserted. `false` is certain; `true` is wrong for an absent
        /// item at the filter's [present rate](Self::estimate_rate).
        #[inline(always)]
        pub fn contains<I: Item + ?Sized>(&self, item: &I) -> bool {
            Filter::contains(self, item)
        }

        /// Tests whether an item with this hash, of [`hasher`](Self::hasher), may have been inserted.
        #[inline(always)]
        pub fn contains_hash(&self, hash: u64) -> bool {
            Filter::contains_hash(self, hash)
        }

        /// Tests many items, several times as fast as one by one. Answer `i` is that of `items[i]`.
        ///
        /// Earlier answers are replaced; their memory is used again.
        pub fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
            Filter::contains_each(self, items, answers);
        }

        /// Tests many items on the threads of rayon's pool: the answers of
        /// [`contains_each`](Self::contains_each). A batch of up to 8192 items runs on one thread.
        #[cfg(all(feature = "rayon", not(loom)))]
        pub fn par_contains_each<I: Item + Sync>(&self, items: &[I], answers: &mut Answers)
        where
            Self: Sync,
        {
            crate::parallel::contains_each(self, items, answers);
        }

        /// Returns true if every one of `items` may have been inserted, and for no items. Works in batches of
        /// up to 1024 items and stops after the first batch with an absent item.
        ///
        /// For an answer to each item take [`contains_each`](Self::contains_each).
        pub fn contains_all<I: Item>(&self, items: &[I]) -> bool {
            Filter::contains_all(self, items)
        }

        /// Returns true if no bit is set, so that the filter answers false for every item. Constant time if
        /// the filter counts its items; otherwise it reads up to the first set bit.
        pub fn is_empty(&self) -> bool {
            Filter::is_empty(self)
        }

        /// Estimates how many distinct items the filter holds. Infinite if every bit is set. Reads all bits,
        /// unless the filter counts its items.
        pub fn estimate_items(&self) -> f64 {
            Filter::estimate_items(self)
        }

        /// Estimates the present false positive rate, a probability. Reads all bits, unless the filter counts
        /// its items.
        pub fn estimate_rate(&self) -> f64 {
            Filter::estimate_rate(self)
        }

        /// Returns the share of the filter that is taken, from 0 to 1: of its bits, counters or slots. Of a
        /// growing filter it is the present rate over the planned one. Reads all bits, unless the filter
        /// counts its items.
        pub fn fill(&self) -> f64 {
            Filter::fill(self)
        }

        /// Returns true if the filter holds so much that its [present rate](Self::estimate_rate) is above the
        /// planned one, by more than [chance](Plan::rate_limit) explains. As costly as the estimate.
        pub fn is_over_rate(&self) -> bool {
            Filter::is_over_rate(self)
        }
    };
}

/// What a filter does that takes every item: [`Insert`].
macro_rules! insert_methods {
    () => {
        /// Inserts `item`. Returns true if it is new to the filter, which is certain; `false` is wrong for a
        /// new item at the filter's present rate.
        #[inline]
        pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
            Insert::insert(self, item)
        }

        /// Inserts an item by its hash, of [`hasher`](Self::hasher). Returns true if it is new to the filter.
        #[inline]
        pub fn insert_hash(&mut self, hash: u64) -> bool {
            Insert::insert_hash(self, hash)
        }

        /// Inserts many items in order, several times as fast as one by one. Answer `i` is true if `items[i]`
        /// was new.
        pub fn insert_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
            Insert::insert_each(self, items, answers);
        }

        /// Inserts many items in order, several times as fast as one by one. Returns how many were new.
        pub fn insert_all<I: Item>(&mut self, items: &[I]) -> usize {
            Insert::insert_all(self, items)
        }
    };
}

/// What a filter does that may refuse items: [`TryInsert`].
macro_rules! try_insert_methods {
    () => {
        /// Inserts `item`. Returns true if it is new to the filter, which is certain; `false` is wrong for a
        /// new item at the filter's present rate.
        ///
        /// # Errors
        ///
        /// [`InsertError`] if the filter has no room for it. Nothing has changed then.
        #[inline]
        pub fn try_insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
            TryInsert::try_insert(self, item)
        }

        /// Inserts an item by its hash, of [`hasher`](Self::hasher). Returns true if it is new to the filter.
        ///
        /// # Errors
        ///
        /// As for [`try_insert`](Self::try_insert).
        #[inline]
        pub fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
            TryInsert::try_insert_hash(self, hash)
        }

        /// Inserts many items in order, several times as fast as one by one. Answer `i` is true if `items[i]`
        /// was new.
        ///
        /// # Errors
        ///
        /// [`InsertError`] at the first item without room: [`inserted`](InsertError::inserted) earlier items
        /// were inserted, and `answers` holds their answers.
        pub fn try_insert_each<I: Item>(
            &mut self,
            items: &[I],
            answers: &mut Answers,
        ) -> Result<(), InsertError> {
            TryInsert::try_insert_each(self, items, answers)
        }

        /// Inserts many items in order, several times as fast as one by one. Returns how many were new.
        ///
        /// # Errors
        ///
        /// As for [`try_insert_each`](Self::try_insert_each).
        pub fn try_insert_all<I: Item>(&mut self, items: &[I]) -> Result<usize, InsertError> {
            TryInsert::try_insert_all(self, items)
        }
    };
}

/// What a filter does that is changed as a whole: [`Clear`] and [`Merge`].
macro_rules! whole_methods {
    ([$($generics:tt)*] $other:ty) => {
        /// Removes all items. The plan and the hasher stay; a window keeps its time. Writes all bits; a
        /// growing filter frees its pages instead.
        ///
        /// # Panics
        ///
        /// If a growing filter cannot allocate its first page.
        pub fn clear(&mut self) {
            Clear::clear(self);
        }

        /// Makes `self` hold the items of both. Time in proportion to both.
        ///
        /// # Errors
        ///
        /// [`MergeError`] if the [layouts](Self::layout) differ or there is no room. Nothing has changed then.
        pub fn merge<$($generics)*>(&mut self, other: &$other) -> Result<(), MergeError> {
            Merge::merge(self, other)
        }
    };
}

/// What a filter does that counts: [`Count`].
macro_rules! count_methods {
    () => {
        /// Returns an upper bound of how often `item` was inserted. The bound holds up to
        /// [`max_count`](Self::max_count).
        #[inline(always)]
        pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
            Count::count(self, item)
        }

        /// Returns how often an item with this hash is in, as [`count`](Self::count) does.
        #[inline]
        pub fn count_hash(&self, hash: u64) -> u64 {
            Count::count_hash(self, hash)
        }

        /// Returns the highest count. An item with this count may have been inserted more often.
        pub fn max_count(&self) -> u64 {
            Count::max_count(self)
        }
    };
}

/// What a filter does that deletes: [`Remove`].
macro_rules! remove_methods {
    () => {
        /// Deletes `item`, once if it was inserted several times.
        ///
        /// Remove only items that were inserted: removing an item that was never inserted can remove other
        /// items.
        #[inline]
        pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> Removed {
            Remove::remove(self, item)
        }

        /// Deletes an item by its hash, as [`remove`](Self::remove) does.
        #[inline]
        pub fn remove_hash(&mut self, hash: u64) -> Removed {
            Remove::remove_hash(self, hash)
        }

        /// Deletes many items in order, several times as fast as one by one. Answer `i` is true if `items[i]`
        /// was deleted: [`Removed::Yes`].
        pub fn remove_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
            Remove::remove_each(self, items, answers);
        }

        /// Deletes many items in order, several times as fast as one by one. Returns how many were deleted.
        pub fn remove_all<I: Item>(&mut self, items: &[I]) -> usize {
            Remove::remove_all(self, items)
        }
    };
}

impl<S: Strategy, B: Bits> Bloom<S, B> {
    filter_methods!();
}

impl<S: Strategy, B: BitsMut> Bloom<S, B> {
    insert_methods!();
    whole_methods!([C: Bits] Bloom<S, C>);
}

/// Methods of a filter that threads share: inserts take `&self`.
impl<S: Strategy> Bloom<S, AtomicBitmap> {
    whole_methods!([C: Bits] Bloom<S, C>);

    /// Inserts `item` from any thread. Returns true if it is new to the filter.
    ///
    /// Of several threads that insert one new item at a time, one gets true.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&self, item: &I) -> bool {
        Insert::insert(&mut &*self, item)
    }

    /// Inserts an item by its hash, of [`hasher`](Self::hasher), from any thread. Returns true if it is new to
    /// the filter.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        Insert::insert_hash(&mut &*self, hash)
    }

    /// Inserts many items from any thread: the fastest way in, best with thousands of items. Answer `i` is true
    /// if `items[i]` was new.
    pub fn insert_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        Insert::insert_each(&mut &*self, items, answers);
    }

    /// Inserts many items from any thread, as [`insert_each`](Self::insert_each) does. Returns how many were new.
    pub fn insert_all<I: Item>(&self, items: &[I]) -> usize {
        Insert::insert_all(&mut &*self, items)
    }
}

impl<B: Bits<Word = u64>> Counting<B> {
    filter_methods!();
    count_methods!();
}

impl<B: BitsMut> Counting<B> {
    insert_methods!();
    remove_methods!();
    whole_methods!([C: Bits<Word = u64>] Counting<C>);
}

impl<B: Bits<Word = u64>> Cuckoo<B> {
    filter_methods!();
    count_methods!();
}

impl<B: BitsMut> Cuckoo<B> {
    try_insert_methods!();
    remove_methods!();
    whole_methods!([C: Bits<Word = u64>] Cuckoo<C>);
}

impl<B: Bits<Word = u64>> Growing<B> {
    filter_methods!();
}

impl<B: BitsMut> Growing<B> {
    try_insert_methods!();
    whole_methods!([C: Bits<Word = u64>] Growing<C>);
}

impl<B: Bits<Word = u64>> Window<B> {
    filter_methods!();
}

impl<B: BitsMut> Window<B> {
    insert_methods!();
    whole_methods!([C: Bits<Word = u64>] Window<C>);
}

impl<B: Bits<Word = u64>> AnyFilter<B> {
    filter_methods!();

    /// Returns how often `item` is in, at most, as [`Count::count`] does; `None` if this kind does not count.
    #[inline]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> Option<u64> {
        self.count_hash(self.hasher().hash_item(item))
    }
}

impl<B: BitsMut> AnyFilter<B> {
    try_insert_methods!();
    whole_methods!([C: Bits<Word = u64>] AnyFilter<C>);

    /// Deletes `item`, as [`Remove::remove`] does; `None` if this kind does not delete.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> Option<Removed> {
        let hash = self.hasher().hash_item(item);
        self.remove_hash(hash)
    }
}
