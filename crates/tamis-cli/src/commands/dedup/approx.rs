//! The approximate set: Bloom filters that estimate how many records they lose.
//!
//! A new record is lost if the filter answers that the record was seen. The filter cannot name the
//! lost records, but this module estimates their number. Let r be the current false positive rate.
//! A new record is lost with probability r. Each record that the filter reports as new therefore
//! stands for r / (1 − r) lost records. A lost record sets no new bit, because all its bits are set
//! already. The fill and the rate of the filter therefore depend on all *offered* records, and not
//! only on the records reported as new.
//!
//! If the number of records is not known in advance, a full filter is followed by another filter.
//! The new filter is planned for twice as many records, at half the rate. The sum of all rates
//! stays below the rate that the user gave.

use tamis::{Answers, Digest};
use tamis::{Bloom, DigestSet, Filter as _, Hasher, Insert as _, Kind, Plan, PlanError};

/// Bloom filters that together hold all records.
pub struct Approx {
    layers: Vec<FilterLayer>,
    // The memory limit of all filters in bytes. With `None`, no filter is added when the last
    // filter is full, and the rate rises.
    growth_bytes: Option<u64>,
    // The fraction by which a filter may exceed its planned items before another filter is added.
    slack: f64,
    target: f64,
    // The false positive rate at the last computation of the rate.
    rate: f64,
    // The number of records reported as new since the last computation. When the number of new
    // records reaches `step`, the rate is computed again.
    since: u64,
    step: u64,
    // The expected number of losses up to the last computation.
    settled_lost: f64,
    scratch: Scratch,
}

struct FilterLayer {
    bloom: Bloom,
    // The number of records reported as new.
    items: u64,
    // `items`, plus the expected number of lost records.
    offered: f64,
}

impl FilterLayer {
    fn new(plan: &Plan) -> Result<Self, PlanError> {
        Ok(Self { bloom: Bloom::from_plan(plan, Hasher::default())?, items: 0, offered: 0.0 })
    }

    fn rate(&self) -> f64 {
        self.bloom.plan().rate_at(self.offered as u64)
    }
}

/// Returns the expected number of lost records for each record reported as new.
pub fn odds(rate: f64) -> f64 {
    let rate = rate.min(MAX_RATE);
    rate / (1.0 - rate)
}

/// The expected number of distinct records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// The user gave the number of records. If a run has more records than the user gave, the rate
    /// rises.
    Stated(u64),
    /// The number of records is estimated from the inputs. If a run has more records than
    /// estimated, the filters keep the rate.
    Guessed(u64),
    /// The number of records is unknown. For any number of records, the filters keep the rate.
    Unknown,
}

#[derive(Default)]
struct Scratch {
    found: Vec<u64>,
    unseen: Vec<u64>,
    places: Vec<usize>,
    new: Answers,
}

impl Approx {
    /// Creates a filter for `expected` distinct records at the rate `target`. When the last filter
    /// is full, another filter is added, unless all filters together would exceed `max_bytes`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Bloom::for_items`].
    pub fn new(expected: Expected, target: f64, max_bytes: u64) -> Result<Self, PlanError> {
        let (items, rate) = match expected {
            Expected::Stated(items) => (items.max(LEAST_ITEMS), target),
            // The first filter gets half of the rate, and the second filter gets a quarter.
            Expected::Guessed(items) => (items.max(LEAST_ITEMS), target / 2.0),
            Expected::Unknown => (FIRST_ITEMS, target / 2.0),
        };
        let mut plan = Plan::for_kind(Kind::SplitBlock, items, rate)?;
        if plan.bytes() > max_bytes {
            plan = Plan::for_items_in(Kind::SplitBlock, items, max_bytes)?;
        }
        let mut approx = Self::of(&plan, target)?;
        approx.growth_bytes = Some(max_bytes);
        if let Expected::Stated(_) = expected {
            // The number of items in a filter is an estimate. An error of the estimate must not
            // cause a second filter.
            approx.slack = 1.0 / 64.0;
        }
        Ok(approx)
    }

    /// Creates a filter of `max_bytes` bytes for at least `items` records. The filter does not
    /// grow.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Bloom::for_items`].
    pub fn within(items: u64, target: f64, max_bytes: u64) -> Result<Self, PlanError> {
        Self::of(&Plan::for_items_in(Kind::SplitBlock, items, max_bytes)?, target)
    }

    /// Sets the expected losses to zero. The caller guarantees that all records inserted so far
    /// were distinct.
    pub fn forget_losses(&mut self) {
        self.recompute();
        self.settled_lost = 0.0;
    }

    /// Creates a filter of at most `max_bytes` from an exact set. The set releases its memory while
    /// the filter fills. The expected collisions of the set count as losses.
    ///
    /// # Errors
    ///
    /// Returns an error and drops the set if no filter fits in `max_bytes`.
    pub fn from_set<D: Digest>(
        set: DigestSet<D>,
        max_bytes: u64,
        target: f64,
    ) -> Result<Self, PlanError> {
        let mut approx = Self::within(set.len(), target, max_bytes)?;
        approx.settled_lost = set.expected_collisions();
        approx.layers[0].items = set.len();
        approx.layers[0].offered = set.len() as f64;
        let bloom = &mut approx.layers[0].bloom;
        let (mut hashes, mut new) = (Vec::new(), Answers::new());
        set.drain_each(|digests| {
            hashes.clear();
            hashes.extend(digests.iter().map(|digest| digest.hash64()));
            bloom.insert_hashes(&hashes, new.reset(hashes.len()));
        });
        approx.recompute();
        Ok(approx)
    }

