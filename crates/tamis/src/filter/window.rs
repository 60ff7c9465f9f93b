//! The window filter, which forgets an item after a time, or after a number of other items.
//!
//! ```text
//! span W = l slices          one place of the filter, l + 1 = 4 neighbouring blocks
//!                            ┌────────┬────────┬────────┬────────┐
//!  items come ─▶ slice 6     │ 4      │ 5      │ 6 now  │ 3      │   slice g in block g mod 4
//!                            └────────┴────────┴────────┴────────┘
//!                                                  ▲ when slice 7 begins, 3 is cleared and becomes 7
//! ```
//!
//! The window filter is a ring of l + 1 slices, which are Bloom filters with blocks. Items are
//! inserted into the current slice. With a span W of l slices, each slice is the current slice for
//! W/l. When the current slice has lasted for W/l, the oldest slice is cleared and becomes the
//! current slice. The filter remembers an item for at least the span W: during the l slices that
//! follow the slice of the item. The filter forgets an item at most W·(1 + 1/l) after its
//! insertion.
//!
//! The blocks with the same number in all slices are adjacent in memory and form a place. With a
//! span of three slices, a place has four blocks with eight lanes of 16 bits
//! (`strategy/block_rules/narrow.rs`). With a span of one slice, a place has two blocks with lanes
//! of 32 bits, and an item sets the same bits as in a block of Parquet's filter. With one slice or
//! three slices, the blocks of a place fill one cache line.
//!
//! The age-partitioned Bloom filter (Shtul, Baquero, Almeida, "Age-Partitioned Bloom Filters",
//! 2020) sets k bits in k of its k + l slices. The age-partitioned filter needs 35 bits for each
//! item at 1 % and l = 7. A window filter needs 21 bits for each item at 1 %. Besides the l slices
//! of its span, a window filter stores only one more slice. A lookup in a window filter reads one
//! cache line. A lookup in an age-partitioned filter reads up to k + l bits in distant places.
//!
//! The filter does not read the clock of the system: the caller passes the time to
//! [`Window::advance`].

mod clock;
mod insert;
pub(crate) mod sizing;

use std::fmt;
use std::time::Duration;

use crate::arch::places::{self, Places};
use crate::arch::{self, prefetch_lines};
use crate::batch::answers::check_words;
use crate::batch::extend::extend;
use crate::batch::prefetching::in_batches;
use crate::bits::{BitView, Bitmap, Bits, BitsMut, words_from};
use crate::filter::FilterWords;
use crate::filter::debug::{self, DebugState};
use crate::filter::variant::Variant;
use crate::filter::{Clear, Filter, Merge, MergeError, plan_and_hasher};
use crate::hash::Hasher;
use crate::item::Item;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::{Geometry, Kind, Plan, PlanError};
use crate::strategy::lanes::lanes_rate;
use clock::Clock;
pub use clock::Span;
use sizing::blocks_of;

/// A filter that remembers an item for at least a span, and forgets the item soon after the span.
///
/// The span is a time or a number of items ([`Span`]). A repeated insert of a remembered item does
/// not store the item, unless the filter refreshes items. The filter forgets an item a span after
/// its first insertion, unless repeated inserts [refresh](Self::refreshing) the item. With the
/// probability of its rate, the filter reports a new item as remembered. For a new item that the
/// filter reports as remembered, insert returns false and does not store the item. The span is
/// guaranteed only for an item whose insert returned true. If repeated inserts refresh items, the
/// span is guaranteed for every inserted item.
///
/// With a span of items, the filter always keeps its rate, unless the filter is merged with another
/// filter. With a span of time, the filter keeps its rate while no slice receives more than its
/// share of the planned items. If all items may arrive at once, plan one slice ([`Plan::window`]).
/// A filter with one slice takes a sixth more memory than a filter with three slices, and forgets
/// an item within two spans.
///
/// # Examples
///
/// ```
/// use tamis::{Hasher, Kind, Plan, Span, Window};
///
/// // With four slices, an item is remembered for at least 60 and at most 75 minutes.
/// let plan = Plan::window(1_000, 0.01, 4)?;
/// let mut seen = Window::from_plan(&plan, Hasher::default(), Span::Millis(3_600_000))?;
/// seen.advance(1_700_000_000_000);
/// assert!(seen.insert("tamis"));
/// seen.advance(1_700_000_000_000 + 3_600_000);
/// assert!(seen.contains("tamis"), "an hour later");
/// seen.advance(1_700_000_000_000 + 4_500_000);
/// assert!(!seen.contains("tamis"), "75 minutes later");
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone)]
pub struct Window<B = Bitmap> {
    plan: Plan,
    hasher: Hasher,
    // The current state of the clock. A file stores the state of the clock in the first cache line
    // of its words.
    clock: Clock,
    level: arch::Level,
    places: Places,
    // Invariant: `bits` contains one cache line for the clock, which only files use, followed by
    // the places.
    bits: B,
}

