//! The history of the server: the last ten minutes by second, and the last day by minute.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use crate::shared_state::SharedState;
use crate::stats::Called;
use crate::system::clock::now_millis;

/// The number of one-second samples: ten minutes.
const SECONDS: usize = 600;

/// The number of one-minute samples: one day.
const MINUTES: usize = 1440;

/// The number of seconds in a one-minute sample.
const SECONDS_PER_MINUTE: u64 = 60;

/// The recent history of the server. The history takes 131 kB from the start, independent of the
/// load.
#[derive(Default)]
pub(super) struct History(Mutex<Rings>);

struct Rings {
    seconds: Ring,
    minutes: Ring,
}

impl Default for Rings {
    fn default() -> Self {
        Self { seconds: Ring::of(SECONDS), minutes: Ring::of(MINUTES) }
    }
}

/// Samples with the same duration, oldest first.
struct Ring {
    samples: VecDeque<ActivitySample>,
    most: usize,
    /// The counters at the end of the last sample. The value is `None` before the first reading.
    last: Option<Counters>,
    last_millis: u64,
}

/// The counters of a server since its start.
#[derive(Clone)]
struct Counters {
    commands: u64,
    errors: u64,
    slow: u64,
    called: Called,
}

/// The activity in one second or one minute.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ActivitySample {
    commands: u64,
    errors: u64,
    slow: u64,
    /// The median and the 99th percentile of the command durations, in microseconds. The values are
    /// `None` if no command ran.
    p50_micros: Option<f64>,
    p99_micros: Option<f64>,
    memory_bytes: u64,
}

/// The duration of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleInterval {
    Second,
    Minute,
}

impl Counters {
    fn read(shared: &SharedState) -> Self {
        let stats = &shared.stats;
        Self {
            commands: stats.commands.load(Ordering::Relaxed),
            errors: stats.errors.load(Ordering::Relaxed),
            slow: stats.slow.ever(),
            called: stats.calls.all(),
        }
    }

    /// Returns the difference between these counters and the earlier counters `before`. If `CONFIG
    /// RESETSTAT` has set the counters to zero since the earlier reading, the difference is zero.
    fn since(&self, before: &Self, memory_bytes: u64) -> ActivitySample {
        let called = self.called.since(&before.called);
        let percentile = |share| (called.calls() > 0).then(|| called.percentile_micros(share));
        ActivitySample {
            commands: self.commands.saturating_sub(before.commands),
            errors: self.errors.saturating_sub(before.errors),
            slow: self.slow.saturating_sub(before.slow),
            p50_micros: percentile(0.5),
            p99_micros: percentile(0.99),
            memory_bytes,
        }
    }
}

impl Ring {
    /// Creates an empty ring for at most `most` samples.
    fn of(most: usize) -> Self {
        Self { samples: VecDeque::with_capacity(most), most, last: None, last_millis: 0 }
    }

    fn push(&mut self, now: &Counters, now_millis: u64, memory_bytes: u64) {
        if let Some(before) = &self.last {
            if self.samples.len() == self.most {
                self.samples.pop_front();
            }
            self.samples.push_back(now.since(before, memory_bytes));
        }
        (self.last, self.last_millis) = (Some(now.clone()), now_millis);
    }

    fn to_json(&self, step: SampleInterval) -> Json {
        let list =
            |number: fn(&ActivitySample) -> Json| self.samples.iter().map(number).collect::<Json>();
        json!({
            "step_millis": if step == SampleInterval::Second { 1000 } else { 1000 * SECONDS_PER_MINUTE },
            "end_millis": self.last_millis,
            "commands": list(|it| json!(it.commands)),
            "errors": list(|it| json!(it.errors)),
            "slow": list(|it| json!(it.slow)),
            "p50_micros": list(|it| json!(it.p50_micros)),
            "p99_micros": list(|it| json!(it.p99_micros)),
            "memory_bytes": list(|it| json!(it.memory_bytes)),
        })
    }
}

impl Rings {
    fn push(&mut self, second: u64, now: &Counters, now_millis: u64, memory_bytes: u64) {
        self.seconds.push(now, now_millis, memory_bytes);
        if second.is_multiple_of(SECONDS_PER_MINUTE) {
            self.minutes.push(now, now_millis, memory_bytes);
        }
    }
}

impl History {
    /// Takes one sample per second until the server ends.
    pub async fn keep(&self, shared: &SharedState) {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for second in 0.. {
            seconds.tick().await;
            let (now, memory) = (Counters::read(shared), shared.used_memory());
            self.0.lock().push(second, &now, now_millis(), memory);
        }
    }

    /// Returns the number of commands in the last complete second.
    pub fn commands_per_second(&self) -> u64 {
        self.0.lock().seconds.samples.back().map_or(0, |sample| sample.commands)
    }

    /// Returns all samples with the duration `step`, oldest first.
    pub fn to_json(&self, step: SampleInterval) -> Json {
        let rings = self.0.lock();
        match step {
            SampleInterval::Second => rings.seconds.to_json(step),
            SampleInterval::Minute => rings.minutes.to_json(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Calls;

    #[test]
    fn seconds_and_minutes_are_bounded_and_agree() {
        let calls = Calls::new(1);
        let mut rings = Rings::default();
        let (mut commands, mut errors, mut called) = (0, 0, calls.all());
        for second in 0..100_000_u64 {
            // One command in fifty takes a millisecond. In every other second, no command runs.
            if second % 2 == 1 {
                calls.count(1, 98, Duration::from_micros(10));
                calls.count(1, 2, Duration::from_millis(1));
                commands += 100;
                errors += 3;
                called = calls.all();
            }
            let now = Counters { commands, errors, slow: errors * 2, called: called.clone() };
            rings.push(second, &now, second * 1000, second);
        }
        assert_eq!((rings.seconds.samples.len(), rings.minutes.samples.len()), (SECONDS, MINUTES));
        let places = rings.seconds.samples.capacity() + rings.minutes.samples.capacity();
        assert!((130_000..131_000).contains(&(places * size_of::<ActivitySample>())));
        let last = rings.seconds.samples.back().unwrap();
        assert_eq!((last.commands, last.errors, last.slow), (100, 3, 6));
        let (p50, p99) = (last.p50_micros.unwrap(), last.p99_micros.unwrap());
        assert!((8.0..=16.0).contains(&p50) && (512.0..=1024.0).contains(&p99), "{p50} {p99}");
        let before = rings.seconds.samples[SECONDS - 2];
        assert_eq!((before.commands, before.p50_micros), (0, None));
        let minute = rings.minutes.samples.back().unwrap();
        assert_eq!((minute.commands, minute.errors, minute.slow), (3000, 90, 180));
        let json = rings.minutes.to_json(SampleInterval::Minute);
        assert_eq!(json["step_millis"], 60_000);
        assert_eq!(json["end_millis"], 99_960_000);
        assert_eq!(json["p99_micros"].as_array().unwrap().len(), MINUTES);
    }

    #[test]
    fn reset_counters_give_differences_of_zero() {
        let calls = Calls::new(1);
        calls.count(1, 5, Duration::from_micros(10));
        let before = Counters { commands: 5, errors: 2, slow: 1, called: calls.all() };
        calls.reset();
        let now = Counters { commands: 0, errors: 0, slow: 1, called: calls.all() };
        let sample = now.since(&before, 7);
        assert_eq!((sample.commands, sample.errors, sample.slow), (0, 0, 0));
        assert_eq!((sample.p50_micros, sample.memory_bytes), (None, 7));
    }
}
