//! The folder that contains the snapshots of a guard.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tamis_sources::{PlainIo, SnapshotStore};
use tempfile::NamedTempFile;
use xxhash_rust::xxh3::xxh3_64;

/// The bytes that are escaped in a file name, so that no file name leads out of the folder.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The maximum length of a file name in bytes.
const MAX_NAME: usize = 200;

/// The folder that contains the snapshots of a guard, with one file per source. The folder is locked until this value
/// is dropped, so that two guards do not overwrite each other's files.
#[derive(Debug)]
pub(crate) struct SnapshotFolder {
    path: PathBuf,
    lock: File,
}

impl Drop for SnapshotFolder {
    /// Unlocks the folder explicitly. A child process that another thread has just forked may hold a copy of the file
    /// handle. Without the explicit unlock, the lock would end only when the last copy of the file handle is closed.
    fn drop(&mut self) {
        // If the unlock fails, the lock ends when the file is closed.
        _ = self.lock.unlock();
    }
}

impl SnapshotFolder {
    /// Locks the folder, and tests whether the guard can write files in the folder. The method also removes the
    /// unfinished files of a killed guard.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let fail = |error: io::Error| {
            format!("no snapshot can be written in {}: {}", path.display(), PlainIo(&error))
        };
        let lock = File::options().create(true).append(true).open(path.join("guard.lock"));
        let lock = lock.map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.display();
                return Err(format!("another guard uses {path}; give each guard its own folder"));
            }
            // Some network file systems do not support locks. Without a lock, the guard still replaces each file
            // atomically.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        NamedTempFile::with_prefix_in(SnapshotStore::UNFINISHED, path).map_err(fail)?;
        for entry in fs::read_dir(path).map_err(fail)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SnapshotStore::UNFINISHED) {
                // If the removal fails, the file only takes disk space.
                _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Returns the file name for a set. Returns `None` if the name is too long for a file system.
    pub(crate) fn file_name(set: &str) -> Option<String> {
        let name = format!("{}.snapshot", utf8_percent_encode(set, ESCAPED));
        (name.len() <= MAX_NAME).then_some(name)
    }

    /// Returns the path of the file for a set with one source.
    pub(crate) fn file_of(&self, set: &str) -> PathBuf {
        self.path.join(Self::file_name(set).unwrap_or_default())
    }

    /// Returns the path of the file for one of several sources of a set. The path depends on the name of the source,
    /// and not on the other sources.
    pub(crate) fn file_of_source(&self, set: &str, source: &str) -> PathBuf {
        let digest = format!("{:016x}.snapshot", xxh3_64(source.as_bytes()));
        self.file_of(set).with_extension(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_lock_ends_although_a_forked_child_still_has_a_copy_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let first = SnapshotFolder::open(dir.path()).unwrap();
        assert!(SnapshotFolder::open(dir.path()).unwrap_err().contains("another guard uses"));
        let _copy = first.lock.try_clone().unwrap();
        drop(first);
        SnapshotFolder::open(dir.path()).unwrap();
    }

    #[test]
    fn the_name_of_a_set_never_leaves_the_folder() {
        for (set, name) in [
            ("products", "products.snapshot"),
            ("a-b_c9", "a-b_c9.snapshot"),
            ("../../etc/passwd", "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd.snapshot"),
            ("C:\\a\0", "C%3A%5Ca%00.snapshot"),
            ("", ".snapshot"),
            ("产", "%E4%BA%A7.snapshot"),
        ] {
            assert_eq!(SnapshotFolder::file_name(set).as_deref(), Some(name), "{set:?}");
        }
        assert_eq!(SnapshotFolder::file_name(&"a".repeat(192)), None);
        let dir = tempfile::tempdir().unwrap();
        let folder = SnapshotFolder::open(dir.path()).unwrap();
        let of = |set, source| folder.file_of_source(set, source);
        let name = of("a.b", "mysql shop.orders.id at ../db1:3306");
        assert_eq!(name.parent(), Some(dir.path()));
        let name = name.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("a%2Eb.") && name.ends_with(".snapshot"), "{name}");
        assert_eq!(name.len(), "a%2Eb.0123456789abcdef.snapshot".len());
        assert_ne!(of("a", "one"), of("a", "two"));
        assert_ne!(of("a", "one"), of("b", "one"));
    }

    #[test]
    fn a_folder_has_one_guard_and_loses_unfinished_files() {
        let dir = tempfile::tempdir().unwrap();
        let (unfinished, whole) =
            (dir.path().join(".tamis-snapshot-1"), dir.path().join("a.snapshot"));
        fs::write(&unfinished, "half").unwrap();
        fs::write(&whole, "whole").unwrap();
        let folder = SnapshotFolder::open(dir.path()).unwrap();
        assert!(!unfinished.exists() && whole.exists());
        assert_eq!(folder.file_of("a"), whole);
        let error = SnapshotFolder::open(dir.path()).unwrap_err();
        assert!(error.starts_with("another guard uses "), "{error}");
        drop(folder);
        SnapshotFolder::open(dir.path()).unwrap();
        let error = SnapshotFolder::open(&dir.path().join("none")).unwrap_err();
        assert!(error.contains("none: No such file or directory") && !error.contains("os error"));
    }
}
