//! The append-only log of a running server: the state machine (`state.rs`), its files, and the
//! thread that syncs them.
//!
//! A connection writes its frames to the file itself, all frames of a pipeline in one `write`,
//! before it sends the answers. So a killed process loses no answered change. While a sync runs,
//! the connection hands the write to another thread, because on some file systems a write waits for
//! the sync. With [`Sync::Always`] the log thread writes and syncs, so that one sync serves all
//! waiting connections.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use crate::persistence::disk::Disk;
use crate::persistence::log_file::{BeginError, LogFile};
use crate::persistence::manifest::{self, Manifest};
use crate::persistence::record::Record;
use crate::persistence::state::{FileJob, LogState, Settled, Sync};
use crate::system_error::without_code;

/// The log of a running server. Several threads can use it at the same time.
#[derive(Debug)]
pub(crate) struct Log {
    core: Arc<LogCore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The log without its thread. The model test calls its steps in every order.
#[derive(Debug)]
pub(super) struct LogCore {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    inner: Mutex<Inner>,
    /// Wakes the log thread.
    work: Condvar,
    /// Wakes threads that wait for a sync or a rotation.
    done: Condvar,
    /// Wakes connections that wait before they answer.
    progress: watch::Sender<()>,
    started: Instant,
}

#[derive(Debug)]
struct Inner {
    state: LogState,
    /// The file that receives new frames.
    file: Arc<LogFile>,
    /// Earlier files that may not be durable yet.
    ended: Vec<Arc<LogFile>>,
}

/// The files and the position of one sync.
#[derive(Debug)]
pub(super) struct SyncJob {
    position: u64,
    file: Arc<LogFile>,
    ended: Vec<Arc<LogFile>>,
    /// The file is new, so its name must become durable too.
    is_new: bool,
}

/// How often the log thread checks for work without being woken.
const IDLE: Duration = Duration::from_millis(100);

/// How long the log thread waits after an error.
const RETRY: Duration = Duration::from_millis(200);

/// How often the log thread checks that its file is still in the folder.
const CHECK: Duration = Duration::from_secs(1);

impl LogCore {
    /// Continues a log that is durable up to `end`.
    pub fn new(disk: Arc<dyn Disk>, dir: &Path, file: LogFile, end: u64, sync: Sync) -> Self {
        let mut state = LogState::new(end, sync);
        state.secret = file.secret;
        let inner = Inner { state, file: Arc::new(file), ended: Vec::new() };
        Self {
            disk,
            dir: dir.to_owned(),
            inner: Mutex::new(inner),
            work: Condvar::new(),
            done: Condvar::new(),
            progress: watch::Sender::new(()),
            started: Instant::now(),
        }
    }

