//! The growing cuckoo filter of RedisBloom, with identical dumps.
//!
//! The filter stores an item as a fingerprint of one byte, 1 to 255, in one of two buckets. A
//! filter is a list of sub-filters. An insert searches for an empty slot from the newest sub-filter
//! to the oldest sub-filter. If the insert finds no empty slot, the insert moves fingerprints of
//! the newest sub-filter to their alternative buckets. If moving fingerprints frees no slot, the
//! insert appends a sub-filter. The algorithm uses no random numbers, so the same commands produce
//! the same bytes on a replica.
//!
//! ```text
//!  h = H(item)    fp = h mod 255 + 1    buckets: h mod B and (h xor fp·0x5bd1e995) mod B
//!
//!  sub-filter 0, B buckets of S slots      1, B·expansion buckets      ...      newest
//! |fp fp|fp  0| 0  0|fp fp|               |fp fp| 0  0| ... |
//! ```
//!
//! Invariants: a filter has at least one sub-filter. The number of buckets of each sub-filter is a
//! power of two. Each sub-filter has `expansion` times as many buckets as the previous sub-filter.
//! A bucket number in a larger sub-filter, modulo the number of buckets of a smaller sub-filter, is
//! therefore the bucket number in the smaller sub-filter.
//!
//! Limits: a lookup of an absent item reads both buckets of every sub-filter. In each sub-filter,
//! the probability of a false positive is at most 2·S/255. With 2 slots per bucket, the rate is 1.6
//! % for one sub-filter. Each sub-filter after the first sub-filter increases the rate.
//!
//! Source: Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom"
//! (2014). Fingerprints, search orders and byte layouts are the same as in RedisBloom.

mod compact;
mod dump;
mod insert;
mod options;
mod sub_filter;

use std::fmt;

use tamis::{Answers, Item, allocation_bytes};

use crate::memory_limit::GrowthLimit;
use crate::murmur2;
use crate::not_compared::NotCompared;
pub use options::{RedisCuckooError, RedisCuckooOptions};
use sub_filter::{Candidate, SubFilter};

/// The growing cuckoo filter of RedisBloom. The same commands produce the same slots, answers and
/// dumps as in RedisBloom.
///
/// The filter counts copies of an item. If a caller inserts an item twice, the item is present
/// until two removals. The filter cannot distinguish two items with the same fingerprint and the
/// same buckets. The removal of an item that was never inserted may therefore remove another item.
/// If no caller removes an absent item, the filter always finds an inserted item.
/// [`RedisCuckoo::count`] also counts items that the filter cannot distinguish from the given item,
/// so the count is an upper bound.
///
/// # Examples
///
/// ```
/// use tamis_redisbloom::{RedisCuckoo, RedisCuckooOptions};
///
/// let mut visits = RedisCuckoo::new(&RedisCuckooOptions::default())?;
/// visits.insert("home")?;
/// visits.insert("home")?;
/// assert!(!visits.insert_absent("home")?, "already present");
/// assert_eq!(visits.count("home"), 2);
/// assert!(visits.remove("home"));
/// assert!(visits.contains("home"), "one copy is left");
/// assert!(visits.remove("home"));
/// assert!(!visits.contains("home"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisCuckoo {
    // Invariant: a filter has 1 to `MAX_SUB_FILTERS` sub-filters. The oldest sub-filter is first.
    sub_filters: Vec<SubFilter>,
    items: u64,
    /// The number of items removed since the last compaction.
    removed: u64,
    bucket_size: u16,
    max_iterations: u16,
    // Invariant: `expansion` is 0 or a power of two.
    expansion: u16,
    growth_limit: NotCompared<GrowthLimit>,
    /// Whether the filter rejected the last insert because the filter was full.
    is_refusing: NotCompared<bool>,
}

