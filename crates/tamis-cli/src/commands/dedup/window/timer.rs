//! Assigns records to slices of a window: by the time in the record, by the clock, or by the number
//! of records.

use crate::commands::dedup::window::when;
use crate::exit::Failure;
use crate::records::key::{KeyRule, RecordForm};

/// The source of the times of records.
pub enum Times {
    /// The clock. The timer reads the clock once for all records of a batch.
    Arrival,
    /// A field or a JSON value of each record.
    Records(Box<KeyRule>),
    /// No times, because a slice is a fixed number of records.
    Count,
}

/// Assigns records to numbered slices.
pub struct Timer {
    times: Times,
    // The length of a slice in milliseconds or records, and the number of slices of a window.
    slice_span: u64,
    slices: u64,
    // The latest slice, or `None` before the first record with a time.
    latest: Option<u64>,
    records: u64,
    scratch: Vec<u8>,
}

/// The start of consecutive records of one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceStart {
    /// The index of the first record.
    pub from: usize,
    /// The slice, or `None` before the first record with a time.
    pub slice: Option<u64>,
}

impl Timer {
    /// Creates a timer for slices of length `slice_span`, in milliseconds or records.
    pub fn new(times: Times, slice_span: u64, slices: u32) -> Self {
        let (slice_span, slices) = (slice_span.max(1), u64::from(slices));
        Self { times, slice_span, slices, latest: None, records: 0, scratch: Vec::new() }
    }

    /// Checks whether records of this form can contain the time.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`KeyRule::check`].
    pub fn check(&self, form: RecordForm) -> Result<(), Failure> {
        match &self.times {
            Times::Records(rule) => rule.check(form),
            Times::Arrival | Times::Count => Ok(()),
        }
    }

    /// Finds the time column in the header of a CSV input.
    ///
    /// # Errors
    ///
    /// Returns a message if the header lacks the column.
    pub fn set_header(&mut self, header: &[u8]) -> Result<(), String> {
        match &mut self.times {
            Times::Records(rule) => rule.set_header(header),
            Times::Arrival | Times::Count => Ok(()),
        }
    }

    /// Writes the starts of slices among the next records to `marks`. The first record always has a
    /// mark. Counts the late records and the records without a time. Slices never go back: a record
    /// with an earlier time is assigned to the latest slice.
    pub fn mark<'a>(
        &mut self,
        records: impl ExactSizeIterator<Item = &'a [u8]>,
        marks: &mut Vec<SliceStart>,
    ) -> OddTimes {
        let mut odd = OddTimes::default();
        marks.clear();
        match &self.times {
            Times::Arrival => {
                self.latest = self.latest.max(Some(when::now() / self.slice_span));
                marks.push(SliceStart { from: 0, slice: self.latest });
            }
            Times::Count => {
                let (mut at, end) = (self.records, self.records + records.len() as u64);
                while at < end {
                    let slice = at / self.slice_span;
                    marks.push(SliceStart {
                        from: (at - self.records) as usize,
                        slice: Some(slice),
                    });
                    at = (slice + 1).saturating_mul(self.slice_span);
                }
                self.records = end;
            }
            Times::Records(rule) => {
                marks.push(SliceStart { from: 0, slice: self.latest });
                for (from, record) in records.enumerate() {
                    let text = rule.of(record, &mut self.scratch);
                    let Some(time) = text.and_then(when::read) else {
                        odd.timeless += 1;
                        continue;
                    };
                    let slice = Some(time / self.slice_span);
                    if slice > self.latest {
                        self.latest = slice;
                        marks.pop_if(|mark| mark.from == from);
                        marks.push(SliceStart { from, slice });
                    } else if slice < self.latest.map(|latest| latest.saturating_sub(self.slices)) {
                        odd.late += 1;
                    }
                }
            }
        }
        odd
    }
}

/// The numbers of records without a time and of late records. The timer assigns records without a
/// time and late records to the latest slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OddTimes {
    /// The number of records without a time.
    pub timeless: u64,
    /// The number of records whose time is before the latest time by more than a window.
    pub late: u64,
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::records::csv::Field;
    use crate::records::key::KeyArgs;

    fn marks(timer: &mut Timer, records: &[&str]) -> (Vec<(usize, Option<u64>)>, u64) {
        let mut marks = Vec::new();
        let odd = timer.mark(records.iter().map(|record| record.as_bytes()), &mut marks);
        (marks.iter().map(|mark| (mark.from, mark.slice)).collect(), odd.timeless)
    }

    #[test]
    fn records_are_marked_where_their_slice_changes() {
        let rule = KeyArgs::default().rule_of(Some(&Field::Number(NonZeroUsize::MIN)), None);
        let mut timer = Timer::new(Times::Records(Box::new(rule)), 1000, 4);
        let unix = when::read(b"0").unwrap() / 1000;
        let (found, timeless) =
            marks(&mut timer, &["title", "7\ta", "7.9\tb", "9\tc", "8\td", "-"]);
        assert_eq!(found, [(0, None), (1, Some(unix + 7)), (3, Some(unix + 9))]);
        assert_eq!(timeless, 2);
        let (found, timeless) = marks(&mut timer, &["x", "1\ty", "10\tz"]);
        assert_eq!((found, timeless), (vec![(0, Some(unix + 9)), (2, Some(unix + 10))], 1));
        assert_eq!(marks(&mut timer, &["11"]).0, [(0, Some(unix + 11))]);
        // Time 7 is exactly one window of four slices before the latest time. Time 6 is late.
        let mut out = Vec::new();
        let records = ["7\tlate", "6\tlater", "-"].map(str::as_bytes);
        assert_eq!(timer.mark(records.into_iter(), &mut out), OddTimes { timeless: 1, late: 1 });
    }

    #[test]
    fn counted_records_are_marked_wherever_they_are_cut() {
        let mut timer = Timer::new(Times::Count, 3, 4);
        assert_eq!(marks(&mut timer, &["a"; 2]).0, [(0, Some(0))]);
        assert_eq!(marks(&mut timer, &["a"; 5]).0, [(0, Some(0)), (1, Some(1)), (4, Some(2))]);
        assert_eq!(marks(&mut timer, &["a"; 2]).0, [(0, Some(2))]);
        assert_eq!(marks(&mut timer, &["a"; 1]).0, [(0, Some(3))]);
    }

    #[test]
    fn what_comes_together_came_at_one_time() {
        let mut timer = Timer::new(Times::Arrival, 1, 4);
        let (first, timeless) = marks(&mut timer, &["a"; 5]);
        let (second, _) = marks(&mut timer, &["a"; 5]);
        assert_eq!((first.len(), timeless), (1, 0));
        assert!(first[0].1 <= second[0].1 && first[0].1 > when::read(b"1700000000"));
    }
}
