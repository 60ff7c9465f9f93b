//! A generation: a filter of all ids from one full read of the source. Changes after the full read update the
//! generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tamis::{AnyFilter, Hasher, Insert as _, PlanError};

use crate::ids::base::Base;
use crate::ids::fold::Fold;
use crate::ids::full_read::FullRead;
use crate::ids::part::Part;
use crate::ids::tombstones::Tombstones;

/// The minimum number of ids that a part of a filter is planned for.
const LEAST_ITEMS: u64 = 10_000;

/// A filter of ids, and the ids that were deleted from the filter.
///
/// The filter grows: when a part is full, the generation adds a new part with a lower rate than the full part. The sum
/// of the rates of all parts stays below the planned rate.
#[derive(Debug)]
pub struct Generation {
    hasher: Hasher,
    rate: f64,
    /// The immutable filter of a file or of a server.
    base: Option<Base>,
    parts: ArcSwap<Vec<Arc<Part>>>,
    growing: Mutex<()>,
    tombstones: Tombstones,
    /// The largest integer id so far.
    highest: AtomicI64,
    /// How text ids are folded to keys.
    fold: Fold,
    /// The keys whose deletion had no effect, because another id may have the same key. A source may report a deletion
    /// repeatedly, so the set counts each key once.
    ignored: Tombstones,
    /// The counts of the full read that fills the generation.
    full_read: FullRead,
}

