//! What all filters can do, as traits for generic code. Batches are the primitive, single items the
//! convenience.
//!
//! Every filter has the same methods as inherent ones (`inherent.rs`), which need no import.

use std::fmt;

use crate::answers::Answers;
use crate::bits::OutOfMemory;
use crate::chunks::{
    CHUNK, count_chunks, count_ones, each_chunk, try_count_chunks, try_each_chunk, words_of,
};
use crate::hash::Hasher;
use crate::item::Item;
use crate::layout::Layout;
use crate::plan::Plan;

/// A set that may answer yes to what it does not hold, and never no to what it holds.
pub trait Filter {
    /// Returns the plan the filter was made by.
    fn plan(&self) -> &Plan;

    /// Returns the hash function.
    fn hasher(&self) -> Hasher;

    /// Returns what another filter must share to be merged with this one.
    fn layout(&self) -> Layout {
        let plan = self.plan();
        // A growing filter has no size of its own: those of equal rate merge, however much they hold.
        let bits = if plan.kind().grows() { 0 } else { plan.bits() };
        Layout { kind: plan.kind(), bits, geometry: plan.geometry(), hasher: self.hasher() }
    }

    /// Tells whether an item with this hash may have been inserted.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Tests a batch of hashes and writes the answers to a bit mask: hash `i` is bit `i % 64` of word `i / 64`.
    ///
    /// # Panics
    ///
    /// If `answers` has not one word for each 64 hashes.
    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]);

    /// Tells whether `item` may have been inserted. `false` is certain; `true` is wrong for an absent
    /// item at the filter's [present rate](Self::estimate_rate).
    // Always inline, with the hash: see `Hasher::hash`.
    #[inline(always)]
    fn contains<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.contains_hash(self.hasher().hash_item(item))
    }

    /// Tests many items, several times as fast as one by one. Answer `i` is that of `items[i]`.
    fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        each_chunk(&mut &*self, hasher, items, words, |filter, hashes, words| {
            filter.contains_hashes(hashes, words);
        });
    }

    /// Returns true if every one of `items` may have been inserted, as
    /// [`contains_each`](Self::contains_each) would answer; true for no items. Works in batches of up to
    /// 1024 items and stops after the first batch with an absent item.
    fn contains_all<I: Item>(&self, items: &[I]) -> bool {
        let is_all = try_each_chunk(&mut &*self, self.hasher(), items, |filter, _, hashes| {
            let words = &mut [0; CHUNK / 64][..hashes.len().div_ceil(64)];
            filter.contains_hashes(hashes, words);
            if count_ones(words) == hashes.len() { Ok(()) } else { Err(()) }
        });
        is_all.is_ok()
    }

    /// Returns true if the filter holds nothing, and so answers false for every item. Reads up to all
    /// bits, and stops at the first that is set.
    fn is_empty(&self) -> bool {
        self.fill() == 0.0
    }

    /// Estimates how many distinct items the filter holds, from its bits; reads all of them.
    ///
    /// Infinite if every bit is set.
    fn estimate_items(&self) -> f64;

    /// Estimates the present false positive rate, a probability, from the bits; reads all of them.
    fn estimate_rate(&self) -> f64;

    /// Returns the share of bits that are set; reads all of them.
    fn fill(&self) -> f64;

    /// Tells whether the filter holds so much that its [present rate](Self::estimate_rate) is above
    /// the planned one, by more than [chance](Plan::rate_limit) explains. Reads all bits.
    fn is_over_rate(&self) -> bool {
        self.estimate_rate() > self.plan().rate_limit()
    }
}

/// A filter that takes items one after the other.
///
/// A `&Bloom<S, AtomicBitmap>` is one too, so that threads share a filter as they share a `&File`.
pub trait Insert: Filter {
    /// Inserts an item by its hash; true if the item is new to the filter.
    fn insert_hash(&mut self, hash: u64) -> bool;

