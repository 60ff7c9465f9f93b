//! The Bloom filter of a key. The filter reserves memory for a number of items, and by default grows beyond the
//! reserved number.
//!
//! ```text
//! first `capacity` items │ all later items
//! reserved part          │ overflow part
//! one cache line each,   │ a growing filter, which
//! shared by threads      │ one thread at a time changes
//! ```
//!
//! A reserved part of at most 4 KiB allocates its memory at the first insert. A larger reserved part allocates its
//! memory when the filter is created. Any number of threads can insert into the reserved part under shared access. The
//! reserved part gets four fifths of the planned rate, and the overflow part gets one fifth, so that both parts
//! together keep the planned rate. If the filter must not grow, the reserved part gets the whole rate. If an insert
//! creates the filter without a reservation, the filter has no reserved part and grows from the first item.

pub(crate) mod info;
mod merge;
mod reserved;
mod serialization;
mod stored;

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use tamis::{
    Answers, AnyFilter, Bitmap, BitsMut as _, Growing, Hasher, Item, Kind, Plan, PlanError,
    TryInsert as _,
};
use tamis_formats::TamisFile;

use reserved::Reserved;

/// A Bloom filter that reserves memory for a number of items and can grow beyond the reservation.
/// Threads share the reserved part.
///
/// # Examples
///
/// ```
/// use tamis::Answers;
/// use tamis_commands::ScalableBloom;
///
/// let mut seen = ScalableBloom::reserve(2, 0.01, Some(2))?;
/// let mut answers = Answers::new();
/// assert_eq!(seen.insert_each(&[b"a".as_slice(), b"b", b"c", b"a"], &mut answers), Ok(()));
/// assert_eq!(answers.iter().collect::<Vec<_>>(), [true, true, true, false]);
/// assert_eq!((seen.items(), seen.parts(), seen.capacity()), (3, 2, 6));
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Debug)]
pub struct ScalableBloom {
    /// The planned rate.
    rate: f64,
    /// The capacity of the reserved part, in items. The reported capacity starts with the capacity of the reserved
    /// part.
    capacity: u64,
    /// The reported capacity grows by layers. Each layer has `expansion` times the capacity of the
    /// previous layer. `None` if the filter does not grow.
    expansion: Option<u32>,
    // Invariant: at least one part exists, and both parts use the same hash function and key.
    reserved: Option<Reserved>,
    /// A growing filter with its file metadata, created when the reserved part is full.
    overflow: Option<Box<TamisFile>>,
}

/// The reason why an item was not inserted. After this error, the filter contains all items of the call before the
/// rejected item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpandError {
    /// The filter is full and was created without expansion.
    Full,
    /// The filter could not grow. The possible reasons are too little memory, a rate too low for a growing filter, or
    /// too many items that hash to the same place.
    NoRoom,
}

/// The share of the planned rate that the reserved part of a growing filter gets.
const RESERVED_SHARE: f64 = 0.8;

impl ScalableBloom {
    /// Creates an empty filter with memory for `capacity` items at `rate`.
    ///
    /// When the filter is full, [`capacity`](Self::capacity) grows by a layer with `expansion`
    /// times the capacity of the last layer. `None` creates a filter that does not grow.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if no filter has the given parameters, or if there is not enough memory.
    pub fn reserve(capacity: u64, rate: f64, expansion: Option<u32>) -> Result<Self, PlanError> {
        Self::reserve_by(capacity, rate, expansion, Hasher::default())
    }