impl<B: Bits<Word = u64>, C: Bits<Word = u64>> PartialEq<Window<C>> for Window<B> {
    fn eq(&self, other: &Window<C>) -> bool {
        (self.plan, self.hasher, self.clock) == (other.plan, other.hasher, other.clock)
            && self.places().eq(other.places())
    }
}

impl Window {
    /// Creates an empty filter that remembers the last `items` new items, at `rate`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough
    /// memory.
    pub fn for_items(items: impl TryInto<u64>, rate: f64) -> Result<Self, PlanError> {
        let plan = Plan::for_kind(Kind::Window, items, rate)?;
        Self::for_plan(&plan, Hasher::default())
    }

    /// Creates an empty filter that remembers items for at least `span` and at most twice `span`.
    /// The filter keeps `rate` if at most `items` items arrive in any span, even if all items arrive
    /// at once. The span is rounded up to whole milliseconds.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough
    /// memory.
    pub fn for_time(
        span: Duration,
        items: impl TryInto<u64>,
        rate: f64,
    ) -> Result<Self, PlanError> {
        let plan = Plan::window(items, rate, 1)?;
        Self::from_plan(&plan, Hasher::default(), span.into())
    }

    /// Creates an empty filter from a plan for the items of a span. A span of zero is replaced by
    /// one.
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the plan is not for a window filter; [`PlanError::Memory`] if
    /// there is not enough memory.
    pub fn from_plan(plan: &Plan, hasher: Hasher, span: Span) -> Result<Self, PlanError> {
        let slices = slices_of(plan)?;
        let bits = Bitmap::zeroed(plan.bits())?;
        let clock = Clock::new(slices, span);
        Ok(Self::of(plan, hasher, clock, bits))
    }

    /// Creates an empty filter that remembers the planned number of items.
    pub(crate) fn for_plan(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        Self::from_plan(plan, hasher, Span::Items(plan.items()))
    }

    /// Makes repeated inserts refresh an item. With refreshing, the filter forgets an item a span
    /// after its last insertion.
    #[must_use]
    pub fn refreshing(mut self) -> Self {
        self.clock.refreshes = true;
        self
    }
}

impl<B: Bits<Word = u64>> Window<B> {
    fn of(plan: &Plan, hasher: Hasher, clock: Clock, bits: B) -> Self {
        // A block has eight lanes.
        let blocks = blocks_of(plan.geometry());
        let block_words = blocks.lane_bits as usize * 8 / 64;
        let places = Places { len: blocks.places(plan.bits()), slots: clock.slots(), block_words };
        Self { plan: *plan, hasher, clock, level: arch::level(), places, bits }
    }

    /// Creates a filter from the words of a filter with this plan, for example of a file. Takes
    /// constant time.
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the plan is not for a window filter; [`PlanError::Words`] if no
    /// filter with this plan can have the words of `bits`.
    pub(crate) fn restore(plan: &Plan, hasher: Hasher, bits: B) -> Result<Self, PlanError> {
        let slices = slices_of(plan)?;
        plan.check_len(bits.words().len())?;
        let clock = Clock::read(slices, bits.words())?;
        Ok(Self::of(plan, hasher, clock, bits))
    }

