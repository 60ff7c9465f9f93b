//! The log without its thread: the state machine (`state.rs`), and the jobs on the log files.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use crate::persistence::disk::Disk;
use crate::persistence::log::log_file::{BeginError, LogFile};
use crate::persistence::log::state::{FileJob, FsyncPolicy, LogState, Refusal};
use crate::persistence::manifest::record_newest;
use crate::system::held_memory::Hold;
use crate::system::system_error::without_code;

/// The log without its thread. The model test runs the steps of the log in every order.
#[derive(Debug)]
pub(crate) struct LogCore {
    disk: Arc<dyn Disk>,
    pub(crate) inner: Mutex<Inner>,
    /// Wakes the log thread.
    pub(crate) work: Condvar,
    /// Wakes threads that wait for a sync or a rotation.
    done: Condvar,
    /// Wakes connections that must wait for the log before they send replies.
    pub(crate) progress: watch::Sender<()>,
    started: Instant,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub state: LogState,
    /// The file that receives new frames.
    pub file: Arc<LogFile>,
    /// The files before the current file that may not be durable yet.
    ended: Vec<Arc<LogFile>>,
}

/// The files that a sync job syncs, and the position up to which the job syncs.
#[derive(Debug)]
pub(crate) struct SyncJob {
    position: u64,
    file: Arc<LogFile>,
    ended: Vec<Arc<LogFile>>,
    /// True if the file is new, so that the sync must make the name of the file durable.
    is_new: bool,
}

/// The longest time for which the log thread sleeps before the thread checks for work.
pub(crate) const IDLE: Duration = Duration::from_millis(100);

/// The amount of disk space that the log reserves at a time, in bytes, if the disk has enough
/// space.
const AHEAD_BYTES: u64 = 1 << 20;

/// The time for which the log thread waits after an error.
const RETRY: Duration = Duration::from_millis(200);

/// The time between two checks that the log file is still in the folder.
const CHECK: Duration = Duration::from_secs(1);

impl LogCore {
    /// Continues a log that is durable up to the position `end`.
    pub fn new(disk: Arc<dyn Disk>, file: LogFile, end: u64, sync: FsyncPolicy) -> Self {
        let mut state = LogState::new(end, sync);
        state.secret = file.secret;
        let inner = Inner { state, file: Arc::new(file), ended: Vec::new() };
        Self {
            disk,
            inner: Mutex::new(inner),
            work: Condvar::new(),
            done: Condvar::new(),
            progress: watch::Sender::new(()),
            started: Instant::now(),
        }
    }

