//! The snapshots of a source: loaded once, and written while the source goes on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::snapshot::{Snapshot, SnapshotHead, SnapshotOptions, SnapshotStore};
use crate::source::run::Run;

/// The longest time that a source which ends waits for its last snapshot.
const LIMIT: Duration = Duration::from_secs(10);

/// The snapshots of a source. Without a store, it does nothing.
#[derive(Debug)]
pub(super) struct Snapshots {
    store: Option<SnapshotStore>,
    /// The identity of the source.
    source: String,
    is_loaded: bool,
    /// The position of the last snapshot, and the number of its generation.
    saved: Option<(Vec<u8>, u64)>,
    /// The end of the write in progress.
    writing: Option<Receiver<()>>,
}

impl Snapshots {
    pub(super) fn new(options: Option<SnapshotOptions>, source: String) -> Self {
        let store = options.map(SnapshotStore::new);
        Self { store, source, is_loaded: false, saved: None, writing: None }
    }

    /// Reads the snapshot at the first call.
    pub(super) fn load(&mut self, run: &Run) -> Option<Snapshot> {
        if std::mem::replace(&mut self.is_loaded, true) {
            return None;
        }
        match self.store.as_ref()?.load(&self.source, run.ids.options()) {
            Ok(snapshot) => {
                run.snapshots.loaded(snapshot.as_ref().map(|it| it.head.created));
                snapshot
            }
            Err(error) => {
                run.snapshots.refuse(&error);
                None
            }
        }
    }

    /// Tests whether it is time for a snapshot, and none is being written.
    pub(super) fn is_due(&mut self) -> bool {
        self.store.as_ref().is_some_and(SnapshotStore::is_due) && !self.is_writing()
    }

    /// Starts to write a snapshot of the generation in use, unless its position is that of the last
    /// one. The generation has all changes up to `position`; `None` if it has no position.
    pub(super) fn save(
        &mut self,
        run: &Run,
        position: Option<Vec<u8>>,
        end: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) {
        let Some(store) = self.store.clone().filter(|_| !self.is_writing()) else { return };
        let Some((built, position)) = run.built().zip(position) else { return };
        let generations = run.progress.lock().generations;
        let now = Some((position.clone(), generations));
        // A write that failed is tried again.
        if self.saved == now && !run.snapshots.has_failed() {
            return;
        }
        let head = SnapshotHead::new(&self.source, run.ids.options(), position, built);
        let (generation, record) = (run.ids.generation(), Arc::clone(&run.snapshots));
        let (done, writing) = sync_channel(1);
        // A thread of its own: a slow disk delays no change.
        let thread = Builder::new().name("guard-snapshot".to_owned()).spawn(move || {
            record.saved(head.created, store.save(&head, &generation, end));
            _ = done.send(());
        });
        if thread.is_ok() {
            self.saved = now;
            self.writing = Some(writing);
        }
    }

    fn is_writing(&mut self) -> bool {
        let is_over = |it: &Receiver<()>| it.try_recv() != Err(TryRecvError::Empty);
        if self.writing.as_ref().is_some_and(is_over) {
            self.writing = None;
        }
        self.writing.is_some()
    }

    /// Writes a last snapshot and waits for it, but not for a disk that hangs.
    pub(super) fn finish(
        &mut self,
        run: &Run,
        position: Option<Vec<u8>>,
        end: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) {
        let limit = Instant::now() + LIMIT;
        if self.wait(limit) {
            self.save(run, position, end);
            self.wait(limit);
        }
    }

    /// Returns true if no write is in progress.
    fn wait(&mut self, limit: Instant) -> bool {
        let Some(writing) = &self.writing else { return true };
        let left = limit.saturating_duration_since(Instant::now());
        if writing.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        self.writing = None;
        true
    }
}