    /// Borrows the filter. Takes constant time.
    pub fn as_view(&self) -> Window<BitView<'_>> {
        Window::of(&self.plan, self.hasher, self.clock, BitView::new(self.bits.words()))
    }

    /// Returns the time at which the current slice began, in milliseconds of the caller's clock.
    /// Returns `None` if the span is a number of items.
    pub fn began_millis(&self) -> Option<u64> {
        self.clock.began_millis()
    }

    /// Returns the time at which the slice of the last insert began, in milliseconds of the
    /// caller's clock. Returns `None` if the span is a number of items.
    pub fn stored_millis(&self) -> Option<u64> {
        self.clock.stored_millis()
    }

    /// Returns the number of slices of the span.
    pub fn slices(&self) -> u32 {
        self.clock.slots() as u32 - 1
    }

    /// Returns the span.
    pub fn span(&self) -> Span {
        self.clock.span
    }

    /// Returns true if repeated inserts refresh an item.
    pub fn refreshes(&self) -> bool {
        self.clock.refreshes
    }

    /// Sets the current time, in milliseconds since any epoch, and forgets the items that are
    /// outside the window. Takes constant time, because the next insert clears the memory of the
    /// forgotten items. If the span is a number of items, `advance` has no effect.
    ///
    /// Items that were inserted before the first call of `advance` count as inserted at this first
    /// call. A file stores whether a window has received its first time.
    ///
    /// The time of the filter never goes back: if `now_millis` is before the current time, `advance`
    /// has no effect. If the caller's clock jumps back, the filter remembers items longer until the
    /// clock catches up, and forgets none too early. If the clock jumps forward, the filter forgets
    /// the items that the new time is past. After a jump forward by mistake, create a new filter,
    /// because a filter in the future forgets nothing until its time comes.
    ///
    /// Returns true if the state of the filter changed.
    pub fn advance(&mut self, now_millis: u64) -> bool {
        let before = self.clock;
        self.clock.advance(now_millis);
        self.clock != before
    }

    /// Returns the words of all blocks, without the words of the clock.
    #[inline(always)]
    fn words(&self) -> &[u64] {
        &self.bits.words()[Clock::WORDS..]
    }

    fn places(&self) -> std::slice::ChunksExact<'_, u64> {
        self.words().chunks_exact(self.places.len_words())
    }

    /// Counts the set bits of each slice, in the order of the slice's blocks in a place.
    fn ones(&self) -> Vec<u64> {
        let mut ones = vec![0; self.clock.slots()];
        for place in self.places() {
            for (ones, block) in ones.iter_mut().zip(place.chunks_exact(self.places.block_words)) {
                *ones += block.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            }
        }
        ones
    }

    fn slot_bits(&self) -> f64 {
        self.places().len() as f64 * self.places.block_words as f64 * 64.0
    }
}

impl<B: Bits<Word = u64>> FilterWords for Window<B> {
    /// Passes the cache line of the clock to `each`, and then the blocks.
    fn each_words_from<E>(
        &self,
        start: u64,
        mut each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        if start < Clock::WORDS as u64 {
            each(&self.clock.to_words()[start as usize..])?;
        }
        each(words_from(self.words(), start.saturating_sub(Clock::WORDS as u64)))
    }
}

impl<B: Bits<Word = u64>> Variant<B> for Window<B> {
    type View<'a>
        = Window<BitView<'a>>
    where
        Self: 'a;

    fn view(&self) -> Option<Self::View<'_>> {
        Some(self.as_view())
    }

    fn advance(&mut self, now_millis: u64) {
        Window::advance(self, now_millis);
    }
}

fn slices_of(plan: &Plan) -> Result<u32, PlanError> {
    match plan.geometry() {
        Geometry::Slices(slices) => Ok(slices),
        _ => Err(plan.other_kind(Kind::Window)),
    }
}

impl<B: Bits<Word = u64>> fmt::Debug for Window<B> {
    /// Formats kind, capacity, rates, items and fill, estimated from at most the first 64 KiB.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan.part(debug::DEBUG_BYTES).unwrap_or(self.plan);
        let words = &self.bits.words()[..plan.bits().div_ceil(64) as usize];
        let part = Window::of(&plan, self.hasher, self.clock, BitView::new(words));
        DebugState::of(&part).of_part(&plan, &self.plan).fmt("Window", &self.plan, self.hasher, f)
    }
}

