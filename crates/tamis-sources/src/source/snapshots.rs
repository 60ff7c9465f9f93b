//! Loads the snapshot of a source once, and writes snapshots while the source runs.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::ids::snapshot::{Snapshot, SnapshotError, SnapshotHead, SnapshotOptions, SnapshotStore};
use crate::source::run::Run;

/// The maximum time that a stopping source waits for its last snapshot.
const LIMIT: Duration = Duration::from_secs(10);

/// The snapshots of a source. Without a store, the methods do nothing.
#[derive(Debug)]
pub(crate) struct Snapshots {
    store: Option<SnapshotStore>,
    /// The identity of the source.
    source: String,
    is_loaded: bool,
    /// True from the load of the snapshot until the set is synced.
    is_resuming: bool,
    /// The position of the last snapshot, and the number of its generation.
    saved: Option<(Vec<u8>, u64)>,
    /// The position of the last snapshot on disk.
    on_disk: Option<Vec<u8>>,
    /// The position of the write in progress, and whether it has succeeded.
    writing: Option<(Vec<u8>, Receiver<bool>)>,
}

impl Snapshots {
    pub(crate) fn new(options: Option<SnapshotOptions>, source: String) -> Self {
        let store = options.map(SnapshotStore::new);
        Self {
            store,
            source,
            is_loaded: false,
            is_resuming: false,
            saved: None,
            on_disk: None,
            writing: None,
        }
    }

    /// Reads the snapshot at the first call. Returns `None` at each call after the first call.
    pub(crate) fn load(&mut self, run: &Run) -> Option<Snapshot> {
        // If the thread that reads the source has panicked, the set contains newer ids than the snapshot.
        if std::mem::replace(&mut self.is_loaded, true) || run.published_items() > 0 {
            return None;
        }
        match self.store.as_ref()?.load(&self.source, &run.ids.options().id, run.rate()) {
            Ok(snapshot) => {
                run.snapshots.loaded(snapshot.as_ref().map(|it| it.head.created));
                self.is_resuming = snapshot.is_some();
                self.on_disk = snapshot.as_ref().map(|it| it.head.position.clone());
                snapshot
            }
            Err(error) => {
                run.snapshots.refuse(&error);
                None
            }
        }
    }

    /// Records why the source does not continue the snapshot that it has loaded. The method has no effect after
    /// [`end_resume`](Self::end_resume).
    pub(crate) fn refuse(&mut self, run: &Run, reason: &str) {
        if std::mem::take(&mut self.is_resuming) {
            run.snapshots.refuse(&SnapshotError::Outdated(reason.to_owned()));
        }
    }

    /// Records that the set is synced: the source has continued the snapshot.
    #[cfg(feature = "databases")]
    pub(crate) fn end_resume(&mut self) {
        self.is_resuming = false;
    }

    /// Tests whether a snapshot is due and no write is in progress.
    pub(crate) fn is_due(&mut self) -> bool {
        self.store.as_ref().is_some_and(SnapshotStore::is_due) && !self.is_writing()
    }

    /// Starts a write of the current generation, unless the last snapshot has the same position. The generation
    /// contains all changes up to `position`. `None` means that the source has no position, so the method writes
    /// nothing.
    pub(crate) fn save(
        &mut self,
        run: &Run,
        position: Option<Vec<u8>>,
        end: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) {
        let Some(store) = self.store.clone().filter(|_| !self.is_writing()) else { return };
        let Some((built, position)) = run.built().zip(position) else { return };
        let generations = run.progress.lock().generations;
        let now = Some((position.clone(), generations));
        // If the last write failed, the source writes the snapshot again.
        if self.saved == now && !run.snapshots.has_failed() {
            return;
        }
        let head = SnapshotHead::new(&self.source, run.ids.options(), position.clone(), built);
        let (generation, record) = (run.generation(), Arc::clone(&run.snapshots));
        let (done, writing) = sync_channel(1);
        // The write has its own thread, so that a slow disk does not delay changes.
        let thread = Builder::new().name("guard-snapshot".to_owned()).spawn(move || {
            let result = store.save(&head, &generation, end);
            let is_saved = result.is_ok();
            record.saved(head.created, result);
            _ = done.send(is_saved);
        });
        if thread.is_ok() {
            self.saved = now;
            self.writing = Some((position, writing));
        }
    }

    /// Returns the positions at which a restart may continue: the position of the snapshot file, and the position of
    /// the write in progress.
    #[cfg(feature = "databases")]
    pub(crate) fn positions(&mut self) -> impl Iterator<Item = &[u8]> {
        self.is_writing();
        let writing = self.writing.as_ref().map(|(position, _)| position);
        self.on_disk.iter().chain(writing).map(Vec::as_slice)
    }

    /// Removes the file, so that a later start does not continue from the snapshot.
    #[cfg(feature = "databases")]
    pub(crate) fn discard(&mut self) {
        self.wait(Instant::now() + LIMIT);
        if let Some(store) = &self.store {
            store.remove();
        }
        (self.on_disk, self.saved) = (None, None);
    }

    fn is_writing(&mut self) -> bool {
        let result = self.writing.as_ref().map(|(_, writing)| writing.try_recv());
        if let Some(Ok(_) | Err(TryRecvError::Disconnected)) = result {
            self.end_write(result == Some(Ok(true)));
        }
        self.writing.is_some()
    }

    fn end_write(&mut self, is_saved: bool) {
        if let Some((position, _)) = self.writing.take()
            && is_saved
        {
            self.on_disk = Some(position);
        }
    }

    /// Writes the last snapshot before the source ends. The method waits for the write, but at most for [`LIMIT`] if
    /// the disk hangs.
    pub(crate) fn finish(
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

    /// Waits until no write is in progress. Returns false if `limit` has passed.
    fn wait(&mut self, limit: Instant) -> bool {
        let Some((_, writing)) = &self.writing else { return true };
        let left = limit.saturating_duration_since(Instant::now());
        let result = writing.recv_timeout(left);
        if result == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        self.end_write(result == Ok(true));
        true
    }
}
