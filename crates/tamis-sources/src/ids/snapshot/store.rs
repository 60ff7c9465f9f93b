//! The snapshot of a source in a file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::NamedTempFile;

use crate::ids::generation::Generation;
use crate::ids::id_set_options::IdSetOptions;
use crate::ids::snapshot::error::SnapshotError;
use crate::ids::snapshot::head::{Snapshot, SnapshotHead};

/// Where and how often snapshots of a set are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// The file. Its folder must exist. Only the owner can read it, because it has the hash key.
    pub path: PathBuf,
    /// The time from one snapshot to the next.
    pub every: Duration,
    /// The largest file that is read, in bytes.
    pub max_bytes: u64,
}

impl SnapshotOptions {
    /// Returns the usual settings for a file: a snapshot each minute, at most 4 GiB.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), every: Duration::from_secs(60), max_bytes: 4 << 30 }
    }
}

/// The snapshot of a source in a file. Clones share it.
///
/// A source calls [`load`](Self::load) once when it starts. If it gets a generation, it publishes
/// it and applies all changes after the position, and calls [`save`](Self::save) when
/// [`is_due`](Self::is_due) is true.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    options: SnapshotOptions,
    /// When the last snapshot was written or read.
    saved: Arc<Mutex<Option<Instant>>>,
}

impl SnapshotStore {
    /// How the names of files begin that are being written. A program that was killed may leave such files.
    pub const UNFINISHED: &str = ".tamis-snapshot-";

    /// Creates a store that has neither read nor written its file.
    #[must_use]
    pub fn new(options: SnapshotOptions) -> Self {
        Self { options, saved: Arc::default() }
    }

    /// Tests whether the last snapshot is older than [`every`](SnapshotOptions::every).
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.saved.lock().is_none_or(|saved| saved.elapsed() >= self.options.every)
    }

    /// Reads the snapshot. Returns `None` if there is no file. `source` is the identity of the
    /// source, and `ids` are the settings of the set.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] if the file cannot be read, is damaged, or is that of another source, of
    /// other ids or of another rate. The source then reads all ids.
    pub fn load(
        &self,
        source: &str,
        ids: &IdSetOptions,
    ) -> Result<Option<Snapshot>, SnapshotError> {
        let fail = |error| SnapshotError::File { path: self.options.path.clone(), error };
        let file = match File::open(&self.options.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        // To read a directory fails with a text that does not say so.
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
        let (head, rate) = (&snapshot.head, snapshot.generation.rate_of_parts());
        same("type of ids", &head.ids, &ids.id.to_string())?;
        same("source", &head.source, source)?;
        same("rate", &rate.to_string(), &ids.rate.to_string())?;
        *self.saved.lock() = Some(Instant::now());
        Ok(Some(snapshot))
    }

    /// Removes the file, if there is one. The next snapshot is due at once.
    #[cfg(feature = "databases")]
    pub(crate) fn remove(&self) {
        *self.saved.lock() = None;
        // A source does not use a file that cannot be removed either: it tests its position.
        if std::fs::remove_file(&self.options.path).is_ok() {
            _ = sync_folder(&self.options.path);
        }
    }

    /// Writes a snapshot, and replaces the file when all bytes are on the disk. The caller took the
    /// position of `head` before this call, and the generation has all changes up to it. `end`
    /// returns the position of the last change that was applied; it is called after the copy.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::File`]. The old file is unchanged.
    pub fn save(
        &self,
        head: &SnapshotHead,
        generation: &Generation,
        end: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), SnapshotError> {
        // A failed snapshot is not tried again at once.
        *self.saved.lock() = Some(Instant::now());
        let path = &self.options.path;
        let written = replace(path, |file| generation.write_snapshot(head, end, file));
        written.map_err(|error| SnapshotError::File { path: path.clone(), error })
    }
}

/// Writes a new file beside `path`, and renames it to `path` when its bytes are on the disk.
fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    // The file is removed if a step fails.
    let new = NamedTempFile::with_prefix_in(SnapshotStore::UNFINISHED, folder(path))?;
    write(new.as_file())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Lets a new or a removed name survive a crash.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder(path))?.sync_all() } else { Ok(()) }
}