    /// Inserts many hashes in order; the mask tells which were new.
    ///
    /// # Panics
    ///
    /// If `answers` has not one word for each 64 hashes.
    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]);

    /// Inserts `item`; true if it is new to the filter, which is certain, while `false` is wrong for a
    /// new item at the filter's present rate.
    #[inline]
    fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        let hash = self.hasher().hash_item(item);
        self.insert_hash(hash)
    }

    /// Inserts many items in order, several times as fast as one by one; tells which were new.
    fn insert_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        each_chunk(self, hasher, items, words, |filter, hashes, words| {
            filter.insert_hashes(hashes, words);
        });
    }

    /// Inserts many items in order, as [`insert_each`](Self::insert_each) does. Returns how many were new.
    fn insert_all<I: Item>(&mut self, items: &[I]) -> usize {
        count_chunks(self, self.hasher(), items, |filter, hashes, words| {
            filter.insert_hashes(hashes, words);
        })
    }
}

/// A filter that takes items as long as there is room: what every filter can do that takes any.
///
/// Those that never refuse are [`Insert`] too, whose methods return no errors.
pub trait TryInsert: Filter {
    /// Inserts an item by its hash; true if the item is new to the filter.
    ///
    /// # Errors
    ///
    /// [`InsertError`] if there is no room for it; nothing has changed then.
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError>;

    /// Inserts many hashes in order; the mask tells which were new.
    ///
    /// # Errors
    ///
    /// [`InsertError`] at the first for which there is no room: those before it are in, and the mask
    /// tells of them.
    ///
    /// # Panics
    ///
    /// If `answers` has not one word for each 64 hashes.
    fn try_insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64])
    -> Result<(), InsertError>;

    /// Inserts `item`; true if it is new to the filter, which is certain, while `false` is wrong for a
    /// new item at the filter's present rate.
    ///
    /// # Errors
    ///
    /// As for [`try_insert_hash`](Self::try_insert_hash).
    #[inline]
    fn try_insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        let hash = self.hasher().hash_item(item);
        self.try_insert_hash(hash)
    }

    /// Inserts many items in order, several times as fast as one by one; tells which were new.
    ///
    /// # Errors
    ///
    /// As for [`try_insert_hashes`](Self::try_insert_hashes).
    fn try_insert_each<I: Item>(
        &mut self,
        items: &[I],
        answers: &mut Answers,
    ) -> Result<(), InsertError> {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        try_each_chunk(self, hasher, items, |filter, first, hashes| {
            filter
                .try_insert_hashes(hashes, words_of(words, first, hashes.len()))
                .map_err(|error| InsertError { inserted: error.inserted + first, ..error })
        })
    }

    /// Inserts many items in order, as [`try_insert_each`](Self::try_insert_each) does. Returns how many
    /// were new.
    ///
    /// # Errors
    ///
    /// As for [`try_insert_hashes`](Self::try_insert_hashes).
    fn try_insert_all<I: Item>(&mut self, items: &[I]) -> Result<usize, InsertError> {
        try_count_chunks(self, self.hasher(), items, |filter, first, hashes, words| {
            filter
                .try_insert_hashes(hashes, words)
                .map_err(|error| InsertError { inserted: error.inserted + first, ..error })
        })
    }
}

impl<F: Insert> TryInsert for F {
    #[inline]
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        Ok(self.insert_hash(hash))
    }

    fn try_insert_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        self.insert_hashes(hashes, answers);
        Ok(())
    }
}

/// There is no room for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsertError {
    /// How many items of the batch are in: those before the one without room.
    pub inserted: usize,
    /// Why.
    pub reason: NoRoom,
}

/// Why there is no room for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoRoom {
    /// The filter holds all it can.
    Full {
        /// How many items it holds.
        items: u64,
    },
    /// So many items share the place of this one that somebody must have chosen them by their hashes. Items that
    /// belong elsewhere still go in.
    Crowded,
    /// The filter would have to grow, and the memory is not there.
    Memory(OutOfMemory),
}

const CROWDED: &str = "too many items share one place in the filter, as an attacker would choose them; other items still go \
                       in: make a filter that hashes with a secret key";

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            NoRoom::Full { items } => {
                write!(f, "the filter is full at {items} items: plan one for more")
            }
            NoRoom::Crowded => f.write_str(CROWDED),
            NoRoom::Memory(OutOfMemory { bytes }) => {
                write!(f, "the filter cannot grow: {bytes} more bytes are not there")
            }
        }
    }
}

impl std::error::Error for InsertError {}

