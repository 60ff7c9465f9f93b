//! Inserts items, and appends a sub-filter when all sub-filters are full.

use tamis::{Item, OutOfMemory};

use crate::cuckoo::sub_filter::{Candidate, SubFilter};
use crate::cuckoo::{BATCH, MAX_SUB_FILTERS, RedisCuckoo};
use crate::error::RedisInsertError;

impl RedisCuckoo {
    /// Inserts one copy of `item`, even if the item is already present.
    ///
    /// # Errors
    ///
    /// [`RedisInsertError`] if there is no free slot and the filter cannot add a sub-filter. After
    /// an error, the filter is unchanged.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<(), RedisInsertError> {
        self.insert_hash(self.hash(item))
    }

    /// Inserts one copy of an item with this hash, even if the item is already present.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), RedisInsertError> {
        self.insert_candidate(Candidate::of(hash))
    }

    /// Inserts `item` only if the filter reports the item as absent. Returns true if this method
    /// inserted the item.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert`](Self::insert), if the item is absent.
    #[inline]
    pub fn insert_absent<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisInsertError> {
        self.insert_absent_hash(self.hash(item))
    }

    /// Inserts an item with this hash if the filter reports the item as absent. Returns true if
    /// this method inserted the item.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert`](Self::insert), if the item is absent.
    pub fn insert_absent_hash(&mut self, hash: u64) -> Result<bool, RedisInsertError> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        self.insert_hash(hash).map(|()| true)
    }

    /// Inserts a batch of items in order, like [`insert`](Self::insert), with overlapping memory
    /// accesses. Calls `answer` with the result of each item. If there is no free slot for an item,
    /// this method continues with the next item. To stop at an item, return false from `answer`.
    pub fn insert_each<I: Item>(
        &mut self,
        items: &[I],
        mut answer: impl FnMut(Result<(), RedisInsertError>) -> bool,
    ) {
        self.each_hash(items, |filter, hash| answer(filter.insert_hash(hash)));
    }

    /// Inserts a batch of items in order, like [`insert_absent`](Self::insert_absent).
    /// Calls `answer` with the result of each item, like [`insert_each`](Self::insert_each).
    pub fn insert_absent_each<I: Item>(
        &mut self,
        items: &[I],
        mut answer: impl FnMut(Result<bool, RedisInsertError>) -> bool,
    ) {
        self.each_hash(items, |filter, hash| answer(filter.insert_absent_hash(hash)));
    }

    /// Hashes items in batches and calls `each` with each hash, in order. Stops after the first
    /// hash for which `each` returns false.
    #[inline(always)]
    fn each_hash<I: Item>(&mut self, items: &[I], mut each: impl FnMut(&mut Self, u64) -> bool) {
        let mut hashes = [0; BATCH];
        for items in items.chunks(BATCH) {
            for &hash in self.hash_batch(items, &mut hashes) {
                if !each(self, hash) {
                    return;
                }
            }
        }
    }

    fn insert_candidate(&mut self, candidate: Candidate) -> Result<(), RedisInsertError> {
        loop {
            let max_iterations = self.max_iterations;
            let (newest, older) = self.sub_filters.split_last_mut().expect("one or more");
            if newest.put(candidate)
                || older.iter_mut().rev().any(|sub_filter| sub_filter.put(candidate))
                || newest.evict(candidate, max_iterations)
            {
                // The addition saturates, because a forged header may contain any number.
                self.items = self.items.saturating_add(1);
                self.is_refusing.0 = false;
                return Ok(());
            }
            // After an append, the next iteration of the loop succeeds, because the new sub-filter
            // is empty.
            self.grow().inspect_err(|error| {
                self.is_refusing.0 = !matches!(error, RedisInsertError::Memory(_));
            })?;
        }
    }

    /// Appends an empty sub-filter.
    #[cold]
    fn grow(&mut self) -> Result<(), RedisInsertError> {
        if self.expansion == 0 {
            return Err(RedisInsertError::Full { items: self.items });
        }
        if self.sub_filters.len() >= MAX_SUB_FILTERS {
            return Err(RedisInsertError::TooLarge);
        }
        let newest = self.sub_filters.last().expect("one or more");
        let buckets = newest
            .buckets()
            .checked_mul(u64::from(self.expansion))
            .ok_or(RedisInsertError::TooLarge)?;
        self.growth_limit.0.check(buckets.saturating_mul(self.bucket_size.into()))?;
        let next =
            SubFilter::zeroed(buckets, self.bucket_size).map_err(RedisInsertError::Memory)?;
        let bytes = size_of::<SubFilter>() as u64;
        self.sub_filters
            .try_reserve(1)
            .map_err(|_| RedisInsertError::Memory(OutOfMemory { bytes }))?;
        self.sub_filters.push(next);
        Ok(())
    }
}
