//! What happened lately: a ring of samples, one a second.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::server::Shared;

/// Seconds that are remembered.
const SECONDS: usize = 600;

/// The last ten minutes of the server.
#[derive(Default)]
pub(super) struct History(RefCell<VecDeque<Sample>>);

#[derive(Clone, Copy)]
struct Sample {
    commands: u64,
    memory_bytes: u64,
}

impl History {
    /// Takes a sample a second, for ever.
    pub async fn keep(&self, shared: &Shared) {
        let mut before = shared.stats.commands.load(Ordering::Relaxed);
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        seconds.tick().await;
        loop {
            seconds.tick().await;
            let now = shared.stats.commands.load(Ordering::Relaxed);
            let sample =
                Sample { commands: now.saturating_sub(before), memory_bytes: shared.used_memory() };
            before = now;
            let mut samples = self.0.borrow_mut();
            if samples.len() == SECONDS {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
    }

    /// Returns the commands of the last full second.
    pub fn commands_per_second(&self) -> u64 {
        self.0.borrow().back().map_or(0, |sample| sample.commands)
    }

    /// Returns all samples, oldest first.
    pub fn to_json(&self) -> Json {
        let samples = self.0.borrow();
        json!({
            "seconds": samples.len(),
            "commands": samples.iter().map(|it| it.commands).collect::<Vec<_>>(),
            "memory_bytes": samples.iter().map(|it| it.memory_bytes).collect::<Vec<_>>(),
        })
    }
}
