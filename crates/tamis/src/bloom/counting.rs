//! The counting Bloom filter: a counter where the split-block filter has a bit, so that items can be
//! deleted and counted.
//!
//! ```text
//! block of the split-block filter:  | lane 0: 64 bits | lane 1 | ... | lane 7 |       one cache line
//! the same with 4-bit counters:     | 64 × 4 bits     | lane 1 | ... | lane 7 |       four lines
//! ```
//!
//! An item counts up one counter in each of eight lanes; it is in at most as often as the lowest of them
//! says. Where all eight are above zero the item may be in, so answers are bit for bit those of the plain
//! filter with the same blocks.
//!
//! A counter that reaches its highest value sticks: nobody knows how often it would have gone on, so it is
//! never counted down again, and never lies about an item that is in. An item is deleted only if all its
//! counters are above zero, so none can go below.
//!
//! Source: Fan, Cao, Almeida, Broder, "Summary Cache" (2000), §5; the blocks are those of
//! [`SplitBlock`](crate::SplitBlock).

use crate::arch::prefetch_index;
use crate::bits::{BitView, Bitmap, Bits, BitsMut};
use crate::bloom::Bloom;
use crate::filter::{Count, Filter, Insert, Merge, MergeError, Remove, Removed, Step, in_batches};
use crate::hash::Hasher;
use crate::plan::{Plan, PlanError};
use crate::shape::Shape;
use crate::strategy::{Kind, SplitBlock, lanes_items, lanes_rate, scale};

/// A Bloom filter that counts: items can be deleted, and asked how often they are in.
///
/// Four times the memory of the plain filter, or more with wider counters. `B` may be [`Bitmap`] (owned) or
/// [`BitView`] (mapped from a file).
///
/// # Examples
///
/// ```
/// use tamis::{Count, Counting, Filter, Insert, Remove, Removed};
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
#[derive(Clone, Debug, PartialEq)]
pub struct Counting<B = Bitmap> {
    plan: Plan,
    hasher: Hasher,
    // Invariant: whole blocks, `LANES` lanes of `counter_bits` words each, as many as the plan has.
    counters: B,
    rule: Rule,
}

impl Counting {
    /// Makes an empty filter with 4-bit counters that keeps `rate` until it holds `items` distinct items.
    ///
    /// # Errors
    ///
    /// As for [`Plan::for_kind`], and [`PlanError::Memory`] if there is not enough of it.
    pub fn for_items(items: u64, rate: f64) -> Result<Self, PlanError> {
        Self::new(&Plan::for_kind(Kind::Counting, items, rate)?, Hasher::default())
    }

    /// Makes an empty filter by a plan, such as one of [`Plan::counting`].
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the plan is for another kind; [`PlanError::Memory`].
    pub fn new(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        if plan.kind() != Kind::Counting {
            return Err(PlanError::OtherKind { expected: Kind::Counting, found: plan.kind() });
        }
        Self::restore(plan, hasher, Bitmap::zeroed(plan.bits())?)
    }
}

