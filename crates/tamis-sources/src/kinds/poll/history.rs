//! Derives the smallest value of the change column that a poll must read.
//!
//! An application takes a value for the change column, for example the current time. The application commits the value
//! at most `overlap` after taking the value. Another transaction may take a larger value and commit before the first
//! transaction. Therefore the largest value of a poll is not a valid bound for the next poll.
//!
//! ```text
//!            sample s                 last poll p              commit c
//! ──────────────┼────────────────────────┼────────────────────────┼──▶ time
//!               │◀────── overlap ───────▶│            a ≥ c − overlap > s
//! ```
//!
//! Assume that the poll at time `p` did not find a row. Then the row was committed at a time `c > p`. The application
//! took the value of the row at a time `a ≥ c − overlap`. If `s ≤ p − overlap`, then `a > s`. Therefore the value is at
//! least the largest value in the sample at time `s`.
//!
//! The proof uses only the clock of the guard. `overlap` must include the differences between the clocks of the
//! applications.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::kinds::poll::column_value::ColumnValue;

/// The minimum distance between two samples is the overlap divided by this number.
const SAMPLES: u32 = 32;

/// The largest values of the change column at earlier times.
#[derive(Debug)]
pub(super) struct History {
    overlap: Duration,
    /// The samples. The time of each entry is after the sample was taken.
    samples: VecDeque<(Instant, ColumnValue)>,
    /// The bound of an earlier process, which is older than all samples.
    resumed: Option<ColumnValue>,
    highest: ColumnValue,
}

impl History {
    pub(super) fn new(overlap: Duration) -> Self {
        Self { overlap, samples: VecDeque::new(), resumed: None, highest: ColumnValue::Null }
    }

    pub(super) fn clear(&mut self) {
        self.samples.clear();
        self.resumed = None;
    }

    /// Continues with the bound that an earlier process had after its last poll. The value of each row that was
    /// committed after that poll is at least `bound`. Therefore the bound is also valid for each later poll.
    pub(super) fn resume(&mut self, bound: ColumnValue) {
        self.resumed = Some(bound);
    }

    /// Returns the smallest value of the rows that were committed after `poll`, or after the last poll of an earlier
    /// process. Returns `None` if no sample is old enough and no bound of an earlier process exists.
    pub(super) fn bound(&self, poll: Option<Instant>) -> Option<&ColumnValue> {
        let is_old = |&&(at, _): &&(Instant, ColumnValue)| {
            poll.is_some_and(|poll| at + self.overlap <= poll)
        };
        let sample = self.samples.iter().take_while(is_old).last().map(|(_, value)| value);
        sample.or(self.resumed.as_ref())
    }

    /// Adds a sample that was taken before `at`. Removes the samples that no bound after `poll` needs.
    pub(super) fn sample(&mut self, at: Instant, highest: ColumnValue, poll: Instant) {
        // The application has removed the largest value, and may take the same value again.
        for value in self.samples.iter_mut().map(|(_, value)| value).chain(&mut self.resumed) {
            if value.order(&highest) == Ordering::Greater {
                *value = highest.clone();
            }
        }
        self.highest = highest;
        self.repeat(at, poll);
    }

    /// Adds a sample of a database that has not changed since the last sample.
    pub(super) fn repeat(&mut self, at: Instant, poll: Instant) {
        // An older sample gives a smaller bound than a newer sample, so the method may skip a sample.
        if self.samples.back().is_none_or(|(last, _)| *last + self.overlap / SAMPLES <= at) {
            self.samples.push_back((at, self.highest.clone()));
        }
        while self.samples.get(1).is_some_and(|(next, _)| *next + self.overlap <= poll) {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_a_value_from_before_the_overlap() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut history = History::new(Duration::from_millis(100));
        for ms in (0..1000).step_by(10) {
            history.sample(at(ms), ColumnValue::Integer(ms as i64), at(ms));
            let bound = history.bound(Some(at(ms)));
            match ms {
                0..100 => assert_eq!(bound, None),
                _ => {
                    let Some(&ColumnValue::Integer(bound)) = bound else { panic!("a bound") };
                    assert!(bound <= ms as i64 - 100 && bound > ms as i64 - 120, "{ms} {bound}");
                }
            }
        }
        assert!(history.samples.len() <= 33, "{}", history.samples.len());
        // The application has deleted rows.
        history.sample(at(1000), ColumnValue::Integer(5), at(1000));
        assert_eq!(history.bound(Some(at(1000))), Some(&ColumnValue::Integer(5)));
        // The bound of an earlier process is used until a sample is old enough.
        let mut history = History::new(Duration::from_millis(100));
        history.resume(ColumnValue::Integer(7));
        history.sample(at(10), ColumnValue::Integer(20), at(0));
        assert_eq!(history.bound(Some(at(50))), Some(&ColumnValue::Integer(7)));
        assert_eq!(history.bound(Some(at(110))), Some(&ColumnValue::Integer(20)));
        history.sample(at(20), ColumnValue::Integer(3), at(20));
        assert_eq!(history.bound(Some(at(50))), Some(&ColumnValue::Integer(3)));
    }
}
