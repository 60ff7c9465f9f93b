//! The data folder of a server. The module locks the folder and finds the snapshots and logs by
//! their names.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::persistence::disk::Disk;
use crate::persistence::error::DurabilityError;
use crate::persistence::log::log_file::{self, NUMBER_LIMIT};
use crate::persistence::{manifest, snapshot};

/// The two locks of a data folder: one lock on the folder itself, and one lock on a file in the
/// folder.
#[derive(Debug)]
pub(super) struct FolderLock {
    folder: File,
    file: File,
}

impl Drop for FolderLock {
    /// Unlocks the files before the drop closes the files. A child process that any thread has just
    /// forked may still have copies of the open files. Without the explicit unlock, the lock would
    /// end only when the last copy of the open files is closed.
    fn drop(&mut self) {
        // If the unlock fails, the drop only closes the files.
        _ = self.folder.unlock();
        _ = self.file.unlock();
    }
}

/// Creates the folder if the folder does not exist, and locks the folder for this process.
///
/// The lock on the folder remains even if a user deletes the file `lock`. Some file systems can
/// lock only files.
///
/// # Errors
///
/// [`DurabilityError`] if another process uses the folder.
pub(super) fn lock(dir: &Path) -> Result<FolderLock, DurabilityError> {
    std::fs::create_dir_all(dir).map_err(DurabilityError::io(dir))?;
    let folder = File::open(dir).map_err(DurabilityError::io(dir))?;
    let locked = || DurabilityError::Locked { path: dir.to_owned() };
    if matches!(folder.try_lock(), Err(TryLockError::WouldBlock)) {
        return Err(locked());
    }
    let path = dir.join("lock");
    let fail = DurabilityError::io(&path);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(FolderLock { folder, file }),
        Err(TryLockError::WouldBlock) => Err(locked()),
        Err(TryLockError::Error(error)) => Err(fail(error)),
    }
}

/// The snapshots and logs of a folder, found by their names.
#[derive(Clone, Debug)]
pub(super) struct Folder<'d> {
    pub disk: &'d dyn Disk,
    snapshots: Vec<u64>,
    logs: Vec<u64>,
    /// The names of files whose numbers are not below [`NUMBER_LIMIT`]. A server writes only files
    /// with numbers below this limit.
    too_high: Vec<String>,
    /// The number of the newest log in the manifest.
    pub recorded: Option<u64>,
    /// The secret in the manifest; 0 if there is no manifest.
    pub secret: u64,
}

impl<'d> Folder<'d> {
    /// Lists a folder and reads its manifest.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] if the folder or the manifest cannot be read.
    pub fn read(disk: &'d dyn Disk) -> Result<Self, DurabilityError> {
        let (mut snapshots, mut logs, mut too_high) = (Vec::new(), Vec::new(), Vec::new());
        for name in disk.names(disk.dir()).map_err(DurabilityError::io(disk.dir()))? {
            for (prefix, numbers) in [("snapshot-", &mut snapshots), ("log-", &mut logs)] {
                match number_of(&name, prefix) {
                    Some(number) if number < NUMBER_LIMIT => numbers.push(number),
                    Some(_) => too_high.push(name.clone()),
                    None => {}
                }
            }
        }
        too_high.sort_unstable();
        snapshots.sort_unstable();
        logs.sort_unstable();
        let manifest = manifest::read(disk).map_err(DurabilityError::io(&manifest::path(disk)))?;
        let recorded = manifest.map(|manifest| manifest.log);
        let secret = manifest.map_or(0, |manifest| manifest.secret);
        Ok(Self { disk, snapshots, logs, too_high, recorded, secret })
    }

    /// Checks that every number is below [`NUMBER_LIMIT`]. A server that starts cannot determine
    /// the order of files whose numbers are not below this limit.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] contains the names of the files that the user must move to another
    /// folder.
    pub fn check_numbers(&self) -> Result<(), DurabilityError> {
        if self.too_high.is_empty() {
            return Ok(());
        }
        Err(self.invalid_data(format!(
            "no server gives files numbers of {NUMBER_LIMIT} or more: move these to another \
             folder: {}",
            self.too_high.join(", ")
        )))
    }

    /// Returns a number that is higher than the numbers of all files.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] if all numbers are used.
    pub fn next_number(&self) -> Result<u64, DurabilityError> {
        let last = NUMBER_LIMIT - 1;
        let files = self.snapshots.iter().chain(&self.logs).chain(&self.recorded);
        let next = files.max().map_or(1, |newest| newest + 1);
        if next <= last {
            return Ok(next);
        }
        Err(self.invalid_data(format!(
            "no number above {last} is left for a new file: move the files of that number to \
             another folder; a manifest that names it goes with them"
        )))
    }

    fn invalid_data(&self, what: String) -> DurabilityError {
        DurabilityError::io(self.disk.dir())(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    /// Returns the number of the newest snapshot.
    pub fn snapshot(&self) -> Option<u64> {
        self.snapshots.last().copied()
    }

    /// Returns a copy of this list of files without the newest snapshot, if the logs that the
    /// snapshot replaces still exist. The replaced logs exist if the server ended before the server
    /// removed them.
    pub fn without_newest_snapshot(&self) -> Option<Self> {
        let mut older = self.clone();
        let newest = older.snapshots.pop()?;
        let is_whole = (older.first()..=newest).all(|number| self.logs.contains(&number));
        (is_whole && older.first() < newest).then_some(older)
    }

    /// Returns the number of the first log to read. The first log has the number of the newest
    /// snapshot, or the lowest number of all logs if there is no snapshot.
    pub fn first(&self) -> u64 {
        self.snapshot().or_else(|| self.logs.first().copied()).unwrap_or(0)
    }

    /// Returns the numbers of the logs to read.
    pub fn logs(&self) -> impl Iterator<Item = u64> {
        self.logs.iter().copied().filter(|&number| number >= self.first())
    }

    /// Returns the paths of all snapshots and logs with numbers below `limit`.
    pub fn paths_below(&self, limit: u64) -> impl Iterator<Item = PathBuf> {
        let snapshots =
            self.snapshots.iter().map(|&number| (number, snapshot::path(self.disk, number)));
        let logs = self.logs.iter().map(|&number| (number, log_file::path(self.disk, number)));
        snapshots.chain(logs).filter(move |(number, _)| *number < limit).map(|(_, path)| path)
    }

    /// Removes the snapshots and logs with numbers below `number`. A file that cannot be removed
    /// remains, but a start does not read this file.
    pub fn remove_before(&self, number: u64) {
        self.paths_below(number).for_each(|path| _ = self.disk.remove(&path));
    }
}

/// Returns the number in the name of a log or a snapshot. Returns [`u64::MAX`] if the number does
/// not fit into a `u64`. Returns `None` if `name` is not the name of a log or a snapshot.
fn number_of(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(".tamis")?;
    let is_canonical = digits == "0" || !digits.starts_with('0');
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    (is_canonical && is_number).then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_lock_ends_although_a_forked_child_still_has_copies_of_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path()).unwrap();
        assert!(matches!(lock(dir.path()), Err(DurabilityError::Locked { .. })));
        let _copies = [first.folder.try_clone().unwrap(), first.file.try_clone().unwrap()];
        drop(first);
        lock(dir.path()).unwrap();
    }
}
