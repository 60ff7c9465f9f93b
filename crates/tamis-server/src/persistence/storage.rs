//! The data folder of a server: the log, and the snapshots that replace a long log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::keyspace::Keyspace;
use crate::persistence::disk::{Disk, OsDisk};
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::{Folder, FolderLock, lock};
use crate::persistence::log::Log;
use crate::persistence::log::state::FsyncPolicy;
use crate::persistence::recover::recover;
use crate::persistence::snapshot::writer::save;
use crate::system::clock::now_millis;

/// The persistent data of a server.
#[derive(Debug)]
pub(crate) struct Durable {
    pub log: Log,
    disk: Arc<dyn Disk>,
    /// The thread that writes a snapshot holds this lock during the write.
    saving: Mutex<()>,
    /// True while a snapshot writes one key after another. While this flag is true, a command that
    /// moves a value logs the whole value, so that the snapshot and the log together contain the
    /// value.
    is_saving: AtomicBool,
    /// The memory of the keyspace at the last snapshot, in bytes.
    snapshot_bytes: AtomicU64,
    pub last_save_millis: AtomicU64,
    /// The lock of the folder, which the server holds as long as the server uses the folder.
    lock: Mutex<Option<FolderLock>>,
}

impl Durable {
    /// Opens the folder and fills the keyspace with the data of the folder.
    pub fn open(
        dir: &Path,
        sync: FsyncPolicy,
        keyspace: &Keyspace,
    ) -> Result<Self, DurabilityError> {
        let started = std::time::Instant::now();
        let disk = Arc::new(OsDisk(dir.to_owned()));
        let lock = lock(dir)?;
        let found = recover(&*disk, keyspace)?;
        if found.torn_bytes > 0 {
            tracing::warn!(
                bytes = found.torn_bytes,
                "the end of the log is incomplete after a crash and was moved to a .torn file: \
                 no synced change is lost, but the last unsynced changes may be"
            );
        }
        let keys = keyspace.shared().len();
        if keys > 0 || found.changes > 0 {
            let seconds = started.elapsed().as_secs_f64();
            tracing::info!(keys, changes = found.changes, seconds, "recovered");
        }
        let log = Log::start(disk.clone(), found.file, found.end, sync);
        let log = log.map_err(DurabilityError::io(dir))?;
        Ok(Self {
            log,
            disk,
            saving: Mutex::new(()),
            is_saving: AtomicBool::new(false),
            snapshot_bytes: AtomicU64::new(keyspace.memory_bytes()),
            last_save_millis: AtomicU64::new(now_millis()),
            lock: Mutex::new(Some(lock)),
        })
    }

    /// Tests whether a snapshot is being written.
    pub fn is_saving(&self) -> bool {
        self.is_saving.load(Ordering::Acquire)
    }

    /// Writes a snapshot and begins a new log. If another snapshot is being written, waits for the
    /// end of that snapshot before the start.
    pub fn save(&self, keyspace: &Keyspace) -> Result<(), DurabilityError> {
        let _saving = self.saving.lock();
        let saved = self.save_alone(keyspace);
        self.is_saving.store(false, Ordering::Release);
        let number = saved?;
        self.snapshot_bytes.store(keyspace.memory_bytes(), Ordering::Relaxed);
        self.last_save_millis.store(now_millis(), Ordering::Relaxed);
        Folder::read(&*self.disk)?.remove_before(number);
        Ok(())
    }

    fn save_alone(&self, keyspace: &Keyspace) -> Result<u64, DurabilityError> {
        let fail = |why: String| DurabilityError::io(self.disk.dir())(std::io::Error::other(why));
        let (number, position) = {
            // No command runs during the rotation, so that all records of a command are in the same
            // log.
            let _alone = keyspace.exclusive();
            self.is_saving.store(true, Ordering::Release);
            self.log.rotate().map_err(fail)?
        };
        self.log.rotated().map_err(fail)?;
        save(&*self.disk, keyspace, &self.log, number, position)?;
        Ok(number)
    }

    /// Writes the remaining changes, aborts a running snapshot, and unlocks the folder.
    ///
    /// # Errors
    ///
    /// Returns the reason why a change was not written.
    pub fn finish(&self) -> Result<(), String> {
        let kept = self.log.close();
        drop(self.saving.lock());
        self.lock.lock().take();
        kept
    }

    /// Returns the memory of the keyspace at the last snapshot, in bytes.
    pub fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes.load(Ordering::Relaxed)
    }

    /// Returns the length of the current log, in bytes.
    pub fn log_bytes(&self) -> u64 {
        self.log.end().saturating_sub(self.log.began())
    }
}
