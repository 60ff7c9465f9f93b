//! The counting Bloom filter. A counting filter has a counter in place of each bit of a plain Bloom
//! filter, so that items can be removed and counted.
//!
//! ```text
//! narrow block of a plain filter:  | lane 0: 16 bits | lane 1 | ... | lane 7 |       a fourth of a cache line
//! the same with 4-bit counters:    | ones of all lanes | twos | fours | eights |     one line
//! ```
//!
//! An item increments one counter in each of eight lanes. The lowest of an item's eight counters is
//! an upper bound of how often the item was inserted. If all eight counters of an item are above
//! zero, the item may be present, so a counting filter gives the answers of a plain filter with the
//! same blocks.
//!
//! The blocks are so narrow that all counters of a block are in one cache line. With the blocks of
//! the default filter, a counting filter would take an eighth fewer bits, but a lookup would read
//! four cache lines.
//!
//! A counter at its highest value is never decremented, because its true value is unknown. Without
//! this rule for highest values, the filter could report an inserted item as absent. An item is
//! removed only if all its counters are above zero, so no counter goes below zero.
//!
//! Source: Fan, Cao, Almeida, Broder, "Summary Cache" (2000), §5. `strategy/block_rules/narrow.rs`
//! defines the blocks.

pub(crate) mod sizing;

use std::fmt;

use crate::arch;
use crate::arch::counters::{CounterKernels, SLICE_WORDS, kernels};
use crate::batch::extend::extend;
use crate::bits::{BitView, Bitmap, Bits, BitsMut, words_from};
use crate::filter::FilterWords;
use crate::filter::debug::{self, DebugState};
use crate::filter::variant::{Variant, counts, one_run};
use crate::filter::{
    Clear, Count, Filter, Insert, Merge, MergeError, Remove, Removed, plan_and_hasher,
};
use crate::hash::Hasher;
use crate::item::Item;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::{Geometry, Kind, Plan, PlanError};
use crate::strategy::block_rules::narrow::Narrow;
use crate::strategy::block_rules::scale::scale;
use crate::strategy::lanes::{lanes_items, lanes_rate};

/// A Bloom filter that can remove items and count the copies of an item.
///
/// With 4-bit counters, the filter takes four and a half times the memory of the default filter. A
/// filter with wider counters takes more memory than a filter with 4-bit counters. The storage `B`
/// is [`Bitmap`] (owned) or [`BitView`] (mapped from a file).
///
/// # Examples
///
/// ```
/// use tamis::{Counting, Removed};
///
/// let mut seen: Counting = Counting::for_items(1_000, 0.01)?;
/// seen.insert("tamis");
/// seen.insert("tamis");
/// assert_eq!(seen.count("tamis"), 2);
/// assert_eq!(seen.remove("tamis"), Removed::Yes);
/// assert_eq!(seen.remove("tamis"), Removed::Yes);
/// assert_eq!(seen.remove("tamis"), Removed::Absent);
/// assert!(!seen.contains("tamis"));
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone)]
pub struct Counting<B = Bitmap> {
    plan: Plan,
    hasher: Hasher,
    counter_bits: u32,
    kernels: CounterKernels,
    // Invariant: the length is a whole number of blocks. A block has `counter_bits` slices of two
    // words each (`arch/counters.rs`).
    counters: B,
}

impl<B: PartialEq> PartialEq for Counting<B> {
    fn eq(&self, other: &Self) -> bool {
        (self.plan, self.hasher) == (other.plan, other.hasher) && self.counters == other.counters
    }
}

impl<B: Bits<Word = u64>> fmt::Debug for Counting<B> {
    /// Formats kind, capacity, rates, items and fill, estimated from at most the first 64 KiB.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan.part(debug::DEBUG_BYTES).unwrap_or(self.plan);
        let words = &self.counters.words()[..plan.bits().div_ceil(64) as usize];
        let part = Counting::of(&plan, self.hasher, self.counter_bits, BitView::new(words));
        DebugState::of(&part).of_part(&plan, &self.plan).fmt("Counting", &self.plan, self.hasher, f)
    }
}

