//! The status of a source.

use std::time::{Duration, Instant};

use crate::errors::source_error::SourceError;
use crate::ids::state::SyncState;

/// The status of a source.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// How well the guard knows the source.
    pub state: SyncState,
    /// The number of ids that were read, in all reads.
    pub items_read: u64,
    /// The number of rows that are no ids of the type, in all reads.
    pub invalid_rows: u64,
    /// The number of generations that were built.
    pub generations: u64,
    /// The age of the generation in use; `None` before the first.
    pub generation_age: Option<Duration>,
    /// The number of failed reads.
    pub failures: u64,
    /// The age of the knowledge: all ids that were committed longer ago are known. `None` before the
    /// first complete read, and after changes were lost.
    pub lag: Option<Duration>,
    /// How many bytes of the log of changes are not yet applied. `None` if the source has no such
    /// log, or does not know its end.
    pub lag_bytes: Option<u64>,
    /// When the last successful read ended.
    pub last_success: Option<Instant>,
    /// The last error, or why the answers of the program make the set stale. `None` after a
    /// successful read.
    pub last_error: Option<String>,
    /// The snapshots of the source.
    pub snapshots: SnapshotStatus,
}

/// The status of the snapshots of a source.
#[derive(Clone, Debug, Default)]
pub struct SnapshotStatus {
    /// The age of the last snapshot; `None` without one.
    pub age: Option<Duration>,
    /// The number of snapshots that were not written.
    pub failures: u64,
    /// Why the last snapshot was not written. `None` after a successful write.
    pub last_error: Option<String>,
    /// Why the source has not continued the snapshot that it found, and has read all ids.
    pub unused: Option<String>,
}

/// The record of a source, under its lock.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// All ids that were committed before are known.
    pub(crate) known_until: Option<Instant>,
    pub(crate) lag_bytes: Option<u64>,
    pub(crate) generations: u64,
    /// When the ids of the generation in use were read.
    pub(crate) built: Option<Built>,
    /// The number of requests for a new generation that the one in use answers, and the one that is
    /// being read.
    pub(crate) answered: u64,
    pub(crate) answering: u64,
    rows: Rows,
    failures: u64,
    last_success: Option<Instant>,
    last_error: Option<String>,
}

impl Progress {
    pub(crate) fn count(&mut self, rows: Rows) {
        self.rows.ids += rows.ids;
        self.rows.invalid += rows.invalid;
    }

    pub(crate) fn fail(&mut self, error: &SourceError) {
        self.failures += 1;
        self.last_error = Some(error.to_string());
    }

    pub(crate) fn succeed(&mut self, moment: Instant) {
        self.known_until = Some(moment);
        self.last_success = Some(Instant::now());
        self.last_error = None;
    }

    pub(crate) fn status(&self, state: SyncState) -> SourceStatus {
        SourceStatus {
            state,
            items_read: self.rows.ids,
            invalid_rows: self.rows.invalid,
            generations: self.generations,
            generation_age: self.built.map(Built::age),
            failures: self.failures,
            lag: self.known_until.map(|moment| moment.elapsed()),
            lag_bytes: self.lag_bytes,
            last_success: self.last_success,
            last_error: self.last_error.clone(),
            snapshots: SnapshotStatus::default(),
        }
    }
}

/// When the ids of a generation were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Built {
    /// When this process published the generation.
    published: Instant,
    /// How old it was then, if it is from a snapshot.
    age: Duration,
}

impl Built {
    /// Returns the time of a generation that is published now, with ids that were read before.
    pub(crate) fn now(age: Duration) -> Self {
        Self { published: Instant::now(), age }
    }

    pub(crate) fn age(self) -> Duration {
        self.published.elapsed().saturating_add(self.age)
    }
}

/// The number of rows that a read found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    /// The number of rows that are ids of the type.
    pub ids: u64,
    /// The number of rows that are no ids of the type.
    pub invalid: u64,
}

impl Rows {
    /// Counts a row.
    pub fn add(&mut self, is_id: bool) {
        if is_id { self.ids += 1 } else { self.invalid += 1 }
    }
}
