//! A running source: its loop, and the methods with which a reader reports progress.

mod ids;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::errors::source_error::SourceError;
use crate::ids::id_set::IdSet;
use crate::ids::snapshot::SnapshotOptions;
use crate::source::follow::{Effect, Event, Follow, LogPosition};
use crate::source::snapshot_record::SnapshotRecord;
use crate::source::status::{Progress, Rows};

/// The settings of a source: its read interval, its limits and its snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceOptions {
    /// The time between two reads.
    pub interval: Duration,
    /// The time without a successful read after which the state becomes stale. The value of `stale_after` must exceed
    /// the sum of `interval` and the duration of a read.
    pub stale_after: Duration,
    /// The maximum pause after a failed read. The pauses start at `interval` and double.
    pub max_pause: Duration,
    /// The share of deleted ids in the filter above which the source does a full read. Below this share, each deleted
    /// id stays in the filter and takes additional memory, but the set refuses the id.
    pub max_deleted: f64,
    /// The time after which the source does a full read, even if no event requires a full read. With `None`, the age of
    /// a generation never causes a full read. The new generation has a new hash key. The new generation does not
    /// contain ids whose deletion the change stream missed.
    pub rebuild_after: Option<Duration>,
    /// Where the source stores its ids, so that a restart does not need a full read. The setting has no effect for a
    /// source that cannot report the changes since a snapshot. The page of the guard lists the kinds that support
    /// snapshots.
    pub snapshot: Option<SnapshotOptions>,
}

impl Default for SourceOptions {
    /// Returns the default settings: an interval of 1 second, and 10 seconds for `stale_after` and `max_pause`. The
    /// source does a full read when a quarter of the ids is deleted.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            stale_after: Duration::from_secs(10),
            max_pause: Duration::from_secs(10),
            max_deleted: 0.25,
            rebuild_after: None,
            snapshot: None,
        }
    }
}

/// Reads the ids of one kind of source. A reader runs on its own thread.
pub trait Reader: Send + 'static {
    /// Reads the changes since the last call, and reports them to `run`. The source calls this method again after
    /// [`SourceOptions::interval`]. After an error, the pause may be longer than the interval.
    ///
    /// # Errors
    ///
    /// [`SourceError::Stopped`] ends the source. After any other error, the status of the source shows the error.
    fn read(&mut self, run: &Run) -> Result<(), SourceError>;

    /// Ends the reader after its last read. The implementation must return within a bounded time.
    fn stop(&mut self, _: &Run) {}
}

/// The minimum pause after a panic of a reader.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// The state of a running source that its reader uses.
#[derive(Debug)]
pub struct Run {
    pub(crate) ids: Arc<IdSet>,
    /// The number of the source in the set.
    pub(crate) number: usize,
    pub(crate) options: SourceOptions,
    pub(crate) is_stopped: Arc<AtomicBool>,
    /// The number of requests for a new generation.
    pub(crate) asked: AtomicU64,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) wake: Condvar,
    /// How text ids of the source are folded to keys.
    pub(crate) fold: AtomicU8,
    /// The report of the thread that writes snapshots.
    pub(crate) snapshots: Arc<SnapshotRecord>,
}

impl Run {
    /// Creates the state of the source with a number in a set.
    pub(crate) fn new(ids: Arc<IdSet>, number: usize, options: SourceOptions) -> Self {
        Self {
            ids,
            number,
            options,
            is_stopped: Arc::default(),
            asked: AtomicU64::new(0),
            fold: AtomicU8::new(0),
            progress: Mutex::default(),
            wake: Condvar::new(),
            snapshots: Arc::default(),
        }
    }

    /// Returns the set that the source fills. Other sources may fill the same set. A reader must therefore change the
    /// ids only through the methods of `Run`, which change the ids of this source.
    #[must_use]
    pub fn ids(&self) -> &IdSet {
        &self.ids
    }

    /// Returns the settings of the source.
    #[must_use]
    pub fn options(&self) -> &SourceOptions {
        &self.options
    }