    fn uptime_millis(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Runs a function on the state.
    pub fn with<R>(&self, run: impl FnOnce(&mut LogState) -> R) -> R {
        run(&mut self.inner.lock().state)
    }

    /// Starts a rotation to another file; returns the number and the start position of that file.
    /// The number follows that of the current file: an earlier rotation may have completed after
    /// its caller stopped waiting.
    pub fn rotate(&self) -> Result<(u64, u64), String> {
        let mut inner = self.inner.lock();
        let number = inner.file.number + 1;
        Ok((number, inner.state.rotate(number)?))
    }

    /// Runs the next job on the file; false if no job is due.
    pub fn run_file_job(&self, now_millis: u64) -> bool {
        let job = self.take_file_job();
        job.map(|(file, job)| self.do_file_job(&file, job, now_millis)).is_some()
    }

    /// Takes the next job on the file.
    pub fn take_file_job(&self) -> Option<(Arc<LogFile>, FileJob)> {
        let mut inner = self.inner.lock();
        let job = inner.state.next_file_job()?;
        Some((inner.file.clone(), job))
    }

    /// Runs a job on the file and reports its result.
    pub fn do_file_job(&self, file: &LogFile, job: FileJob, now_millis: u64) {
        match job {
            FileJob::Write { position, bytes } => {
                let result = file.file.write_all_at(&bytes, file.offset_of(position));
                let result = result.map_err(|error| without_code(&error));
                self.note(|inner| inner.state.wrote(bytes, result, now_millis));
            }
            FileJob::Switch { number, position, synced } => {
                // Frames after the position are already encoded with this secret.
                let secret = file.secret;
                let begun =
                    LogFile::begin(&*self.disk, &self.dir, number, position, synced, secret);
                self.note(|inner| match begun {
                    Ok(file) => {
                        let ended = std::mem::replace(&mut inner.file, Arc::new(file));
                        inner.ended.push(ended);
                        inner.state.switched();
                    }
                    Err(BeginError { error, may_exist }) => {
                        inner.state.not_switched(without_code(&error), may_exist);
                    }
                });
            }
        }
    }

    /// Syncs the written bytes if a sync is due; false if none is due.
    pub fn run_sync(&self, now_millis: u64) -> bool {
        self.take_sync(now_millis).map(|job| self.do_sync(job)).is_some()
    }

    /// Takes a sync job if one is due.
    pub fn take_sync(&self, now_millis: u64) -> Option<SyncJob> {
        let mut inner = self.inner.lock();
        let (position, is_new) = inner.state.next_sync(now_millis)?;
        let (file, ended) = (inner.file.clone(), inner.ended.clone());
        Some(SyncJob { position, file, ended, is_new })
    }

    /// Runs a sync job and reports its result.
    pub fn do_sync(&self, job: SyncJob) {
        let SyncJob { position, file, ended, is_new } = job;
        let sync = || -> io::Result<()> {
            ended.iter().try_for_each(|ended| ended.file.sync())?;
            file.file.sync()?;
            if is_new { self.disk.sync_dir(&self.dir) } else { Ok(()) }
        };
        let result = sync().map_err(|error| {
            let error = without_code(&error);
            format!(
                "the disk may have lost what was written ({error}); restart the server: it writes it again"
            )
        });
        if result.is_ok() {
            if is_new
                && let Err(error) = manifest::write(&*self.disk, &self.dir, Manifest::of(&file))
            {
                tracing::warn!(%error, "cannot update the manifest: the next start cannot detect a missing newest log");
            }
            // The field becomes durable with the next sync. It only shows what a crash has lost.
            if let Err(error) = file.record_synced(position) {
                tracing::warn!(%error, "cannot record the position of the last fsync");
            }
        }
        self.note(|inner| {
            let is_present = Arc::ptr_eq(&inner.file, &file);
            if result.is_ok() {
                inner.ended.retain(|it| !ended.iter().any(|ended| Arc::ptr_eq(it, ended)));
            }
            inner.state.sync_ended(result, is_present);
        });
    }

    /// Checks that a start would find the current file.
    fn check_file(&self) {
        let file = self.inner.lock().file.clone();
        let is_there = self.disk.is_at(&file.path, &*file.file);
        let gone = (!is_there).then(|| {
            let path = file.path.display();
            format!("{path} was removed or replaced under the running server; put the folder back, or DUMP the keys to another server")
        });
        self.note(|inner| {
            if Arc::ptr_eq(&inner.file, &file) {
                inner.state.found(gone);
            }
        });
    }

    /// Records after the last sync that the stream ends here.
    fn record_end(&self) -> io::Result<()> {
        let inner = self.inner.lock();
        let (file, synced) = (inner.file.clone(), inner.state.synced());
        drop(inner);
        file.record_synced(synced)?;
        file.file.sync()
    }

    /// Changes the state after a job, logs whether changes can be written, and wakes the waiting
    /// threads.
    fn note(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock();
        let had_failed = inner.state.failure().is_some();
        change(&mut inner);
        match (had_failed, inner.state.failure()) {
            (false, Some(error)) => {
                tracing::error!(%error, dir = %self.dir.display(), "the log cannot be written: writes are refused");
            }
            (true, None) => tracing::info!("the log can be written again: writes are accepted"),
            _ => {}
        }
        drop(inner);
        self.wake();
    }

    fn wake(&self) {
        self.done.notify_all();
        self.progress.send_replace(());
    }

    /// Waits until a job has ended, for at most [`IDLE`].
    fn wait(&self, mut inner: MutexGuard<'_, Inner>) {
        self.work.notify_one();
        self.done.wait_for(&mut inner, IDLE);
    }

    /// Runs the log thread.
    fn run(&self) {
        let mut checked = Instant::now();
        loop {
            let now = self.uptime_millis();
            let has_worked = self.run_sync(now) | self.run_file_job(now);
            if checked.elapsed() >= CHECK {
                self.check_file();
                checked = Instant::now();
            }
            let mut inner = self.inner.lock();
            let state = &inner.state;
            if state.is_closing && state.is_done() {
                return;
            }
            if state.failure().is_some() {
                self.work.wait_for(&mut inner, RETRY);
            } else if !(has_worked || state.sync == Sync::Always && state.has_file_job()) {
                // Otherwise the connections write the frames and not this thread.
                self.work.wait_for(&mut inner, IDLE);
            }
        }
    }
}

impl Log {
    /// Continues a log that is durable up to `end`.
    pub fn start(
        disk: Arc<dyn Disk>,
        dir: &Path,
        file: LogFile,
        end: u64,
        sync: Sync,
    ) -> io::Result<Self> {
        let core = Arc::new(LogCore::new(disk, dir, file, end, sync));
        let thread = std::thread::Builder::new().name("tamis-log".to_owned());
        let running = core.clone();
        let thread = thread.spawn(move || running.run())?;
        Ok(Self { core, thread: Mutex::new(Some(thread)) })
    }

