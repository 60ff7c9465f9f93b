//! A running source: it reads the ids of a set on its own thread, and keeps the set up to date.

pub(crate) mod audit_source;
pub(crate) mod follow;
pub(crate) mod kind;
pub(crate) mod loader;
pub(crate) mod priority;
pub(crate) mod push;
#[cfg(feature = "databases")]
pub(crate) mod read_threads;
pub(crate) mod run;
#[cfg(feature = "databases")]
pub(crate) mod runtime;
pub(crate) mod snapshot_record;
pub(crate) mod snapshots;
pub(crate) mod sources;
pub(crate) mod status;
#[cfg(feature = "databases")]
pub(crate) mod stop_flag;
#[cfg(test)]
mod two_sources;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use crate::ids::id_set::IdSet;
use crate::source::kind::SourceKind;
use crate::source::run::{Run, SourceOptions};
use crate::source::status::SourceStatus;

/// A running source. Dropping a `Source` stops the source.
#[derive(Debug)]
pub struct Source {
    run: Arc<Run>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Source {
    /// Starts a source of any kind, such as [`FileOptions`](crate::FileOptions). The source fills `ids` until the
    /// source is stopped. [`Sources`](crate::Sources) starts several sources of one set.
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot start a thread.
    #[must_use]
    pub fn start(ids: Arc<IdSet>, kind: impl SourceKind, options: SourceOptions) -> Self {
        Self::start_shared(ids, Arc::new(kind), options)
    }

    /// Starts a source as [`start`](Self::start) does. Other threads can share the settings `kind`.
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot start a thread.
    #[must_use]
    pub fn start_shared(
        ids: Arc<IdSet>,
        kind: Arc<dyn SourceKind>,
        options: SourceOptions,
    ) -> Self {
        Self::start_numbered(ids, 0, kind, options)
    }

    /// Starts the source with the number `number` of a set.
    pub(crate) fn start_numbered(
        ids: Arc<IdSet>,
        number: usize,
        kind: Arc<dyn SourceKind>,
        options: SourceOptions,
    ) -> Self {
        ids.add_source();
        let run = Arc::new(Run::new(ids, number, options));
        let worker = Arc::clone(&run);
        let watcher = Arc::clone(&run);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            Builder::new().name(name.to_owned()).spawn(work).expect("the system starts a thread")
        };
        let read = move || {
            // A reader may also end its source before `stop` is called, or panic.
            let ended = RemoveOnDrop(worker);
            let run = &ended.0;
            run.work(|| kind.reader(&run.options));
        };
        let threads = vec![
            spawn("guard-source", Box::new(read)),
            spawn("guard-watch", Box::new(move || watcher.watch())),
        ];
        Self { run, threads: Mutex::new(threads) }
    }

