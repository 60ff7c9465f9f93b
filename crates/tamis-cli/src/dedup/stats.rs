//! The statistics of a run, for people and for programs.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::cut::Cut;
use super::digest::Width;
use super::seen::Worth;
use super::window::WindowStats;
use crate::count::Count;
use crate::size::Size;

/// The form of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Lines for people.
    Text,
    /// One line of JSON.
    Json,
}

/// What a run counted.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Records read.
    pub records: u64,
    /// Records written.
    pub written: u64,
    /// Records that differ from all others, or from all others in their window, as far as is known.
    pub distinct: u64,
    /// Bytes read, unpacked.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Records without the key asked for, compared as a whole.
    pub keyless: u64,
    /// Records without the time asked for, counted as of the latest time before them.
    pub timeless: u64,
    /// Records of a time more than a window before the latest.
    pub late: u64,
    /// How records were compared.
    pub method: String,
    /// How many new records are expected to have been taken for seen.
    pub expected_lost: f64,
    /// How many records are expected to be counted too often, or to be printed though they occur once.
    pub expected_wrong: f64,
    /// The present chance of a loss, for approximate runs; with a window the highest chance so far.
    pub rate: Option<f64>,
    /// The chance that was asked for.
    pub target_rate: Option<f64>,
    /// The memory of the set.
    pub memory_bytes: u64,
    /// What was remembered at the end, if there was a window.
    pub window: Option<WindowStats>,
    /// Wall-clock time.
    pub seconds: f64,
}

impl Stats {
    /// Counts what was read.
    pub fn add<D: Width>(&mut self, cut: &Cut<D>) {
        self.records += cut.len() as u64;
        self.bytes_read += cut.block.len() as u64;
        self.keyless += cut.keyless;
        self.timeless += cut.odd.timeless;
        self.late += cut.odd.late;
    }

    /// Copies the figures of the set.
    pub fn set_worth(&mut self, worth: Worth) {
        self.distinct = worth.distinct;
        self.method = worth.method;
        self.expected_lost = worth.expected_lost;
        self.rate = worth.rates.map(|(rate, _)| rate);
        self.target_rate = worth.rates.map(|(_, target)| target);
        self.memory_bytes = worth.memory_bytes;
    }

    /// Notes the time.
    pub fn set_time(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
    }

    /// Returns the statistics in the form asked for.
    pub fn show(&self, form: Form) -> String {
        match form {
            Form::Text => self.to_string(),
            Form::Json => serde_json::to_string(self).expect("plain data"),
        }
    }
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            records: 0,
            written: 0,
            distinct: 0,
            bytes_read: 0,
            bytes_written: 0,
            keyless: 0,
            timeless: 0,
            late: 0,
            method: String::new(),
            expected_lost: 0.0,
            expected_wrong: 0.0,
            rate: None,
            target_rate: None,
            memory_bytes: 0,
            window: None,
            seconds: 0.0,
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes| Size { bytes };
        let mut line = |name: &str, number: u64, rest: fmt::Arguments<'_>| {
            writeln!(f, "{name:<14} {:>15}  {rest}", grouped(number))
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
            line("without time", self.timeless, format_args!("counted as of the latest time"))?;
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

/// Writes a number of items that may be far below one.
pub fn shown(expected: f64) -> String {
    match expected {
        0.0 => "0".into(),
        _ if expected < 0.1 => format!("{expected:.1e}"),
        _ if expected < 100.0 => format!("{expected:.1}"),
        _ => grouped(expected.round() as u64),
    }
}

/// Writes digits in groups of three.
pub fn grouped(number: u64) -> String {
    Count(number).to_string()
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
