//! An approximate window: the library's filter, and what it costs.
//!
//! How many records are taken for seen though they are new is not believed but measured: the bits say what the
//! rate r is at a moment, and each record answered "new" then is one that escaped a loss of chance r, so it
//! stands for r / (1 − r) records that did not. A measurement reads all bits. It is made a few times a slice,
//! whenever a quarter of the records planned for one were stored since the last, and where a slice ends.

use tamis::{Answers, Filter as _, Hasher, Insert as _, Plan, PlanError, Span, Window};

use crate::dedup::approx::odds;

/// A filter of a window that knows what it costs.
pub struct WindowFilter {
    window: Window,
    refreshes: bool,
    // The present slice.
    slice: u64,
    // When it was measured last, and at its highest.
    rate: f64,
    highest_rate: f64,
    // Since then: records that may have been stored, and of them those answered "new".
    stored: u64,
    new: u64,
    // So many that may have been stored are worth a measurement.
    step: u64,
    // Records expected to be lost until then.
    settled_lost: f64,
}

impl WindowFilter {
    /// Makes an empty filter by a plan for a window of so many slices.
    ///
    /// # Errors
    ///
    /// As for [`Window::new`].
    pub fn new(plan: &Plan, slices: u32, refreshes: bool) -> Result<Self, PlanError> {
        // Its milliseconds are slices: who calls knows how long they are.
        let window = Window::new(plan, Hasher::default(), Span::Millis(slices.into()))?;
        Ok(Self {
            window: if refreshes { window.refreshing() } else { window },
            refreshes,
            slice: 0,
            rate: 0.0,
            highest_rate: 0.0,
            stored: 0,
            new: 0,
            step: (plan.items() / u64::from(slices) / STEPS).max(1),
            settled_lost: 0.0,
        })
    }

    /// Lets so many slices pass.
    pub fn advance(&mut self, slices: u64) {
        // Where next to nothing was stored a measurement costs more than it tells.
        let is_worth_it = 2 * self.stored >= self.step;
        if is_worth_it {
            self.measure();
        }
        self.slice = self.slice.saturating_add(slices);
        self.window.advance(self.slice);
        if is_worth_it {
            self.rate = self.window.estimate_rate();
        }
    }

    /// Inserts hashes in order; tells which were not remembered for certain.
    pub fn insert_each(&mut self, hashes: &[u64], new: &mut Answers) {
        let words = new.reset(hashes.len());
        // In small steps: a batch may be a large part of a small filter.
        let step_words = usize::try_from(self.step / 64).unwrap_or(usize::MAX / 64).max(1);
        let steps = hashes.chunks(step_words.saturating_mul(64)).zip(words.chunks_mut(step_words));
        for (hashes, words) in steps {
            self.window.insert_hashes(hashes, words);
            let new = words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            self.new += new;
            self.stored += if self.refreshes { hashes.len() as u64 } else { new };
            if self.stored >= self.step {
                self.measure();
            }
        }
    }

    /// Measures the rate, and settles what was lost at the rates since the last time.
    pub fn measure(&mut self) {
        let before = std::mem::replace(&mut self.rate, self.window.estimate_rate());
        self.highest_rate = self.highest_rate.max(self.rate);
        self.settled_lost += self.new as f64 * f64::midpoint(odds(before), odds(self.rate));
        (self.stored, self.new) = (0, 0);
    }

    /// Returns the highest chance so far that a new record was taken for a seen one.
    pub fn highest_rate(&self) -> f64 {
        self.highest_rate
    }

    /// Returns the rate asked for.
    pub fn target(&self) -> f64 {
        self.window.plan().rate()
    }

    /// Tells whether the rate was ever higher than what was planned for shows by chance.
    pub fn was_over_rate(&self) -> bool {
        self.highest_rate > self.window.plan().rate_limit()
    }

    /// Returns how many records are expected to be lost so far.
    pub fn expected_lost(&self) -> f64 {
        self.settled_lost + self.new as f64 * odds(self.rate)
    }

    /// Estimates how many records are remembered; one that was refreshed may count once for each slice.
    pub fn remembered(&self) -> u64 {
        self.window.estimate_items().round() as u64
    }

    /// Returns the memory of the filter.
    pub fn memory_bytes(&self) -> u64 {
        self.window.plan().bytes()
    }
}

/// Measurements in a slice that holds as many records as were planned.
const STEPS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts so many new records in each of some slices; returns how many were lost, and the filter.
    fn fill(planned: u64, in_slice: u64, refreshes: bool) -> (u64, WindowFilter) {
        let plan = Plan::window(planned, 0.01, 4).unwrap();
        let mut filter = WindowFilter::new(&plan, 4, refreshes).unwrap();
        let (mut lost, mut next, mut new) = (0, 0_u64, Answers::new());
        for _ in 0..12 {
            for _ in 0..in_slice / 500 {
                let hashes: Vec<_> =
                    (next..next + 500).map(|i| Hasher::default().hash_item(&i)).collect();
                next += 500;
                filter.insert_each(&hashes, &mut new);
                lost += 500 - new.count_ones() as u64;
                filter.insert_each(&hashes, &mut new);
                assert_eq!(new.count_ones(), 0, "no false negative");
            }
            filter.advance(1);
        }
        filter.measure();
        (lost, filter)
    }

    #[test]
    fn as_many_are_lost_as_expected() {
        for refreshes in [false, true] {
            for (planned, in_slice, is_over) in [
                (40_000, 10_000, false),
                (40_000, 5000, false),
                (40_000, 14_000, true),
                (2000, 500, false),
            ] {
                let (lost, filter) = fill(planned, in_slice, refreshes);
                let expected = filter.expected_lost();
                let error = (lost as f64 - expected).abs();
                assert!(
                    error <= 5.0 * expected.sqrt() + 0.05 * expected,
                    "{planned} {in_slice}: {lost} {expected}"
                );
                assert_eq!(
                    filter.was_over_rate(),
                    is_over,
                    "{planned} {in_slice}: {}",
                    filter.highest_rate()
                );
            }
        }
    }

    #[test]
    fn what_is_forgotten_no_longer_costs() {
        let plan = Plan::window(1000, 0.01, 4).unwrap();
        let mut filter = WindowFilter::new(&plan, 4, false).unwrap();
        let hashes: Vec<_> = (0..1000_u64).map(|i| Hasher::default().hash_item(&i)).collect();
        let mut new = Answers::new();
        filter.insert_each(&hashes, &mut new);
        assert!(filter.rate > 0.001 && filter.remembered().abs_diff(1000) < 100);
        filter.advance(4);
        filter.insert_each(&hashes, &mut new);
        assert_eq!(new.count_ones(), 0);
        filter.advance(1);
        assert_eq!(filter.remembered(), 0);
        filter.insert_each(&hashes[..1], &mut new);
        assert_eq!(new.count_ones(), 1);
    }
}
