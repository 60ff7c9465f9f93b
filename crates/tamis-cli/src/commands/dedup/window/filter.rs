//! An approximate window: the window filter of the library, with an estimate of its losses.
//!
//! A new record is lost if the filter answers that the record was seen. The module estimates the
//! number of lost records. The bits of the filter give the current false positive rate r. Each
//! record that the filter reports as new stands for r / (1 − r) lost records. A measurement of r
//! reads all bits. The filter measures r at the end of each slice. The filter also measures r each
//! time a quarter of the planned records of a slice have been stored.

use tamis::{Answers, Hasher, Insert as _, Plan, PlanError, Span, Window};

use crate::commands::dedup::approx::odds;

/// A filter of a window that estimates its losses.
pub struct WindowFilter {
    window: Window,
    refreshes: bool,
    // The number of the current slice.
    slice: u64,
    // The rate at the last measurement, and the highest rate so far.
    rate: f64,
    highest_rate: f64,
    // Since the last measurement: the number of records that may have been stored, and the number
    // of records that were reported as new.
    stored: u64,
    new: u64,
    // After `step` stored records, the filter measures the rate again.
    step: u64,
    // The expected number of losses up to the last measurement.
    settled_lost: f64,
}

impl WindowFilter {
    /// Creates an empty filter from a plan, for a window of `slices` slices.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Window::from_plan`].
    pub fn new(plan: &Plan, slices: u32, refreshes: bool) -> Result<Self, PlanError> {
        // One millisecond of the library's window represents one slice. Only the caller needs the
        // length of a slice.
        let mut window = Window::from_plan(plan, Hasher::default(), Span::Millis(slices.into()))?;
        window.advance(0);
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

    /// Advances the window by `slices`.
    pub fn advance(&mut self, slices: u64) {
        // If few records were stored since the last measurement, the rate has hardly changed, and a
        // new measurement is not worth its time.
        let is_measured = 2 * self.stored >= self.step;
        if is_measured {
            self.measure();
        }
        self.slice = self.slice.saturating_add(slices);
        self.window.advance(self.slice);
        if is_measured {
            self.rate = self.window.estimate_rate();
        }
    }

    /// Inserts hashes in order, and sets the bits in `new` of the hashes that were certainly not in
    /// the window.
    pub fn insert_each(&mut self, hashes: &[u64], new: &mut Answers) {
        let words = new.reset(hashes.len());
        // The loop takes small steps, because one batch may fill a large part of a small filter.
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

    /// Measures the rate, and adds the expected number of losses since the last measurement.
    pub fn measure(&mut self) {
        let before = std::mem::replace(&mut self.rate, self.window.estimate_rate());
        self.highest_rate = self.highest_rate.max(self.rate);
        self.settled_lost += self.new as f64 * f64::midpoint(odds(before), odds(self.rate));
        (self.stored, self.new) = (0, 0);
    }

    /// Returns the highest probability so far that a new record was lost.
    pub fn highest_rate(&self) -> f64 {
        self.highest_rate
    }

    /// Returns the rate that the user gave.
    pub fn target(&self) -> f64 {
        self.window.plan().rate()
    }

    /// Tests whether the rate ever exceeded the planned rate by more than a random deviation.
    pub fn was_over_rate(&self) -> bool {
        self.highest_rate > self.window.plan().rate_limit()
    }

    /// Returns the expected number of records lost so far.
    pub fn expected_lost(&self) -> f64 {
        self.settled_lost + self.new as f64 * odds(self.rate)
    }

    /// Estimates the number of records in the window. A refreshed record may count once for each
    /// slice.
    pub fn remembered(&self) -> u64 {
        self.window.estimate_items().round() as u64
    }

    /// Returns the memory of the filter in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.window.plan().bytes()
    }
}

/// The number of measurements in a slice that holds the planned number of records.
const STEPS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts `in_slice` new records in each of 12 slices. Returns the number of lost records and
    /// the filter.
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
