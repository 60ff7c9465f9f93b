//! Creates notes about a filter that is full or over its planned rate. A command that saves a
//! filter also writes the notes about the filter to stderr.

use std::path::Path;

use tamis::Bits;
use tamis_formats::{FilterInfo, TamisFile};

use crate::arguments::numbers::{HumanCount, Rate, holds};
use crate::exit::{CommandResult, Exit, Failure};
use crate::filters::open_filter::OpenFilter;
use crate::io::output;

/// A filter with a rate above `OVERFULL_RATE` is reported as over-full.
const OVERFULL_RATE: f64 = 0.3;

/// The set of notes that a command reports about a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Only the notes about the rate of the filter.
    Rate,
    /// The notes about the rate, and the warnings of the format.
    All,
}

impl OpenFilter {
    /// Returns the notes about the rate of the decoded filter. The second value is the note that
    /// the filter is over its planned rate, or `None`.
    pub fn rate_notes(&self, info: &FilterInfo) -> (Vec<String>, Option<String>) {
        let planned = self.contents().exceeded_rate(info, self.options.rate);
        let excess = planned.map(|planned| excess(info.items, None, info.rate_now, planned));
        // A filter with a high rate may have been planned for this rate.
        let is_as_planned = excess.is_none() && self.options.rate.or(info.rate_planned).is_some();
        let is_full = info.rate_now > OVERFULL_RATE && !is_as_planned;
        let full = is_full
            .then(|| format!("over-full: finds {:.0} % of absent items", info.rate_now * 100.0));
        (full.into_iter().chain(excess.clone()).collect(), excess)
    }

    /// Returns the notes about the decoded filter. The second value is the note that the filter is
    /// over its planned rate, or `None`.
    pub(crate) fn notes(&self, notes: Notes) -> (Vec<String>, Option<String>) {
        if let Some(file) = self.contents().downcast_ref::<TamisFile>() {
            return tamis_notes(file);
        }
        let info = self.contents().info();
        let (of_rate, excess) = self.rate_notes(&info);
        let warnings = if notes == Notes::All { info.warnings } else { Vec::new() };
        (info.changes.into_iter().chain(warnings).chain(of_rate).collect(), excess)
    }

    /// Writes the notes about the filter at the current time to stderr.
    ///
    /// # Errors
    ///
    /// The errors of [`view`](Self::view).
    pub fn report(&self, notes: Notes) -> Result<Exit, Failure> {
        let (notes, excess) = match self.view()? {
            Some(file) => tamis_notes(&file),
            None => self.notes(notes),
        };
        notes.iter().for_each(|note| note!("{}: {note}", self.name));
        Ok(if excess.is_some() { Exit::OverRate } else { Exit::Yes })
    }

    /// Replaces `output` by the changed filter, after the new file is complete and synced to the
    /// disk. If `force` is true, replaces `output` even if the filter is over its planned rate.
    /// Writes `notes` to stderr.
    ///
    /// # Errors
    ///
    /// A message if the filter is over its planned rate, and the errors of
    /// [`save_as`](Self::save_as). After an error, the old file is unchanged.
    pub fn save(&self, output: &Path, force: bool, notes: Notes) -> CommandResult {
        let (notes, excess) = self.notes(notes);
        let name = output::name(output);
        if let Some(excess) = excess.as_ref().filter(|_| !force) {
            return Err(Failure::new(format!(
                "{name}: {excess}; nothing was written: build one for more items, or accept it \
                 with --force"
            )));
        }
        notes.iter().for_each(|note| note!("{name}: {note}"));
        self.save_as(output, self.format, &self.options)?;
        Ok(if excess.is_some() { Exit::OverRate } else { Exit::Yes })
    }
}

/// Returns the notes about a Tamis filter. The second value is the note that the filter is over its
/// planned rate, or `None`.
fn tamis_notes<B: Bits<Word = u64>>(file: &TamisFile<B>) -> (Vec<String>, Option<String>) {
    let (filter, plan) = (&file.filter, file.filter.plan());
    let excess = file.is_over_rate().then(|| {
        excess(filter.estimate_items(), Some(plan.items()), filter.estimate_rate(), plan.rate())
    });
    (excess.iter().cloned().collect(), excess)
}

/// Returns the note that a filter is over its planned rate. `capacity` is the planned number of
/// items, if the file stores this number.
fn excess(items: f64, capacity: Option<u64>, rate: f64, planned: f64) -> String {
    let capacity =
        capacity.map_or_else(String::new, |it| format!(" and was planned for {}", HumanCount(it)));
    let (held, rate, planned) = (holds(items), Rate(rate), Rate(planned));
    format!("over its rate: it {held}{capacity}; its rate is {rate}, not {planned}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tamis::Answers;
    use tamis_formats::{ChangeError, Contents, Format, StoredFilter};

    use super::*;
    use crate::filters::open_filter::FilterContents;

    /// A filter that counts the calls of [`StoredFilter::info`].
    #[derive(Clone, Debug)]
    struct CountedInfo(Arc<AtomicU32>);

    impl PartialEq for CountedInfo {
        fn eq(&self, _: &Self) -> bool {
            true
        }
    }

    impl StoredFilter for CountedInfo {
        fn contains_each(&self, _: &[&[u8]], _: &mut Answers) {}

        fn insert_each(&mut self, _: &[&[u8]], _: &mut Answers) -> Result<(), ChangeError> {
            Ok(())
        }

        fn info(&self) -> FilterInfo {
            self.0.fetch_add(1, Ordering::Relaxed);
            let warnings = vec!["warning".to_owned()];
            FilterInfo {
                rate_now: 0.5,
                rate_planned: Some(0.01),
                warnings,
                ..FilterInfo::default()
            }
        }
    }

    #[test]
    fn warnings_and_rate_are_read_in_one_pass() {
        let calls = Arc::new(AtomicU32::new(0));
        let contents = Contents::new(CountedInfo(Arc::clone(&calls)));
        let mut filter = OpenFilter::new(Path::new("x"), FilterContents::Decoded(contents));
        filter.format = Format::named("guava").unwrap();
        assert_eq!(filter.report(Notes::All).unwrap(), Exit::OverRate);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let (all, excess) = filter.notes(Notes::All);
        assert_eq!(all[..2], ["warning", "over-full: finds 50 % of absent items"]);
        assert_eq!(all.last(), excess.as_ref());
        assert_eq!(filter.notes(Notes::Rate).0, all[1..]);
    }
}
