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
use super::snapshot::{self, Item, SnapshotReader, SnapshotWriter};
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
    let mut salvage = Salvage::new(&keyspace);
    salvage.snapshot(&*disk, dir, &found)?;
    salvage.logs(&*disk, dir, &found)?;
    let (replay, lost, end) = salvage.finish();
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
    /// Changes that could not be applied, beyond those that `lost` names.
    unnamed: u64,
    /// The position behind everything that was read.
    end: u64,
    /// Where the next log begins if none is missing.
    next_began: u64,
}

/// Changes that cannot be applied and are named one by one.
const NAMED_CHANGES: usize = 100;

impl<'k> Salvage<'k> {
    fn new(keyspace: &'k Keyspace) -> Self {
        let replay = Replay::new(keyspace);
        Self { replay, lost: Vec::new(), unnamed: 0, end: 0, next_began: 0 }
    }

    fn lose(&mut self, path: &Path, what: impl std::fmt::Display) {
        self.lost.push(format!("{}: {what}", path.display()));
    }

    /// Reads the keys of the snapshot that are valid.
    fn snapshot(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        found: &Folder,
    ) -> Result<(), DurabilityError> {
        let Some(number) = found.snapshot() else { return Ok(()) };
        let path = snapshot::path(dir, number);
        // A change about a lost key cannot be applied. That is not worth a line each.
        self.replay.set_snapshot_end(u64::MAX);
        let (mut reader, began) = match SnapshotReader::open(disk, &path) {
            Err(DurabilityError::Damaged { what, .. }) => {
                self.lose(&path, format_args!("all keys: {what}"));
                return Ok(());
            }
            opened => opened?,
        };
        match began {
            Some(began) => self.next_began = began,
            None => self.lose(&path, "its head, and no key"),
        }
        let lost_before = self.lost.len();
        let mut keys = 0;
        loop {
            let from = reader.at();
            match reader.next() {
                Ok(Item::Key(entry)) => {
                    keys += 1;
                    self.replay.take(entry);
                }
                Ok(Item::End { keys: counted, end }) => {
                    self.end = end;
                    if self.lost.len() == lost_before && keys == counted {
                        self.replay.set_snapshot_end(end);
                    } else if counted > keys + (self.lost.len() - lost_before) as u64 {
                        // More than one in some damaged part.
                        let missing = counted - keys;
                        self.lose(&path, format_args!("{missing} of {counted} keys in all"));
                    }
                    return Ok(());
                }
                Err(DurabilityError::Damaged { what, .. }) => {
                    let (key, goes_on) = reader.skip_damaged()?;
                    let to = reader.at();
                    let of = key.map_or(String::new(), |key| format!(" of key {}", shown(&key)));
                    self.lose(&path, format_args!("bytes {from} to {to}{of}: {what}"));
                    if !goes_on {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Applies the valid changes of all logs.
    fn logs(&mut self, disk: &dyn Disk, dir: &Path, found: &Folder) -> Result<(), DurabilityError> {
        let first = found.first();
        let mut next = first;
        for number in found.logs() {
            if number > next {
                if found.recorded.is_some_and(|recorded| next > recorded) {
                    // Logs behind one that was never durable hold nothing that was synced.
                    return Ok(());
                }
                self.miss(dir, next, number - 1);
            }
            self.log(disk, dir, number, number == first && found.snapshot().is_none())?;
            next = number + 1;
        }
        if let Some(recorded) = found.recorded.filter(|recorded| *recorded >= next) {
            self.miss(dir, next, recorded);
        }
        Ok(())
    }

    /// Notes that the logs of these numbers are missing.
    fn miss(&mut self, dir: &Path, first: u64, last: u64) {
        let path = log_file::path(dir, first);
        if first == last {
            self.lose(&path, "the file is missing");
        } else {
            self.lose(&path, format_args!("the file is missing, and so are all up to log-{last}"));
        }
    }

    /// Applies the valid changes of a log. `is_first` says that no snapshot is before it.
    fn log(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        number: u64,
        is_first: bool,
    ) -> Result<(), DurabilityError> {
        let path = log_file::path(dir, number);
        let fail = |error| DurabilityError::Io { path: path.clone(), error };
        let (mut log, header) = LogFile::open(disk, dir, number).map_err(fail)?;
        match header {
            Header::Valid { .. } => {}
            Header::OtherVersion => return Err(DurabilityError::Version { path }),
            Header::Invalid { began } => {
                let candidates = self.candidates(disk, dir, &log, began).map_err(fail)?;
                let mut found = None;
                for began in candidates {
                    log.began = began;
                    if Frames::new(&log).map_err(fail)?.skip_to_valid().map_err(fail)? {
                        found = Some(began);
                        break;
                    }
                }
                let Some(began) = found else {
                    self.lose(&path, "all changes: its header is damaged, and no change is valid");
                    return Ok(());
                };
                log.began = began;
                self.lose(&path, "its header, and no change");
            }
        }
        if is_first && log.began > 0 {
            self.lose(&snapshot::path(dir, number), "the file is missing");
            self.replay.set_snapshot_end(u64::MAX);
        }
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
                    match applied {
                        Ok(()) => {}
                        Err(why) if self.lost.len() < NAMED_CHANGES => {
                            let at = log.offset_of(position);
                            let line = format!("{}: a change at byte {at}: {why}", path.display());
                            self.lost.push(line);
                        }
                        Err(_) => self.unnamed += 1,
                    }
                }
            }
            let from = log.offset_of(frames.position());
            let found = frames.skip_to_valid().map_err(fail)?;
            let to = log.offset_of(frames.position());
            if to > from {
                self.lose(&path, format_args!("bytes {from} to {to} are damaged"));
            }
            if !found {
                self.end = self.end.max(frames.position());
                self.next_began = frames.position();
                return Ok(());
            }
        }
    }

    /// Returns where a log may begin whose header is damaged.
    fn candidates(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        log: &LogFile,
        in_header: u64,
    ) -> std::io::Result<Vec<u64>> {
        let len = log.file.len()?;
        let mut candidates = vec![in_header, self.next_began, 0];
        // The next log begins where this one ends.
        if let Ok((_, Header::Valid { began, .. })) = LogFile::open(disk, dir, log.number + 1) {
            candidates.extend(began.checked_sub(len.saturating_sub(log_file::HEAD_BYTES)));
        }
        candidates.retain(|began| began.checked_add(len).is_some());
        Ok(candidates)
    }

    /// Returns what was replayed, what is lost, and the position behind everything.
    fn finish(mut self) -> (Replay<'k>, Vec<String>, u64) {
        self.replay.finish().unwrap_or_else(|why| self.lost.push(why));
        if self.unnamed > 0 {
            self.lost.push(format!("{} more changes that cannot be applied", self.unnamed));
        }
        (self.replay, self.lost, self.end)
    }
}

/// Returns a key as it can be printed.
fn shown(key: &[u8]) -> String {
    let start = &key[..key.len().min(64)];
    let dots = if start.len() < key.len() { " ..." } else { "" };
    format!("\"{}\"{dots}", start.escape_ascii())
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
