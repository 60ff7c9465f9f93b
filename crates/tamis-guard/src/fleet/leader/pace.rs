//! Enforces a minimum time between two requests.

use std::time::{Duration, Instant};

use tamis_sources::Run;

/// The time of the last request of one kind.
#[derive(Debug)]
pub(super) struct Pace {
    last: Option<Instant>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { last: None }
    }

    /// Waits until `period` has passed since the last call. The wait also ends if the source is stopped.
    pub(super) fn keep(&mut self, run: &Run, period: Duration) {
        let left = self.last.map(|last| period.saturating_sub(last.elapsed()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            run.sleep(left);
        }
        self.last = Some(Instant::now());
    }
}
