//! Sources, which read the ids of an [`IdSet`] and keep them up to date.
//!
//! A source runs on a thread of its own until it is stopped or dropped. Its promise:
//!
//! > While the state is [`SyncState::Synced`](crate::SyncState::Synced), no id is refused that was
//! > committed more than [`SourceOptions::stale_after`] before the request.
//!
//! Each successful read proves that the guard has all ids that were committed before a moment, the
//! start of the read. A second thread watches this moment. When it is older than `stale_after`, the
//! thread sets the state to [`SyncState::Stale`](crate::SyncState::Stale), even if the source hangs in a read.
//!
//! An `IdSet` has at most one source that builds generations. A [`PushSource`] may stand beside it.

mod audit_source;
mod error;
mod file;
#[cfg(any(feature = "sources", feature = "proxy"))]
#[cfg_attr(not(feature = "sources"), allow(dead_code, reason = "a leader has no log"))]
mod follow;
#[cfg(feature = "proxy")]
mod leader;
mod loader;
#[cfg(feature = "sources")]
mod mysql;
#[cfg(feature = "sources")]
mod poll;
#[cfg(feature = "sources")]
mod postgres;
mod priority;
mod push;
#[cfg(feature = "sources")]
mod read_threads;
#[cfg(feature = "sources")]
mod redis;
#[cfg(feature = "sources")]
mod redis_error;
mod run;
#[cfg(feature = "sources")]
mod runtime;
mod snapshot_record;
mod snapshots;
#[cfg(feature = "sources")]
mod sqlite;
mod status;
#[cfg(feature = "sources")]
mod stop_flag;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use parking_lot::{Condvar, Mutex};

pub use audit_source::AuditSource;
pub(crate) use audit_source::canonical_row;
pub use error::SourceError;
pub use file::{CsvColumn, FileFormat, FileOptions};
#[cfg(feature = "proxy")]
pub use leader::{LeaderError, LeaderOptions};
#[cfg(feature = "sources")]
pub use mysql::{MysqlAudit, MysqlOptions};
#[cfg(feature = "sources")]
pub use poll::{ChangeColumn, PollOptions};
#[cfg(feature = "sources")]
pub use postgres::{PostgresAudit, PostgresOptions};
pub use push::{PushError, PushSource, Pushed};
#[cfg(feature = "sources")]
pub use redis::RedisOptions;
#[cfg(feature = "sources")]
pub use redis_error::RedisSourceError;
pub use run::SourceOptions;
#[cfg(feature = "sources")]
pub use sqlite::{SqliteAudit, SqliteOptions};
pub use status::{SnapshotStatus, SourceStatus};

use crate::ids::id_set::IdSet;
use run::{Reader, Run};

