//! Counts the calls of each command and their durations.
//!
//! ```text
//! thread ──▶ its own stripe ──▶ row of the command ──▶ bucket of the duration
//! ```
//!
//! A batch of consecutive commands costs two atomic additions. Unless several threads share a
//! stripe, no two threads write the same cache line. A reader sums the stripes (the counters of
//! each thread).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tamis_commands::COMMANDS;

/// The calls of all commands.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    stripes: Box<[Stripe]>,
}

type Stripe = Box<[CommandCounts]>;

/// The counts of one command in one stripe (the counters of one thread). The struct is aligned to
/// cache lines, so that two stripes never share a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct CommandCounts {
    /// The number of calls in each bucket of durations. See [`bound_nanos`].
    buckets: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
}

/// The counts of a command, summed over the counters of all threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    /// The number of calls in each bucket. A call is in the first bucket whose [bound](bound_nanos)
    /// is at least the duration of the call.
    pub buckets: [u64; BUCKETS],
    /// The total duration of all calls, in nanoseconds.
    pub nanos: u64,
    /// The number of calls that got an error reply.
    pub failed: u64,
    /// The number of calls that the server rejected before the command ran. Rejected calls are in
    /// no bucket.
    pub rejected: u64,
}

/// The number of buckets. The last bucket contains all calls that are longer than the bounds of the
/// other buckets.
const BUCKETS: usize = 32;

/// The maximum number of stripes (counters for one thread). If the server has more threads than
/// stripes, several threads share a stripe.
const MAX_STRIPES: usize = 16;

/// Returns the longest duration of a bucket in nanoseconds. The duration is a power of two in units
/// of 1/32 µs. Returns `None` for the last bucket, which has no bound.
pub(crate) fn bound_nanos(bucket: usize) -> Option<f64> {
    (bucket < BUCKETS - 1).then(|| (1_u64 << bucket) as f64 * UNIT_NANOS)
}

/// 1/32 of a microsecond, in nanoseconds. With this unit, every power of two from 1 µs is a bound
/// of a bucket.
const UNIT_NANOS: f64 = 31.25;

fn bucket_of(nanos: u64) -> usize {
    // A duration that is equal to a bound belongs to the bucket of that bound.
    let units = nanos.saturating_sub(1).min(u64::MAX / 4) * 4 / 125;
    ((u64::BITS - units.leading_zeros()) as usize).min(BUCKETS - 1)
}

/// Returns the index of the calling thread. The index of a thread never changes.
fn number_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

impl Calls {
    /// Creates the counters for `threads` threads.
    pub fn new(threads: usize) -> Self {
        let stripe = || COMMANDS.iter().map(|_| CommandCounts::default()).collect();
        let stripes = threads.next_power_of_two().min(MAX_STRIPES);
        Self { stripes: (0..stripes).map(|_| stripe()).collect() }
    }

    fn row(&self, command: usize) -> &CommandCounts {
        &self.stripes[number_of_thread() & (self.stripes.len() - 1)][command]
    }

    /// Counts `calls` calls of a command. Each call took the time `each`.
    pub fn count(&self, command: usize, calls: u64, each: Duration) {
        let nanos = u64::try_from(each.as_nanos()).unwrap_or(u64::MAX);
        let row = self.row(command);
        // `Relaxed` is sufficient for all counters in this file, because readers only sum the
        // counters.
        row.buckets[bucket_of(nanos)].fetch_add(calls, Ordering::Relaxed);
        row.nanos.fetch_add(nanos.saturating_mul(calls), Ordering::Relaxed);
    }

