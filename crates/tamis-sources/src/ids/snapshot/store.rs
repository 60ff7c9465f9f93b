//! Stores the snapshot of a source in a file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::NamedTempFile;

use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::ids::snapshot::error::SnapshotError;
use crate::ids::snapshot::head::{Snapshot, SnapshotHead};

/// The path, the interval and the size limit of the snapshots of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// The path of the file. The folder of the file must exist. Only the owner can read the file, because it contains
    /// the hash key.
    pub path: PathBuf,
    /// The time between two snapshots.
    pub every: Duration,
    /// The maximum size of a file that is read, in bytes.
    pub max_bytes: u64,
}

impl SnapshotOptions {
    /// Returns the default settings for a file: one snapshot each minute, and at most 4 GiB.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), every: Duration::from_secs(60), max_bytes: 4 << 30 }
    }
}

/// The snapshot of a source in a file. Clones share the time of the last snapshot.
///
/// A source calls [`load`](Self::load) once at its start. If `load` returns a generation, the source publishes the
/// generation and applies all changes after the position. The source calls [`save`](Self::save) when
/// [`is_due`](Self::is_due) returns true.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    options: SnapshotOptions,
    /// The time at which the last snapshot was written or read.
    saved: Arc<Mutex<Option<Instant>>>,
}

impl SnapshotStore {
    /// The name prefix of files that are still being written. A killed program may leave unfinished files behind.
    pub const UNFINISHED: &str = ".tamis-snapshot-";

    /// Creates a store. The store has not read or written its file yet.
    #[must_use]
    pub fn new(options: SnapshotOptions) -> Self {
        Self { options, saved: Arc::default() }
    }

    /// Tests whether the last snapshot is older than [`every`](SnapshotOptions::every).
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.saved.lock().is_none_or(|saved| saved.elapsed() >= self.options.every)
    }

    /// Reads the snapshot. Returns `None` if the file does not exist. `source` is the identity of the source, `id` is
    /// the type of the ids, and `rate` is the false positive rate of the source.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] if the file cannot be read or is damaged, or if its source, its id type or its rate differs
    /// from the arguments. After an error, the source reads all ids.
    pub fn load(
        &self,
        source: &str,
        id: &IdType,
        rate: f64,
    ) -> Result<Option<Snapshot>, SnapshotError> {
        let fail = |error| SnapshotError::File { path: self.options.path.clone(), error };
        let file = match File::open(&self.options.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        // Reading a directory fails with a message that does not name the cause.
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Err(fail(io::Error::other("not a regular file")));
        }
        let snapshot = Generation::read_snapshot(io::BufReader::new(file), self.options.max_bytes)?;
        let same = |field, found: &str, expected: &str| match found == expected {
            true => Ok(()),
            false => Err(SnapshotError::Other {
                field,
                found: found.escape_debug().to_string(),
                expected: expected.escape_debug().to_string(),
            }),
        };
        let (head, found) = (&snapshot.head, snapshot.generation.rate_of_parts());
        same("type of ids", &head.ids, &id.to_string())?;
        same("source", &head.source, source)?;
        same("rate", &found.to_string(), &rate.to_string())?;
        *self.saved.lock() = Some(Instant::now());
        Ok(Some(snapshot))
    }

    /// Removes the file, if it exists. The next snapshot is due immediately.
    #[cfg(feature = "databases")]
    pub(crate) fn remove(&self) {
        *self.saved.lock() = None;
        // If the file cannot be removed, a later start of the source rejects the file, because the source tests the
        // position.
        if std::fs::remove_file(&self.options.path).is_ok() {
            _ = sync_folder(&self.options.path);
        }
    }

    /// Writes a snapshot. The new file replaces the old file when all bytes are on disk. The caller must take the
    /// position of `head` before this call, and the generation must contain all changes up to this position. After the
    /// copy, the method calls `end`, which returns the position of the last applied change.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::File`] if the file cannot be written. After an error, the old file stays unchanged.
    pub fn save(
        &self,
        head: &SnapshotHead,
        generation: &Generation,
        end: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), SnapshotError> {
        // The time is set first, so that the store waits a full interval after a failed snapshot.
        *self.saved.lock() = Some(Instant::now());
        let path = &self.options.path;
        let written = replace(path, |file| generation.write_snapshot(head, end, file));
        written.map_err(|error| SnapshotError::File { path: path.clone(), error })
    }
}

/// Writes a new file beside `path`. When its bytes are on disk, the function renames the new file to `path`.
fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    // If a step fails, the temporary file is removed.
    let new = NamedTempFile::with_prefix_in(SnapshotStore::UNFINISHED, folder(path))?;
    write(new.as_file())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Returns the folder that contains a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the folder of `path`, so that a new or removed file name survives a crash.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder(path))?.sync_all() } else { Ok(()) }
}
