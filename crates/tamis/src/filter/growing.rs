//! Filters that grow with their number of items. A growing filter is a table of hash prefixes whose
//! pages split (`prefixes/`).

mod prefixes;
pub(crate) mod sizing;

use std::fmt;

use crate::batch::answers::check_words;
use crate::bits::{BitView, Bitmap, Bits, BitsMut, OutOfMemory};
use crate::filter::FilterWords;
use crate::filter::debug::DebugState;
use crate::filter::variant::Variant;
use crate::filter::{
    Clear, Filter, InsertError, Merge, MergeError, NoRoom, TryInsert, plan_and_hasher,
};
use crate::hash::Hasher;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::{Kind, Plan, PlanError};
use prefixes::{FlatPages, GrowError, Growth, OwnedPages, Table, WordsError};

/// A filter for any number of items. The filter starts with a few hundred bytes, grows without
/// reading the items again, and always keeps its rate.
///
/// At a rate of 1 %, the filter takes about 15 bits for each item, from ten thousand items to
/// hundreds of millions. Filters with more than hundreds of millions of items take two or three
/// additional bits for each item. A lookup reads the directory of pages, and one or two cache lines
/// of a page. If the number of items is known, a [`Bloom`](crate::Bloom) filter is smaller and
/// faster than a growing filter.
///
/// # Examples
///
/// ```
/// use tamis::Growing;
///
/// let mut seen = Growing::new(0.01)?;
/// for item in 0..100_000_u64 {
///     seen.try_insert(&item)?;
/// }
/// assert!((0..100_000_u64).all(|item| seen.contains(&item)));
/// assert!(seen.estimate_rate() < 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Growing<B = Bitmap> {
    plan: Plan,
    hasher: Hasher,
    storage: Storage<B>,
}

/// The storage of the prefixes.
#[derive(Clone)]
enum Storage<B> {
    /// A table in pages, which can grow.
    Pages(Table<OwnedPages>),
    /// A table in one slice of words, for example from a file. The first insert copies the words
    /// into pages.
    Words(Table<FlatPages<B>>),
}

/// Runs an expression on the table of either storage.
macro_rules! with_table {
    ($filter:expr, $table:ident => $body:expr) => {
        match &$filter.storage {
            Storage::Pages($table) => $body,
            Storage::Words($table) => $body,
        }
    };
}

impl Growing {
    /// Creates an empty filter that keeps `rate`, a probability, for any number of items. To set the
    /// hash function, use [`from_plan`](Self::from_plan).
    ///
    /// # Errors
    ///
    /// [`PlanError::Rate`] unless `0.0 < rate && rate < 1.0`; [`PlanError::RateTooLow`] if 64-bit
    /// hashes cannot keep the rate even in a small filter; [`PlanError::Memory`] if there is not
    /// enough memory.
    pub fn new(rate: f64) -> Result<Self, PlanError> {
        Self::for_items(1, rate)
    }

    /// Creates an empty filter that keeps `rate`, a probability, for any number of items. `items` is
    /// the expected number, which [`capacity`](Self::capacity) returns. The number has no other
    /// effect.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](Self::new), and [`PlanError::Items`] if `items` is negative.
    pub fn for_items(items: impl TryInto<u64>, rate: f64) -> Result<Self, PlanError> {
        Self::from_plan(&Plan::for_kind(Kind::Growing, items, rate)?, Hasher::default())
    }

    /// Creates an empty filter from a plan. The rate of the plan determines how the filter grows.
    /// The filter can hold more items than the plan expects.
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the plan is not for a growing filter; [`PlanError::Memory`] if
    /// there is not enough memory.
    pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        let table = Table::new(growth_of(plan)?)?;
        Ok(Self { plan: *plan, hasher, storage: Storage::Pages(table) })
    }
}

fn growth_of(plan: &Plan) -> Result<Growth, PlanError> {
    Growth::of_geometry(plan.geometry()).ok_or_else(|| plan.other_kind(Kind::Growing))
}