impl<'a> Counting<BitView<'a>> {
    /// Uses words that lie elsewhere, such as in a mapped file, without a copy.
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherKind`] if the plan is for another kind; [`PlanError::Geometry`] if it has not as
    /// many bits as `words`.
    pub fn view(plan: &Plan, hasher: Hasher, words: &'a [u64]) -> Result<Self, PlanError> {
        Self::restore(plan, hasher, BitView::new(words))
    }
}

impl<B: Bits<Word = u64>> Counting<B> {
    /// Uses words that hold a filter of this plan; errors as for [`view`](Counting::view).
    pub(crate) fn restore(plan: &Plan, hasher: Hasher, counters: B) -> Result<Self, PlanError> {
        let Shape::Counters(counter_bits) = plan.shape() else {
            return Err(PlanError::OtherKind { expected: Kind::Counting, found: plan.kind() });
        };
        plan.check_len(counters.words().len())?;
        Ok(Self { plan: *plan, hasher, counters, rule: Rule::of(counter_bits) })
    }

    /// Borrows the filter as one whose counters are elsewhere. Constant time.
    pub fn as_view(&self) -> Counting<BitView<'_>> {
        let Self { plan, hasher, counters, rule } = self;
        let counters = BitView::new(counters.words());
        Counting { plan: *plan, hasher: *hasher, counters, rule: *rule }
    }

    /// Returns the counters.
    pub fn bits(&self) -> &B {
        &self.counters
    }

    /// Counts the counters that stick, and so the damage that repeats have done. Reads all.
    ///
    /// Items that share all their counters with others can then not be deleted; [`Removed::Saturated`]
    /// tells which.
    pub fn saturated_counters(&self) -> u64 {
        let rule = self.rule;
        let saturated = |word: &u64| u64::from(rule.saturated(*word).count_ones());
        self.counters.words().iter().map(saturated).sum()
    }

    /// Returns the plain filter of the same items, a fourth of the size or less. It answers alike.
    ///
    /// # Errors
    ///
    /// [`PlanError::Memory`].
    pub fn to_bloom(&self) -> Result<Bloom, PlanError> {
        let bits = self.plan.bits() / u64::from(self.rule.counter_bits);
        let (items, rate) = (self.plan.items(), self.plan.rate());
        let plan = Plan::from_parts(Kind::SplitBlock, items, rate, bits, Shape::Probes(8))?;
        let mut bloom = Bloom::new(&plan, self.hasher)?;
        for (word, lane) in bloom.words_mut().iter_mut().zip(self.lanes()) {
            *word = self.rule.project(lane);
        }
        Ok(bloom)
    }

    fn lanes(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.counters.words().chunks_exact(self.rule.counter_bits as usize)
    }

    /// The bits of the plain filter, a word for each lane.
    fn projected(&self) -> Vec<u64> {
        self.lanes().map(|lane| self.rule.project(lane)).collect()
    }

    /// Where the counters of `hash` lie: for each lane a word and a shift.
    #[inline(always)]
    fn locate(&self, hash: u64) -> [(usize, u32); LANES] {
        self.rule.locate(hash, self.counters.words().len())
    }
}

/// Lanes of a block, and so counters of an item.
const LANES: usize = 8;

/// How counters lie in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    counter_bits: u32,
    // 64 counters of a lane, so many in a word, as a power of two.
    log_in_word: u32,
    highest: u64,
}

impl Rule {
    fn of(counter_bits: u32) -> Self {
        let log_in_word = (64 / counter_bits).trailing_zeros();
        Self { counter_bits, log_in_word, highest: (1 << counter_bits) - 1 }
    }

    #[inline(always)]
    fn locate(self, hash: u64, len_words: usize) -> [(usize, u32); LANES] {
        let lane_words = self.counter_bits as usize;
        let block = scale(hash, (len_words / (LANES * lane_words)) as u64) as usize;
        let spread = SplitBlock::spread(hash);
        let mut lane = 0;
        SplitBlock::SHIFTS.map(|shift| {
            let counter = (spread >> shift & 63) as usize;
            let word = (block * LANES + lane) * lane_words + (counter >> self.log_in_word);
            lane += 1;
            (word, (counter as u32 & ((1 << self.log_in_word) - 1)) * self.counter_bits)
        })
    }

    /// The lowest bit of each counter of a word that has any bit set.
    #[inline(always)]
    fn nonzero(self, word: u64) -> u64 {
        let mut any = word;
        let mut step = self.counter_bits / 2;
        while step > 0 {
            any |= any >> step;
            step /= 2;
        }
        any & self.ones()
    }

    /// The lowest bit of each counter of a word that sticks.
    #[inline(always)]
    fn saturated(self, word: u64) -> u64 {
        self.ones() & !self.nonzero(!word)
    }

    /// One in each counter of a word.
    const fn ones(self) -> u64 {
        u64::MAX / self.highest
    }

    /// A bit for each counter of a lane: set if it is above zero.
    fn project(self, lane: &[u64]) -> u64 {
        let mut bits = 0;
        for (i, &word) in lane.iter().enumerate() {
            let mut counters = self.nonzero(word);
            while counters != 0 {
                let counter = counters.trailing_zeros() / self.counter_bits;
                bits |= 1 << ((i << self.log_in_word) as u32 + counter);
                counters &= counters - 1;
            }
        }
        bits
    }
}

impl<B: Bits<Word = u64>> Filter for Counting<B> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    #[inline]
    fn hasher(&self) -> Hasher {
        self.hasher
    }

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.count_hash(hash) > 0
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        let words = self.counters.words();
        let lane_words = self.rule.counter_bits as usize;
        let block = scale(hash, (words.len() / (LANES * lane_words)) as u64) as usize;
        // As many lines as a lane has words.
        for line in 0..lane_words {
            prefetch_index(words, (block * lane_words + line) * LANES);
        }
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        in_batches(hashes, answers, |step, hash| match step {
            Step::Ask => {
                self.prefetch_hash(hash);
                false
            }
            Step::Answer => self.contains_hash(hash),
        });
    }

    fn estimate_items(&self) -> f64 {
        lanes_items(&self.projected())
    }

    fn estimate_rate(&self) -> f64 {
        lanes_rate(&self.projected(), SplitBlock::WORDS, 64)
    }

    /// Returns the share of counters above zero.
    fn fill(&self) -> f64 {
        let used = |word: &u64| u64::from(self.rule.nonzero(*word).count_ones());
        let used: u64 = self.counters.words().iter().map(used).sum();
        used as f64 * f64::from(self.rule.counter_bits) / self.plan.bits() as f64
    }
}

impl<B: Bits<Word = u64>> Count for Counting<B> {
    #[inline]
    fn count_hash(&self, hash: u64) -> u64 {
        let (words, highest) = (self.counters.words(), self.rule.highest);
        let counts = self.locate(hash).map(|(word, shift)| words[word] >> shift & highest);
        counts.into_iter().fold(highest, u64::min)
    }

    fn max_count(&self) -> u64 {
        self.rule.highest
    }
}

impl<B: BitsMut> Insert for Counting<B> {
    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        let places = self.locate(hash);
        let (words, highest) = (self.counters.words_mut(), self.rule.highest);
        let mut is_new = false;
        for (word, shift) in places {
            let count = words[word] >> shift & highest;
            is_new |= count == 0;
            words[word] += u64::from(count != highest) << shift;
        }
        is_new
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        in_batches(hashes, answers, |step, hash| match step {
            Step::Ask => {
                self.prefetch_hash(hash);
                false
            }
            Step::Answer => self.insert_hash(hash),
        });
    }
}

impl<B: BitsMut> Remove for Counting<B> {
    fn remove_hash(&mut self, hash: u64) -> Removed {
        let count = self.count_hash(hash);
        if count == 0 {
            return Removed::Absent;
        }
        if count == self.rule.highest {
            return Removed::Saturated;
        }
        let places = self.locate(hash);
        let (words, highest) = (self.counters.words_mut(), self.rule.highest);
        for (word, shift) in places {
            // Each is above zero, and those that stick stay.
            let count = words[word] >> shift & highest;
            words[word] -= u64::from(count != highest) << shift;
        }
        Removed::Yes
    }

    fn remove_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        in_batches(hashes, answers, |step, hash| match step {
            Step::Ask => {
                self.prefetch_hash(hash);
                false
            }
            Step::Answer => self.remove_hash(hash) == Removed::Yes,
        });
    }
}

impl<B: BitsMut, C: Bits<Word = u64>> Merge<Counting<C>> for Counting<B> {
    /// Adds up the counters; those that pass their highest value stick.
    fn merge(&mut self, other: &Counting<C>) -> Result<(), MergeError> {
        let (expected, found) = (self.layout(), other.layout());
        if expected != found {
            return Err(MergeError::Layout { expected, found });
        }
        let (bits, highest) = (self.rule.counter_bits, self.rule.highest);
        for (word, &other) in self.counters.words_mut().iter_mut().zip(other.counters.words()) {
            let mut sum = 0;
            for shift in (0..64).step_by(bits as usize) {
                let counters = (*word >> shift & highest) + (other >> shift & highest);
                sum |= counters.min(highest) << shift;
            }
            *word = sum;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(counter_bits: u32) -> Counting {
        Counting::new(&Plan::counting(100, 0.01, counter_bits).unwrap(), Hasher::default()).unwrap()
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
            assert_eq!(seen, small(counter_bits), "as if it had never been there");
        }
    }

    #[test]
    fn a_counter_that_is_full_sticks_and_is_told_of() {
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
    fn what_is_not_there_is_not_deleted() {
        let mut seen = small(4);
        seen.insert("here");
        let before = seen.clone();
        let mut answers = crate::Answers::new();
        let absent: Vec<u64> = (0..1000).filter(|item| !seen.contains(item)).collect();
        seen.remove_each(&absent, &mut answers);
        assert_eq!((answers.count_ones(), &seen), (0, &before));
    }

    #[test]
    fn it_answers_as_the_plain_filter_of_its_blocks() {
        for counter_bits in [4, 8, 16] {
            let mut counting = small(counter_bits);
            let mut bloom =
                Bloom::<SplitBlock>::new(counting.to_bloom().unwrap().plan(), Hasher::default())
                    .unwrap();
            for item in 0..150_u64 {
                assert_eq!(counting.insert(&item), bloom.insert(&item));
            }
            assert_eq!(counting.to_bloom().unwrap(), bloom);
            assert_eq!(counting.estimate_rate(), bloom.estimate_rate());
            assert_eq!(counting.estimate_items(), bloom.estimate_items());
            assert_eq!(counting.fill(), bloom.fill());
            for item in 0..10_000_u64 {
                assert_eq!(counting.contains(&item), bloom.contains(&item));
            }
        }
    }

    #[test]
    fn a_merge_adds_up_and_sticks() {
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
