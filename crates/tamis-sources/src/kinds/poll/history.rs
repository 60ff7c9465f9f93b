//! The smallest value of the change column that a poll must read.
//!
//! An application takes a value of the change column, such as the present time, and commits it at
//! most `overlap` later. Another transaction may take a larger value and commit it earlier. So the
//! largest value of a poll is no bound for the next one.
//!
//! ```text
//!            sample s                 last poll p              commit c
//! ──────────────┼────────────────────────┼────────────────────────┼──▶ time
//!               │◀────── overlap ───────▶│            a ≥ c − overlap > s
//! ```
//!
//! A row that the poll at `p` has not found was committed at `c > p`. The application took its value
//! at `a ≥ c − overlap`. If `s ≤ p − overlap`, then `a > s`: the value is at least the largest one
//! that the sample at `s` has seen. The proof uses only the clock of the
//! guard; `overlap` must include the differences between the clocks of the applications.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::kinds::poll::column_value::ColumnValue;

/// The samples are at least this share of the overlap apart.
const SAMPLES: u32 = 32;

/// The largest values of the change column at earlier times.
#[derive(Debug)]
pub(super) struct History {
    overlap: Duration,
    /// Each time is after the sample.
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

    /// Continues with the bound that an earlier process had after its last poll. Rows that were
    /// committed after that poll have at least this value, so also those after each later poll.
    pub(super) fn resume(&mut self, bound: ColumnValue) {
        self.resumed = Some(bound);
    }

    /// Returns the smallest value of rows that were committed after `poll`, or after the last poll of an earlier
    /// process. `None` if the first sample is too young.
    pub(super) fn bound(&self, poll: Option<Instant>) -> Option<&ColumnValue> {
        let is_old = |&&(at, _): &&(Instant, ColumnValue)| {
            poll.is_some_and(|poll| at + self.overlap <= poll)
        };
        let sample = self.samples.iter().take_while(is_old).last().map(|(_, value)| value);
        sample.or(self.resumed.as_ref())
    }

    /// Adds a sample that was taken before `at`, and drops those that no bound after `poll` needs.
    pub(super) fn sample(&mut self, at: Instant, highest: ColumnValue, poll: Instant) {
        // The application removed the largest value and may take it again.
        for value in self.samples.iter_mut().map(|(_, value)| value).chain(&mut self.resumed) {
            if value.order(&highest) == Ordering::Greater {
                *value = highest.clone();
            }
        }
        self.highest = highest;
        self.repeat(at, poll);
    }

    /// Adds a sample of a database that has not changed since the last one.
    pub(super) fn repeat(&mut self, at: Instant, poll: Instant) {
        // An older sample is a smaller bound, so a sample may be left out.
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
        // Rows were deleted.
        history.sample(at(1000), ColumnValue::Integer(5), at(1000));
        assert_eq!(history.bound(Some(at(1000))), Some(&ColumnValue::Integer(5)));
        // A bound of an earlier process counts until there is a sample that is old enough.
        let mut history = History::new(Duration::from_millis(100));
        history.resume(ColumnValue::Integer(7));
        history.sample(at(10), ColumnValue::Integer(20), at(0));
        assert_eq!(history.bound(Some(at(50))), Some(&ColumnValue::Integer(7)));
        assert_eq!(history.bound(Some(at(110))), Some(&ColumnValue::Integer(20)));
        history.sample(at(20), ColumnValue::Integer(3), at(20));
        assert_eq!(history.bound(Some(at(50))), Some(&ColumnValue::Integer(3)));
    }
}