impl<I: Item, B: BitsMut> Extend<I> for Window<B> {
    /// Inserts every item, in batches.
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        extend(self, items);
    }
}

impl<B: Bits<Word = u64>> Filter for Window<B> {
    plan_and_hasher!();

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        let place = &self.words()[self.places.words(hash)];
        let holds = |blocks: &[u64]| places::contains(self.level, blocks, self.places, hash);
        if self.clock.all_live() {
            return holds(place);
        }
        let blocks = place.chunks_exact(self.places.block_words);
        blocks.enumerate().any(|(slot, block)| self.clock.is_live(slot) && holds(block))
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        check_words(answers, hashes.len());
        if self.clock.all_live() {
            places::contains_each(self.level, self.words(), self.places, hashes, answers);
            return;
        }
        let prefetch = |hash| prefetch_lines(self.words(), self.places.words(hash));
        in_batches(hashes, answers, prefetch, |hash| self.contains_hash(hash));
    }

    /// Estimates how many items the filter remembers. If repeated inserts refresh an item, the item
    /// may count once for each slice.
    fn estimate_items(&self) -> f64 {
        let bits = self.slot_bits();
        let items = |ones: u64| -(bits / 8.0) * (-(ones as f64) / bits).ln_1p();
        let live =
            self.ones().into_iter().enumerate().filter(|&(slot, _)| self.clock.is_live(slot));
        // The sum starts at positive zero, because `Sum` of an empty iterator returns −0.
        live.fold(0.0, |all, (_, ones)| all + items(ones))
    }

    fn estimate_rate(&self) -> f64 {
        let block_words = self.places.block_words;
        let lane_bits = blocks_of(self.plan.geometry()).lane_bits as u32;
        let of_place = |place: &[u64]| {
            let blocks = place.chunks_exact(block_words).enumerate();
            let live = blocks.filter(|&(slot, _)| self.clock.is_live(slot));
            let passes = |block| 1.0 - lanes_rate(block, block_words, lane_bits);
            1.0 - live.map(|(_, block)| passes(block)).product::<f64>()
        };
        self.places().map(of_place).sum::<f64>() / self.places().len() as f64
    }

    fn fill(&self) -> f64 {
        let live =
            self.ones().into_iter().enumerate().filter(|&(slot, _)| self.clock.is_live(slot));
        let ones: u64 = live.map(|(_, ones)| ones).sum();
        ones as f64 / (self.slot_bits() * self.clock.slots() as f64)
    }
}

impl<B: BitsMut> Clear for Window<B> {
    /// Forgets all items but keeps the span and the time.
    fn clear(&mut self) {
        self.bits.words_mut()[Clock::WORDS..].fill(0);
        self.clock.clear();
    }
}

impl<B: BitsMut, C: Bits<Word = u64>> Merge<Window<C>> for Window<B> {
    /// Merges the items of both filters. The merged filter remembers each item at least as long as
    /// the filter that the item comes from. If the span is a time, the merge joins the slices that
    /// cover the same period in both filters. If the span is a number of items, the merge joins the
    /// slices that have the same age in both filters. The current time of the merged filter is the
    /// later of the two current times. The merged filter forgets the items that are outside the
    /// window at its current time. The joined slices contain the items of both filters, so the rate
    /// may be above the planned rate.
    fn merge(&mut self, other: &Window<C>) -> Result<(), MergeError> {
        MergeError::check_layouts(self.layout(), other.layout())?;
        let current = other.places.block(other.clock.slot());
        // Only a merge of windows of items asks. The search ends at the first set bit.
        let is_empty =
            || other.places().all(|place| place[current.clone()].iter().all(|&word| word == 0));
        let pairs = self.clock.merge(&other.clock, is_empty).ok_or(MergeError::Span)?;
        self.turn();
        let places = self.places;
        let words = &mut self.bits.words_mut()[Clock::WORDS..];
        for (place, other) in words.chunks_exact_mut(places.len_words()).zip(other.places()) {
            for &(to, from) in &pairs {
                let block = place[places.block(to)].iter_mut();
                block.zip(&other[places.block(from)]).for_each(|(to, from)| *to |= from);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
