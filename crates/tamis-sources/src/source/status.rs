//! The status of a source.

use std::time::{Duration, Instant};

use crate::errors::source_error::SourceError;
use crate::ids::state::SyncState;

/// The status of a source.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// The sync state of the set. If the set has several sources, the sync state of the ids of this source.
    pub state: SyncState,
    /// The total number of ids in all reads.
    pub items_read: u64,
    /// The total number of rows that are not ids of the type, in all reads.
    pub invalid_rows: u64,
    /// The number of generations that were published.
    pub generations: u64,
    /// The age of the current generation. The value is `None` before the first publication.
    pub generation_age: Option<Duration>,
    /// The number of failed reads.
    pub failures: u64,
    /// The sync lag: the set contains all ids that were committed at least this long ago. The value is `None` before
    /// the first complete read, and after changes were lost.
    pub lag: Option<Duration>,
    /// The number of bytes in the change log that are not applied yet. The value is `None` if the source has no change
    /// log, or if the end of the log is unknown.
    pub lag_bytes: Option<u64>,
    /// The time at which the last successful read ended.
    pub last_success: Option<Instant>,
    /// The last error, or the reason why responses of the upstream service make the set stale. The value is `None`
    /// after a successful read.
    pub last_error: Option<String>,
    /// The snapshots of the source.
    pub snapshots: SnapshotStatus,
}

/// The status of the snapshots of a source.
#[derive(Clone, Debug, Default)]
pub struct SnapshotStatus {
    /// The age of the last snapshot. The value is `None` if no snapshot exists.
    pub age: Option<Duration>,
    /// The number of failed writes of snapshots.
    pub failures: u64,
    /// The reason why the last write failed. The value is `None` after a successful write.
    pub last_error: Option<String>,
    /// The reason why the source could not continue from its snapshot and did a full read instead.
    pub unused: Option<String>,
}

/// The progress of a source. A mutex protects this record.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The set contains all ids that were committed before this time.
    pub(crate) known_until: Option<Instant>,
    pub(crate) lag_bytes: Option<u64>,
    pub(crate) generations: u64,
    /// The time at which the ids of the current generation were read.
    pub(crate) built: Option<Built>,
    /// The number of requests for a new generation that the current generation has fulfilled (`answered`), and that the
    /// running full read will fulfill (`answering`).
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

/// The time at which the ids of a generation were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Built {
    /// The time at which this process published the generation.
    published: Instant,
    /// The age of the ids at the publication. The age is zero unless the generation comes from a snapshot.
    age: Duration,
}

impl Built {
    /// Creates the record of a generation that is published now. `age` is the age of the ids.
    pub(crate) fn now(age: Duration) -> Self {
        Self { published: Instant::now(), age }
    }

    pub(crate) fn age(self) -> Duration {
        self.published.elapsed().saturating_add(self.age)
    }
}

/// The number of rows in a read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    /// The number of rows that are ids of the type.
    pub ids: u64,
    /// The number of rows that are not ids of the type.
    pub invalid: u64,
}

impl Rows {
    /// Counts a row.
    pub fn add(&mut self, is_id: bool) {
        if is_id { self.ids += 1 } else { self.invalid += 1 }
    }
}