    pub fn count_failed(&self, command: usize) {
        self.row(command).failed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_rejected(&self, command: usize) {
        self.row(command).rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts of a command.
    pub fn of(&self, command: usize) -> Called {
        let sum = |number: fn(&CommandCounts) -> &AtomicU64| {
            let numbers = self.stripes.iter().map(|stripe| number(&stripe[command]));
            numbers.map(|number| number.load(Ordering::Relaxed)).sum()
        };
        let mut buckets = [0; BUCKETS];
        for row in self.stripes.iter().map(|stripe| &stripe[command]) {
            for (sum, bucket) in buckets.iter_mut().zip(&row.buckets) {
                *sum += bucket.load(Ordering::Relaxed);
            }
        }
        Called {
            buckets,
            nanos: sum(|row| &row.nanos),
            failed: sum(|row| &row.failed),
            rejected: sum(|row| &row.rejected),
        }
    }

    /// Returns every command that was called or rejected, with its lowercase name and its counts.
    pub fn each_called(&self) -> impl Iterator<Item = (String, Called)> + '_ {
        let counts = COMMANDS.iter().map(|it| (it.name.to_ascii_lowercase(), self.of(it.index())));
        counts.filter(|(_, called)| called.calls() + called.rejected > 0)
    }

    /// Returns the sums of the counts over all commands. The call reads about ten thousand
    /// counters.
    pub fn all(&self) -> Called {
        let all = (0..COMMANDS.len()).map(|command| self.of(command));
        all.reduce(|mut sum, called| {
            for (sum, more) in sum.buckets.iter_mut().zip(called.buckets) {
                *sum += more;
            }
            sum.nanos += called.nanos;
            sum.failed += called.failed;
            sum.rejected += called.rejected;
            sum
        })
        .expect("there are commands")
    }

    /// Resets the counters of all commands.
    pub fn reset(&self) {
        for row in self.stripes.iter().flat_map(|stripe| stripe.iter()) {
            let others = [&row.nanos, &row.failed, &row.rejected];
            for number in row.buckets.iter().chain(others) {
                number.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl Called {
    /// Returns the number of calls in all buckets.
    pub fn calls(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the difference between the counts and an earlier reading `before` of the counts. A
    /// counter that was reset between the two readings gives zero.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            buckets: std::array::from_fn(|i| self.buckets[i].saturating_sub(before.buckets[i])),
            nanos: self.nanos.saturating_sub(before.nanos),
            failed: self.failed.saturating_sub(before.failed),
            rejected: self.rejected.saturating_sub(before.rejected),
        }
    }

    /// Returns the duration within which the given share of the calls ended, in microseconds. The
    /// estimate assumes that the calls in a bucket are evenly distributed.
    pub fn percentile_micros(&self, share: f64) -> f64 {
        let wanted = self.calls() as f64 * share;
        let mut before = 0.0;
        for (bucket, &calls) in self.buckets.iter().enumerate().filter(|(_, calls)| **calls > 0) {
            let calls = calls as f64;
            if before + calls >= wanted {
                let low = bucket.checked_sub(1).and_then(bound_nanos).unwrap_or(0.0);
                let high = bound_nanos(bucket).unwrap_or(low * 2.0);
                return (low + (high - low) * (wanted - before) / calls) / 1000.0;
            }
            before += calls;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let mut times: Vec<u64> =
            (0..40).flat_map(|i| [1_u64 << i, (1 << i) * 1000 / 32]).collect();
        times.extend([0, 125, 126, 1000, 1001, 2000, 2001, u64::MAX]);
        for nanos in times {
            let bucket = bucket_of(nanos);
            // Allow a difference of one nanosecond, the smallest step of the clock.
            assert!(bound_nanos(bucket).is_none_or(|most| nanos as f64 <= most + 1.0), "{nanos}");
            let before = bucket.checked_sub(1).map(|it| bound_nanos(it).unwrap());
            assert!(before.is_none_or(|least| nanos as f64 > least), "{nanos}");
        }
        assert_eq!((bucket_of(1000), bound_nanos(5)), (5, Some(1000.0)));
        assert_eq!((bucket_of(1001), bucket_of(1_000_000)), (6, 15));
    }

    #[test]
    fn threads_count_together() {
        let calls = Calls::new(2);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..1000 {
                        calls.count(3, 2, Duration::from_micros(3));
                    }
                    calls.count_failed(3);
                });
            }
        });
        let called = calls.of(3);
        assert_eq!((called.calls(), called.failed, called.nanos), (8000, 4, 24_000_000));
        assert_eq!(called.buckets[7], 8000);
        let middle = called.percentile_micros(0.5);
        assert!((2.0..=4.0).contains(&middle), "{middle}");
        assert_eq!(calls.of(2).calls(), 0);
        calls.count(2, 5, Duration::from_micros(9));
        let all = calls.all();
        assert_eq!((all.calls(), all.nanos, all.failed), (8005, 24_045_000, 4));
        let since = all.since(&called);
        assert_eq!((since.calls(), since.nanos, since.failed), (5, 45_000, 0));
        calls.count(3, u64::MAX / 2, Duration::MAX);
        calls.reset();
        assert_eq!((calls.of(3).calls(), calls.of(3).percentile_micros(0.99)), (0, 0.0));
    }
}