/// A source that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Source {
    run: Arc<Run>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Source {
    /// Starts a source that reads ids from a file and loads it again when it changes.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[must_use]
    pub fn file(ids: Arc<IdSet>, file: FileOptions, options: SourceOptions) -> Self {
        Self::start(ids, options, move || file::FileReader::new(file.clone()))
    }

    /// Starts a source that reads ids from an SQLite database and looks for changes.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[cfg(feature = "sources")]
    #[must_use]
    pub fn sqlite(ids: Arc<IdSet>, sqlite: SqliteOptions, options: SourceOptions) -> Self {
        Self::start(ids, options, move || sqlite::SqliteReader::new(sqlite.clone()))
    }

    /// Starts a source that reads ids from a table of MySQL or MariaDB, and follows the binary log
    /// or polls the table.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[cfg(feature = "sources")]
    #[must_use]
    pub fn mysql(ids: Arc<IdSet>, mysql: MysqlOptions, options: SourceOptions) -> Self {
        match mysql.poll.clone() {
            Some(poll) => Self::start(ids, options, move || {
                poll::ServerReader::<mysql::MysqlTable>::new(mysql.clone(), poll.clone())
            }),
            None => Self::start(ids, options, move || mysql::MysqlReader::new(mysql.clone())),
        }
    }

    /// Starts a source that reads ids from a table of PostgreSQL and follows its changes by logical
    /// replication, or polls the table.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[cfg(feature = "sources")]
    #[must_use]
    pub fn postgres(ids: Arc<IdSet>, postgres: PostgresOptions, options: SourceOptions) -> Self {
        match postgres.poll.clone() {
            Some(poll) => Self::start(ids, options, move || {
                poll::ServerReader::<postgres::PostgresTable>::new(postgres.clone(), poll.clone())
            }),
            None => {
                Self::start(ids, options, move || postgres::PostgresReader::new(postgres.clone()))
            }
        }
    }

    /// Starts a source that copies the ids of a leader: another guard that publishes them.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[cfg(feature = "proxy")]
    #[must_use]
    pub fn leader(ids: Arc<IdSet>, leader: LeaderOptions, options: SourceOptions) -> Self {
        Self::start(ids, options, move || leader::LeaderReader::new(leader.clone()))
    }

    /// Starts a source that keeps a copy of a filter on a Redis server.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    #[cfg(feature = "sources")]
    #[must_use]
    pub fn redis(ids: Arc<IdSet>, redis: RedisOptions, options: SourceOptions) -> Self {
        Self::start(ids, options, move || redis::RedisReader::new(redis.clone()))
    }

    /// Starts the threads of a source. `reader` makes its reader, and another one after a panic.
    fn start<R: Reader>(
        ids: Arc<IdSet>,
        options: SourceOptions,
        reader: impl Fn() -> R + Send + 'static,
    ) -> Self {
        let run = Arc::new(Run {
            ids,
            options,
            is_stopped: Arc::default(),
            asked: AtomicU64::new(0),
            fold: AtomicU8::new(0),
            progress: Mutex::default(),
            wake: Condvar::new(),
            snapshots: Arc::default(),
        });
        let worker = Arc::clone(&run);
        let watcher = Arc::clone(&run);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            Builder::new().name(name.to_owned()).spawn(work).expect("the system starts a thread")
        };
        let threads = vec![
            spawn("guard-source", Box::new(move || worker.work(reader))),
            spawn("guard-watch", Box::new(move || watcher.watch())),
        ];
        Self { run, threads: Mutex::new(threads) }
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        let (ids, snapshots) = (&self.run.ids, self.run.snapshots.status());
        let status = self.run.progress.lock().status(ids.state());
        let last_error = status.last_error.or_else(|| ids.evidence().reason());
        SourceStatus { snapshots, last_error, ..status }
    }

    /// Asks the source to read all ids into a new generation, at the next
    /// [`interval`](SourceOptions::interval). Requests use the present generation until the new one
    /// is complete.
    pub fn rebuild(&self) {
        self.run.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops the source and waits for its threads. A synced set becomes stale.
    pub fn stop(self) {
        drop(self);
    }
}

impl Source {
    /// Stops the source, and waits for its threads and its last snapshot.
    pub(crate) fn end(&self) {
        // Release: pairs with the acquire of `is_stopped`.
        self.run.is_stopped.store(true, Ordering::Release);
        // The lock orders the store before a wait that has tested it.
        drop(self.run.progress.lock());
        self.run.wake.notify_all();
        for thread in self.threads.lock().drain(..) {
            // The set is stale below, also after a panic.
            let _ = thread.join();
        }
        self.run.lost();
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::ids::id::{IdType, IntegerForm};
    use crate::ids::id_set_options::IdSetOptions;
    use crate::ids::state::SyncState;
    use crate::source::error::SourceError;

    /// A reader that reads once, and panics at the next read when the test allows it.
    struct Panicking {
        allowed: Option<Receiver<()>>,
    }

    impl Reader for Panicking {
        fn read(&mut self, run: &Run) -> Result<(), SourceError> {
            let allowed = self.allowed.take().expect("malformed answer");
            run.known_until(Instant::now());
            // The sender is gone at the end of the test.
            _ = allowed.recv();
            Ok(())
        }
    }

    fn wait(what: &str, is_done: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !is_done() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn after_a_panic_the_set_is_stale_until_another_reader_has_read() {
        let id = IdType::Integer { min: 1, max: 9, form: IntegerForm::default() };
        let ids = Arc::new(IdSet::new(IdSetOptions::new(id)).unwrap());
        let (allow, receivers) = {
            let channels = [channel(), channel()];
            let [(first, one), (second, two)] = channels;
            ([first, second], Mutex::new(vec![two, one]))
        };
        let options = SourceOptions {
            interval: Duration::ZERO,
            stale_after: Duration::from_secs(3600),
            max_pause: Duration::from_millis(200),
            ..SourceOptions::default()
        };
        let reader = move || Panicking { allowed: receivers.lock().pop() };
        let source = Source::start(Arc::clone(&ids), options, reader);
        wait("synced", || ids.state() == SyncState::Synced);
        allow[0].send(()).unwrap();
        wait("an error", || source.status().last_error.is_some() || source.status().failures > 0);
        wait("read again", || ids.state() == SyncState::Synced && source.status().failures == 1);
        allow[1].send(()).unwrap();
        // No reader is left that reads.
        wait("a second panic", || source.status().failures > 1);
        let error = source.status().last_error.unwrap();
        assert!(error.contains("panicked"), "{error}");
        assert_eq!(ids.state(), SyncState::Stale);
    }
}
