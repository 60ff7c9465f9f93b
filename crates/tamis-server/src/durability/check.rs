//! Checks the files of a server that does not run, and keeps what is valid of damaged ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, OsDisk};
use super::error::DurabilityError;
use super::log_file::{self, Header, LogFile};
use super::manifest;
use super::record::Record;
use super::recover::{Folder, Frames, Stream, lock};
use super::replay::Replay;
use super::snapshot::{self, SnapshotWriter};
use crate::keyspace::Keyspace;

/// What a check or a repair found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataReport {
    /// Keys that a start would have.
    pub keys: usize,
    /// Changes that the logs have.
    pub changes: u64,
    /// Bytes behind the last valid change that were never recorded as synced: a start puts them aside.
    pub torn_bytes: u64,
    /// What is damaged and lost, a line each; empty if a server starts with these files.
    pub lost: Vec<String>,
    /// Where a repair has put the old files.
    pub aside: Option<PathBuf>,
}

/// Reads the files of a server as a start would, and changes nothing. Needs the memory of the data.
///
/// # Errors
///
/// [`DurabilityError`] says why a server would not start with these files.
///
/// # Examples
///
/// ```
/// let dir = tempfile::tempdir().unwrap();
/// let config = tamis_server::Config { port: 0, dir: dir.path().to_owned(), ..Default::default() };
/// drop(tamis_server::Server::start(config).unwrap());
/// assert_eq!(tamis_server::check_data(dir.path()).unwrap().keys, 0);
/// ```
pub fn check_data(dir: &Path) -> Result<DataReport, DurabilityError> {
    let _lock = lock_existing(dir)?;
    let keyspace = Keyspace::new();
    let found = Folder::read(&OsDisk, dir)?;
    let mut replay = Replay::new(&keyspace);
    let mut stream = Stream::open(&OsDisk, dir, &found, &mut replay)?;
    stream.replay(&mut replay)?;
    let (changes, torn_bytes) = (replay.changes, stream.torn_bytes());
    let keys = keyspace.shared().len();
    Ok(DataReport { keys, changes, torn_bytes, ..DataReport::default() })
}

/// Keeps what is valid of the files of a server: writes it as a new snapshot, and moves the old files to a folder inside of
/// `dir`. Does nothing if a server would start with them.
///
/// Damaged changes are passed over, and those behind them are kept: a filter then misses items, and a key that the lost
/// changes removed may be there again.
///
/// # Errors
///
/// [`DurabilityError`] if the files cannot be read or written: they are left as they are.
pub fn repair_data(dir: &Path) -> Result<DataReport, DurabilityError> {
    match check_data(dir) {
        Err(DurabilityError::Damaged { .. } | DurabilityError::Missing { .. }) => {}
        checked => return checked,
    }
    let _lock = lock_existing(dir)?;
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let keyspace = Keyspace::new();
    let found = Folder::read(&*disk, dir)?;
    let mut salvage = Salvage { replay: Replay::new(&keyspace), lost: Vec::new(), end: 0 };
    salvage.snapshot(&*disk, dir, &found)?;
    for number in found.logs() {
        salvage.log(&*disk, dir, number)?;
    }
    salvage.replay.finish().unwrap_or_else(|why| salvage.lost.push(why));
    let Salvage { replay, mut lost, end } = salvage;
    if let Some(recorded) =
        found.recorded.filter(|recorded| !found.logs().any(|it| it == *recorded))
    {
        lost.push(format!("{}: the file is missing", log_file::path(dir, recorded).display()));
    }
    let changes = replay.changes;
    let number = found.newest().max(found.recorded.unwrap_or(0)) + 1;
    write_anew(&*disk, dir, number, end, &keyspace)?;
    let aside = put_aside(dir, &found)?;
    let keys = keyspace.shared().len();
    Ok(DataReport { keys, changes, torn_bytes: 0, lost, aside: Some(aside) })
}

fn lock_existing(dir: &Path) -> Result<std::fs::File, DurabilityError> {
    std::fs::read_dir(dir).map_err(DurabilityError::io(dir))?;
    lock(dir)
}

/// Reads what is valid.
struct Salvage<'k> {
    replay: Replay<'k>,
    lost: Vec<String>,
    /// The largest position that was seen.
    end: u64,
}

