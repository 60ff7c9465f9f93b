//! The folder of a server: its log, and the snapshots that replace a long log.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::config::Config;
use crate::keyspace::Keyspace;
use crate::persistence::{Disk, DurabilityError, Log, OsDisk, forget, lock, recover, save};
use crate::server::SharedState;
use crate::stats::now_millis;

/// The persistent data of a server.
#[derive(Debug)]
pub(crate) struct Durable {
    pub log: Log,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Locked while a snapshot is written.
    saving: Mutex<()>,
    /// True while a snapshot writes keys one after the other: it must not miss a key that moves
    /// meanwhile.
    is_saving: AtomicBool,
    /// The memory of the keyspace at the last snapshot, in bytes.
    snapshot_bytes: AtomicU64,
    pub last_save_millis: AtomicU64,
    /// Held as long as the server uses the folder.
    lock: Mutex<Option<File>>,
}

impl Durable {
    /// Opens the folder and fills the keyspace with its data.
    pub fn open(config: &Config, keyspace: &Keyspace) -> Result<Self, DurabilityError> {
        let started = std::time::Instant::now();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let lock = lock(&config.dir)?;
        let found = recover(&disk, &config.dir, keyspace)?;
        if found.torn_bytes > 0 {
            tracing::warn!(
                bytes = found.torn_bytes,
                "the end of the log is incomplete after a crash and was moved to a .torn file: no synced change is \
                 lost, but the last unsynced changes may be"
            );
        }
        let keys = keyspace.shared().len();
        if keys > 0 || found.changes > 0 {
            let seconds = started.elapsed().as_secs_f64();
            tracing::info!(keys, changes = found.changes, seconds, "recovered");
        }
        let log = Log::start(disk.clone(), &config.dir, found.file, found.end, config.sync);
        let log = log.map_err(DurabilityError::io(&config.dir))?;
        Ok(Self {
            log,
            disk,
            dir: config.dir.clone(),
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

    /// Writes a snapshot and begins a new log. If a snapshot is being written, waits for it first.
    pub fn save(&self, keyspace: &Keyspace) -> Result<(), DurabilityError> {
        let _saving = self.saving.lock();
        let saved = self.save_alone(keyspace);
        self.is_saving.store(false, Ordering::Release);
        let number = saved?;
        self.snapshot_bytes.store(keyspace.memory_bytes(), Ordering::Relaxed);
        self.last_save_millis.store(now_millis(), Ordering::Relaxed);
        forget(&*self.disk, &self.dir, number)
    }

    fn save_alone(&self, keyspace: &Keyspace) -> Result<u64, DurabilityError> {
        let refused = |why: String| DurabilityError::Io {
            path: self.dir.clone(),
            error: std::io::Error::other(why),
        };
        let (number, position) = {
            // No command is half done where one log ends and the next begins.
            let _alone = keyspace.exclusive();
            self.is_saving.store(true, Ordering::Release);
            self.log.rotate().map_err(refused)?
        };
        self.log.rotated().map_err(refused)?;
        save(&*self.disk, keyspace, &self.log, &self.dir, number, position)?;
        Ok(number)
    }

    /// Writes the remaining changes, abandons a snapshot in progress, and unlocks the folder.
    ///
    /// # Errors
    ///
    /// Returns why a change was not written.
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

/// Starts a snapshot in the background; false if one is being written.
pub(crate) fn save_in_background(shared: &Arc<SharedState>) -> bool {
    let Some(durable) = &shared.durable else { return false };
    if durable.is_saving() {
        return false;
    }
    let shared = shared.clone();
    let thread = std::thread::Builder::new().name("tamis-save".to_owned());
    let spawned = thread.spawn(move || {
        let durable = shared.durable.as_ref().expect("just seen");
        let save = || durable.save(&shared.keyspace);
        match shared.stats.saves.watch(shared.keyspace.changes(), save) {
            Ok(()) => tracing::info!("a snapshot was saved"),
            Err(error) => tracing::error!(%error, "the snapshot failed; the logs were kept"),
        }
    });
    spawned.is_ok()
}

/// Starts a snapshot if the log has grown to twice the size of the last one.
pub(crate) fn save_if_due(shared: &Arc<SharedState>) {
    let Some(durable) = &shared.durable else { return };
    let least = shared.config().rewrite_bytes;
    let twice = durable.snapshot_bytes.load(Ordering::Relaxed).saturating_mul(2);
    if least > 0 && durable.log_bytes() > least.max(twice) && durable.log.failure().is_none() {
        save_in_background(shared);
    }
}
