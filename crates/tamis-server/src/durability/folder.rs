//! The snapshots and logs of a folder, by their names.

use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::error::DurabilityError;
use super::{log_file, manifest, snapshot};

/// The highest number of a file. Others are not files of a server, which would need centuries to come here.
pub(super) const MAX_NUMBER: u64 = 1 << 31;

/// The files of a folder, by their names.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    snapshots: Vec<u64>,
    logs: Vec<u64>,
    /// The newest log, as the manifest has it.
    pub recorded: Option<u64>,
    /// Its secret; 0 if there is no manifest.
    pub secret: u64,
}

impl Folder {
    /// Lists a folder and reads its manifest.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] if the folder or the manifest cannot be read.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Self, DurabilityError> {
        let (mut snapshots, mut logs) = (Vec::new(), Vec::new());
        for name in disk.names(dir).map_err(DurabilityError::io(dir))? {
            let number = |prefix: &str| {
                let digits = name.strip_prefix(prefix)?.strip_suffix(".tamis")?;
                // Other spellings of a number are not names of ours.
                let number = digits.parse::<u64>().ok().filter(|it| it.to_string() == digits)?;
                (number <= MAX_NUMBER).then_some(number)
            };
            snapshots.extend(number("snapshot-"));
            logs.extend(number("log-"));
        }
        snapshots.sort_unstable();
        logs.sort_unstable();
        let recorded = manifest::read(disk, dir);
        let recorded = recorded.map_err(DurabilityError::io(dir.join("manifest")))?;
        let secret = recorded.map_or(0, |manifest| manifest.secret);
        Ok(Self { snapshots, logs, recorded: recorded.map(|manifest| manifest.log), secret })
    }

    /// Returns the number of the newest snapshot.
    pub fn snapshot(&self) -> Option<u64> {
        self.snapshots.last().copied()
    }

    /// Returns the same files without the newest snapshot, if the logs that it replaces still exist. They do if the server
    /// ended before it removed them.
    pub fn without_newest_snapshot(&self) -> Option<Self> {
        let mut older = self.clone();
        let newest = older.snapshots.pop()?;
        let is_whole = (older.first()..=newest).all(|number| self.logs.contains(&number));
        (is_whole && older.first() < newest).then_some(older)
    }

    /// Returns the number of the first log that is read: that of the newest snapshot, or the first of all.
    pub fn first(&self) -> u64 {
        self.snapshot().or_else(|| self.logs.first().copied()).unwrap_or(0)
    }

    /// Returns the highest number of all files.
    pub fn newest(&self) -> u64 {
        self.snapshots.iter().chain(&self.logs).copied().max().unwrap_or(0)
    }

    /// Returns the paths of all files.
    pub fn paths(&self, dir: &Path) -> impl Iterator<Item = PathBuf> {
        let snapshots = self.snapshots.iter().map(|&number| snapshot::path(dir, number));
        let logs = self.logs.iter().map(|&number| log_file::path(dir, number));
        snapshots.chain(logs)
    }

    /// Returns the numbers of the logs that are read.
    pub fn logs(&self) -> impl Iterator<Item = u64> {
        self.logs.iter().copied().filter(|&number| number >= self.first())
    }

    /// Removes the snapshots and logs before this number. Those that cannot be removed stay: a start does not read them.
    pub fn remove_before(&self, disk: &dyn Disk, dir: &Path, number: u64) {
        for &older in self.snapshots.iter().filter(|&&it| it < number) {
            _ = disk.remove(&snapshot::path(dir, older));
        }
        for &older in self.logs.iter().filter(|&&it| it < number) {
            _ = disk.remove(&log_file::path(dir, older));
        }
    }
}