impl<B: Bits<Word = u64>> Growing<B> {
    /// Creates a filter from the words of a filter with this plan. Returns the errors of
    /// [`view`](Growing::view).
    pub(crate) fn restore(plan: &Plan, hasher: Hasher, bits: B) -> Result<Self, PlanError> {
        let refused = |reason| PlanError::Words { kind: Kind::Growing, reason };
        let growth = growth_of(plan)?;
        if Growth::for_rate(plan.rate()) != Some(growth) {
            return Err(refused("the rule of growth does not match the rate"));
        }
        // The plan of a growing filter has the planned number of bits, but a plan from a file has
        // the number of bits of the file's words.
        let (bits_planned, geometry) = (growth.bits_at(plan.items()), plan.geometry());
        let planned =
            Plan::from_parts(plan.kind(), plan.items(), plan.rate(), bits_planned, geometry)?;
        let table = Table::view(growth, bits).map_err(|error| {
            refused(match error {
                WordsError::Head => "the head does not match the pages",
                WordsError::Page(_) => "a page is invalid",
            })
        })?;
        Ok(Self { plan: planned, hasher, storage: Storage::Words(table) })
    }

    /// Borrows the filter. Returns `None` for a filter that has grown, because its words are no
    /// longer contiguous. Takes constant time.
    pub fn as_view(&self) -> Option<Growing<BitView<'_>>> {
        match &self.storage {
            Storage::Pages(_) => None,
            Storage::Words(table) => {
                let storage = Storage::Words(table.as_view());
                Some(Growing { plan: self.plan, hasher: self.hasher, storage })
            }
        }
    }

    /// Returns the number of items that were new to the filter when they were inserted.
    pub fn len(&self) -> u64 {
        with_table!(self, table => table.counts().items)
    }

    /// Returns true if the filter refuses all new items, because its prefixes use all 64 bits of a
    /// hash. At a rate of 1e-9, a filter is full with 534 million items; at a rate of 3e-14, with
    /// 226 thousand items. Takes constant time.
    pub fn is_full(&self) -> bool {
        with_table!(self, table => table.is_full())
    }

    /// Returns the current memory of the filter, in bytes: all allocations including unused words.
    pub fn memory_bytes(&self) -> u64 {
        match &self.storage {
            Storage::Pages(table) => table.memory_bytes(),
            Storage::Words(table) => table.len_words() * 8,
        }
    }

    /// Returns the heap memory of the filter, in bytes, as
    /// [`allocation_bytes`](crate::allocation_bytes) counts it. Takes constant time.
    pub fn heap_bytes(&self) -> u64 {
        match &self.storage {
            Storage::Pages(table) => table.heap_bytes(),
            Storage::Words(table) => crate::bits::heap_bytes(table.len_words() * 64),
        }
    }

    /// Copies the table into pages, which can grow.
    fn to_pages(&self) -> Result<Table, OutOfMemory> {
        with_table!(self, table => table.to_owned())
    }

    /// Returns the table in pages, so that the caller can change the table.
    fn pages_mut(&mut self) -> Result<&mut Table, NoRoom> {
        if let Storage::Words(table) = &self.storage {
            self.storage = Storage::Pages(table.to_owned().map_err(NoRoom::Memory)?);
        }
        match &mut self.storage {
            Storage::Pages(table) => Ok(table),
            Storage::Words(_) => unreachable!("copied into pages above"),
        }
    }
}

impl<B: Bits<Word = u64>> FilterWords for Growing<B> {
    fn each_words_from<E>(
        &self,
        start: u64,
        each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        with_table!(self, table => table.write_words(start, each))
    }

    fn len_words(&self) -> u64 {
        with_table!(self, table => table.len_words())
    }
}

impl<B: Bits<Word = u64>> Variant<B> for Growing<B> {
    type View<'a>
        = Growing<BitView<'a>>
    where
        Self: 'a;

    fn view(&self) -> Option<Self::View<'_>> {
        self.as_view()
    }

    fn heap_bytes(&self) -> u64 {
        Growing::heap_bytes(self)
    }
}

