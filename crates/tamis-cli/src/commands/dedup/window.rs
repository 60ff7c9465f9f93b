//! `--window`: drops a record only if the record occurred a short time, or a few records, before.
//!
//! ```text
//! reading ─▶ when: the time of a record ─▶ timer: its slice ═▶ batches of one slice ─▶ recent ─▶
//! writing
//!                                          (which never goes back)                     ring: exact
//!                                                                                      filter: approximate
//! ```
//!
//! The window is divided into l slices. The program remembers l + 1 slices: the current slice, and
//! all slices that lie wholly or partly in the window. A record is remembered for at least the
//! length of the window, and at most 1/l of this length longer.

mod filter;
mod recent;
mod ring;
mod timer;
mod when;

use tamis::Span;

pub use crate::commands::dedup::window::recent::{Recent, WindowStats};
pub use crate::commands::dedup::window::timer::{OddTimes, SliceStart, Timer};

use crate::arguments::numbers::HumanCount;
use crate::arguments::window_span::{WindowSpan, even_slices};
use crate::commands::dedup::digest::Width;
use crate::commands::dedup::window::recent::WindowShape;
use crate::commands::dedup::window::timer::Times;
use crate::exit::Failure;
use crate::records::csv::Field;
use crate::records::key::KeyArgs;

/// The help heading of each window option. The attribute `next_help_heading` would also apply to
/// the later options of the command.
const HEADING: &str = "Expiry";

/// The options of a window.
#[derive(clap::Args)]
pub struct WindowArgs {
    /// Drop a line only if the same line was printed within SPAN: a time such as 500ms, 30s, 15m,
    /// 24h, 7d, 2w, or a number of lines such as 1M-lines
    #[arg(long, value_name = "SPAN", help_heading = HEADING,
        conflicts_with_all = ["unique", "count", "full", "state", "suspects", "rate"])]
    window: Option<WindowSpan>,

    /// Read the time of a line from field N, counted from 1 and split as for -k, or from the column
    /// N of --csv [default: the time of arrival]
    ///
    /// A time is a Unix time in seconds (1.5 is valid too). A number of 12 or more digits is in
    /// milliseconds, microseconds or nanoseconds. A time can also be a date such as 20261121100000,
    /// 2026-11-21T10:00:00Z, 2026-11-21 10:00:00.123 +02:00 or 2026-11-21. A date without an offset
    /// is in UTC. Time never goes backwards: a line with an earlier time, or without a time, gets
    /// the latest time before the line.
    #[arg(long, value_name = "N", help_heading = HEADING, requires = "window",
        conflicts_with = "time_json", value_parser = crate::records::csv::field)]
    time_field: Option<Field>,

    /// Read the time of a JSON line from the value at this pointer, such as /time
    #[arg(long, value_name = "POINTER", help_heading = HEADING, requires = "window",
        value_parser = crate::records::key::pointer)]
    time_json: Option<String>,

    /// Expire lines in N steps: a line is kept for at least SPAN and at most SPAN/N longer
    /// [default: 4]
    #[arg(long, value_name = "N", help_heading = HEADING, requires = "window",
        value_parser = crate::arguments::numbers::slices)]
    slices: Option<u8>,

    /// Restart the window of a line when the line is dropped: the line is printed again only after
    /// a whole window without the line
    #[arg(long, requires = "window", help_heading = HEADING)]
    refresh: bool,
}

impl WindowArgs {
    /// Tests whether the user gave a window.
    pub fn is_some(&self) -> bool {
        self.window.is_some()
    }

    /// Rejects options that do not apply to a window, or do not apply to this kind of window.
    ///
    /// # Errors
    ///
    /// Returns a message that states how to correct the options.
    pub fn check(&self, is_approx: bool, has_items: bool, is_once: bool) -> Result<(), Failure> {
        let Some(window) = self.window else { return Ok(()) };
        if is_once {
            return Err(Failure::new(
                "--repeated=once cannot be used with --window, where lines expire; use \
                 --repeated=all",
            ));
        }
        match window.0 {
            Span::Items(_) if self.time_field.is_some() || self.time_json.is_some() => {
                Err(Failure::new(format!(
                    "a --window of {window} needs no time: leave --time-field and --time-json out, \
                     or give it a time such as 24h"
                )))
            }
            Span::Millis(_) if is_approx && !has_items => Err(Failure::new(format!(
                "--approx needs --items with a --window of {window}: how many distinct lines come \
                 in that time"
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the options of a window, and whether the user gave each option without a window.
    pub fn unused(&self) -> [(bool, &'static str); 4] {
        let is_none = self.window.is_none();
        [
            (is_none && self.slices.is_some(), "--slices is for a --window"),
            (is_none && self.refresh, "--refresh is for a --window"),
            (is_none && self.time_field.is_some(), "--time-field is for a --window"),
            (is_none && self.time_json.is_some(), "--time-json is for a --window"),
        ]
    }

    /// Returns the number of slices. If the lines do not divide evenly, the result exceeds the
    /// number that the user gave.
    fn slices(&self) -> u32 {
        const SLICES: u8 = 4;
        let slices = u32::from(self.slices.unwrap_or(SLICES));
        match self.window {
            Some(WindowSpan(Span::Items(items))) => even_slices(items, slices.into()) as u32,
            _ => slices,
        }
    }

    /// Returns the timer that assigns records to slices. The timer and the key rule split records
    /// into fields in the same way.
    pub fn timer(&self, key: &KeyArgs) -> Option<Timer> {
        let WindowSpan(span) = self.window?;
        let by_record = self.time_field.is_some() || self.time_json.is_some();
        let times = match span {
            Span::Items(_) => Times::Count,
            Span::Millis(_) if by_record => Times::Records(Box::new(
                key.rule_of(self.time_field.as_ref(), self.time_json.as_deref()),
            )),
            Span::Millis(_) => Times::Arrival,
        };
        let (Span::Millis(len) | Span::Items(len)) = span;
        // The division rounds up, so that all slices together are at least as long as the window.
        let slices = self.slices();
        Some(Timer::new(times, len.div_ceil(slices.into()), slices))
    }

    /// Creates an empty window of at most `max_bytes`. If `approx` is a rate, the window is
    /// approximate and planned for `items` distinct records. Returns `None` if the user gave no
    /// window.
    ///
    /// # Errors
    ///
    /// Returns an error if no filter has this plan, or if the memory is too small for the window.
    pub fn recent<D: Width>(
        &self,
        approx: Option<f64>,
        items: Option<HumanCount>,
        max_bytes: u64,
    ) -> Option<Result<Recent<D>, Failure>> {
        let window = self.window?;
        let shape = WindowShape {
            span: window.to_string(),
            slices: self.slices(),
            refreshes: self.refresh,
            max_bytes,
        };
        // The number of distinct lines is at most the number of all lines.
        let (Span::Items(lines) | Span::Millis(lines)) = window.0;
        let items = items.map_or(lines, |HumanCount(items)| items);
        Some(Recent::new(shape, approx.map(|rate| (items, rate))))
    }
}