impl Generation {
    /// Creates an empty generation for `items` ids at a false positive rate. The hash has a new random secret key.
    /// Because the key is secret, a client cannot choose absent ids that pass. Because the key is new, the false
    /// positives of the previous generation do not pass in the new generation.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the rate is not between 0 and 1, or if the system has no memory.
    ///
    /// # Panics
    ///
    /// Panics if the operating system returns no random bytes.
    pub fn new(items: u64, rate: f64) -> Result<Self, PlanError> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).expect("the system has random bytes");
        let (low, high) = key.split_at(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let hasher = Hasher::keyed([word(low), word(high)]);
        // The first part gets half of the rate. Each further part gets half of the remaining rate.
        let first = Part::new(items.max(LEAST_ITEMS), rate / 2.0, hasher)?;
        Ok(Self {
            hasher,
            rate,
            base: None,
            parts: ArcSwap::from_pointee(vec![first]),
            growing: Mutex::new(()),
            tombstones: Tombstones::default(),
            highest: AtomicI64::new(i64::MIN),
            fold: Fold::Exact,
            ignored: Tombstones::default(),
            full_read: FullRead::default(),
        })
    }

    /// Creates a generation from the ids in a filter, for example the filter of a file. The generation stores new ids
    /// in separate parts, whose false positive rate is `rate`. The function reads all bits of the filter.
    ///
    /// The filter keeps its hash key. The caller must not pass a filter that forgets items.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`new`](Self::new).
    pub fn with_base(filter: AnyFilter, rate: f64) -> Result<Self, PlanError> {
        Self::over(Base::tamis(filter), rate)
    }

    /// Creates a generation like [`with_base`](Self::with_base), but accepts a filter of any kind.
    pub(crate) fn over(base: Base, rate: f64) -> Result<Self, PlanError> {
        Ok(Self { base: Some(base), ..Self::new(0, rate)? })
    }

    /// Creates a generation from its parts. `parts` must not be empty, and all parts must have the same hash key.
    pub(crate) fn restore(
        rate: f64,
        base: Option<AnyFilter>,
        parts: Vec<Arc<Part>>,
        tombstones: Tombstones,
        highest: i64,
        fold: Fold,
    ) -> Self {
        Self {
            hasher: parts[0].filter.hasher(),
            rate,
            base: base.map(Base::tamis),
            parts: ArcSwap::from_pointee(parts),
            growing: Mutex::new(()),
            tombstones,
            highest: AtomicI64::new(highest),
            fold,
            ignored: Tombstones::default(),
            full_read: FullRead::default(),
        }
    }

    /// Sets the fold of text ids. The generation must be empty.
    pub(crate) fn with_fold(self, fold: Fold) -> Self {
        Self { fold, ..self }
    }

    /// Returns the fold of text ids.
    pub(crate) fn fold(&self) -> Fold {
        self.fold
    }

    /// Returns the immutable filter of a file or of a server.
    pub(crate) fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// Returns the filters that contain all ids outside the base filter.
    pub(crate) fn parts(&self) -> Arc<Vec<Arc<Part>>> {
        self.parts.load_full()
    }

    /// Returns the rate of all parts together, without the base filter.
    pub(crate) fn rate_of_parts(&self) -> f64 {
        self.rate
    }

    pub(crate) fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// Tests whether an id may exist. The result false is certain; the result true may be a false positive.
    #[must_use]
    pub fn contains(&self, id: &[u8]) -> bool {
        let id = &*self.fold.key(id);
        let hash = self.hasher.hash(id);
        let is_in_filter = self.parts.load().iter().any(|part| part.filter.contains_hash(hash));
        (is_in_filter || self.base_contains(id)) && !self.tombstones.contains(id)
    }

    fn base_contains(&self, id: &[u8]) -> bool {
        self.base.as_ref().is_some_and(|base| base.contains(id))
    }

    /// Inserts the key of an id that exists now. The key is the canonical text of the id, folded if the source folds
    /// texts. A generation does not know the type of its ids, so it does not check the key.
    /// [`IdSet::insert`](crate::IdSet::insert) and [`Loader`](crate::Loader) check ids. `value` is the integer value of
    /// the id, if the id is an integer.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the filter must grow and the system has no memory. After the error, the full part contains the
    /// id.
    pub fn insert_key(&self, id: &[u8], value: Option<i64>) -> Result<(), PlanError> {
        let (new, added) = match self.prepare_load(id, value) {
            Some(hash) => self.insert_hashes(&[hash]),
            None => (0, Ok(())),
        };
        self.full_read.count_inserted(new);
        let key = self.fold.key(id);
        // The tombstone is removed after the filter contains the id. If the tombstone were removed first, a concurrent
        // lookup could miss the id.
        self.tombstones.remove(&key);
        self.ignored.remove(&key);
        added
    }

    /// Inserts the key of an id that the full read found. If the id was deleted during the full read, the id stays
    /// deleted.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert_key`](Self::insert_key).
    #[cfg(test)]
    pub(crate) fn load_key(&self, id: &[u8], value: Option<i64>) -> Result<(), PlanError> {
        match self.prepare_load(id, value) {
            Some(hash) => self.load_hashes(&[hash]),
            None => Ok(()),
        }
    }

    /// Returns the hash of an id for [`load_hashes`](Self::load_hashes). Returns `None` if the base filter contains the
    /// id.
    pub(crate) fn prepare_load(&self, id: &[u8], value: Option<i64>) -> Option<u64> {
        if let Some(value) = value {
            // Relaxed: the value publishes no other data. The test avoids most writes to memory that all threads share.
            if value > self.highest.load(Ordering::Relaxed) {
                self.highest.fetch_max(value, Ordering::Relaxed);
            }
        }
        let id = &*self.fold.key(id);
        (!self.base_contains(id)).then(|| self.hasher.hash(id))
    }

    /// Inserts ids that the full read found. In a batch, the processor loads several cache lines at the same time.
    /// If an id was deleted during the full read, the id stays deleted.
    pub(crate) fn load_hashes(&self, hashes: &[u64]) -> Result<(), PlanError> {
        let (new, result) = self.insert_hashes(hashes);
        self.full_read.count_rows(hashes.len() as u64, new);
        result
    }

    /// Inserts hashes. Returns the number of hashes that changed a bit.
    fn insert_hashes(&self, hashes: &[u64]) -> (u64, Result<(), PlanError>) {
        let (mut all_new, mut result) = (0, Ok(()));
        // A part may exceed its capacity by the length of a chunk, which does not change the rate noticeably.
        for chunk in hashes.chunks(64) {
            result = result.and(self.grow_if_full());
            let parts = self.parts.load();
            let (newest, older) = parts.split_last().expect("there is a part");
            let is_in_older = |&hash: &u64| older.iter().any(|it| it.filter.contains_hash(hash));
            let new: SmallVec<[u64; 64]> =
                chunk.iter().copied().filter(|hash| !is_in_older(hash)).collect();
            if new.is_empty() {
                continue;
            }
            let mut answers = [0];
            (&newest.filter).insert_hashes(&new, &mut answers);
            let new = u64::from(answers[0].count_ones());
            newest.items.fetch_add(new, Ordering::Relaxed);
            all_new += new;
        }
        (all_new, result)
    }

    fn grow_if_full(&self) -> Result<(), PlanError> {
        let is_full = || self.parts.load().last().is_some_and(|part| part.is_full());
        if !is_full() {
            return Ok(());
        }
        let _growing = self.growing.lock();
        // While this thread waited for the lock, another thread may have added a part.
        if !is_full() {
            return Ok(());
        }
        let mut parts = self.parts.load().to_vec();
        // The new part doubles the capacity of the filter.
        let items =
            parts.iter().map(|part| part.filter.plan().items()).fold(0, u64::saturating_add);
        let rate = self.rate / 2_f64.powi(parts.len() as i32 + 1);
        parts.push(Part::new(items, rate, self.hasher)?);
        self.parts.store(Arc::new(parts));
        Ok(())
    }

    /// Records that the id with a key was deleted. If other ids may have the same key, the id passes until the next
    /// full read.
    pub fn delete_key(&self, id: &[u8]) {
        let deleted = if self.fold.is_precise() { &self.tombstones } else { &self.ignored };
        deleted.insert(&self.fold.key(id));
    }

    /// Completes the counts after the full read: adds the ids that the filter has not counted as new, and removes the
    /// deletions of ids that the filter does not contain. The caller must end the full read first, because a full read
    /// may insert a deleted id.
    pub(crate) fn end_full_read(&self) {
        let uncounted = self.full_read.uncounted(self.rate);
        if let Some(newest) = self.parts.load().last() {
            newest.items.fetch_add(uncounted, Ordering::Relaxed);
        }
        let has = |key: &[u8]| {
            let hash = self.hasher.hash(key);
            self.parts.load().iter().any(|part| part.filter.contains_hash(hash))
                || self.base_contains(key)
        };
        self.tombstones.retain(has);
        self.ignored.retain(has);
    }

    /// Returns the number of ids, without the deleted ids.
    #[must_use]
    pub fn items(&self) -> u64 {
        let parts = self.parts.load();
        let items: u64 = parts.iter().map(|part| part.items.load(Ordering::Relaxed)).sum();
        let base = self.base.as_ref().map_or(0, |base| base.items);
        base.saturating_add(items).saturating_sub(self.tombstones.len() as u64)
    }

    /// Returns the number of deleted ids that the filter still contains.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        (self.tombstones.len() + self.ignored.len()) as u64
    }

    /// Returns the largest integer id. Returns `None` if no integer id was inserted.
    #[must_use]
    pub fn highest(&self) -> Option<i64> {
        Some(self.highest.load(Ordering::Relaxed)).filter(|&highest| highest > i64::MIN)
    }

    /// Returns the memory usage of the filter in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let parts: u64 = self.parts.load().iter().map(|part| part.filter.plan().bytes()).sum();
        parts + self.base.as_ref().map_or(0, Base::bytes)
    }

    /// Returns the planned false positive rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.base.as_ref().map_or(0.0, Base::rate) + self.rate
    }

    /// Estimates the present false positive rate from the bits. The function reads the bits again only after the number
    /// of ids has changed by more than 1 %.
    #[must_use]
    pub fn estimate_rate(&self) -> f64 {
        let parts: f64 = self.parts.load().iter().map(|part| part.estimate_rate()).sum();
        self.base.as_ref().map_or(0.0, Base::estimate_rate) + parts
    }
}

