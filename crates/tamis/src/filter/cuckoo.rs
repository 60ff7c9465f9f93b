//! The cuckoo filter. For each item, the filter stores a fingerprint, which is a part of the hash,
//! in one of two buckets, so that items can be removed and counted.
//!
//! The module `table` contains the rules, `batch` contains the operations on batches, `search`
//! contains the search for a free slot, and `plan` contains the formulas.

mod batch;
mod lanes;
mod plan;
mod search;
pub(crate) mod sizing;
mod table;

use std::fmt;

use crate::bits::{BitView, Bitmap, Bits, BitsMut, words_from};
use crate::filter::FilterWords;
use crate::filter::debug::DebugState;
use crate::filter::variant::{Variant, counts, one_run};
use crate::filter::{
    Clear, Count, Filter, InsertError, Merge, MergeError, NoRoom, Remove, Removed, TryInsert,
    plan_and_hasher,
};
use crate::hash::Hasher;
use crate::plan::{Kind, Plan, PlanError};
use search::Search;
use table::{Added, Full, Key, Repeats, Table};

/// A cuckoo filter over bits `B`. The filter can remove items, and counts the copies of an item up
/// to at least four copies.
///
/// The filter takes about log₂(1/rate) + 2.5 bits for each item.
/// [`contains`](crate::Filter::contains) and removal read two cache lines each. The order of inserts
/// and removals determines the slots of the entries, and therefore the bytes of the filter. Answers
/// depend on the order of inserts and removals only if the filter is full.
///
/// # Repeats, copies and removals
///
/// [`try_insert`](Cuckoo::try_insert) stores nothing if the filter already reports the item as
/// present, as a Bloom filter does. [`try_insert_copy`](Cuckoo::try_insert_copy) stores a copy in a
/// slot of its own.
///
/// **If you remove items, insert items with `try_insert_copy`.** With the probability of the rate,
/// the filter reports a new item as present, because a stored item has the same fingerprint.
/// `try_insert` then stores nothing, and removing the stored item also removes the new item.
///
/// All copies of an item share the two buckets of the item. A filter with buckets of two slots
/// stores up to four copies of an item. An item with the highest count can no longer be removed. A
/// filter with many copies is full before its capacity, which counts each copy as one item:
///
/// | copies of each item | slots of a bucket | full at, of 1,000 / 100,000 / 4,000,000 planned items |
/// | --- | --- | --- |
/// | 1 | 2 | 104–107 % / 104–105 % / 104–105 % |
/// | 2 | 2 | 69–80 % / 57–73 % / 18–45 % |
/// | 2 | 4 | 98–103 % / 98–99 % / 98–99 % |
/// | 3 | 2 | 3–22 % / 2–6 % / 0–2 % |
/// | 3 | 4 | 87–92 % / 87–89 % / 67–88 % |
///
/// A larger plan does not help against copies, but buckets of four slots do: [`Plan::cuckoo`] with
/// a `bucket` of 4. If copies are the reason, the error of a refused item is [`NoRoom::Copies`].
///
/// # Examples
///
/// ```
/// use tamis::{Cuckoo, Removed};
///
/// let mut seen = Cuckoo::for_items(1_000, 0.01)?;
/// assert!(seen.try_insert("tamis")?, "new");
/// assert!(!seen.try_insert("tamis")?, "present, so nothing is stored");
/// assert_eq!(seen.remove("tamis"), Removed::Yes);
/// assert!(!seen.contains("tamis"));
///
/// assert!(seen.try_insert_copy("tamis")?, "new");
/// assert!(!seen.try_insert_copy("tamis")?, "a second copy");
/// assert_eq!(seen.count("tamis"), 2);
/// assert_eq!(seen.remove("tamis"), Removed::Yes);
/// assert_eq!(seen.remove("tamis"), Removed::Yes);
/// assert_eq!(seen.remove("tamis"), Removed::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cuckoo<B = Bitmap> {
    plan: Plan,
    table: Table,
    hasher: Hasher,
    bits: B,
    /// The number of used slots, if the filter counts its items.
    items: Option<u64>,
    search: Search,
}

impl Cuckoo {
    /// Creates an empty filter that has space for `items` items. Each copy of an item counts as one
    /// item. The filter keeps `rate` until it holds `items` items.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough
    /// memory.
    pub fn for_items(items: impl TryInto<u64>, rate: f64) -> Result<Self, PlanError> {
        Self::from_plan(&Plan::for_kind(Kind::Cuckoo, items, rate)?, Hasher::default())
    }

    /// Creates an empty filter from a plan, for example from [`Plan::cuckoo`].
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the plan is not for a cuckoo filter; [`PlanError::Memory`] if
    /// there is not enough memory.
    pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        let table = table_of(plan)?;
        let bits = Bitmap::zeroed(plan.bits())?;
        Ok(Self { plan: *plan, table, hasher, bits, items: Some(0), search: Search::default() })
    }
}

