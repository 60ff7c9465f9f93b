//! The notes of a finished run on stderr, and its exit status.

use crate::arguments::numbers::HumanCount;
use crate::commands::dedup::Args;
use crate::commands::dedup::stats::{NOTABLE_LOSS, RunStats, shown};
use crate::exit::{CommandResult, Exit};
use crate::io::messages;

impl Args {
    /// Writes the notes about a finished run, and returns its exit status.
    pub(super) fn report(&self, stats: &RunStats) -> CommandResult {
        match self.stats {
            Some(form) => messages::line(stats.show(form)),
            None => note_odd_times(stats),
        }
        let Some((rate, target)) = stats.rate.zip(stats.target_rate) else {
            if stats.expected_lost > NOTABLE_LOSS && self.stats.is_none() {
                let lost = shown(stats.expected_lost);
                note!("about {lost} new lines were probably dropped as repeats");
            }
            return Ok(Exit::Yes);
        };
        // The rate of a window is estimated from the bits of the filter, so the rate may exceed the
        // target by chance.
        let is_over = stats.window.as_ref().map_or(rate > target, |window| window.over_rate);
        if self.approx.is_none() || is_over {
            note!("approximate: {}", self.expected_errors(stats));
        }
        if !is_over {
            return Ok(Exit::Yes);
        }
        let advice = match (self.window.is_some(), self.items, self.memory, self.approx) {
            (true, ..) => "a window had more lines than planned; use a larger --items",
            (_, Some(_), None, _) => "use a larger --items",
            (_, Some(_), Some(_), _) => "use more --memory and a larger --items",
            (_, None, _, Some(_)) => {
                "use more --memory, or give the number of lines with --items N"
            }
            (_, None, _, None) => "use more --memory",
        };
        let of = if self.count || self.unique || self.repeated.is_some() {
            "of a wrong result for a line"
        } else {
            "of dropping a new line"
        };
        note!(
            "the probability {of} rose to {rate:.1e}, above the target of {target:.1e}; {advice}"
        );
        Ok(Exit::OverRate)
    }

    /// Describes the expected errors of an approximate run.
    fn expected_errors(&self, stats: &RunStats) -> String {
        let (lost, wrong) = (shown(stats.expected_lost), shown(stats.expected_wrong));
        let distinct = HumanCount(stats.distinct);
        if self.repeated.is_some() && !self.count {
            return format!(
                "{wrong} lines that occur once are expected to be printed as repeats, and {lost} \
                 repeats to be left out"
            );
        }
        if self.unique {
            let left_out = shown(stats.expected_lost + stats.expected_wrong);
            return format!("{left_out} lines that occur once are expected to be left out");
        }
        let counts = if self.count { &format!(", and {wrong} counts to be too high") } else { "" };
        format!("{lost} new lines are expected to be lost beside {distinct} distinct ones{counts}")
    }
}

/// Writes notes about records without a time, and about late records.
fn note_odd_times(stats: &RunStats) {
    let (timeless, late) = (HumanCount(stats.timeless), HumanCount(stats.late));
    if stats.timeless > 0 {
        let lines = if stats.timeless == 1 { "line has" } else { "lines have" };
        note!("{timeless} {lines} no timestamp; the latest one before was used");
    }
    if stats.late > 0 {
        let lines = if stats.late == 1 { "line" } else { "lines" };
        note!(
            "{late} {lines} more than a window older than an earlier line; the latest timestamp \
             was used: check for a timestamp far in the future"
        );
    }
}