    /// Returns a flag that becomes true when the source is stopped.
    #[must_use]
    pub fn stop_signal(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopped)
    }

    /// Runs a reader until the source is stopped. If a reader panics, a new reader replaces the reader, because
    /// database drivers panic on malformed responses. After a panic, the set is stale until the new reader succeeds.
    pub(crate) fn work(&self, reader: impl Fn() -> Box<dyn Reader>) {
        let least = self.options.interval.max(LEAST_PAUSE);
        let mut pause = least;
        while !self.is_stopped() {
            let begun = Instant::now();
            let ended = catch_unwind(AssertUnwindSafe(|| {
                self.read_until_stopped(&mut *reader());
            }));
            if ended.is_ok() {
                return;
            }
            self.abandon_generation();
            self.lost();
            self.progress.lock().fail(&SourceError::Panicked);
            // After a long run without a panic, the pause starts again at its minimum.
            if begun.elapsed() > self.options.max_pause {
                pause = least;
            }
            self.sleep(pause);
            pause = pause.saturating_mul(2).min(self.options.max_pause).max(least);
        }
    }

    fn read_until_stopped(&self, reader: &mut dyn Reader) {
        let mut pause = self.options.interval;
        while !self.is_stopped() {
            match reader.read(self) {
                Ok(()) => pause = self.options.interval,
                Err(SourceError::Stopped) => break,
                Err(error) => {
                    self.abandon_generation();
                    self.progress.lock().fail(&error);
                    self.sleep(pause);
                    pause = pause
                        .saturating_mul(2)
                        .min(self.options.max_pause)
                        .max(self.options.interval);
                    continue;
                }
            }
            self.sleep(pause);
        }
        self.abandon_generation();
        reader.stop(self);
    }

    /// Sets the state to stale when the last successful read is too old.
    pub(crate) fn watch(&self) {
        let limit = self.options.stale_after;
        let mut progress = self.progress.lock();
        while !self.is_stopped() {
            let age = progress.known_until.map(|moment| moment.elapsed());
            let left = age.map_or(limit, |age| limit.saturating_sub(age));
            if left.is_zero() {
                self.make_stale();
            }
            let left = if left.is_zero() { limit } else { left };
            self.wake.wait_for(&mut progress, left);
        }
    }

    pub(crate) fn make_stale(&self) {
        self.ids.end_sync(self.number);
    }

    /// Tests whether the source is stopped. If the source is stopped, a reader must return [`SourceError::Stopped`].
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Waits for the result of `work`. If the source is stopped, the method drops `work`.
    #[cfg(feature = "databases")]
    pub(crate) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        /// The time between two tests of the stop flag.
        const TICK: Duration = Duration::from_millis(100);

        let stopped = async {
            while !self.is_stopped() {
                tokio::time::sleep(TICK).await;
            }
        };
        tokio::select! {
            result = work => result,
            () = stopped => Err(SourceError::Stopped),
        }
    }

    /// Waits for `pause`, or until the source is stopped.
    pub fn sleep(&self, pause: Duration) {
        let end = Instant::now().checked_add(pause);
        let mut progress = self.progress.lock();
        while !self.is_stopped() {
            match end {
                Some(end) if self.wake.wait_until(&mut progress, end).timed_out() => return,
                Some(_) => {}
                // No clock reaches the end of this pause.
                None => self.wake.wait(&mut progress),
            }
        }
    }

    /// Applies an event to the state machine of a source, and executes the effects. Returns the effects.
    pub fn step<P: LogPosition>(
        &self,
        follow: &mut Follow<P, Instant>,
        event: Event<P, Instant>,
        position: &P,
    ) -> Vec<Effect<Instant>> {
        let (next, effects) = std::mem::take(follow).step(event, position);
        *follow = next;
        for effect in &effects {
            match effect {
                Effect::Publish => self.publish_generation(),
                Effect::MakeStale => self.lost(),
                Effect::KnownUntil(moment) => self.known_until(*moment),
            }
        }
        effects
    }

    /// Records that the set contains all ids of the source that were committed before `moment`.
    pub fn known_until(&self, moment: Instant) {
        let mut progress = self.progress.lock();
        progress.succeed(moment);
        // The test runs under the lock, so that the watcher does not decide with an older time.
        if moment.elapsed() < self.options.stale_after && !self.is_stopped() {
            // If the deadline is beyond the range of the clock, the state synced has no deadline.
            self.ids.set_synced_until(self.number, moment.checked_add(self.options.stale_after));
        }
        self.ids.set_known_until(self.number, Some(moment));
        drop(progress);
        self.wake.notify_all();
    }

    /// Records that changes of the source are lost. The set is stale until the next call of `known_until`.
    pub fn lost(&self) {
        let mut progress = self.progress.lock();
        progress.known_until = None;
        self.ids.set_known_until(self.number, None);
        self.make_stale();
    }

    /// Records an error that does not end the read.
    pub fn report(&self, error: &SourceError) {
        self.progress.lock().fail(error);
    }

    /// Records the number of bytes in the change log that are not applied yet. `None` means that the number is unknown.
    #[cfg(feature = "databases")]
    pub(crate) fn lag_bytes(&self, bytes: Option<u64>) {
        self.progress.lock().lag_bytes = bytes;
    }

    /// Adds rows to the counters of the status.
    pub fn count(&self, rows: Rows) {
        self.progress.lock().count(rows);
    }
}
