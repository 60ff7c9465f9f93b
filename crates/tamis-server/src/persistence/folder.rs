//! The snapshots and logs of a folder, found by their names.

use std::io;
use std::path::{Path, PathBuf};

use crate::persistence::disk::Disk;
use crate::persistence::error::DurabilityError;
use crate::persistence::log_file::NUMBER_LIMIT;
use crate::persistence::{log_file, manifest, snapshot};

/// The snapshots and logs of a folder, found by their names.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    snapshots: Vec<u64>,
    logs: Vec<u64>,
    /// The names of files whose numbers are not below [`NUMBER_LIMIT`]: no server wrote them.
    too_high: Vec<String>,
    /// The number of the newest log according to the manifest.
    pub recorded: Option<u64>,
    /// The secret in the manifest; 0 if there is no manifest.
    pub secret: u64,
}

impl Folder {
    /// Lists a folder and reads its manifest.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] if the folder or the manifest cannot be read.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Self, DurabilityError> {
        let (mut snapshots, mut logs, mut too_high) = (Vec::new(), Vec::new(), Vec::new());
        for name in disk.names(dir).map_err(DurabilityError::io(dir))? {
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
        let recorded = manifest::read(disk, dir);
        let recorded = recorded.map_err(DurabilityError::io(dir.join("manifest")))?;
        let secret = recorded.map_or(0, |manifest| manifest.secret);
        let recorded = recorded.map(|manifest| manifest.log);
        Ok(Self { snapshots, logs, too_high, recorded, secret })
    }

    /// Checks that every number is below [`NUMBER_LIMIT`]. A start would not know the order of a
    /// file with a higher number.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] names the files that the user must move away.
    pub fn check_numbers(&self, dir: &Path) -> Result<(), DurabilityError> {
        if self.too_high.is_empty() {
            return Ok(());
        }
        let names = self.too_high.join(", ");
        let what = format!(
            "no server gives files numbers of {NUMBER_LIMIT} or more: move these to another folder: {names}"
        );
        Err(invalid_data(dir, what))
    }

    /// Returns a number above those of all files.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] if all numbers are used.
    pub fn next_number(&self, dir: &Path) -> Result<u64, DurabilityError> {
        let last = NUMBER_LIMIT - 1;
        let newest = self.newest().max(self.recorded.unwrap_or(0));
        if newest < last {
            return Ok(newest + 1);
        }
        let what = format!(
            "no number above {last} is left for a new file: move the files of that number to another folder; a manifest that \
             names it goes with them"
        );
        Err(invalid_data(dir, what))
    }

    /// Returns the number of the newest snapshot.
    pub fn snapshot(&self) -> Option<u64> {
        self.snapshots.last().copied()
    }

    /// Returns the same files without the newest snapshot if the logs that it replaces still exist.
    /// They exist if the server ended before it removed them.
    pub fn without_newest_snapshot(&self) -> Option<Self> {
        let mut older = self.clone();
        let newest = older.snapshots.pop()?;
        let is_whole = (older.first()..=newest).all(|number| self.logs.contains(&number));
        (is_whole && older.first() < newest).then_some(older)
    }

    /// Returns the number of the first log to read: that of the newest snapshot, or else the first
    /// of all logs.
    pub fn first(&self) -> u64 {
        self.snapshot().or_else(|| self.logs.first().copied()).unwrap_or(0)
    }

    /// Returns the highest number of all files.
    pub fn newest(&self) -> u64 {
        self.snapshots.iter().chain(&self.logs).copied().max().unwrap_or(0)
    }

    /// Returns the paths of all snapshots and logs.
    pub fn paths(&self, dir: &Path) -> impl Iterator<Item = PathBuf> {
        let snapshots = self.snapshots.iter().map(|&number| snapshot::path(dir, number));
        let logs = self.logs.iter().map(|&number| log_file::path(dir, number));
        snapshots.chain(logs)
    }

    /// Returns the numbers of the logs to read.
    pub fn logs(&self) -> impl Iterator<Item = u64> {
        self.logs.iter().copied().filter(|&number| number >= self.first())
    }

    /// Removes the snapshots and logs with lower numbers. Files that cannot be removed stay: a
    /// start does not read them.
    pub fn remove_before(&self, disk: &dyn Disk, dir: &Path, number: u64) {
        for &older in self.snapshots.iter().filter(|&&it| it < number) {
            _ = disk.remove(&snapshot::path(dir, older));
        }
        for &older in self.logs.iter().filter(|&&it| it < number) {
            _ = disk.remove(&log_file::path(dir, older));
        }
    }
}

/// Returns the number in the name of a log or a snapshot, or [`u64::MAX`] if it does not fit;
/// `None` for any other name.
fn number_of(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(".tamis")?;
    let is_canonical = digits == "0" || !digits.starts_with('0');
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    (is_canonical && is_number).then(|| digits.parse().unwrap_or(u64::MAX))
}

fn invalid_data(dir: &Path, what: String) -> DurabilityError {
    DurabilityError::io(dir)(io::Error::new(io::ErrorKind::InvalidData, what))
}