    /// Creates an empty filter as [`reserve`](Self::reserve) does, with the given hash function.
    ///
    /// # Errors
    ///
    /// This function returns the same errors as [`reserve`](Self::reserve).
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Hasher;
    /// use tamis_commands::ScalableBloom;
    ///
    /// let seen = ScalableBloom::reserve_by(100, 0.01, None, Hasher::keyed([1, 2]))?;
    /// assert_eq!(seen.hasher(), Hasher::keyed([1, 2]));
    /// assert!(!seen.is_made_as(&ScalableBloom::reserve(100, 0.01, None)?));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn reserve_by(
        capacity: u64,
        rate: f64,
        expansion: Option<u32>,
        hasher: Hasher,
    ) -> Result<Self, PlanError> {
        let own_rate = if expansion.is_some() { rate * RESERVED_SHARE } else { rate };
        let reserved = Some(Reserved::new(&Plan::new(capacity, own_rate)?, hasher)?);
        Ok(Self { rate, capacity, expansion, reserved, overflow: None })
    }

    /// Creates an empty filter that grows from its first item. `capacity` affects only the reported
    /// capacity.
    ///
    /// # Errors
    ///
    /// This function returns the same errors as [`reserve`](Self::reserve).
    pub fn growing(
        capacity: u64,
        rate: f64,
        expansion: u32,
        hasher: Hasher,
    ) -> Result<Self, PlanError> {
        let overflow = Some(growing(rate, hasher)?);
        Ok(Self { rate, capacity, expansion: Some(expansion), reserved: None, overflow })
    }

    /// Creates an empty filter with the [same parameters](Self::is_made_as): reservation, rate,
    /// expansion and hash key.
    ///
    /// # Errors
    ///
    /// This function returns the same errors as [`reserve`](Self::reserve).
    pub fn emptied(&self) -> Result<Self, PlanError> {
        // Use the plan of this filter, because a newly computed plan may differ from the plan in an
        // old image.
        let (reserved, overflow) = match self.reserved_plan() {
            Some(plan) => (Some(Reserved::new(&plan, self.hasher())?), None),
            None => (None, Some(growing(self.rate, self.hasher())?)),
        };
        Ok(Self { reserved, overflow, ..*self })
    }

    /// Updates this filter, an earlier copy of `source`, to the current state of `source`. No thread may insert into
    /// either filter during the call. If an update is not possible, returns false without a change. If the update
    /// fails, the caller must copy `source` again.
    ///
    /// Reads the bits of both filters and writes only different bits. An update takes a small part
    /// of the time of a full copy.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Answers;
    /// use tamis_commands::ScalableBloom;
    ///
    /// let mut seen = ScalableBloom::reserve(100, 0.01, Some(2))?;
    /// let (mut copy, mut answers) = (seen.emptied()?, Answers::new());
    /// assert_eq!(seen.insert_each(&[b"a".as_slice()], &mut answers), Ok(()));
    /// assert!(copy.follow(&seen));
    /// copy.contains_each(&[b"a".as_slice()], &mut answers);
    /// assert_eq!((answers.count_ones(), copy.items()), (1, 1));
    /// assert!(!copy.follow(&ScalableBloom::reserve(200, 0.01, Some(2))?));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    #[must_use]
    pub fn follow(&mut self, source: &Self) -> bool {
        let parts = |it: &Self| (it.capacity, it.expansion, it.overflow.is_none());
        let can_follow =
            source.overflow.is_none() && parts(self) == parts(source) && self.is_made_as(source);
        let (Some(own), Some(its)) = (&mut self.reserved, &source.reserved) else { return false };
        let is_ready = if its.has_bits() { own.make_bits().is_ok() } else { !own.has_bits() };
        if can_follow && is_ready {
            own.follow(its);
        }
        can_follow && is_ready
    }

    /// Looks up each item. An item with the answer "no" is certainly not in the filter.
    pub fn contains_each(&self, items: &[&[u8]], answers: &mut Answers) {
        match (&self.reserved, &self.overflow) {
            (Some(reserved), None) => reserved.contains_each(items, answers),
            (None, Some(overflow)) => overflow.filter.contains_each(items, answers),
            (Some(reserved), Some(overflow)) => {
                overflow.filter.contains_each(items, answers);
                let mut in_reserved = Answers::new();
                reserved.contains_each(items, &mut in_reserved);
                let words: Vec<u64> =
                    answers.words().iter().zip(in_reserved.words()).map(|(a, b)| a | b).collect();
                answers.reset(items.len()).copy_from_slice(&words);
            }
            (None, None) => {
                answers.reset(items.len());
            }
        }
    }

    /// Tests whether an item may be in the filter, by the hash of the item.
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let is_reserved = self.reserved.as_ref().is_some_and(|it| it.contains_hash(hash));
        is_reserved || self.overflow.as_ref().is_some_and(|it| it.filter.contains_hash(hash))
    }

    /// Inserts items by their hashes under shared access, and writes to `answers` which items were
    /// new.
    ///
    /// If the new items do not fit the reserved part, or if the filter has no bits yet, returns false without a change.
    /// After the result false, the caller must use [`insert_hashes`](Self::insert_hashes). A batch without new items
    /// succeeds even in a full filter.
    #[must_use]
    pub fn insert_hashes_shared(&self, hashes: &[u64], answers: &mut Answers) -> bool {
        let (Some(reserved), None) = (&self.reserved, &self.overflow) else { return false };
        if !reserved.has_bits() {
            return false;
        }
        // A batch without new items writes nothing. With two threads, a batch without new items takes 7 ns per item. If
        // the two threads wrote to the counter, a batch would take 11 ns per item.
        reserved.contains_hashes(hashes, answers);
        let missing = (hashes.len() - answers.count_ones()) as u64;
        if missing == 0 {
            answers.reset(hashes.len());
            return true;
        }
        // Add the missing items to the count before the insert, so that two threads together cannot exceed the
        // capacity.
        let before = reserved.items.fetch_add(missing, Ordering::Relaxed);
        if before.saturating_add(missing) > self.capacity {
            reserved.items.fetch_sub(missing, Ordering::Relaxed);
            return false;
        }
        reserved.insert_hashes(hashes, answers);
        // The batch may contain an item twice, or another thread may have inserted an item after
        // the lookup.
        let repeats = missing - answers.count_ones() as u64;
        if repeats > 0 {
            reserved.items.fetch_sub(repeats, Ordering::Relaxed);
        }
        true
    }

    /// Inserts items in order, and writes to `answers` which items were new. If an item does not
    /// fit, `answers` contains the answers of all earlier items.
    ///
    /// # Errors
    ///
    /// [`ExpandError`], with the number of items before the item that does not fit.
    pub fn insert_each(
        &mut self,
        items: &[&[u8]],
        answers: &mut Answers,
    ) -> Result<(), (usize, ExpandError)> {
        let mut hashes = vec![0; items.len()];
        Item::hash_each(items, &self.hasher(), &mut hashes);
        self.insert_hashes(&hashes, answers)
    }

    /// Inserts items by their hashes, as [`insert_each`](Self::insert_each) does.
    ///
    /// # Errors
    ///
    /// This function returns the same errors as [`insert_each`](Self::insert_each).
    pub fn insert_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut Answers,
    ) -> Result<(), (usize, ExpandError)> {
        answers.reset(hashes.len());
        if let Some(reserved) = &mut self.reserved {
            reserved.make_bits().map_err(|_| (0, ExpandError::NoRoom))?;
        }
        if self.insert_hashes_shared(hashes, answers) {
            return Ok(());
        }
        let words = answers.reset(hashes.len());
        if let (None, Some(overflow)) = (&self.reserved, &mut self.overflow) {
            let done = overflow.filter.try_insert_hashes(hashes, words);
            return done.map_err(|error| (error.inserted, ExpandError::NoRoom));
        }
        for (i, &hash) in hashes.iter().enumerate() {
            let is_new = self.insert_hash(hash).map_err(|error| (i, error))?;
            answers.set(i, is_new);
        }
        Ok(())
    }

    /// Inserts an item by its hash; returns true if the item is new.
    ///
    /// # Errors
    ///
    /// [`ExpandError`] if the item does not fit.
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, ExpandError> {
        if let Some(reserved) = &mut self.reserved {
            reserved.make_bits().map_err(|_| ExpandError::NoRoom)?;
            if reserved.items.load(Ordering::Relaxed) < self.capacity && self.overflow.is_none() {
                return Ok(reserved.insert_hash(hash));
            }
            if reserved.contains_hash(hash) {
                return Ok(false);
            }
            if self.expansion.is_none() {
                return Err(ExpandError::Full);
            }
        }
        let overflow = match self.overflow.take() {
            Some(overflow) => overflow,
            None => growing(self.rate * (1.0 - RESERVED_SHARE), self.hasher())
                .map_err(|_| ExpandError::NoRoom)?,
        };
        let overflow = self.overflow.insert(overflow);
        overflow.filter.try_insert_hash(hash).map_err(|_| ExpandError::NoRoom)
    }

    /// Replays inserts: inserts the hashes of items that were new at the original insert. Counts each hash, even if a
    /// snapshot already contains the bits of the hash. As a result, each item goes to the same part as at the original
    /// insert. If an item went to another part, the bits of the item would be missing in the original part. Without the
    /// bits of one item, the filter could lose a later item that was found present because of these bits.
    ///
    /// A filter that must not grow accepts the hashes even if the item count has reached the
    /// capacity.
    ///
    /// For a filter that is not in a CPU cache, a call with hundreds of thousands of hashes takes a third less time per
    /// hash than a call with thousands of hashes.
    ///
    /// # Errors
    ///
    /// [`ExpandError::NoRoom`] if there is not enough memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Answers, Hasher};
    /// use tamis_commands::ScalableBloom;
    ///
    /// let mut seen = ScalableBloom::reserve(1, 0.01, None)?;
    /// let hashes = [b"a", b"b"].map(|item| Hasher::default().hash(item));
    /// assert_eq!(seen.insert_hash(hashes[0]), Ok(true));
    /// assert!(seen.insert_hash(hashes[1]).is_err() && seen.restore_hashes(&hashes[1..]).is_ok());
    /// let mut answers = Answers::new();
    /// seen.contains_each(&[b"a".as_slice(), b"b"], &mut answers);
    /// assert_eq!((answers.count_ones(), seen.items()), (2, 2));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn restore_hashes(&mut self, mut hashes: &[u64]) -> Result<(), ExpandError> {
        while let (Some(reserved), None) = (&mut self.reserved, &self.overflow)
            && !hashes.is_empty()
        {
            reserved.make_bits().map_err(|_| ExpandError::NoRoom)?;
            let items = reserved.items.load(Ordering::Relaxed);
            let room = match self.expansion {
                Some(_) => self.capacity.saturating_sub(items).min(hashes.len() as u64) as usize,
                None => hashes.len(),
            };
            if room == 0 {
                break;
            }
            let (fitting, rest) = hashes.split_at(room);
            reserved.restore_hashes(fitting);
            hashes = rest;
        }
        if let (None, Some(overflow)) = (&self.reserved, &mut self.overflow) {
            let mut answers = vec![0; hashes.len().div_ceil(64)];
            let done = overflow.filter.try_insert_hashes(hashes, &mut answers);
            return done.map_err(|_| ExpandError::NoRoom);
        }
        hashes.iter().try_for_each(|&hash| self.insert_hash(hash).map(|_| ()))
    }

    /// Returns the hash function of the filter.
    #[must_use]
    pub fn hasher(&self) -> Hasher {
        match (&self.reserved, &self.overflow) {
            (Some(reserved), _) => reserved.layout().hasher,
            (None, Some(overflow)) => overflow.filter.hasher(),
            (None, None) => Hasher::default(),
        }
    }

    /// Returns the filter as a file. Returns `None` if the filter has two parts, because a file
    /// contains only one part. The file may or may not contain bits that other threads set during
    /// the call.
    ///
    /// # Errors
    ///
    /// [`PlanError::Memory`] if there is not enough memory for the copy.
    pub(crate) fn to_file(&self) -> Result<Option<Cow<'_, TamisFile>>, PlanError> {
        let reserved = match (&self.reserved, &self.overflow) {
            (Some(reserved), None) => reserved,
            (None, Some(overflow)) => return Ok(Some(Cow::Borrowed(overflow))),
            _ => return Ok(None),
        };
        let plan = reserved.plan();
        let mut bits = Bitmap::zeroed(plan.bits())?;
        for (copy, word) in bits.words_mut().iter_mut().zip(reserved.words()) {
            *copy = word.load(Ordering::Relaxed);
        }
        let filter = AnyFilter::restore(&plan, self.hasher(), bits)?;
        Ok(Some(Cow::Owned(TamisFile::new(filter))))
    }
}

/// Creates an empty overflow part.
fn growing(rate: f64, hasher: Hasher) -> Result<Box<TamisFile>, PlanError> {
    let plan = Plan::for_kind(Kind::Growing, 1, rate)?;
    Ok(Box::new(TamisFile::new(AnyFilter::Growing(Growing::from_plan(&plan, hasher)?))))
}

fn grown(file: &TamisFile) -> Option<&Growing> {
    if let AnyFilter::Growing(filter) = &file.filter { Some(filter) } else { None }
}