#[cfg(test)]
impl Cuckoo {
    /// Creates an empty filter with the geometry of `table`, for tests.
    fn empty(table: Table, hasher: Hasher) -> Result<Self, PlanError> {
        let (bits, geometry) = sizing::size_of_table(&table);
        Self::from_plan(
            &Plan::from_parts(Kind::Cuckoo, table.slots(), 0.5, bits, geometry)?,
            hasher,
        )
    }
}

fn table_of(plan: &Plan) -> Result<Table, PlanError> {
    sizing::table(plan.geometry(), plan.bits()).ok_or_else(|| plan.other_kind(Kind::Cuckoo))
}

impl<B: Bits<Word = u64>> Cuckoo<B> {
    /// Creates a filter from the words of a filter with this plan. Returns the errors of
    /// [`view`](Cuckoo::view).
    pub(crate) fn restore(plan: &Plan, hasher: Hasher, bits: B) -> Result<Self, PlanError> {
        let table = table_of(plan)?;
        plan.check_len(bits.words().len())?;
        if !table.is_valid(bits.words()) {
            let reason = "a slot holds an invalid value";
            return Err(PlanError::Words { kind: Kind::Cuckoo, reason });
        }
        Ok(Self::over(plan, table, hasher, bits, None))
    }

    fn over(plan: &Plan, table: Table, hasher: Hasher, bits: B, items: Option<u64>) -> Self {
        Self { plan: *plan, table, hasher, bits, items, search: Search::default() }
    }

    /// Borrows the filter. Takes constant time.
    pub fn as_view(&self) -> Cuckoo<BitView<'_>> {
        let bits = BitView::new(self.bits.words());
        Cuckoo::over(&self.plan, self.table, self.hasher, bits, self.items)
    }

    /// Returns the storage of the bits.
    pub fn bits(&self) -> &B {
        &self.bits
    }

    /// Returns the number of items, which is the number of used slots. Each copy of an item counts
    /// as one item. Takes constant time for a filter that was created empty. Reads all slots of a
    /// filter that was created from words.
    pub fn len(&self) -> u64 {
        self.items.unwrap_or_else(|| self.table.items(self.bits.words()))
    }
}

impl<B: Bits<Word = u64>, C: Bits<Word = u64>> PartialEq<Cuckoo<C>> for Cuckoo<B> {
    fn eq(&self, other: &Cuckoo<C>) -> bool {
        (self.plan, self.hasher) == (other.plan, other.hasher)
            && self.bits.words() == other.bits.words()
    }
}

impl<B: Bits<Word = u64>> fmt::Debug for Cuckoo<B> {
    /// Formats kind, capacity, rates, items and fill. The items, the current rate and the fill are
    /// exact if the filter counts its items. If the filter does not count its items, `Debug`
    /// estimates the items, the current rate and the fill from the first slots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.table.slots();
        let items = self.items.map_or_else(
            || {
                let few = slots.min(DEBUG_SLOTS);
                self.table.items_in(self.bits.words(), few) as f64 * slots as f64 / few as f64
            },
            |items| items as f64,
        );
        let rate = plan::rate_at(&self.table, items as u64);
        let state = DebugState { items, fill: items / slots as f64, rate };
        state.fmt("Cuckoo", &self.plan, self.hasher, f)
    }
}

/// The number of slots that `Debug` reads if the filter does not count its items.
const DEBUG_SLOTS: u64 = 1 << 16;

impl<B: Bits<Word = u64>> Filter for Cuckoo<B> {
    plan_and_hasher!();

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.table.contains(self.bits.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        self.table.contains_each(self.bits.words(), hashes, answers);
    }

    fn is_empty(&self) -> bool {
        match self.items {
            Some(items) => items == 0,
            None => self.bits.words().iter().all(|&word| word == 0),
        }
    }

    /// Returns the number of items. Each copy of an item counts as one item. The number of items is
    /// exact, except that copies beyond the highest count are missing.
    fn estimate_items(&self) -> f64 {
        self.len() as f64
    }

    fn estimate_rate(&self) -> f64 {
        plan::rate_at(&self.table, self.len())
    }

    /// Returns the share of used slots.
    fn fill(&self) -> f64 {
        self.len() as f64 / self.table.slots() as f64
    }
}

impl<B: Bits<Word = u64>> Count for Cuckoo<B> {
    #[inline]
    fn count_hash(&self, hash: u64) -> u64 {
        self.table.count(self.bits.words(), hash)
    }

    fn max_count(&self) -> u64 {
        self.table.most_copies()
    }
}

impl<B: BitsMut> TryInsert for Cuckoo<B> {
    #[inline]
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        self.insert_by(Repeats::Skip, hash)
    }

    fn try_insert_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        self.insert_each_by(Repeats::Skip, hashes, answers)
    }

    #[inline]
    fn try_insert_copy_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        self.insert_by(Repeats::Store, hash)
    }

    fn try_insert_copy_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        self.insert_each_by(Repeats::Store, hashes, answers)
    }
}

