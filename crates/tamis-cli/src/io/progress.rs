//! Draws a progress bar for work that takes over a second, if stderr is a terminal.

use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{
    BinaryBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};

/// The time before the bar appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// True if the user wants no progress bar.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Turns off all progress bars from now on.
pub fn turn_off() {
    // Relaxed ordering is enough, because the value is set once, before any other thread starts.
    IS_OFF.store(true, Ordering::Relaxed);
}

/// The progress of a command: bytes, rate, and the remaining time if the total is known.
pub struct Progress {
    total_bytes: Option<u64>,
    started: Instant,
    bar: Option<ProgressBar>,
    is_wanted: bool,
}

impl Progress {
    /// Starts the clock. `total_bytes` is the size of all inputs, if known.
    pub fn new(total_bytes: Option<u64>) -> Self {
        let is_wanted = !IS_OFF.load(Ordering::Relaxed) && std::io::stderr().is_terminal();
        Self { total_bytes, started: Instant::now(), bar: None, is_wanted }
    }

    /// Returns the size of all inputs, if known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Reports that `bytes` of the total have been read. Call this function once per block, not
    /// once per record.
    pub fn at(&mut self, bytes: u64) {
        if !self.is_wanted {
            return;
        }
        if self.bar.is_none() && self.started.elapsed() >= PATIENCE {
            self.bar = Some(self.draw());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        }
    }

    /// Prints a line above the bar, or to stderr if there is no bar.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note!("{line}")),
            None => note!("{line}"),
        }
    }

    fn draw(&self) -> ProgressBar {
        let (bar, template) = match self.total_bytes {
            Some(total) => (
                ProgressBar::new(total),
                "{wide_bar} {bytes}/{total_bytes} {rate} {time_left} left",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {bytes} {rate} {elapsed}"),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(template).expect("a valid template");
        // The rate is the average since the start. The estimate of the library omits the time
        // before the bar appeared. The first estimate of the library was ten times too high.
        let style = style
            .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
                write!(out, "{}/s", BinaryBytes(bytes_per_second(state) as u64)).ok();
            })
            .with_key("time_left", |state: &ProgressState, out: &mut dyn fmt::Write| {
                let left = state.len().unwrap_or(0).saturating_sub(state.pos());
                let seconds = (left as f64 / bytes_per_second(state).max(1.0)).round();
                write!(out, "{:#}", HumanDuration(Duration::from_secs(seconds as u64))).ok();
            });
        bar.with_style(style).with_elapsed(self.started.elapsed())
    }
}

fn bytes_per_second(state: &ProgressState) -> f64 {
    state.pos() as f64 / state.elapsed().as_secs_f64().max(1e-3)
}

impl Drop for Progress {
    /// Clears the bar when the command ends, also after a failure.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bars_can_be_drawn() {
        for total in [Some(100), None] {
            let mut progress = Progress::new(total);
            progress.is_wanted = true;
            progress.started = Instant::now() - 2 * PATIENCE;
            progress.at(50);
            assert!(progress.bar.is_some());
        }
    }
}
