//! Sources, which read the ids of an [`IdSet`] and keep them up to date.
//!
//! A source runs on a thread of its own until it is stopped or dropped. Its promise:
//!
//! > While the state is [`SyncState::Synced`], no id is refused that was committed before the request
//! > and longer ago than [`SourceOptions::stale_after`].
//!
//! Each successful read proves that the guard has all ids that were committed before a moment, the
//! start of the read. A second thread watches this moment. When it is older than `stale_after`, the
//! thread sets the state to [`SyncState::Stale`], even if the source hangs in a read.
//!
//! An `IdSet` has at most one source that builds generations. A [`PushSource`] may stand beside it.

mod error;
mod file;
mod push;
#[cfg(feature = "sqlite")]
mod sqlite;
mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub use error::SourceError;
pub use file::{CsvColumn, FileFormat, FileOptions};
pub use push::{PushError, PushSource, Pushed};
#[cfg(feature = "sqlite")]
pub use sqlite::{ChangeColumn, SqliteOptions};
pub use status::SourceStatus;

use crate::generation::Generation;
use crate::id::IdType;
use crate::id_set::IdSet;
use crate::state::SyncState;
use status::Progress;

/// How often a source looks for changes, and how old its knowledge may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceOptions {
    /// The time from one read to the next.
    pub interval: Duration,
    /// The sync delay: after this time without a successful read the state is stale. It must exceed
    /// `interval` and the duration of a read.
    pub stale_after: Duration,
    /// The longest pause after a failed read. The pauses start at `interval` and double.
    pub max_pause: Duration,
}

impl Default for SourceOptions {
    /// Returns an interval of 1 second, and 10 seconds for both other times.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            stale_after: Duration::from_secs(10),
            max_pause: Duration::from_secs(10),
        }
    }
}

/// A source that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Source {
    run: Arc<Run>,
    threads: Vec<JoinHandle<()>>,
}

impl Source {
    /// Starts a source that reads ids from a file and loads it again when it changes.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[must_use]
    pub fn file(ids: Arc<IdSet>, file: FileOptions, options: SourceOptions) -> Self {
        Self::start(ids, options, file::FileReader::new(file))
    }

    /// Starts a source that reads ids from an SQLite database and looks for changes.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn sqlite(ids: Arc<IdSet>, sqlite: SqliteOptions, options: SourceOptions) -> Self {
        Self::start(ids, options, sqlite::SqliteReader::new(sqlite))
    }

    fn start(ids: Arc<IdSet>, options: SourceOptions, mut reader: impl Reader) -> Self {
        let run = Arc::new(Run {
            ids,
            options,
            is_stopped: Arc::default(),
            progress: Mutex::default(),
            wake: Condvar::new(),
        });
        let worker = Arc::clone(&run);
        let watcher = Arc::clone(&run);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            Builder::new().name(name.to_owned()).spawn(work).expect("the system starts a thread")
        };
        let threads = vec![
            spawn("guard-source", Box::new(move || worker.work(&mut reader))),
            spawn("guard-watch", Box::new(move || watcher.watch())),
        ];
        Self { run, threads }
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        self.run.progress.lock().status(self.run.ids.state())
    }

    /// Stops the source and waits for its threads. A synced set becomes stale.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Release: pairs with the acquire of `is_stopped`.
        self.run.is_stopped.store(true, Ordering::Release);
        // The lock orders the store before a wait that has tested it.
        drop(self.run.progress.lock());
        self.run.wake.notify_all();
        for thread in self.threads.drain(..) {
            // The worker's panic has made the set stale.
            let _ = thread.join();
        }
        self.run.lost();
    }
}

/// Reads the ids of one kind of source.
trait Reader: Send + 'static {
    /// Reads what has changed since the last call, and reports it to `run`.
    fn read(&mut self, run: &Run) -> Result<(), SourceError>;
}

/// A running source, as its reader sees it.
#[derive(Debug)]
struct Run {
    ids: Arc<IdSet>,
    options: SourceOptions,
    is_stopped: Arc<AtomicBool>,
    progress: Mutex<Progress>,
    wake: Condvar,
}

impl Run {
    /// Reads until the source is stopped.
    fn work(&self, reader: &mut impl Reader) {
        let mut pause = self.options.interval;
        while !self.is_stopped() {
            match reader.read(self) {
                Ok(()) => pause = self.options.interval,
                Err(SourceError::Stopped) => break,
                Err(error) => {
                    self.ids.abandon_generation();
                    self.progress.lock().fail(&error);
                    self.sleep(pause);
                    pause = (2 * pause).min(self.options.max_pause).max(self.options.interval);
                    continue;
                }
            }
            self.sleep(pause);
        }
        self.ids.abandon_generation();
    }

    /// Makes the set stale when the last successful read is too old.
    fn watch(&self) {
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

    fn make_stale(&self) {
        if self.ids.state() == SyncState::Synced {
            self.ids.set_state(SyncState::Stale);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn sleep(&self, pause: Duration) {
        let end = Instant::now() + pause;
        let mut progress = self.progress.lock();
        while !self.is_stopped() && !self.wake.wait_until(&mut progress, end).timed_out() {}
    }

    /// Reports that the set has all ids that were committed before `moment`.
    fn known_until(&self, moment: Instant) {
        let mut progress = self.progress.lock();
        progress.succeed(moment);
        // Under the lock, so that the watcher does not decide by an older moment.
        if moment.elapsed() < self.options.stale_after && !self.is_stopped() {
            self.ids.set_state(SyncState::Synced);
        }
        drop(progress);
        self.wake.notify_all();
    }

    /// Reports that changes are lost. The set is stale until the next call of `known_until`.
    fn lost(&self) {
        let mut progress = self.progress.lock();
        progress.known_until = None;
        self.make_stale();
    }

    /// Starts a generation for at least as many ids as the one in use has.
    fn start_generation(&self) -> Result<Arc<Generation>, SourceError> {
        let known = self.ids.generation().items();
        let items = self.ids.options().items.max(known + known / 8);
        Ok(self.ids.start_generation(items)?)
    }

    fn publish_generation(&self) {
        self.ids.publish_generation();
        self.progress.lock().generations += 1;
    }

    /// Returns the canonical text of an id in a row.
    fn canonical<'t>(&self, text: &'t [u8]) -> Option<std::borrow::Cow<'t, [u8]>> {
        let id = &self.ids.options().id;
        let text = if matches!(id, IdType::Text { .. }) { text } else { text.trim_ascii() };
        id.canonical(text).ok()
    }

    /// Adds a row of a bulk read to a generation. Returns false if it is no id.
    fn load(&self, generation: &Generation, text: &[u8]) -> Result<bool, SourceError> {
        let Some(id) = self.canonical(text) else { return Ok(false) };
        generation.load(&id, self.ids.options().id.value_of(&id))?;
        Ok(true)
    }

    fn count(&self, rows: Rows) {
        self.progress.lock().count(rows);
    }
}

/// The number of rows that a read found.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    ids: u64,
    invalid: u64,
}

impl Rows {
    fn add(&mut self, is_id: bool) {
        if is_id { self.ids += 1 } else { self.invalid += 1 }
    }
}