impl RedisCuckoo {
    /// Creates an empty filter.
    ///
    /// # Errors
    ///
    /// [`RedisCuckooError`] if an option is out of range, or if there is not enough memory.
    pub fn new(options: &RedisCuckooOptions) -> Result<Self, RedisCuckooError> {
        options.check()?;
        let &RedisCuckooOptions { capacity, bucket_size, max_iterations, expansion } = options;
        let buckets = (capacity / u64::from(bucket_size)).next_power_of_two();
        let first = SubFilter::zeroed(buckets, bucket_size).map_err(RedisCuckooError::Memory)?;
        let expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        Ok(Self::of(vec![first], bucket_size, max_iterations, expansion))
    }

    /// Creates a filter without items. `expansion` is 0 or a power of two.
    fn of(
        sub_filters: Vec<SubFilter>,
        bucket_size: u16,
        max_iterations: u16,
        expansion: u16,
    ) -> Self {
        Self {
            sub_filters,
            items: 0,
            removed: 0,
            bucket_size,
            max_iterations,
            expansion,
            growth_limit: NotCompared::default(),
            is_refusing: NotCompared::default(),
        }
    }

    /// Returns the hash of an item. The caller may pass the hash to several methods.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> u64 {
        murmur2::hash64(item.stable_bytes().as_ref(), 0)
    }

    /// Tests whether `item` may be present. If the answer is false, the item is certainly absent.
    #[inline]
    pub fn contains<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.contains_hash(self.hash(item))
    }

    /// Tests whether an item with this hash may be present.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let candidate = Candidate::of(hash);
        self.sub_filters.iter().any(|sub_filter| sub_filter.contains(candidate))
    }

    /// Tests a batch of items with overlapping memory accesses. Answer `i` belongs to `items[i]`.
    pub fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        answers.reset(items.len());
        let mut hashes = [0; BATCH];
        for (batch, items) in items.chunks(BATCH).enumerate() {
            for (i, &hash) in self.hash_batch(items, &mut hashes).iter().enumerate() {
                answers.set(batch * BATCH + i, self.contains_hash(hash));
            }
        }
    }

    /// Tests whether every item of `items` may be present. Returns true for an empty slice.
    pub fn contains_all<I: Item>(&self, items: &[I]) -> bool {
        let mut hashes = [0; BATCH];
        items.chunks(BATCH).all(|items| {
            let hashes = self.hash_batch(items, &mut hashes);
            hashes.iter().all(|&hash| self.contains_hash(hash))
        })
    }

    /// Returns an upper bound for the number of copies of `item`. The count includes items that the
    /// filter cannot distinguish from `item`.
    #[inline]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_hash(self.hash(item))
    }

    /// Counts the fingerprints of an item with this hash in both buckets of each sub-filter. If
    /// both buckets are the same bucket, each fingerprint counts twice, as in RedisBloom.
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> u64 {
        let candidate = Candidate::of(hash);
        self.sub_filters.iter().map(|sub_filter| sub_filter.count(candidate)).sum()
    }

    /// Prefetches both buckets of an item with this hash in each sub-filter.
    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        let candidate = Candidate::of(hash);
        for sub_filter in &self.sub_filters {
            sub_filter.prefetch(candidate);
        }
    }

    /// Removes one copy of `item`. Returns false if the item was absent. When the number of
    /// removals exceeds a tenth of the remaining items, this method moves fingerprints of the
    /// newest sub-filters to free slots of older sub-filters.
    ///
    /// The removal of an item that was never inserted may remove another item. After a wrong
    /// removal, the filter reports an inserted item as absent.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.hash(item))
    }

    /// Removes one copy of an item with this hash. Returns false if the item was absent.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let candidate = Candidate::of(hash);
        if !self.sub_filters.iter_mut().rev().any(|sub_filter| sub_filter.take(candidate)) {
            return false;
        }
        // The subtraction saturates, because the item count of a forged header may be zero.
        self.items = self.items.saturating_sub(1);
        self.removed = self.removed.saturating_add(1);
        self.is_refusing.0 = false;
        if self.sub_filters.len() > 1 && self.removed as f64 > self.items as f64 * 0.10 {
            self.compact_sub_filters(true);
        }
        true
    }

    /// Removes all items. Keeps the memory of the first sub-filter, and frees all other
    /// sub-filters.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_redisbloom::RedisCuckoo;
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
        (self.items, self.removed, self.is_refusing.0) = (0, 0, false);
    }

    /// Tests whether the item count is zero. Constant time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Hashes at most [`BATCH`] items and prefetches the buckets of these items.
    fn hash_batch<'h, I: Item>(&self, items: &[I], hashes: &'h mut [u64]) -> &'h [u64] {
        for (hash, item) in hashes.iter_mut().zip(items) {
            *hash = self.hash(item);
            self.prefetch_hash(*hash);
        }
        &hashes[..items.len()]
    }

    /// Sets the maximum number of bytes that one growth step may allocate. Comparisons of filters
    /// ignore the growth limit, and dumps do not contain the growth limit.
    pub fn limit_growth(&mut self, max_bytes: u64) {
        self.growth_limit.0 = GrowthLimit { max_bytes };
    }

    /// Returns the number of items. Each copy of an item counts.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Tests whether the last insert found no free slot and no item was removed after this insert.
    /// Returns false for a filter that was just loaded.
    #[must_use]
    pub fn is_refusing(&self) -> bool {
        self.is_refusing.0
    }

    /// Estimates the current false positive rate. Reads at most the first `max_bytes` of each
    /// sub-filter. A lookup compares an item with the fingerprints of two buckets in each
    /// sub-filter.
    #[must_use]
    pub fn estimate_rate(&self, max_bytes: u64) -> f64 {
        let fills: f64 = self.sub_filters.iter().map(|sub_filter| sub_filter.fill(max_bytes)).sum();
        Self::rate_at(2.0 * f64::from(self.bucket_size) * fills)
    }

    /// Returns the false positive rate of a lookup that compares `fingerprints` fingerprints. A
    /// fingerprint has 255 possible values.
    #[must_use]
    pub fn rate_at(fingerprints: f64) -> f64 {
        1.0 - (1.0 - 1.0 / 255.0_f64).powf(fingerprints)
    }

    /// Returns the total number of slots of all sub-filters.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.sub_filters.iter().map(SubFilter::len_bytes).sum()
    }

    /// Returns the number of items removed since the last compaction.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Returns the number of sub-filters, at least one.
    #[must_use]
    pub fn sub_filters(&self) -> usize {
        self.sub_filters.len()
    }

    /// Returns the number of buckets of the first sub-filter.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.sub_filters[0].buckets()
    }

    /// Returns the number of slots of a bucket.
    #[must_use]
    pub fn bucket_size(&self) -> u16 {
        self.bucket_size
    }

    /// Returns the maximum number of fingerprints that an insert moves before the filter grows.
    #[must_use]
    pub fn max_iterations(&self) -> u16 {
        self.max_iterations
    }

    /// Returns the size of a new sub-filter divided by the size of the previous sub-filter, a power
    /// of two. Returns 0 if the filter never adds a sub-filter.
    #[must_use]
    pub fn expansion(&self) -> u16 {
        self.expansion
    }

    /// Returns the `Size` of `CF.INFO`: the size of the server's structures, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        40 + 16 * self.sub_filters.len() as u64 + self.slots()
    }

    /// Returns the heap memory of the sub-filters, in bytes. Counts memory with
    /// [`tamis::allocation_bytes`].
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let slots = self.sub_filters.iter().map(SubFilter::heap_bytes).sum::<u64>();
        slots + allocation_bytes(self.sub_filters.capacity() * size_of::<SubFilter>())
    }
}

impl fmt::Debug for RedisCuckoo {
    /// Formats the number of items, the sizes and the current rate. Estimates the rate from at most
    /// 64 KiB of each sub-filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.estimate_rate(DEBUG_BYTES);
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

/// The maximum number of bytes that `Debug` reads from each sub-filter.
const DEBUG_BYTES: u64 = 64 << 10;

/// The maximum value of the server's counter of sub-filters.
const MAX_SUB_FILTERS: usize = u16::MAX as usize;

/// The number of items of a batch. The filter hashes and prefetches a whole batch before the first
/// test or insert.
const BATCH: usize = 32;

#[cfg(test)]
mod tests;
