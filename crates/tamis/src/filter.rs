//! What all filters can do. Batches are the primitive, single items the convenience.

use std::fmt;

use crate::answers::Answers;
use crate::hash::Hasher;
use crate::item::Item;
use crate::layout::Layout;
use crate::plan::Plan;

/// How many items are hashed before the filter is asked: their hashes stay in the first cache.
pub(crate) const CHUNK: usize = 1024;

/// A set that may answer yes to what it does not hold, and never no to what it holds.
pub trait Filter {
    /// Returns the plan the filter was made by.
    fn plan(&self) -> &Plan;

    /// Returns the hash function.
    fn hasher(&self) -> Hasher;

    /// Returns what another filter must share to be merged with this one.
    fn layout(&self) -> Layout {
        let plan = self.plan();
        Layout {
            kind: plan.kind(),
            bits: plan.bits(),
            probes: plan.probes(),
            hasher: self.hasher(),
        }
    }

    /// Tells whether an item with this hash may have been inserted.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Asks for the memory that an item with this hash will touch, ahead of the question.
    fn prefetch_hash(&self, hash: u64);

    /// Tells so of many hashes into a mask: hash `i` is bit `i % 64` of word `i / 64`.
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

    /// Tells so of many items, several times as fast as one by one.
    fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        let hasher = self.hasher();
        let words = answers.reset(items.len());
        let mut hashes = [0; CHUNK];
        for (items, words) in items.chunks(CHUNK).zip(words.chunks_mut(CHUNK / 64)) {
            let hashes = &mut hashes[..items.len()];
            I::hash_each_then(items, &hasher, hashes, |hash| self.prefetch_hash(hash));
            self.contains_hashes(hashes, words);
        }
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
        let hasher = self.hasher();
        let words = answers.reset(items.len());
        let mut hashes = [0; CHUNK];
        for (items, words) in items.chunks(CHUNK).zip(words.chunks_mut(CHUNK / 64)) {
            let hashes = &mut hashes[..items.len()];
            I::hash_each_then(items, &hasher, hashes, |hash| self.prefetch_hash(hash));
            self.insert_hashes(hashes, words);
        }
    }
}

/// A filter that takes in all items of another of its layout.
pub trait Merge<Other: ?Sized = Self> {
    /// Makes `self` hold the items of both.
    ///
    /// # Errors
    ///
    /// [`MergeError`] if the layouts differ; nothing has changed then.
    fn merge(&mut self, other: &Other) -> Result<(), MergeError>;
}

/// Two filters place items differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeError {
    /// The layout of the filter merged into.
    pub expected: Layout,
    /// The layout of the filter merged from.
    pub found: Layout,
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, found } = self;
        write!(f, "filters of different layout do not merge: {expected} against {found}")
    }
}

impl std::error::Error for MergeError {}