#[cfg(test)]
mod tests {
    use tamis::Plan;

    use super::*;

    fn id(i: u64) -> Vec<u8> {
        i.to_string().into_bytes()
    }

    #[test]
    fn ids_are_found_after_growth_and_the_rate_is_kept() {
        let generation = Generation::new(1, 0.01).unwrap();
        for i in 0..100_000 {
            generation.insert_key(&id(i), Some(i as i64)).unwrap();
        }
        assert!((0..100_000).all(|i| generation.contains(&id(i))));
        // An older part than the last part contains the id 0.
        generation.insert_key(&id(0), Some(0)).unwrap();
        let wrong = (100_000..200_000).filter(|&i| generation.contains(&id(i))).count() as f64;
        // The bound is five standard deviations above 1 %, for at most ten parts.
        assert!(wrong < 1000.0 + 5.0 * 1000_f64.sqrt(), "{wrong}");
        assert_eq!(generation.highest(), Some(99_999));
        let items = generation.items();
        assert!((99_000..=100_000).contains(&items), "{items}");
    }

    #[test]
    fn a_full_read_counts_each_row_once() {
        let generation = Generation::new(1, 0.01).unwrap();
        for i in 0..200_000 {
            generation.load_key(&id(i), Some(i as i64)).unwrap();
        }
        assert!(generation.items() < 200_000, "some ids are false positives");
        // A change inserts an id before the full read finds the id.
        generation.insert_key(b"new", None).unwrap();
        generation.load_key(b"new", None).unwrap();
        generation.delete_key(b"7");
        generation.end_full_read();
        assert_eq!(generation.items(), 200_000);
    }