impl Salvage<'_> {
    fn snapshot(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        found: &Folder,
    ) -> Result<(), DurabilityError> {
        let Some(number) = found.snapshot() else { return Ok(()) };
        let path = snapshot::path(dir, number);
        let replay = &mut self.replay;
        let mut keys = 0;
        let loaded = snapshot::load(disk, &path, |entry| {
            keys += 1;
            replay.take(entry);
        });
        match loaded {
            Ok(positions) => {
                replay.set_snapshot_end(positions.end);
                self.end = positions.end;
            }
            Err(DurabilityError::Damaged { at, what, .. }) => {
                // Changes about the lost keys cannot be applied.
                replay.set_snapshot_end(u64::MAX);
                let path = path.display();
                self.lost.push(format!(
                    "{path}: all keys from byte {at} on ({what}); {keys} before it are kept"
                ));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn log(&mut self, disk: &dyn Disk, dir: &Path, number: u64) -> Result<(), DurabilityError> {
        let path = log_file::path(dir, number);
        let (log, header) = LogFile::open(disk, dir, number).map_err(DurabilityError::io(&path))?;
        match header {
            Header::Valid { .. } => {}
            Header::Foreign => return Err(DurabilityError::Version { path }),
            Header::Invalid => {
                self.lost.push(format!(
                    "{}: all changes, because the header is invalid",
                    path.display()
                ));
                return Ok(());
            }
        }
        let fail = |error| DurabilityError::Io { path: path.clone(), error };
        let mut frames = Frames::new(&log).map_err(fail)?;
        loop {
            while let Some((position, records)) = frames.next().map_err(fail)? {
                let mut rest = records;
                while !rest.is_empty() {
                    let applied = match Record::decode(&mut rest) {
                        Some(record) => self.replay.apply(position, &record),
                        None => {
                            rest = &[];
                            Err("it has no meaning".to_owned())
                        }
                    };
                    if let Err(why) = applied {
                        let at = log.offset_of(position);
                        self.lost.push(format!("{}: a change at byte {at}: {why}", path.display()));
                    }
                }
            }
            let from = log.offset_of(frames.position());
            let found = frames.skip_to_valid().map_err(fail)?;
            let to = log.offset_of(frames.position());
            if to > from {
                self.lost.push(format!("{}: bytes {from} to {to} are damaged", path.display()));
            }
            if !found {
                self.end = self.end.max(frames.position());
                return Ok(());
            }
        }
    }
}

/// Writes the keys as a snapshot with an empty log, which a start takes instead of any older file.
fn write_anew(
    disk: &dyn Disk,
    dir: &Path,
    number: u64,
    position: u64,
    keyspace: &Keyspace,
) -> Result<(), DurabilityError> {
    let log_path = log_file::path(dir, number);
    let log = LogFile::begin(disk, dir, number, position, position);
    let log =
        log.map_err(|error| DurabilityError::Io { path: log_path.clone(), error: error.error })?;
    log.file.sync().map_err(DurabilityError::io(&log_path))?;
    let write = || -> std::io::Result<()> {
        let mut out = SnapshotWriter::new(disk, dir, number, position)?;
        for part in 0..keyspace.parts() {
            for entry in keyspace.entries(part) {
                let note = |value: &tamis_commands::Value| (position, value.counted_items());
                let written = entry.read(
                    || true,
                    note,
                    |value, expires, noted| out.entry(&entry.key, value, expires, noted),
                );
                written.transpose()?;
            }
        }
        out.finish(position)?;
        manifest::write(disk, dir, number)
    };
    write().map_err(DurabilityError::io(snapshot::path(dir, number)))
}

/// Moves the files that were read to a folder of their own.
fn put_aside(dir: &Path, found: &Folder) -> Result<PathBuf, DurabilityError> {
    let free = (1..).map(|n| dir.join(format!("damaged-{n}"))).find(|path| !path.exists());
    let aside = free.expect("a folder does not have that many folders");
    std::fs::create_dir(&aside).map_err(DurabilityError::io(&aside))?;
    for path in found.paths(dir) {
        let name = path.file_name().expect("a file has a name");
        std::fs::rename(&path, aside.join(name)).map_err(DurabilityError::io(&path))?;
    }
    OsDisk.sync_dir(dir).map_err(DurabilityError::io(dir))?;
    Ok(aside)
}