    pub(crate) fn uptime_millis(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Runs a function on the state under the lock of the state.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut LogState) -> R) -> R {
        run(&mut self.inner.lock().state)
    }

    /// Returns the start position of the current file.
    pub fn began(&self) -> u64 {
        self.inner.lock().file.began
    }

    /// Returns the position after the last change.
    pub fn end(&self) -> u64 {
        self.with(|state| state.end)
    }

    /// Returns the length of the open group in bytes. Returns `None` if no group is open.
    pub fn group_bytes(&self) -> Option<usize> {
        self.with(|state| state.group_bytes())
    }

    /// Tests whether the log is closing and accepts no more changes.
    pub fn is_closing(&self) -> bool {
        self.with(|state| state.is_closing)
    }

    /// Returns the reason why the log cannot write changes at this time. Returns `None` if the log
    /// can write changes.
    pub fn failure(&self) -> Option<String> {
        self.with(|state| state.failure().map(str::to_owned))
    }

    /// Tests whether a change of at most `bytes` bytes can be logged. Reserves disk space for the
    /// change until the returned `Hold` is dropped. The caller calls this method before the caller
    /// applies the change. The caller drops the `Hold` after the change is appended to the log.
    ///
    /// # Errors
    ///
    /// Returns the reason why the change cannot be logged.
    pub fn admit(&self, bytes: u64) -> Result<Hold, String> {
        loop {
            let (file, version, from, to) = {
                let mut inner = self.inner.lock();
                let state = &inner.state;
                match state.admit(bytes) {
                    Ok(admitted) => return Ok(admitted),
                    Err(Refusal::Failed(error)) => return Err(error),
                    Err(Refusal::Space(to)) => {
                        (inner.file.clone(), state.space_version, state.reserved, to)
                    }
                    Err(Refusal::Busy) => {
                        self.done.wait_for(&mut inner, IDLE);
                        continue;
                    }
                }
            };
            let reserve = |to: u64| file.reserve(from, to).map(|()| to);
            let reserved = match reserve(to.saturating_add(AHEAD_BYTES)).or_else(|_| reserve(to)) {
                Ok(reserved) => reserved,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => u64::MAX,
                Err(error) => {
                    self.with(|state| state.not_reserved(version));
                    self.work.notify_one();
                    return Err(without_code(&error));
                }
            };
            self.with(|state| state.reserved(reserved, version));
        }
    }

    /// Reserves disk space for an image (a serialized value) of at most `bytes` bytes. The caller
    /// has exclusive access to the keys, so an open group belongs to the caller. If a group is
    /// open, the group keeps the disk space until the group ends, and the result is `None`. Without
    /// a group, the caller keeps the returned `Hold` until the image is appended to the log.
    ///
    /// # Errors
    ///
    /// Returns the reason why the image cannot be logged.
    pub fn admit_image(&self, bytes: u64) -> Result<Option<Hold>, String> {
        let missing = self.admit(self.with(|state| state.missing_image_bytes(bytes)))?;
        Ok(self.with(|state| state.image_admitted(bytes, missing)))
    }

    /// Starts a rotation: the log will continue in a new file. Returns the number and the start
    /// position of the new file. The caller has exclusive access to the keys during the call, so
    /// that no command is running during the rotation. After the call, the caller waits until the
    /// rotation has ended.
    ///
    /// # Errors
    ///
    /// Returns the reason why the rotation cannot start.
    pub fn rotate(&self) -> Result<(u64, u64), String> {
        let mut inner = self.inner.lock();
        // Use the number of the current file: an earlier rotation may have completed after its
        // caller stopped waiting.
        let number = inner.file.number + 1;
        Ok((number, inner.state.rotate(number)?))
    }

    /// Runs the next job on the log file. Returns false if no job is due.
    pub(crate) fn run_file_job(&self, now_millis: u64) -> bool {
        let job = self.take_file_job();
        job.map(|(file, job)| self.do_file_job(&file, job, now_millis)).is_some()
    }

    /// Takes the next job on the log file from the state machine.
    pub(crate) fn take_file_job(&self) -> Option<(Arc<LogFile>, FileJob)> {
        let mut inner = self.inner.lock();
        let job = inner.state.next_file_job()?;
        Some((inner.file.clone(), job))
    }

    /// Runs a job on the log file and reports the result of the job to the state machine.
    pub(crate) fn do_file_job(&self, file: &LogFile, job: FileJob, now_millis: u64) {
        match job {
            FileJob::Write { position, bytes } => {
                let result = file.file.write_all_at(&bytes, file.offset_of(position));
                let result = result.map_err(|error| without_code(&error));
                self.note(|inner| inner.state.wrote(bytes, result, now_millis));
            }
            FileJob::Switch { number, position, synced, reserved } => {
                // The frames after the position are already encoded with the secret of the old
                // file.
                let secret = file.secret;
                let begun = LogFile::begin(&*self.disk, number, position, synced, reserved, secret);
                self.note(|inner| match begun {
                    Ok(new) => {
                        // Free the reserved space after the last frame.
                        _ = file.file.set_len(file.offset_of(position));
                        let ended = std::mem::replace(&mut inner.file, Arc::new(new));
                        inner.ended.push(ended);
                        inner.state.switched();
                    }
                    Err(BeginError { error, may_exist }) => {
                        inner.state.not_switched(without_code(&error), may_exist);
                    }
                });
            }
            FileJob::Trim => {
                // If the trim fails, the blocks remain after the end of the file.
                _ = file.trim();
                self.note(|inner| inner.state.trimmed());
            }
        }
    }

    /// Syncs the written bytes if a sync is due. Returns false if no sync is due.
    pub(crate) fn run_sync(&self, now_millis: u64) -> bool {
        self.take_sync(now_millis).map(|job| self.do_sync(job)).is_some()
    }

    /// Takes a sync job if a sync job is due.
    pub(crate) fn take_sync(&self, now_millis: u64) -> Option<SyncJob> {
        let mut inner = self.inner.lock();
        let (position, is_new) = inner.state.next_sync(now_millis)?;
        let (file, ended) = (inner.file.clone(), inner.ended.clone());
        Some(SyncJob { position, file, ended, is_new })
    }

    /// Runs a sync job and reports the result of the job to the state machine.
    pub(crate) fn do_sync(&self, job: SyncJob) {
        let SyncJob { position, file, ended, is_new } = job;
        let sync = || -> io::Result<()> {
            ended.iter().try_for_each(|ended| ended.file.sync())?;
            file.file.sync()?;
            if is_new { self.disk.sync_dir(self.disk.dir()) } else { Ok(()) }
        };
        let result = sync().map_err(|error| {
            let error = without_code(&error);
            format!(
                "the disk may have lost what was written ({error}); restart the server: it writes \
                 it again"
            )
        });
        if result.is_ok() {
            if is_new {
                record_newest(&*self.disk, &file);
            }
            // The next sync makes the `synced` field durable. A start uses the `synced` field to
            // detect lost changes.
            file.try_record_synced(position);
        }
        self.note(|inner| {
            let is_present = Arc::ptr_eq(&inner.file, &file);
            if result.is_ok() {
                inner.ended.retain(|it| !ended.iter().any(|ended| Arc::ptr_eq(it, ended)));
            }
            inner.state.sync_ended(result, is_present);
        });
    }

    /// Checks that a server that starts would find the current log file.
    fn check_file(&self) {
        let file = self.inner.lock().file.clone();
        let is_there = file.file.is_at(&file.path);
        let gone = (!is_there).then(|| {
            let path = file.path.display();
            format!(
                "{path} was removed or replaced under the running server; put the folder back, or \
                 DUMP the keys to another server"
            )
        });
        self.note(|inner| {
            if Arc::ptr_eq(&inner.file, &file) {
                inner.state.gone = gone;
            }
        });
    }

    /// Changes the state after a job, logs whether changes can be written, and wakes the waiting
    /// threads.
    fn note(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock();
        let had_failed = inner.state.failure().is_some();
        change(&mut inner);
        match (had_failed, inner.state.failure()) {
            (false, Some(error)) => {
                let dir = self.disk.dir().display();
                tracing::error!(%error, %dir, "the log cannot be written: writes are refused");
            }
            (true, None) => tracing::info!("the log can be written again: writes are accepted"),
            _ => {}
        }
        drop(inner);
        self.done.notify_all();
        self.progress.send_replace(());
    }

    /// Waits until `result` returns a value for the state. Calls `before` before each call of
    /// `result`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the log cannot be written.
    pub(crate) fn wait_for<R>(
        &self,
        before: impl Fn(),
        result: impl Fn(&LogState) -> Option<R>,
    ) -> Result<R, String> {
        loop {
            before();
            let mut inner = self.inner.lock();
            if let Some(result) = result(&inner.state) {
                return Ok(result);
            }
            if let Some(error) = inner.state.failure() {
                return Err(error.to_owned());
            }
            self.work.notify_one();
            self.done.wait_for(&mut inner, IDLE);
        }
    }

    /// Runs the log thread.
    pub(crate) fn run(&self) {
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
            } else if !(has_worked || state.sync == FsyncPolicy::Always && state.has_file_job()) {
                // The thread may sleep, because the connections write the frames.
                self.work.wait_for(&mut inner, IDLE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::sim_disk::SimDisk;

    /// Returns a disk with a log, and with space for some more bytes.
    fn log_with_space(bytes: usize) -> (SimDisk, LogCore) {
        let disk = SimDisk::default();
        let file = LogFile::begin(&disk, 1, 0, 0, 0, 99).unwrap();
        let core = LogCore::new(Arc::new(disk.clone()), file, 0, FsyncPolicy::Always);
        disk.limit_space(bytes);
        (disk, core)
    }

    fn assert_syncs(core: &LogCore) {
        while core.run_file_job(0) || core.run_sync(0) {}
        assert_eq!((core.failure(), core.with(|state| state.synced)), (None, core.end()));
    }

    /// Admits a change and appends the change to the log.
    fn append(core: &LogCore, len: usize) -> Result<(), String> {
        let _admitted = core.admit(len as u64 + 100)?;
        core.with(|state| state.append(|out| out.extend(vec![7; len])));
        Ok(())
    }

    #[test]
    fn a_change_that_does_not_fit_leaves_the_disk_as_it_was() {
        let (disk, core) = log_with_space(5000);
        append(&core, 500).unwrap();
        for _ in 0..3 {
            assert!(append(&core, 10_000).unwrap_err().contains("No space left"));
            while core.run_file_job(0) {}
            assert!(disk.space_left() > 4000, "{}", disk.space_left());
            append(&core, 100).unwrap();
        }
        assert_syncs(&core);
    }

    #[test]
    fn admitted_changes_have_space_together() {
        let (_disk, core) = log_with_space(250_000);
        let one = core.admit(100_000).unwrap();
        let two = core.admit(100_000).unwrap();
        assert!(core.admit(100_000).is_err());
        for admitted in [one, two] {
            core.with(|state| state.append(|out| out.extend(vec![7; 99_900])));
            drop(admitted);
        }
        assert_syncs(&core);
    }

    #[test]
    fn images_of_a_group_have_space_together() {
        let (_disk, core) = log_with_space(250_000);
        let admitted = core.admit(1000).unwrap();
        core.with(|state| state.begin_group(None));
        for _ in 0..2 {
            assert!(core.admit_image(100_000).unwrap().is_none());
            core.with(|state| state.append(|out| out.extend(vec![7; 100_000])));
        }
        assert!(core.admit_image(100_000).unwrap_err().contains("No space left"));
        core.with(LogState::end_group);
        drop(admitted);
        assert_syncs(&core);
    }

    #[test]
    fn the_log_continues_in_another_file_although_the_disk_is_full() {
        let (disk, core) = log_with_space(3000);
        while append(&core, 200).is_ok() {}
        while core.run_file_job(0) || core.run_sync(0) {}
        assert!(disk.space_left() < 500, "{}", disk.space_left());
        core.rotate().unwrap();
        while core.run_file_job(0) || core.run_sync(0) {}
        assert_eq!(core.with(|state| state.rotated()), Some(Ok(())));
        assert_eq!(core.failure(), None);
    }
}
