//! The append-only log of a running server: its files, and the thread that syncs the files.
//!
//! A connection writes its frames to the file before the connection sends the replies. One `write`
//! contains all frames of a pipeline. Because the frames are written before the replies, a killed
//! process loses no change whose reply was sent. While a sync is running, the connection passes the
//! write to a background thread, because on some file systems a write waits for the sync. With
//! [`FsyncPolicy::Always`], the log thread writes and syncs, and one sync serves all waiting
//! connections.

pub(super) mod frame;
pub(super) mod frames;
pub(super) mod log_core;
pub(super) mod log_file;
pub(super) mod record;
pub(super) mod state;

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::persistence::disk::Disk;
use crate::system::system_error::without_code;
use log_core::{IDLE, LogCore};
use log_file::LogFile;
use record::Record;
use state::answers::Readiness;
use state::{FsyncPolicy, LogState};

/// The log of a running server. Several threads can use the log at the same time.
#[derive(Debug)]
pub(crate) struct Log {
    core: Arc<LogCore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Log {
    /// Continues a log that is durable up to the position `end`.
    pub fn start(
        disk: Arc<dyn Disk>,
        file: LogFile,
        end: u64,
        sync: FsyncPolicy,
    ) -> io::Result<Self> {
        let core = Arc::new(LogCore::new(disk, file, end, sync));
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

    /// Appends several changes as one atomic change.
    pub fn append_all(&self, records: &[Record<'_>]) {
        self.core.with(|state| {
            state.append(|out| records.iter().for_each(|record| record.encode(out)));
        });
    }

    /// Opens a group. All records that are appended before the end of the group become one atomic
    /// change. The caller has exclusive access to the keys. The group has disk space for serialized
    /// values (images) of `image_bytes` bytes in total. The caller keeps a reservation of disk
    /// space for all records other than images.
    ///
    /// # Errors
    ///
    /// Returns the reason why the log has no space for the serialized values. On an error, no group
    /// is open.
    pub fn begin_group(&self, image_bytes: u64) -> Result<LogGroup<'_>, String> {
        let images = self.core.admit(image_bytes)?;
        self.core.with(|state| state.begin_group(Some(images)));
        Ok(LogGroup(self))
    }

    /// Records that an insert under shared access begins. The insert may set bits before the insert
    /// appends its change.
    #[must_use]
    pub fn begin_insert(&self) -> InsertTicket<'_> {
        InsertTicket { log: self, ticket: self.core.with(LogState::begin_insert) }
    }

    /// Changes the sync policy of the log.
    pub fn set_sync(&self, sync: FsyncPolicy) {
        self.core.with(|state| state.sync = sync);
        self.core.work.notify_one();
    }

    /// Waits until the replies that the caller has just computed may be sent.
    ///
    /// # Errors
    ///
    /// Returns the reason why the replies may not be sent: the log cannot write the changes that
    /// the replies depend on. `is_change` means that a command may have changed a value. If no
    /// command may have changed a value, the replies are sent even while the log cannot be written.
    pub async fn wait_to_answer(&self, is_change: bool) -> Result<(), String> {
        let mut needs = None;
        let mut progress: Option<watch::Receiver<()>> = None;
        let mut has_yielded = false;
        loop {
            let (can_write, is_syncing) = {
                let inner = self.core.inner.lock();
                let needs = needs.get_or_insert_with(|| inner.state.needs());
                match inner.state.readiness(needs, is_change, self.core.uptime_millis()) {
                    Readiness::Ready => return Ok(()),
                    Readiness::Failed(error) => return Err(error),
                    Readiness::Waits => {}
                }
                let is_own =
                    inner.state.sync != FsyncPolicy::Always && inner.state.failure().is_none();
                (is_own && inner.state.has_file_job(), inner.state.syncing.is_some())
            };
            if can_write && !has_yielded {
                // Yield, so that the other connections of this thread run their commands first and
                // one `write` serves all connections.
                has_yielded = true;
                tokio::task::yield_now().await;
                continue;
            }
            if can_write && !is_syncing {
                self.core.run_file_job(self.core.uptime_millis());
                continue;
            }
            // The connection subscribes before the connection reads the state, so the connection
            // misses no progress.
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

    /// Waits until all current changes are durable. Returns the position up to which the changes
    /// are durable.
    ///
    /// # Errors
    ///
    /// Returns the reason why the changes are not durable.
    pub fn sync(&self) -> io::Result<u64> {
        let end = self.core.with(LogState::want_sync);
        let is_done = |state: &LogState| state.is_durable(end).then_some(end);
        self.core.wait_for(|| {}, is_done).map_err(io::Error::other)
    }

    /// Waits until the log continues in the new file of the last [`rotate`](LogCore::rotate).
    ///
    /// # Errors
    ///
    /// Returns the reason why the log continues in the old file, or why the log cannot be written
    /// now. If the log cannot be written at this time, the log may continue in the new file at a
    /// later time.
    pub fn rotated(&self) -> Result<(), String> {
        let write = || _ = self.core.run_file_job(self.core.uptime_millis());
        self.core.wait_for(write, LogState::rotated)?
    }

    /// Writes and syncs the remaining changes. A closed log accepts no more changes.
    ///
    /// # Errors
    ///
    /// Returns the reason why a change was not written.
    pub fn close(&self) -> Result<(), String> {
        self.core.with(|state| state.is_closing = true);
        self.core.work.notify_one();
        let Some(thread) = self.thread.lock().take() else { return Ok(()) };
        _ = thread.join();
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let (file, end) = {
            let inner = self.core.inner.lock();
            (inner.file.clone(), inner.state.synced)
        };
        let recorded = file.record_synced(end).and_then(|()| {
            // Free the reserved space after the last frame.
            file.file.set_len(file.offset_of(end))?;
            file.file.sync()
        });
        recorded.map_err(|error| without_code(&error))
    }
}

impl Deref for Log {
    type Target = LogCore;

    fn deref(&self) -> &LogCore {
        &self.core
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        _ = self.close();
    }
}

/// An open group. Dropping this value ends the group, even during a panic.
#[derive(Debug)]
pub(crate) struct LogGroup<'l>(&'l Log);

impl Drop for LogGroup<'_> {
    fn drop(&mut self) {
        self.0.core.with(LogState::end_group);
    }
}

/// A running insert under shared access. Replies that may depend on the bits of the insert wait for
/// the end of the insert.
#[derive(Debug)]
pub(crate) struct InsertTicket<'l> {
    log: &'l Log,
    ticket: u64,
}

impl Drop for InsertTicket<'_> {
    fn drop(&mut self) {
        let core = &self.log.core;
        core.with(|state| state.end_insert(self.ticket));
        // Few connections wait for an insert, because an insert takes less than a millisecond.
        if core.progress.receiver_count() > 0 {
            core.progress.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::disk::OsDisk;

    #[test]
    fn a_group_ends_even_if_a_command_of_it_panics() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(OsDisk(dir.path().to_owned()));
        let file = LogFile::begin(&*disk, 1, 0, 0, 0, 99).unwrap();
        let log = Log::start(disk, file, 0, FsyncPolicy::Always).unwrap();
        let run = || {
            let _group = log.begin_group(0).unwrap();
            log.append(&Record::Command { now_millis: 0, argv: vec![b"DEL", b"a"] });
            assert!(log.group_bytes() > Some(0));
            panic!("a command does");
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert!(log.group_bytes().is_none() && log.end() > 0);
        assert_eq!(log.sync().unwrap(), log.end());
        drop(log.begin_group(0).unwrap());
        log.close().unwrap();
    }
}