    /// Appends a change. The caller holds the lock of the key, so the log contains the changes of
    /// each key in order.
    pub fn append(&self, record: &Record<'_>) {
        self.append_all(std::slice::from_ref(record));
    }

    /// Appends changes that take effect together.
    pub fn append_all(&self, records: &[Record<'_>]) {
        self.core.with(|state| {
            state.append(|out| records.iter().for_each(|record| record.encode(out)));
        });
    }

    /// Opens a group: all records appended until its end take effect as a whole or not at all. The
    /// caller has exclusive access to the keys.
    #[must_use]
    pub fn begin_group(&self) -> Group<'_> {
        self.core.with(LogState::begin_group);
        Group(self)
    }

    /// Returns the length of the open group in bytes; `None` if no group is open.
    pub fn group_bytes(&self) -> Option<usize> {
        self.core.with(|state| state.group_bytes())
    }

    /// Records that an insert under shared access begins. The insert may set bits before it appends
    /// its change.
    #[must_use]
    pub fn begin_insert(&self) -> Inserting<'_> {
        Inserting { log: self, ticket: self.core.with(LogState::begin_insert) }
    }

    /// Tests whether the log accepts no more changes.
    pub fn is_closing(&self) -> bool {
        self.core.with(|state| state.is_closing)
    }

    /// Returns the position after the last change.
    pub fn end(&self) -> u64 {
        self.core.with(|state| state.end())
    }

    /// Returns why changes cannot be written at the moment; `None` if they can.
    pub fn failure(&self) -> Option<String> {
        self.core.with(|state| state.failure().map(str::to_owned))
    }

    /// Changes when the log is synced.
    pub fn set_sync(&self, sync: Sync) {
        self.core.with(|state| state.sync = sync);
        self.core.work.notify_one();
    }

    /// Waits until the answers that the caller has just computed may be sent.
    ///
    /// # Errors
    ///
    /// Returns why the answers may not be sent: the log cannot write the changes that they depend
    /// on. `is_change` means that a command among them may have changed a value. An error never
    /// delays the other answers.
    pub async fn settle(&self, is_change: bool) -> Result<(), String> {
        let mut needs = None;
        let mut progress: Option<watch::Receiver<()>> = None;
        let mut has_yielded = false;
        loop {
            let (can_write, is_syncing) = {
                let inner = self.core.inner.lock();
                let needs = needs.get_or_insert_with(|| inner.state.needs());
                match inner.state.settle(needs, is_change, self.core.uptime_millis()) {
                    Settled::Ready => return Ok(()),
                    Settled::Failed(error) => return Err(error),
                    Settled::Waits => {}
                }
                let is_own = inner.state.sync != Sync::Always && inner.state.failure().is_none();
                (is_own && inner.state.has_file_job(), inner.state.is_syncing())
            };
            if can_write && !has_yielded {
                // The other connections of this thread run their commands first, so that one
                // `write` serves all.
                has_yielded = true;
                tokio::task::yield_now().await;
                continue;
            }
            if can_write && !is_syncing {
                self.core.run_file_job(self.core.uptime_millis());
                continue;
            }
            // The connection subscribes before it reads the state, so it misses no progress.
            let Some(progress) = &mut progress else {
                progress = Some(self.core.progress.subscribe());
                continue;
            };
            if can_write {
                let core = self.core.clone();
                let write = move || core.run_file_job(core.uptime_millis());
                _ = tokio::task::spawn_blocking(write).await;
                continue;
            }
            self.core.work.notify_one();
            _ = tokio::time::timeout(IDLE, progress.changed()).await;
        }
    }