    #[test]
    fn rows_with_equal_ids_do_not_count_twice() {
        let generation = Generation::new(100, 0.001).unwrap();
        for i in 0..2000 {
            generation.load_key(&id(i % 1000), None).unwrap();
        }
        generation.end_full_read();
        assert!((990..=1000).contains(&generation.items()), "{}", generation.items());
    }

    #[test]
    fn a_deleted_id_is_absent_until_it_is_inserted_again() {
        let generation = Generation::new(100, 0.01).unwrap();
        generation.insert_key(b"7", Some(7)).unwrap();
        generation.delete_key(b"7");
        assert!(!generation.contains(b"7"));
        // The full read started before the deletion.
        generation.load_key(b"7", Some(7)).unwrap();
        assert!(!generation.contains(b"7"));
        generation.insert_key(b"7", Some(7)).unwrap();
        assert!(generation.contains(b"7"));
        assert_eq!((generation.items(), generation.deleted()), (1, 0));
    }

    #[test]
    fn a_deletion_that_has_no_effect_counts_once() {
        let generation = Generation::new(100, 0.01).unwrap().with_fold(Fold::Case);
        generation.load_key(b"Abc", None).unwrap();
        for id in [b"abc", b"ABC", b"abc"] {
            generation.delete_key(id);
        }
        assert!(generation.contains(b"Abc"));
        assert_eq!(generation.deleted(), 1);
        generation.insert_key(b"aBC", None).unwrap();
        assert_eq!(generation.deleted(), 0);
    }

    #[test]
    fn a_base_keeps_its_ids_and_new_ones_are_added_beside_it() {
        let mut filter =
            AnyFilter::from_plan(&Plan::new(1000, 0.01).unwrap(), Hasher::default()).unwrap();
        for i in 0..1000 {
            filter.try_insert(&id(i)).unwrap();
        }
        let generation = Generation::with_base(filter, 0.01).unwrap();
        generation.insert_key(b"new", None).unwrap();
        generation.delete_key(b"7");
        assert!(!generation.contains(b"7") && generation.contains(b"new"));
        assert!((0..1000).all(|i| i == 7 || generation.contains(&id(i))));
        generation.insert_key(b"7", Some(7)).unwrap();
        assert!(generation.contains(b"7"));
        assert!(generation.items().abs_diff(1001) < 100, "{}", generation.items());
    }

    #[test]
    fn threads_that_insert_at_once_lose_nothing() {
        let generation = Generation::new(1, 0.01).unwrap();
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let generation = &generation;
                threads.spawn(move || {
                    for i in (thread..60_000).step_by(4) {
                        generation.insert_key(&id(i), None).unwrap();
                        assert!(generation.contains(&id(i)));
                    }
                });
            }
        });
        assert!((0..60_000).all(|i| generation.contains(&id(i))));
    }
}
