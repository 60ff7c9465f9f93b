//! Reads what is valid of damaged files.

use std::path::Path;

use super::disk::Disk;
use super::error::DurabilityError;
use super::log_file::{self, Header, LogFile};
use super::record::Record;
use super::recover::{Folder, Frames};
use super::replay::Replay;
use super::snapshot::{self, Item, SnapshotReader};
use crate::keyspace::Keyspace;

/// Reads what is valid.
pub(super) struct Salvage<'k> {
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
    pub fn new(keyspace: &'k Keyspace) -> Self {
        let replay = Replay::new(keyspace);
        Self { replay, lost: Vec::new(), unnamed: 0, end: 0, next_began: 0 }
    }

    fn lose(&mut self, path: &Path, what: impl std::fmt::Display) {
        self.lost.push(format!("{}: {what}", path.display()));
    }

    /// Reads the keys of the snapshot that are valid.
    pub fn snapshot(
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
            None => self.lose(&path, "its header is damaged; no key is lost with it"),
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
    pub fn logs(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        found: &Folder,
    ) -> Result<(), DurabilityError> {
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
                self.lose(&path, "its header is damaged; no change is lost with it");
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
    pub fn finish(mut self) -> (Replay<'k>, Vec<String>, u64) {
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
