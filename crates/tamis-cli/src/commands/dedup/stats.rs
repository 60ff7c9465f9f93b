//! The statistics of a run, as text for people and as JSON for programs.

use std::fmt;

use serde::Serialize;

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::HumanCount;
use crate::commands::dedup::digest::Width;
use crate::commands::dedup::record_batch::RecordBatch;
use crate::commands::dedup::seen::Accuracy;
use crate::commands::dedup::window::WindowStats;
use crate::exit::Failure;
use crate::records::key::no_key;

/// If the expected losses exceed `NOTABLE_LOSS`, the run reports the losses. If the expected losses
/// equal `NOTABLE_LOSS`, one run in ten thousand loses a record.
pub const NOTABLE_LOSS: f64 = 1e-4;

/// The form of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StatsFormat {
    /// Text, one value per line
    Text,
    /// One line of JSON
    Json,
}

/// The counters and estimates of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunStats {
    /// The number of records read.
    pub records: u64,
    /// The number of records written.
    pub written: u64,
    /// The number of distinct records, without lost records. With a window, the number of records
    /// that were new in their window.
    pub distinct: u64,
    /// The number of bytes read, after decompression.
    pub bytes_read: u64,
    /// The number of bytes written.
    pub bytes_written: u64,
    /// The number of records without the requested key. A record without a key is compared as a
    /// whole record.
    pub keyless: u64,
    /// The number of records without the requested time. A record without a time gets the latest
    /// earlier time.
    pub timeless: u64,
    /// The number of records whose time is before the latest time by more than a window.
    pub late: u64,
    /// The method of comparison.
    pub method: String,
    /// The expected number of new records that were treated as repeats. If repeats are printed, the
    /// expected number of repeats that were not printed.
    pub expected_lost: f64,
    /// The expected number of records whose count is too high. If repeats are printed, the expected
    /// number of records that are printed although they occur once.
    pub expected_wrong: f64,
    /// For approximate runs, the current probability that a new record is lost. With a window, the
    /// highest probability so far.
    pub rate: Option<f64>,
    /// The requested probability.
    pub target_rate: Option<f64>,
    /// The memory of the set in bytes.
    pub memory_bytes: u64,
    /// The statistics of the window at the end of the run, if there is a window.
    pub window: Option<WindowStats>,
    /// The wall-clock time in seconds.
    pub seconds: f64,
}

impl RunStats {
    /// Adds the records and bytes of `batch`.
    pub fn add<D: Width>(&mut self, batch: &RecordBatch<D>) {
        self.records += batch.len() as u64;
        self.bytes_read += batch.block.len() as u64;
        self.keyless += batch.keyless;
        self.timeless += batch.odd.timeless;
        self.late += batch.odd.late;
    }

    /// Rejects a run in which no record has the key, or no record has a time. `key` describes the
    /// key. After an error, the caller must not replace a file with the result of the run.
    ///
    /// # Errors
    ///
    /// Returns a message that names the option to correct.
    pub fn check(&self, key: &str) -> Result<(), Failure> {
        if self.records > 0 && self.keyless == self.records {
            return Err(no_key(key));
        }
        if self.records > 0 && self.timeless == self.records {
            return Err(Failure::new(
                "no line has a readable timestamp: check the field; Unix seconds, milliseconds, \
                 20261121100000 and 2026-11-21T10:00:00Z are accepted",
            ));
        }
        Ok(())
    }

    /// Copies the accuracy and the memory of the set.
    pub fn set_accuracy(&mut self, accuracy: Accuracy) {
        self.distinct = accuracy.distinct;
        self.method = accuracy.method;
        self.expected_lost = accuracy.expected_lost;
        self.rate = accuracy.rates.map(|(rate, _)| rate);
        self.target_rate = accuracy.rates.map(|(_, target)| target);
        self.memory_bytes = accuracy.memory_bytes;
    }

    /// Returns the statistics in the requested form.
    pub fn show(&self, form: StatsFormat) -> String {
        match form {
            StatsFormat::Text => self.to_string(),
            StatsFormat::Json => serde_json::to_string(self).expect("plain data"),
        }
    }
}

impl fmt::Display for RunStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes| ByteSize { bytes };
        let mut line = |name: &str, number: u64, rest: fmt::Arguments<'_>| {
            writeln!(f, "{name:<14} {:>15}  {rest}", HumanCount(number))
        };
        line("records read", self.records, format_args!("{}", size(self.bytes_read)))?;
        line("written", self.written, format_args!("{}", size(self.bytes_written)))?;
        line("distinct", self.distinct, format_args!("{}", self.method))?;
        if let Some(WindowStats { span, slices, remembered, .. }) = &self.window {
            let about = if self.rate.is_some() { "about, " } else { "" };
            let rest = format_args!("{about}of a window of {span} in {slices} slices");
            line("remembered", *remembered, rest)?;
        }
        if self.timeless > 0 {
            line("without time", self.timeless, format_args!("the latest earlier time was used"))?;
        }
        if self.late > 0 {
            line("late", self.late, format_args!("over a window older than one before them"))?;
        }
        if self.keyless > 0 {
            line("without key", self.keyless, format_args!("compared as whole records"))?;
        }
        write!(f, "{:<14} {:>15}  ", "wrongly seen", shown(self.expected_lost))?;
        match (self.rate, self.target_rate) {
            (Some(rate), Some(target)) => {
                let when = if self.window.is_some() { "rose to" } else { "is now" };
                writeln!(f, "expected; the chance {when} {rate:.1e}, asked for {target:.1e}")?;
            }
            _ if self.expected_lost == 0.0 => writeln!(f, "certain")?,
            _ => writeln!(f, "expected")?,
        }
        let rate = size((self.bytes_read as f64 / self.seconds.max(1e-9)) as u64);
        write!(
            f,
            "{:<14} {:>13.2} s  {rate}/s, {} for the set",
            "time",
            self.seconds,
            size(self.memory_bytes)
        )
    }
}

/// Formats an expected number, which may be far below 1.
pub fn shown(expected: f64) -> String {
    match expected {
        0.0 => "0".into(),
        _ if expected < 0.1 => format!("{expected:.1e}"),
        _ if expected < 100.0 => format!("{expected:.1}"),
        _ => HumanCount(expected.round() as u64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_expectations_keep_their_size() {
        assert_eq!(
            [0.0, 1.9e-6, 0.25, 28.9, 1234.5].map(shown),
            ["0", "1.9e-6", "0.2", "28.9", "1,235"]
        );
    }
}