    fn of(plan: &Plan, target: f64) -> Result<Self, PlanError> {
        Ok(Self {
            layers: vec![FilterLayer::new(plan)?],
            growth_bytes: None,
            slack: 0.0,
            target,
            rate: 0.0,
            since: 0,
            step: 64,
            settled_lost: 0.0,
            scratch: Scratch::default(),
        })
    }

    /// Inserts hashes in order. Sets the bits in `new` of the hashes that were certainly new.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory for another filter cannot be allocated.
    pub fn insert_each(&mut self, hashes: &[u64], new: &mut Answers) -> Result<(), PlanError> {
        let words = new.reset(hashes.len());
        // Small parts ensure that the next filter is added before the last filter exceeds its plan.
        for (hashes, words) in hashes.chunks(PART).zip(words.chunks_mut(PART / 64)) {
            self.grow()?;
            let (last, earlier) = self.layers.split_last_mut().expect("at least one layer");
            if earlier.is_empty() {
                last.bloom.insert_hashes(hashes, words);
            } else {
                self.scratch.insert_unseen(earlier, last, hashes, words);
            }
            let inserted: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
            last.items += inserted;
            self.since += inserted;
            if self.since >= self.step {
                self.recompute();
            }
        }
        Ok(())
    }

    /// Computes the current rate, and adds the expected number of losses since the last
    /// computation.
    fn recompute(&mut self) {
        let (last, earlier) = self.layers.split_last_mut().expect("at least one layer");
        let earlier_escape = earlier.iter().map(|layer| 1.0 - layer.rate()).product::<f64>();
        let rate_with =
            |last: &FilterLayer| (1.0 - earlier_escape * (1.0 - last.rate())).min(MAX_RATE);
        // The loop takes small steps, because one batch may fill a large part of a small filter.
        while self.since > 0 {
            let part = self.since.min(self.step.max(1));
            self.since -= part;
            let (part, before) = (part as f64, last.offered);
            let own_odds = odds(last.rate());
            // The first estimate uses the odds before the step. The second estimate uses the mean
            // of the odds before the step and the odds after the first estimate.
            last.offered = before + part * (1.0 + own_odds);
            let after_odds = odds(last.rate());
            last.offered = before + part * (1.0 + (own_odds + after_odds) / 2.0);
            let rate = rate_with(last);
            self.settled_lost += part * (odds(self.rate) + odds(rate)) / 2.0;
            self.rate = rate;
        }
        self.rate = rate_with(last);
        // With 1/128 more items, the rate rises by about 1/16. A step never passes the capacity.
        let left = last.bloom.plan().items().saturating_sub(last.offered as u64);
        self.step = (last.items / 128).max(64);
        if left > 0 {
            self.step = self.step.min(left);
        }
    }

    /// Adds another filter if the last filter is full.
    fn grow(&mut self) -> Result<(), PlanError> {
        let last = self.layers.last().expect("at least one layer");
        let plan = *last.bloom.plan();
        let Some(max_bytes) = self.growth_bytes else { return Ok(()) };
        if last.offered < plan.items() as f64 * (1.0 + self.slack) {
            return Ok(());
        }
        let (items, rate) = (plan.items().saturating_mul(2), plan.rate() / 2.0);
        let mut next = Plan::for_kind(Kind::SplitBlock, items, rate)?;
        let left_bytes = max_bytes.saturating_sub(self.memory_bytes());
        if next.bytes() > left_bytes {
            // No filter can follow the next filter, so the next filter takes all remaining memory.
            self.growth_bytes = None;
            match Plan::for_memory(Kind::SplitBlock, left_bytes, rate) {
                Ok(smaller) => next = smaller,
                Err(_) => return Ok(()),
            }
        }
        self.layers.push(FilterLayer::new(&next)?);
        self.recompute();
        Ok(())
    }

    /// Returns the current probability that a new record is lost.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the rate that the user gave.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Returns the expected number of records lost so far.
    pub fn expected_lost(&self) -> f64 {
        self.settled_lost + self.since as f64 * odds(self.rate)
    }

    /// Returns the number of records that were certainly new.
    pub fn items(&self) -> u64 {
        self.layers.iter().map(|layer| layer.items).sum()
    }

    /// Returns the memory of all filters in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bloom.plan().bytes()).sum()
    }
}

