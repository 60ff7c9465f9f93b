//! The shortest time between two requests.

use std::time::{Duration, Instant};

use tamis_sources::Run;

/// When the last request of a kind was sent.
#[derive(Debug)]
pub(super) struct Pace {
    last: Option<Instant>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { last: None }
    }

    /// Waits until the last call is a period ago, or the source is stopped.
    pub(super) fn keep(&mut self, run: &Run, period: Duration) {
        let left = self.last.map(|last| period.saturating_sub(last.elapsed()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            run.sleep(left);
        }
        self.last = Some(Instant::now());
    }
}