    /// Waits until all changes so far are durable; returns the position up to which they are.
    ///
    /// # Errors
    ///
    /// Returns why the changes are not durable.
    pub fn sync(&self) -> io::Result<u64> {
        let end = self.core.with(LogState::want_sync);
        loop {
            let inner = self.core.inner.lock();
            if inner.state.is_durable(end) {
                return Ok(end);
            }
            if let Some(error) = inner.state.failure() {
                return Err(io::Error::other(error.to_owned()));
            }
            self.core.wait(inner);
        }
    }

    /// Starts a rotation: the log continues in another file. Returns the number and the start
    /// position of that file. The caller has exclusive access to the keys, so that no command is
    /// half done, and calls [`rotated`](Self::rotated) afterwards.
    ///
    /// # Errors
    ///
    /// Returns why the rotation cannot start.
    pub fn rotate(&self) -> Result<(u64, u64), String> {
        self.core.rotate()
    }

    /// Returns the start position of the current file.
    pub fn began(&self) -> u64 {
        self.core.inner.lock().file.began
    }

    /// Waits until the log continues in the file of the last [`rotate`](Self::rotate).
    ///
    /// # Errors
    ///
    /// Returns why the log continues in the old file, or why it cannot be written now. In the
    /// second case it may continue in the new file later.
    pub fn rotated(&self) -> Result<(), String> {
        loop {
            self.core.run_file_job(self.core.uptime_millis());
            let inner = self.core.inner.lock();
            if let Some(result) = inner.state.rotated() {
                return result;
            }
            if let Some(error) = inner.state.failure() {
                return Err(error.to_owned());
            }
            self.core.wait(inner);
        }
    }

    /// Writes and syncs the remaining changes, and accepts no more.
    ///
    /// # Errors
    ///
    /// Returns why a change was not written.
    pub fn close(&self) -> Result<(), String> {
        self.core.with(|state| state.is_closing = true);
        self.core.work.notify_one();
        let Some(thread) = self.thread.lock().take() else { return Ok(()) };
        _ = thread.join();
        match self.failure() {
            Some(error) => Err(error),
            None => self.core.record_end().map_err(|error| without_code(&error)),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        _ = self.close();
    }
}

/// An open group. It ends when this is dropped, even by a panic.
#[derive(Debug)]
pub(crate) struct Group<'l>(&'l Log);

impl Drop for Group<'_> {
    fn drop(&mut self) {
        self.0.core.with(LogState::end_group);
    }
}

/// An insert under shared access that has not ended. Answers that may have seen its bits wait for
/// it.
#[derive(Debug)]
pub(crate) struct Inserting<'l> {
    log: &'l Log,
    ticket: u64,
}

impl Drop for Inserting<'_> {
    fn drop(&mut self) {
        let core = &self.log.core;
        core.with(|state| state.end_insert(self.ticket));
        // Few connections wait for an insert, because it takes less than a millisecond.
        if core.progress.receiver_count() > 0 {
            core.progress.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk::OsDisk;
    use super::*;

    #[test]
    fn a_group_ends_even_if_a_command_of_it_panics() {
        let dir = tempfile::tempdir().unwrap();
        let file = LogFile::begin(&OsDisk, dir.path(), 1, 0, 0, 99).unwrap();
        let log = Log::start(Arc::new(OsDisk), dir.path(), file, 0, Sync::Always).unwrap();
        let run = || {
            let _group = log.begin_group();
            log.append(&Record::Command { now_millis: 0, argv: vec![b"DEL", b"a"] });
            assert!(log.group_bytes() > Some(0));
            panic!("a command does");
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert!(log.group_bytes().is_none() && log.end() > 0);
        assert_eq!(log.sync().unwrap(), log.end());
        drop(log.begin_group());
        log.close().unwrap();
    }
}