impl Scratch {
    /// Inserts into `last` the hashes that no earlier layer holds.
    fn insert_unseen(
        &mut self,
        earlier: &[FilterLayer],
        last: &mut FilterLayer,
        hashes: &[u64],
        words: &mut [u64],
    ) {
        self.found.resize(words.len(), 0);
        for layer in earlier {
            layer.bloom.contains_hashes(hashes, &mut self.found);
            words.iter_mut().zip(&self.found).for_each(|(word, found)| *word |= found);
        }
        self.unseen.clear();
        self.places.clear();
        for (i, &hash) in hashes.iter().enumerate() {
            if words[i / 64] >> (i % 64) & 1 == 0 {
                self.unseen.push(hash);
                self.places.push(i);
            }
        }
        words.fill(0);
        last.bloom.insert_hashes(&self.unseen, self.new.reset(self.unseen.len()));
        for place in self.new.ones().map(|i| self.places[i]) {
            words[place / 64] |= 1 << (place % 64);
        }
    }
}

/// The number of records between two tests for growth. A part has a sixteenth of the planned items
/// of the smallest filter.
const PART: usize = 256;

/// The smallest number of planned items of a filter. A filter with the smallest number of planned
/// items takes some kilobytes.
const LEAST_ITEMS: u64 = 16 * PART as u64;

/// The number of planned items of the first filter if the number of records is unknown.
const FIRST_ITEMS: u64 = 1 << 20;

/// The highest rate for an estimate. At a rate of 1, the filter loses every record, and r / (1 − r)
/// is infinite.
const MAX_RATE: f64 = 1.0 - 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts `items` distinct hashes. Checks that the number of lost hashes is near the expected
    /// number, and returns the number of lost hashes.
    fn fill_as_expected(approx: &mut Approx, items: u64) -> u64 {
        let (lost, expected) = (fill(approx, items), approx.expected_lost());
        assert!((lost as f64 - expected).abs() <= 5.0 * expected.sqrt() + 1.0, "{lost} {expected}");
        lost
    }

    /// Inserts `items` distinct hashes, and returns the number of lost hashes.
    fn fill(approx: &mut Approx, items: u64) -> u64 {
        let hashes: Vec<u64> = (0..items).map(|i| Hasher::default().hash_item(&i)).collect();
        let mut new = Answers::new();
        let mut lost = 0;
        for hashes in hashes.chunks(1024) {
            approx.insert_each(hashes, &mut new).unwrap();
            lost += hashes.len() as u64 - new.count_ones() as u64;
            approx.insert_each(hashes, &mut new).unwrap();
            assert_eq!(new.count_ones(), 0, "no false negative");
        }
        lost
    }

    #[test]
    fn as_many_are_lost_as_expected() {
        let mut planned = Approx::new(Expected::Stated(200_000), 0.01, u64::MAX).unwrap();
        fill_as_expected(&mut planned, 200_000);
        assert!(planned.rate() <= 0.01 && planned.layers.len() == 1);

        let without_growth = || {
            let approx = Approx::new(Expected::Stated(10_000), 0.01, u64::MAX).unwrap();
            Approx { growth_bytes: None, ..approx }
        };
        let mut over = without_growth();
        fill_as_expected(&mut over, 20_000);
        assert!(over.rate() > 0.1);

        // In a nearly full filter, an error of one estimate increases the error of the next
        // estimate, but the error grows slowly.
        let mut full = without_growth();
        let lost = fill(&mut full, 60_000);
        assert!((full.expected_lost() / lost as f64 - 1.0).abs() < 0.1, "{lost}");
        assert!(full.rate() > 0.8);
    }

    #[test]
    fn a_number_that_was_far_too_small_is_made_up_for() {
        let mut approx = Approx::new(Expected::Stated(100), 0.001, u64::MAX).unwrap();
        let lost = fill_as_expected(&mut approx, 300_000);
        assert!(lost < 1000 && approx.rate() < 0.003, "{lost} {}", approx.rate());
    }

    #[test]
    fn an_unknown_number_keeps_the_rate_by_growing() {
        let mut approx = Approx::new(Expected::Unknown, 0.001, u64::MAX).unwrap();
        fill_as_expected(&mut approx, 3 * FIRST_ITEMS + 100_000);
        assert!(approx.layers.len() == 3 && approx.rate() <= 0.001);
    }

    #[test]
    fn a_limit_is_kept_by_not_growing() {
        let max_bytes = 3 << 20;
        let mut approx = Approx::new(Expected::Unknown, 0.001, max_bytes).unwrap();
        fill_as_expected(&mut approx, 3 * FIRST_ITEMS);
        assert!(approx.memory_bytes() <= max_bytes && approx.rate() > 0.001);
    }

    #[test]
    fn an_exact_set_becomes_a_filter_of_its_digests() {
        let mut set = DigestSet::<u64>::new();
        let digests: Vec<u64> = (0..50_000_u64).map(|i| Hasher::default().hash_item(&i)).collect();
        let mut new = Answers::new();
        set.insert_each(&digests, &mut new).unwrap();
        let bytes = set.memory_bytes();
        let mut approx = Approx::from_set(set, bytes, 1e-4).unwrap();
        assert!(approx.memory_bytes() <= bytes && approx.rate() < 1e-6);
        approx.insert_each(&digests, &mut new).unwrap();
        assert_eq!((new.count_ones(), approx.items()), (0, 50_000));
    }
}