impl<B: BitsMut> Cuckoo<B> {
    #[inline]
    fn insert_by(&mut self, repeats: Repeats, hash: u64) -> Result<bool, InsertError> {
        let key = self.table.key(hash);
        match self.table.insert(self.bits.words_mut(), &mut self.search, key, repeats) {
            Ok(added) => {
                if added != Added::Unchanged {
                    self.items = self.items.map(|items| items + 1);
                }
                Ok(added == Added::New)
            }
            Err(Full) => Err(self.full(0)),
        }
    }

    fn insert_each_by(
        &mut self,
        repeats: Repeats,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        let (table, search) = (self.table, &mut self.search);
        let (mut inserted, mut stored, mut is_full) = (0, 0, false);
        table.change_each(self.bits.words_mut(), hashes, answers, |words, key| {
            if is_full {
                return false;
            }
            match table.insert(words, search, key, repeats) {
                Ok(added) => {
                    inserted += 1;
                    stored += u64::from(added != Added::Unchanged);
                    added == Added::New
                }
                Err(Full) => {
                    is_full = true;
                    false
                }
            }
        });
        self.items = self.items.map(|items| items + stored);
        if is_full { Err(self.full(inserted)) } else { Ok(()) }
    }
}

impl<B: Bits<Word = u64>> Cuckoo<B> {
    /// Returns the error for a refused item. A filter that was created from words counts its items
    /// at the first refused item only, because counting reads all slots.
    #[cold]
    fn full(&mut self, inserted: usize) -> InsertError {
        let items = self.len();
        self.items = Some(items);
        InsertError { inserted, reason: self.reason(self.bits.words(), items) }
    }

    /// Returns the reason why the table in `words`, which stores `items` items, refused an item.
    fn reason(&self, words: &[u64], items: u64) -> NoRoom {
        let capacity = self.plan.items();
        if items < capacity && self.table.share_of_copies(words) > MAX_CHANCE_COPIES {
            return NoRoom::Copies { items, capacity };
        }
        NoRoom::Full { items }
    }
}

/// The largest share of entries whose key occurs several times by chance, in a filter that is
/// planned for a rate of 10 %.
const MAX_CHANCE_COPIES: f64 = 0.1;

impl<B: BitsMut> Remove for Cuckoo<B> {
    #[inline]
    fn remove_hash(&mut self, hash: u64) -> Removed {
        let removed = self.table.remove(self.bits.words_mut(), self.table.key(hash));
        if removed == Removed::Yes {
            self.items = self.items.map(|items| items.saturating_sub(1));
        }
        removed
    }

    fn remove_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        let table = self.table;
        let mut removed = 0;
        table.change_each(self.bits.words_mut(), hashes, answers, |words, key| {
            let is_gone = table.remove(words, key) == Removed::Yes;
            removed += u64::from(is_gone);
            is_gone
        });
        self.items = self.items.map(|items| items.saturating_sub(removed));
    }
}

impl<B: BitsMut> Clear for Cuckoo<B> {
    fn clear(&mut self) {
        self.bits.words_mut().fill(0);
        (self.items, self.search) = (Some(0), Search::default());
    }
}

impl<B: BitsMut, C: Bits<Word = u64>> Merge<Cuckoo<C>> for Cuckoo<B> {
    /// Inserts each item of the other filter as many times as the other filter contains the item.
    fn merge(&mut self, other: &Cuckoo<C>) -> Result<(), MergeError> {
        MergeError::check_layouts(self.layout(), other.layout())?;
        // The items are inserted into a copy of the filter, because a merge that fails must leave
        // `self` unchanged.
        let copy = Bitmap::zeroed(self.bits.len_bits());
        let mut copy = copy.map_err(|memory| MergeError::NoRoom(NoRoom::Memory(memory)))?;
        copy.words_mut().copy_from_slice(self.bits.words());
        let keys = self.table.keys(other.bits.words());
        match insert_all(&self.table, copy.words_mut(), &mut self.search, keys) {
            Ok(copies) => {
                self.bits.words_mut().copy_from_slice(copy.words());
                self.items = self.items.map(|items| items + copies);
                Ok(())
            }
            Err(Full) => Err(MergeError::NoRoom(
                match self.reason(copy.words(), self.table.items(copy.words())) {
                    NoRoom::Full { .. } => NoRoom::Full { items: self.plan.items() },
                    copies => copies,
                },
            )),
        }
    }
}

/// Inserts keys. Returns the number of slots that the keys take.
fn insert_all(
    table: &Table,
    words: &mut [u64],
    search: &mut Search,
    keys: impl Iterator<Item = Key>,
) -> Result<u64, Full> {
    let mut copies = 0;
    for key in keys {
        copies += u64::from(table.insert(words, search, key, Repeats::Store)? != Added::Unchanged);
    }
    Ok(copies)
}

impl<B: Bits<Word = u64>> FilterWords for Cuckoo<B> {
    fn each_words_from<E>(
        &self,
        start: u64,
        mut each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        each(words_from(self.bits.words(), start))
    }
}

impl<B: Bits<Word = u64>> Variant<B> for Cuckoo<B> {
    one_run!(Cuckoo<BitView<'a>>);
    counts!();
}

#[cfg(test)]
mod tests;