impl<I: Item, B: BitsMut> Extend<I> for Counting<B> {
    /// Inserts every item, in batches.
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        extend(self, items);
    }
}

impl Counting {
    /// Creates an empty filter with 4-bit counters that keeps `rate` until the filter holds `items`
    /// distinct items.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough
    /// memory.
    pub fn for_items(items: impl TryInto<u64>, rate: f64) -> Result<Self, PlanError> {
        Self::from_plan(&Plan::for_kind(Kind::Counting, items, rate)?, Hasher::default())
    }

    /// Creates an empty filter from a plan, for example from [`Plan::counting`].
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the plan is not for a counting filter; [`PlanError::Memory`] if
    /// there is not enough memory.
    pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        plan.check_kind(Kind::Counting)?;
        Self::restore(plan, hasher, Bitmap::zeroed(plan.bits())?)
    }
}

impl<B: Bits<Word = u64>> Counting<B> {
    /// Creates a filter from the words of a filter with this plan. Returns the errors of
    /// [`view`](Counting::view).
    pub(crate) fn restore(plan: &Plan, hasher: Hasher, counters: B) -> Result<Self, PlanError> {
        let Geometry::Counters(counter_bits) = plan.geometry() else {
            return Err(plan.other_kind(Kind::Counting));
        };
        plan.check_len(counters.words().len())?;
        Ok(Self::of(plan, hasher, counter_bits, counters))
    }

    fn of(plan: &Plan, hasher: Hasher, counter_bits: u32, counters: B) -> Self {
        let kernels = kernels(arch::level(), counter_bits);
        Self { plan: *plan, hasher, counter_bits, kernels, counters }
    }

    /// Borrows the filter. Takes constant time.
    pub fn as_view(&self) -> Counting<BitView<'_>> {
        let counters = BitView::new(self.counters.words());
        Counting::of(&self.plan, self.hasher, self.counter_bits, counters)
    }

    /// Returns the counters.
    pub fn bits(&self) -> &B {
        &self.counters
    }

    /// Returns the number of counters at their highest value, which are never decremented. Reads
    /// all counters.
    ///
    /// An item whose counters are all at their highest value cannot be removed: its removal returns
    /// [`Removed::Saturated`].
    pub fn saturated_counters(&self) -> u64 {
        self.lanes(|all, slice| all & slice).map(|lane| u64::from(lane.count_ones())).sum()
    }

    /// Returns the share of counters above zero in each block, in order. Reads all counters.
    pub fn fill_by_block(&self) -> Vec<f64> {
        let fill = |block: &[u64]| {
            let ones: u32 = block.iter().map(|lanes| lanes.count_ones()).sum();
            f64::from(ones) / (SLICE_WORDS as f64 * 64.0)
        };
        self.projected().chunks_exact(SLICE_WORDS).map(fill).collect()
    }

    /// Combines the counters of each block into one bit for each counter. `join` combines the bits
    /// of a counter. If `join` is a bitwise or, a result bit is 1 if the counter is above zero. If
    /// `join` is a bitwise and, a result bit is 1 if the counter has its highest value.
    fn lanes(&self, join: impl Fn(u64, u64) -> u64) -> impl Iterator<Item = u64> {
        let blocks = self.counters.words().chunks_exact(self.block_words());
        blocks.flat_map(move |block| {
            let (slices, _) = block.as_chunks::<SLICE_WORDS>();
            let both = |one: [u64; SLICE_WORDS], other: &[u64; SLICE_WORDS]| {
                std::array::from_fn(|i| join(one[i], other[i]))
            };
            slices[1..].iter().fold(slices[0], both)
        })
    }

    /// Returns the bits of a plain filter with the same items: a bit is 1 if its counter is above
    /// zero.
    fn projected(&self) -> Vec<u64> {
        self.lanes(|any, slice| any | slice).collect()
    }

    #[inline(always)]
    fn block_words(&self) -> usize {
        SLICE_WORDS * self.counter_bits as usize
    }

    /// Returns the first word of the block of `hash`.
    #[inline(always)]
    fn first_word(&self, hash: u64) -> usize {
        let block_words = self.block_words();
        scale(hash, (self.counters.words().len() / block_words) as u64) as usize * block_words
    }
}

