//! The growing cuckoo filter of RedisBloom, byte for byte.
//!
//! An item is a fingerprint of one byte, 1 to 255, that lies in one of two buckets. A filter is a list of
//! sub-filters; inserts look for an empty slot from the newest to the oldest, then push fingerprints of
//! the newest to their other buckets, and at last append a sub-filter. There is no randomness, so
//! equal commands give equal bytes on a replica.
//!
//! ```text
//!  h = H(item)    fp = h mod 255 + 1    buckets: h mod B and (h xor fp·0x5bd1e995) mod B
//!
//!  sub-filter 0, B buckets of S slots      1, B·expansion buckets      ...      newest
//! |fp fp|fp  0| 0  0|fp fp|               |fp fp| 0  0| ... |
//! ```
//!
//! Invariants: there is a sub-filter; the buckets of each are a power of two and those of the one before
//! times the expansion, so that a bucket number taken modulo a smaller B is the item's bucket there.
//!
//! Limits: a lookup of an absent item reads both buckets of every sub-filter, and the chance of a false
//! yes is up to 2·S/255 in each of them: with 2 slots, 1.6 % at first and more with each growth.
//!
//! Source: Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom"
//! (2014); fingerprints, orders and byte layouts are RedisBloom's.

mod compact;
mod dump;
mod options;
mod sub_filter;

use std::fmt;

use crate::answers::Answers;
use crate::bits::{OutOfMemory, heap_bytes};
use crate::debug;
use crate::growing::RedisInsertError;
use crate::growing::redis::growth_limit::GrowthLimit;
use crate::hash::murmur2;
use crate::item::Item;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
pub use options::{RedisCuckooError, RedisCuckooOptions};
use sub_filter::{Candidate, SubFilter};

/// The growing cuckoo filter of RedisBloom: equal commands give equal slots, answers and dumps.
///
/// Items are counted: one that was inserted twice is there until it was removed twice. An item that is in
/// is always found, as long as nothing is removed that is not in: two items of equal fingerprint and
/// buckets are one to the filter. [`RedisCuckoo::count`] is therefore an upper bound.
///
/// # Examples
///
/// ```
/// use tamis::{RedisCuckoo, RedisCuckooOptions};
///
/// let mut visits = RedisCuckoo::new(&RedisCuckooOptions::default())?;
/// visits.insert("home")?;
/// visits.insert("home")?;
/// assert!(!visits.insert_absent("home")?, "in already");
/// assert_eq!(visits.count("home"), 2);
/// assert!(visits.remove("home"));
/// assert!(visits.contains("home"), "once more");
/// assert!(visits.remove("home"));
/// assert!(!visits.contains("home"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisCuckoo {
    // Invariant: from 1 to `MAX_SUB_FILTERS`, oldest first.
    sub_filters: Vec<SubFilter>,
    items: u64,
    /// Removed since the last compaction.
    removed: u64,
    bucket_size: u16,
    max_iterations: u16,
    // Invariant: 0 or a power of two.
    expansion: u16,
    growth_limit: GrowthLimit,
    refused: Refused,
}

/// Whether the last insert found no place. No part of what a filter is: equal filters may differ in it.
#[derive(Clone, Copy, Debug, Default)]
struct Refused(bool);

impl PartialEq for Refused {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Refused {}

impl RedisCuckoo {
    /// Makes an empty filter.
    ///
    /// # Errors
    ///
    /// [`RedisCuckooError`] if an option is out of its range, or there is not enough memory.
    pub fn new(options: &RedisCuckooOptions) -> Result<Self, RedisCuckooError> {
        options.check()?;
        let &RedisCuckooOptions { capacity, bucket_size, max_iterations, expansion } = options;
        let buckets = (capacity / u64::from(bucket_size)).next_power_of_two();
        let first = SubFilter::zeroed(buckets, bucket_size).map_err(RedisCuckooError::Memory)?;
        Ok(Self {
            sub_filters: vec![first],
            items: 0,
            removed: 0,
            bucket_size,
            max_iterations,
            expansion: if expansion == 0 { 0 } else { expansion.next_power_of_two() },
            growth_limit: GrowthLimit::default(),
            refused: Refused(false),
        })
    }

    /// Hashes an item, once for all that is asked of filters about it.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> u64 {
        murmur2::hash64(item.stable_bytes().as_ref(), 0)
    }