/// A filter from which items can be deleted.
///
/// Delete only what was inserted: an absent item that the filter takes for present (at its rate) would
/// take a part of others with it.
pub trait Remove: Filter {
    /// Deletes an item by its hash, once if it was inserted several times.
    fn remove_hash(&mut self, hash: u64) -> Removed;

    /// Deletes many hashes in order; the mask tells which are [`Removed::Yes`].
    ///
    /// # Panics
    ///
    /// If `answers` has not one word for each 64 hashes.
    fn remove_hashes(&mut self, hashes: &[u64], answers: &mut [u64]);

    /// Deletes `item`, once if it was inserted several times.
    #[inline]
    fn remove<I: Item + ?Sized>(&mut self, item: &I) -> Removed {
        let hash = self.hasher().hash_item(item);
        self.remove_hash(hash)
    }

    /// Deletes many items in order, several times as fast as one by one; tells which are gone.
    fn remove_each<I: Item>(&mut self, items: &[I], answers: &mut Answers) {
        let (hasher, words) = (self.hasher(), answers.reset(items.len()));
        each_chunk(self, hasher, items, words, |filter, hashes, words| {
            filter.remove_hashes(hashes, words);
        });
    }

    /// Deletes many items in order, as [`remove_each`](Self::remove_each) does. Returns how many were
    /// deleted ([`Removed::Yes`]).
    fn remove_all<I: Item>(&mut self, items: &[I]) -> usize {
        count_chunks(self, self.hasher(), items, |filter, hashes, words| {
            filter.remove_hashes(hashes, words);
        })
    }
}

/// What came of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Removed {
    /// The item was there and is in once less.
    Yes,
    /// The item was not there; nothing has changed.
    Absent,
    /// The item was inserted more often than can be counted: nobody knows how often it must be deleted,
    /// so it stays. Nothing has changed.
    Saturated,
}

/// A filter that tells how often an item is in.
pub trait Count: Filter {
    /// Returns how often an item with this hash is in, at most: never less than the truth, except that
    /// counting ends at [`max_count`](Self::max_count).
    fn count_hash(&self, hash: u64) -> u64;

    /// Returns the number at which counting ends: an item counted so often may be in more often.
    fn max_count(&self) -> u64;

    /// Returns how often `item` is in, at most.
    #[inline(always)]
    fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_hash(self.hasher().hash_item(item))
    }
}

/// A filter that can be emptied and used again.
pub trait Clear: Filter {
    /// Makes the filter as empty as a new one; its plan, its hasher and, of a window, its time stay. Writes
    /// all bits.
    fn clear(&mut self);
}

/// A filter that takes in all items of another of its layout.
pub trait Merge<Other: ?Sized = Self> {
    /// Makes `self` hold the items of both.
    ///
    /// # Errors
    ///
    /// [`MergeError`] if they do not fit together; nothing has changed then.
    fn merge(&mut self, other: &Other) -> Result<(), MergeError>;
}

/// Why two filters do not merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// They place items differently.
    Layout {
        /// The layout of the filter merged into.
        expected: Layout,
        /// The layout of the filter merged from.
        found: Layout,
    },
    /// The windows are not of one span, in one unit, or only one of them refreshes.
    Span,
    /// There is no room for the items of both.
    NoRoom(NoRoom),
}

impl MergeError {
    /// Checks that two filters have one layout.
    pub(crate) fn check_layouts(one: &impl Filter, other: &impl Filter) -> Result<(), MergeError> {
        let (expected, found) = (one.layout(), other.layout());
        if expected == found { Ok(()) } else { Err(MergeError::Layout { expected, found }) }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Layout { expected, found } => {
                write!(f, "filters of different layout do not merge: {expected} against {found}")
            }
            MergeError::Span => f.write_str(
                "windows that differ in span, in its unit or in refreshing do not merge",
            ),
            MergeError::NoRoom(NoRoom::Full { items }) => {
                write!(f, "the items of both do not fit: there is room for about {items}")
            }
            MergeError::NoRoom(NoRoom::Crowded) => f.write_str(CROWDED),
            MergeError::NoRoom(NoRoom::Memory(OutOfMemory { bytes })) => {
                write!(
                    f,
                    "the items of both do not fit in memory: {bytes} more bytes are not there"
                )
            }
        }
    }
}

impl std::error::Error for MergeError {}
