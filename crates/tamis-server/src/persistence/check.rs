//! Checks the data files of a server that is not running.

use std::path::{Path, PathBuf};

use crate::config::hash_key::{self, HashKey};
use crate::keyspace::Keyspace;
use crate::persistence::disk::{Disk, OsDisk};
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::{Folder, FolderLock, lock};
use crate::persistence::recover::replay::Replay;
use crate::persistence::recover::stream::Stream;

/// The result of a check or a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataReport {
    /// The number of keys of a server that starts with the checked files.
    pub keys: usize,
    /// The number of changes in the logs.
    pub changes: u64,
    /// The number of bytes after the last valid change that were never recorded as synced. A server
    /// moves torn bytes to another file when the server starts.
    pub torn_bytes: u64,
    /// One line for each damaged file and for each loss. The list is empty if a server can start
    /// with the files.
    pub lost: Vec<String>,
    /// The folder to which a repair has moved the old files.
    pub aside: Option<PathBuf>,
}

/// Reads the data files of a server in the same way as a server that starts with the option
/// `hash-key`. Changes no file. The check takes as much memory as the data.
///
/// # Errors
///
/// [`DurabilityError`] contains the reason why a server would not start with the data files.
///
/// # Examples
///
/// ```
/// let dir = tempfile::tempdir().unwrap();
/// let config = tamis_server::Config { port: 0, dir: dir.path().to_owned(), ..Default::default() };
/// drop(tamis_server::Server::start(config).unwrap());
/// let report = tamis_server::check_data(dir.path(), tamis_server::HashKey::Random).unwrap();
/// assert_eq!(report.keys, 0);
/// ```
pub fn check_data(dir: &Path, hash_key: HashKey) -> Result<DataReport, DurabilityError> {
    let _lock = lock_existing(dir)?;
    check_hash_key(dir, hash_key)?;
    check(&OsDisk(dir.to_owned()))
}

/// Checks the key of new filters. If the option requires a key from the folder, a server that
/// starts reads the key after the data.
pub(super) fn check_hash_key(dir: &Path, option: HashKey) -> Result<(), DurabilityError> {
    let path = hash_key::path(dir);
    match option.can_use(dir).map_err(DurabilityError::io(&path))? {
        true => Ok(()),
        false => Err(DurabilityError::damaged(&path, 0, hash_key::NO_KEY)),
    }
}

/// Reads the files of a folder that is already locked.
pub(super) fn check(disk: &dyn Disk) -> Result<DataReport, DurabilityError> {
    let keyspace = Keyspace::new();
    let mut replay = Replay::new(&keyspace);
    let torn_bytes = Stream::load(&Folder::read(disk)?, &mut replay)?.torn_bytes();
    let (keys, changes) = (keyspace.shared().len(), replay.changes);
    Ok(DataReport { keys, changes, torn_bytes, ..DataReport::default() })
}

/// Locks an existing folder for this process.
pub(super) fn lock_existing(dir: &Path) -> Result<FolderLock, DurabilityError> {
    std::fs::read_dir(dir).map_err(DurabilityError::io(dir))?;
    lock(dir)
}