impl<B: Bits<Word = u64>, C: Bits<Word = u64>> PartialEq<Growing<C>> for Growing<B> {
    fn eq(&self, other: &Growing<C>) -> bool {
        let words = |each: &mut dyn FnMut(&[u64])| {
            let Ok(()) = other.each_words_from(0, |words| {
                each(words);
                Ok::<(), std::convert::Infallible>(())
            });
        };
        if (self.plan, self.hasher, self.len_words())
            != (other.plan, other.hasher, other.len_words())
        {
            return false;
        }
        let (mut one, mut two) = (Vec::new(), Vec::new());
        words(&mut |words| two.extend_from_slice(words));
        let Ok(()) = self.each_words_from(0, |words| {
            one.extend_from_slice(words);
            Ok::<(), std::convert::Infallible>(())
        });
        one == two
    }
}

impl<B: Bits<Word = u64>> fmt::Debug for Growing<B> {
    /// Formats kind, rates, items and fill. Takes constant time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DebugState::of(self).fmt("Growing", &self.plan, self.hasher, f)
    }
}

impl<B: Bits<Word = u64>> Filter for Growing<B> {
    plan_and_hasher!();

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        with_table!(self, table => table.contains(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        check_words(answers, hashes.len());
        with_table!(self, table => table.contains_each(hashes, answers));
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Estimates the number of distinct items. The estimate is nearly exact. The estimate also
    /// counts the new items that the filter reported as present.
    fn estimate_items(&self) -> f64 {
        // The filter did not store new items that the filter reported as present. The share of the
        // items that were not stored follows from the rate. While the filter filled, the rate was
        // on average half the current rate.
        let rate = self.estimate_rate().min(0.999);
        self.len() as f64 * (1.0 + rate / (1.0 - rate) / 2.0)
    }

    /// Returns the exact current rate.
    fn estimate_rate(&self) -> f64 {
        with_table!(self, table => table.rate()).min(1.0)
    }

    /// Returns the current rate divided by the planned rate, at most 1.
    fn fill(&self) -> f64 {
        (self.estimate_rate() / self.plan.rate()).min(1.0)
    }
}

impl<B: BitsMut> TryInsert for Growing<B> {
    #[inline]
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        let table = self.pages_mut().map_err(|reason| InsertError { inserted: 0, reason })?;
        let items = table.counts().items;
        table
            .insert(hash)
            .map_err(|error| InsertError { inserted: 0, reason: no_room(error, items) })
    }

    fn try_insert_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        check_words(answers, hashes.len());
        let table = self.pages_mut().map_err(|reason| InsertError { inserted: 0, reason })?;
        table.insert_each(hashes, answers).map_err(|(inserted, error)| InsertError {
            inserted,
            reason: no_room(error, table.counts().items),
        })
    }
}

fn no_room(error: GrowError, items: u64) -> NoRoom {
    match error {
        GrowError::Full => NoRoom::Full { items },
        GrowError::Crowded => NoRoom::Crowded,
        GrowError::Memory(memory) => NoRoom::Memory(memory),
    }
}

impl<B: BitsMut> Clear for Growing<B> {
    /// Frees all memory except the memory of an empty filter.
    ///
    /// # Panics
    ///
    /// Panics if a few hundred bytes for an empty filter cannot be allocated.
    fn clear(&mut self) {
        let growth = growth_of(&self.plan).expect("the plan is for a growing filter");
        self.storage = Storage::Pages(Table::new(growth).expect("memory for an empty filter"));
    }
}

impl<B: BitsMut, C: Bits<Word = u64>> Merge<Growing<C>> for Growing<B> {
    /// Inserts the prefixes of the other filter. The rate of the merged filter is at most the sum
    /// of the rates of both filters. If the rate of the merged filter is above the planned rate,
    /// [`is_over_rate`](Filter::is_over_rate) returns true. Merging takes time proportional to the
    /// size of both filters.
    fn merge(&mut self, other: &Growing<C>) -> Result<(), MergeError> {
        MergeError::check_layouts(self.layout(), other.layout())?;
        // The prefixes are inserted into a copy of the table, because a merge that fails must leave
        // `self` unchanged.
        let mut table =
            self.to_pages().map_err(|memory| MergeError::NoRoom(NoRoom::Memory(memory)))?;
        let merged = with_table!(other, other => table.merge(other));
        merged.map_err(|error| MergeError::NoRoom(no_room(error, table.counts().items)))?;
        self.storage = Storage::Pages(table);
        Ok(())
    }
}