impl<B: Bits<Word = u64>> Filter for Counting<B> {
    plan_and_hasher!();

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        (self.kernels.contains)(self.counters.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        (self.kernels.contains_each)(self.counters.words(), hashes, answers);
    }

    fn is_empty(&self) -> bool {
        self.counters.words().iter().all(|&word| word == 0)
    }

    fn estimate_items(&self) -> f64 {
        lanes_items(&self.projected())
    }

    fn estimate_rate(&self) -> f64 {
        lanes_rate(&self.projected(), SLICE_WORDS, Narrow::LANE_BITS)
    }

    /// Returns the share of counters above zero.
    fn fill(&self) -> f64 {
        let ones: u64 = self.projected().iter().map(|lane| u64::from(lane.count_ones())).sum();
        ones as f64 * f64::from(self.counter_bits) / self.plan.bits() as f64
    }
}

impl<B: Bits<Word = u64>> Count for Counting<B> {
    fn count_hash(&self, hash: u64) -> u64 {
        let block = &self.counters.words()[self.first_word(hash)..];
        let mut lowest = Narrow::mask(hash);
        // The loop reads from the highest bit of the counters to the lowest bit. `lowest` marks the
        // counters that may have the lowest value. If the current bit is zero in some of the marked
        // counters, only these counters remain marked.
        let mut count = 0;
        for slice in block.chunks_exact(SLICE_WORDS).take(self.counter_bits as usize).rev() {
            let without: [u64; SLICE_WORDS] = std::array::from_fn(|i| lowest[i] & !slice[i]);
            let has_all = without == [0; SLICE_WORDS];
            count = count << 1 | u64::from(has_all);
            if !has_all {
                lowest = without;
            }
        }
        count
    }

    fn max_count(&self) -> u64 {
        (1 << self.counter_bits) - 1
    }
}

impl<B: BitsMut> Insert for Counting<B> {
    fn insert_hash(&mut self, hash: u64) -> bool {
        (self.kernels.insert)(self.counters.words_mut(), hash)
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        (self.kernels.insert_each)(self.counters.words_mut(), hashes, answers);
    }
}

impl<B: BitsMut> Remove for Counting<B> {
    fn remove_hash(&mut self, hash: u64) -> Removed {
        (self.kernels.remove)(self.counters.words_mut(), hash)
    }

    fn remove_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        (self.kernels.remove_each)(self.counters.words_mut(), hashes, answers);
    }
}

impl<B: BitsMut> Clear for Counting<B> {
    fn clear(&mut self) {
        self.counters.words_mut().fill(0);
    }
}

impl<B: BitsMut, C: Bits<Word = u64>> Merge<Counting<C>> for Counting<B> {
    /// Adds the counters of `other`. A sum above the highest value of a counter is replaced by the
    /// highest value.
    fn merge(&mut self, other: &Counting<C>) -> Result<(), MergeError> {
        MergeError::check_layouts(self.layout(), other.layout())?;
        let block_words = self.block_words();
        let blocks = self.counters.words_mut().chunks_exact_mut(block_words);
        for (block, other) in blocks.zip(other.counters.words().chunks_exact(block_words)) {
            for word in 0..SLICE_WORDS {
                let slices = (word..block_words).step_by(SLICE_WORDS);
                let mut carry = 0;
                for i in slices.clone() {
                    let (one, two) = (block[i], other[i]);
                    block[i] = one ^ two ^ carry;
                    carry = one & two | carry & (one ^ two);
                }
                slices.for_each(|i| block[i] |= carry);
            }
        }
        Ok(())
    }
}