    /// Tells whether `item` may be in; `false` is certain.
    #[inline]
    pub fn contains<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.contains_hash(self.hash(item))
    }

    /// Tells whether an item of this hash may be in.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let candidate = Candidate::of(hash);
        self.sub_filters.iter().any(|sub_filter| sub_filter.contains(candidate))
    }

    /// Tests many items, whose memory is waited for together. Answer `i` is that of `items[i]`.
    pub fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        answers.reset(items.len());
        let mut hashes = [0; BATCH];
        for (batch, items) in items.chunks(BATCH).enumerate() {
            for (i, &hash) in self.hash_batch(items, &mut hashes).iter().enumerate() {
                answers.set(batch * BATCH + i, self.contains_hash(hash));
            }
        }
    }

    /// Returns true if every one of `items` may be in, and for no items.
    pub fn contains_all<I: Item>(&self, items: &[I]) -> bool {
        let mut hashes = [0; BATCH];
        items.chunks(BATCH).all(|items| {
            let hashes = self.hash_batch(items, &mut hashes);
            hashes.iter().all(|&hash| self.contains_hash(hash))
        })
    }

    /// Counts how often `item` is in: never too few, and too many by items it cannot be told from.
    #[inline]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_hash(self.hash(item))
    }

    /// Counts the fingerprints of an item of this hash in both buckets of each sub-filter. If both are
    /// the same bucket its fingerprints count twice, as they do for the server.
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> u64 {
        let candidate = Candidate::of(hash);
        self.sub_filters.iter().map(|sub_filter| sub_filter.count(candidate)).sum()
    }

    /// Prefetches the memory that an item with this hash will touch.
    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        let candidate = Candidate::of(hash);
        for sub_filter in &self.sub_filters {
            sub_filter.prefetch(candidate);
        }
    }

    /// Inserts `item` once more.
    ///
    /// # Errors
    ///
    /// [`RedisInsertError`] if there is no place and no other sub-filter can be added. The filter is as
    /// before then.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<(), RedisInsertError> {
        self.insert_hash(self.hash(item))
    }

    /// Inserts an item by its hash once more.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), RedisInsertError> {
        self.insert_candidate(Candidate::of(hash))
    }

    /// Inserts `item` unless it may be in; true if it was surely absent.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), if it is absent.
    #[inline]
    pub fn insert_absent<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisInsertError> {
        self.insert_absent_hash(self.hash(item))
    }

    /// Inserts an item by its hash unless it may be in; true if it was surely absent.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), if it is absent.
    pub fn insert_absent_hash(&mut self, hash: u64) -> Result<bool, RedisInsertError> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        self.insert_hash(hash).map(|()| true)
    }

    /// Inserts many items in order, once more each, whose memory is waited for together, and hands each
    /// its answer. One that finds no place does not stop the later ones: whoever wants that returns
    /// false.
    pub fn insert_each<I: Item>(
        &mut self,
        items: &[I],
        mut answer: impl FnMut(Result<(), RedisInsertError>) -> bool,
    ) {
        let mut hashes = [0; BATCH];
        for items in items.chunks(BATCH) {
            for &hash in self.hash_batch(items, &mut hashes) {
                if !answer(self.insert_hash(hash)) {
                    return;
                }
            }
        }
    }

    /// Inserts many items in order, each unless it may be in, and hands each its answer, as
    /// [`insert_each`](Self::insert_each) does.
    pub fn insert_absent_each<I: Item>(
        &mut self,
        items: &[I],
        mut answer: impl FnMut(Result<bool, RedisInsertError>) -> bool,
    ) {
        let mut hashes = [0; BATCH];
        for items in items.chunks(BATCH) {
            for &hash in self.hash_batch(items, &mut hashes) {
                if !answer(self.insert_absent_hash(hash)) {
                    return;
                }
            }
        }
    }

    /// Removes `item` once; false if it was surely absent. Then, if a tenth of the items were removed,
    /// the newest sub-filters move into gaps of the older ones.
    ///
    /// Removing an item that is not in may remove another one, which is then not found any more.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.hash(item))
    }

    /// Removes an item by its hash once; false if it was surely absent.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let candidate = Candidate::of(hash);
        if !self.sub_filters.iter_mut().rev().any(|sub_filter| sub_filter.take(candidate)) {
            return false;
        }
        // Saturating: a forged header may count none.
        self.items = self.items.saturating_sub(1);
        self.removed = self.removed.saturating_add(1);
        self.refused = Refused(false);
        if self.sub_filters.len() > 1 && self.removed as f64 > self.items as f64 * 0.10 {
            self.compact_until_failure();
        }
        true
    }

    /// Removes all items. The first sub-filter and its memory stay; later ones go.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::RedisCuckoo;
    ///
    /// let mut seen = RedisCuckoo::new(&Default::default())?;
    /// let empty = seen.clone();
    /// (0..5_000_u32).try_for_each(|item| seen.insert(&item))?;
    /// assert!(seen.contains_all(&[0_u32, 4_999]));
    /// seen.clear();
    /// assert!(seen.is_empty() && seen == empty);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.sub_filters.truncate(1);
        self.sub_filters[0].clear_all();
        (self.items, self.removed, self.refused) = (0, 0, Refused(false));
    }

    /// Returns true if no items are in. Constant time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Hashes up to [`BATCH`] items and asks for their memory.
    fn hash_batch<'h, I: Item>(&self, items: &[I], hashes: &'h mut [u64]) -> &'h [u64] {
        for (hash, item) in hashes.iter_mut().zip(items) {
            *hash = self.hash(item);
            self.prefetch_hash(*hash);
        }
        &hashes[..items.len()]
    }

    fn insert_candidate(&mut self, candidate: Candidate) -> Result<(), RedisInsertError> {
        loop {
            let max_iterations = self.max_iterations;
            let (newest, older) = self.sub_filters.split_last_mut().expect("there is one");
            if newest.put(candidate)
                || older.iter_mut().rev().any(|sub_filter| sub_filter.put(candidate))
                || newest.evict(candidate, max_iterations)
            {
                // Saturating: only a forged header counts so far.
                self.items = self.items.saturating_add(1);
                self.refused = Refused(false);
                return Ok(());
            }
            // At most one turn more: an empty sub-filter has a place.
            self.grow().inspect_err(|error| {
                self.refused = Refused(!matches!(error, RedisInsertError::Memory(_)));
            })?;
        }
    }

    /// Appends a sub-filter.
    #[cold]
    fn grow(&mut self) -> Result<(), RedisInsertError> {
        if self.expansion == 0 {
            return Err(RedisInsertError::Full { items: self.items });
        }
        if self.sub_filters.len() >= MAX_SUB_FILTERS {
            return Err(RedisInsertError::TooLarge);
        }
        let newest = self.sub_filters.last().expect("there is one");
        let buckets = newest
            .buckets()
            .checked_mul(u64::from(self.expansion))
            .ok_or(RedisInsertError::TooLarge)?;
        self.growth_limit.check(buckets.saturating_mul(self.bucket_size.into()))?;
        let next =
            SubFilter::zeroed(buckets, self.bucket_size).map_err(RedisInsertError::Memory)?;
        let bytes = size_of::<SubFilter>() as u64;
        self.sub_filters
            .try_reserve(1)
            .map_err(|_| RedisInsertError::Memory(OutOfMemory { bytes }))?;
        self.sub_filters.push(next);
        Ok(())
    }

    /// Limits the bytes that one growth may take. The limit is not part of the filter's value or of its dumps.
    pub fn limit_growth(&mut self, max_bytes: u64) {
        self.growth_limit = GrowthLimit { max_bytes };
    }

    /// Returns how many items are in.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Tells whether the last insert found no place, and none was removed since. A filter that was just read says no.
    #[must_use]
    pub fn is_refusing(&self) -> bool {
        self.refused.0
    }

    /// Estimates the chance that an absent item is answered as present, from the first `max_bytes` of the slots of each
    /// sub-filter: items meet the fingerprints of two buckets of each, and theirs is one of 255.
    #[must_use]
    pub fn estimate_rate(&self, max_bytes: u64) -> f64 {
        let fills: f64 = self.sub_filters.iter().map(|sub_filter| sub_filter.fill(max_bytes)).sum();
        1.0 - (1.0 - 1.0 / 255.0_f64).powf(2.0 * f64::from(self.bucket_size) * fills)
    }

    /// Returns how many were removed since the last compaction.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Returns the number of sub-filters, at least one.
    #[must_use]
    pub fn sub_filters(&self) -> usize {
        self.sub_filters.len()
    }

    /// Returns the buckets of the first sub-filter.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.sub_filters[0].buckets()
    }

    /// Returns the slots of a bucket.
    #[must_use]
    pub fn bucket_size(&self) -> u16 {
        self.bucket_size
    }

    /// Returns how many fingerprints an insert moves before the filter grows.
    #[must_use]
    pub fn max_iterations(&self) -> u16 {
        self.max_iterations
    }

    /// Returns how many times as large as the last sub-filter the next one is, a power of two; 0 if there
    /// is no next one.
    #[must_use]
    pub fn expansion(&self) -> u16 {
        self.expansion
    }

    /// Returns the `Size` of `CF.INFO` in bytes, which is that of the server's structures.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        40 + self.sub_filters.iter().map(|sub_filter| 16 + sub_filter.len_bytes()).sum::<u64>()
    }
}

impl RedisCuckoo {
    /// Returns the memory of the sub-filters, in bytes, as [`allocation_bytes`](crate::allocation_bytes) counts it.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let slots = self.sub_filters.iter().map(|it| heap_bytes(it.len_bytes() * 8)).sum::<u64>();
        slots + crate::allocation_bytes(self.sub_filters.capacity() * size_of::<SubFilter>())
    }
}

impl fmt::Debug for RedisCuckoo {
    /// Shows items, sizes and the present rate, estimated from up to 64 KiB of each sub-filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.estimate_rate(debug::DEBUG_BYTES);
        f.debug_struct("RedisCuckoo")
            .field("items", &self.items)
            .field("removed", &self.removed)
            .field("sub_filters", &self.sub_filters.len())
            .field("buckets", &self.buckets())
            .field("bucket_size", &self.bucket_size)
            .field("expansion", &self.expansion)
            .field("estimated_rate", &format_args!("{rate:.2e}"))
            .finish()
    }
}

/// What the server's counter of sub-filters holds.
const MAX_SUB_FILTERS: usize = u16::MAX as usize;

/// How many items are hashed and have their lines asked for before the first is tested.
const BATCH: usize = 32;

#[cfg(test)]
mod tests;