    /// Returns the status of the source.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        let (ids, snapshots) = (&self.run.ids, self.run.snapshots.status());
        let status = self.run.progress.lock().status(ids.state_of(self.run.number));
        let reason = || if ids.source_count() == 1 { ids.evidence().reason() } else { None };
        let last_error = status.last_error.or_else(reason);
        SourceStatus { snapshots, last_error, ..status }
    }

    /// Returns the number of ids of the source.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.run.generation().items()
    }

    /// Requests a full read of the source into a new generation. The read starts at the next
    /// [`interval`](SourceOptions::interval). The set uses the present generation until the new generation is complete.
    pub fn rebuild(&self) {
        self.run.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops the source, and waits for its threads and for its last snapshot. If the set is synced, `stop` changes the
    /// state of the set to stale.
    pub fn stop(&self) {
        // Release pairs with the acquire in `is_stopped`.
        self.run.is_stopped.store(true, Ordering::Release);
        // Locking `progress` once ensures that a waiting thread receives the notification: the thread tests
        // `is_stopped` under this lock.
        drop(self.run.progress.lock());
        self.run.wake.notify_all();
        // A second caller waits for the lock, and thus for the threads.
        let mut threads = self.threads.lock();
        if threads.is_empty() {
            // Another source may fill the set now, so the state must not change here.
            return;
        }
        for thread in threads.drain(..) {
            // If the thread panicked, the code below still sets the state to stale.
            _ = thread.join();
        }
        self.run.lost();
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Counts the end of a source when the thread of the reader ends, also after a panic.
struct RemoveOnDrop(Arc<Run>);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        self.0.ids.remove_source();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use tamis_testing::wait_until;

    use super::*;
    use crate::errors::source_error::SourceError;
    use crate::ids::id::{IdType, IntegerForm};
    use crate::ids::id_set_options::IdSetOptions;
    use crate::ids::state::SyncState;
    use crate::source::audit_source::AuditSource;
    use crate::source::run::Reader;

    /// A reader whose first read waits for permission from the test. The second read panics.
    struct Panicking {
        allowed: Option<Receiver<()>>,
    }

    impl Reader for Panicking {
        fn read(&mut self, run: &Run) -> Result<(), SourceError> {
            let allowed = self.allowed.take().expect("malformed answer");
            run.known_until(Instant::now());
            // At the end of the test, the sender is dropped and `recv` returns an error.
            _ = allowed.recv();
            Ok(())
        }
    }

    /// Each reader of this source takes one receiver.
    #[derive(Debug)]
    struct Readers(Mutex<Vec<Receiver<()>>>);

    impl SourceKind for Readers {
        fn reader(&self, _: &SourceOptions) -> Box<dyn Reader> {
            Box::new(Panicking { allowed: self.0.lock().pop() })
        }

        fn audit(&self, _: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
            Err(SourceError::NoList)
        }
    }

    #[test]
    fn after_a_panic_the_set_is_stale_until_another_reader_has_read() {
        let id = IdType::Integer { min: 1, max: 9, form: IntegerForm::default() };
        let ids = Arc::new(IdSet::new(IdSetOptions::new(id)).unwrap());
        let [(first, one), (second, two)] = [channel(), channel()];
        let receivers = Mutex::new(vec![two, one]);
        let options = SourceOptions {
            interval: Duration::ZERO,
            stale_after: Duration::from_secs(3600),
            max_pause: Duration::from_millis(200),
            ..SourceOptions::default()
        };
        let source = Source::start(Arc::clone(&ids), Readers(receivers), options);
        wait_until("synced", || ids.state() == SyncState::Synced);
        first.send(()).unwrap();
        wait_until("an error", || {
            source.status().last_error.is_some() || source.status().failures > 0
        });
        wait_until("read again", || {
            ids.state() == SyncState::Synced && source.status().failures == 1
        });
        second.send(()).unwrap();
        // No remaining reader of the source succeeds.
        wait_until("a second panic", || source.status().failures > 1);
        let error = source.status().last_error.unwrap();
        assert!(error.contains("panicked"), "{error}");
        assert_eq!(ids.state(), SyncState::Stale);
    }

    #[test]
    fn the_set_of_a_dropped_source_lacks_a_source() {
        // With the longest time, the state synced has no deadline.
        for stale_after in [Duration::from_secs(3600), Duration::MAX] {
            let ids = Arc::new(IdSet::new(IdType::integer()).unwrap());
            let (allowed, receiver) = channel();
            let options = SourceOptions { stale_after, ..SourceOptions::default() };
            let kind = Readers(Mutex::new(vec![receiver]));
            let source = Source::start(Arc::clone(&ids), kind, options);
            wait_until("synced", || ids.state() == SyncState::Synced);
            assert!(!ids.lacks_source());
            // The reader ends its read.
            drop(allowed);
            drop(source);
            assert_eq!((ids.state(), ids.lacks_source()), (SyncState::Stale, true));
        }
    }

    #[test]
    fn a_source_with_the_longest_interval_reads_once_and_can_be_stopped() {
        let ids = Arc::new(IdSet::new(IdType::integer()).unwrap());
        let options = SourceOptions {
            interval: Duration::MAX,
            stale_after: Duration::MAX,
            max_pause: Duration::MAX,
            ..SourceOptions::default()
        };
        let (allowed, receiver) = channel();
        let kind = Readers(Mutex::new(vec![receiver]));
        let source = Source::start(Arc::clone(&ids), kind, options);
        allowed.send(()).unwrap();
        wait_until("synced", || ids.state() == SyncState::Synced);
        assert_eq!((source.status().failures, source.status().last_error.clone()), (0, None));
        drop(source);
        assert!(ids.lacks_source());
    }

    /// A reader that ends its source at once.
    #[derive(Debug)]
    struct Ending;

    impl Reader for Ending {
        fn read(&mut self, _: &Run) -> Result<(), SourceError> {
            Err(SourceError::Stopped)
        }
    }

    impl SourceKind for Ending {
        fn reader(&self, _: &SourceOptions) -> Box<dyn Reader> {
            Box::new(Self)
        }

        fn audit(&self, _: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
            Err(SourceError::NoList)
        }
    }

    #[test]
    fn the_set_of_a_source_that_has_ended_itself_lacks_a_source() {
        let ids = Arc::new(IdSet::new(IdType::integer()).unwrap());
        let source = Source::start(Arc::clone(&ids), Ending, SourceOptions::default());
        wait_until("the end of the source", || ids.lacks_source());
        // The end of the source is counted once.
        let other =
            Source::start(Arc::clone(&ids), Readers(Mutex::default()), SourceOptions::default());
        drop(source);
        assert!(!ids.lacks_source());
        drop(other);
        assert!(ids.lacks_source());
    }
}