impl<B: Bits<Word = u64>> FilterWords for Counting<B> {
    fn each_words_from<E>(
        &self,
        start: u64,
        mut each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        each(words_from(self.counters.words(), start))
    }
}

impl<B: Bits<Word = u64>> Variant<B> for Counting<B> {
    one_run!(Counting<BitView<'a>>);
    counts!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(counter_bits: u32) -> Counting {
        Counting::from_plan(&Plan::counting(100, 0.01, counter_bits).unwrap(), Hasher::default())
            .unwrap()
    }

    #[test]
    fn counts_go_up_and_down() {
        for counter_bits in [4, 8, 16] {
            let mut seen = small(counter_bits);
            for i in 0..9 {
                assert_eq!(seen.insert("tamis"), i == 0);
                assert_eq!(seen.count("tamis"), i + 1);
            }
            for i in (0..9).rev() {
                assert_eq!(seen.remove("tamis"), Removed::Yes);
                assert_eq!(seen.count("tamis"), i);
            }
            assert_eq!(seen, small(counter_bits), "no counter of the item is left");
        }
    }

    #[test]
    fn a_counter_at_its_highest_value_is_never_decremented() {
        for counter_bits in [4, 8, 16] {
            let mut seen = small(counter_bits);
            for _ in 0..1 << counter_bits {
                seen.insert("often");
            }
            assert_eq!((seen.count("often"), seen.saturated_counters()), (seen.max_count(), 8));
            let before = seen.clone();
            assert_eq!(seen.remove("often"), Removed::Saturated);
            assert_eq!(seen, before);
        }
    }

    #[test]
    fn absent_items_are_not_removed() {
        let mut seen = small(4);
        seen.insert("here");
        let before = seen.clone();
        let mut answers = crate::Answers::new();
        let absent: Vec<u64> = (0..1000).filter(|item| !seen.contains(item)).collect();
        seen.remove_each(&absent, &mut answers);
        assert_eq!((answers.count_ones(), &seen), (0, &before));
    }

    #[test]
    fn a_counting_filter_answers_as_a_plain_filter_with_the_same_blocks() {
        for counter_bits in [4, 8, 16] {
            let mut counting = small(counter_bits);
            let blocks = counting.bits().words().len() / counting.block_words();
            let mut plain = vec![[0; SLICE_WORDS]; blocks];
            let locate = |item: u64| {
                let hash = Hasher::default().hash_item(&item);
                (scale(hash, blocks as u64) as usize, Narrow::mask(hash))
            };
            let holds = |block: &[u64; SLICE_WORDS], mask: [u64; SLICE_WORDS]| {
                block.iter().zip(mask).all(|(word, mask)| word & mask == mask)
            };
            for item in 0..150_u64 {
                let (block, mask) = locate(item);
                assert_eq!(counting.insert(&item), !holds(&plain[block], mask));
                plain[block].iter_mut().zip(mask).for_each(|(word, mask)| *word |= mask);
            }
            let words = plain.concat();
            assert_eq!(counting.projected(), words);
            let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
            let fill = f64::from(ones) / (words.len() as f64 * 64.0);
            assert!((counting.fill() - fill).abs() < 1e-12);
            let fills = counting.fill_by_block();
            assert!((fills.iter().sum::<f64>() / fills.len() as f64 - fill).abs() < 1e-12);
            for item in 0..10_000_u64 {
                let (block, mask) = locate(item);
                assert_eq!(counting.contains(&item), holds(&plain[block], mask));
            }
        }
    }

    #[test]
    fn a_merge_adds_counts_up_to_the_highest_value() {
        let (mut one, mut other) = (small(4), small(4));
        for _ in 0..9 {
            one.insert("both");
            other.insert("both");
        }
        other.insert("other");
        one.merge(&other).unwrap();
        assert_eq!((one.count("both"), one.count("other")), (15, 1));
        assert_eq!(one.remove("both"), Removed::Saturated);
        assert!(matches!(one.merge(&small(8)), Err(MergeError::Layout { .. })));
    }
}
