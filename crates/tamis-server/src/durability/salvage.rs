//! Reads what is valid of damaged files.

use std::path::Path;

use super::disk::Disk;
use super::error::DurabilityError;
use super::folder::Folder;
use super::frames::{Frames, find_start};
use super::log_file::{self, Header, LogFile};
use super::record::Record;
use super::replay::Replay;
use super::snapshot::{self, Item, SnapshotReader};
use crate::keyspace::Keyspace;

/// What was read of damaged files.
pub(super) struct Salvaged {
    pub keyspace: Keyspace,
    /// Changes that the logs have.
    pub changes: u64,
    /// What is lost, a line each.
    pub lost: Vec<String>,
    /// The position behind everything that was read.
    pub end: u64,
}

/// Reads what is valid: of the newest snapshot and the logs behind it, or of an older snapshot and the logs behind that one if
/// they still exist and less is lost.
///
/// # Errors
///
/// [`DurabilityError`] if a file cannot be read, or is of another version.
pub(super) fn salvage(
    disk: &dyn Disk,
    dir: &Path,
    found: &Folder,
) -> Result<Salvaged, DurabilityError> {
    let mut best = salvage_newest(disk, dir, found)?;
    let mut older = found.without_newest_snapshot();
    while let Some(found) = older.filter(|_| !best.lost.is_empty()) {
        let other = salvage_newest(disk, dir, &found)?;
        let loss = |it: &Salvaged| (it.lost.len(), std::cmp::Reverse(it.keyspace.shared().len()));
        if loss(&other) < loss(&best) {
            best = other;
        }
        older = found.without_newest_snapshot();
    }
    Ok(best)
}

fn salvage_newest(
    disk: &dyn Disk,
    dir: &Path,
    found: &Folder,
) -> Result<Salvaged, DurabilityError> {
    let keyspace = Keyspace::new();
    let mut salvage = Salvage::new(&keyspace);
    salvage.snapshot(disk, dir, found)?;
    salvage.logs(disk, dir, found)?;
    let (changes, lost, end) = salvage.finish();
    Ok(Salvaged { keyspace, changes, lost, end })
}

/// Reads what is valid of one snapshot and the logs behind it.
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
        let mut reader = match SnapshotReader::open(disk, &path) {
            Err(DurabilityError::Damaged { what, .. }) => {
                self.lose(&path, format_args!("all keys: {what}"));
                return Ok(());
            }
            opened => opened?,
        };
        if reader.has_damaged_header {
            self.lose(&path, "its header is damaged; no key is lost with it");
        }
        self.next_began = reader.began.unwrap_or(0);
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
        let mut next = found.first();
        for number in found.logs() {
            if number > next {
                if found.recorded.is_some_and(|recorded| next > recorded) {
                    // Logs behind one that was never durable hold nothing that was synced.
                    return Ok(());
                }
                self.miss(dir, next, number - 1);
            }
            self.log(disk, dir, found, number)?;
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

    /// Applies the valid changes of a log.
    fn log(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        found: &Folder,
        number: u64,
    ) -> Result<(), DurabilityError> {
        let path = log_file::path(dir, number);
        let fail = |error| DurabilityError::Io { path: path.clone(), error };
        let (mut log, header) = LogFile::open(disk, dir, number).map_err(fail)?;
        match header {
            Header::Valid { .. } => {}
            Header::OtherVersion => return Err(DurabilityError::Version { path }),
            Header::Invalid => {
                let (begins, secrets) = self.candidates(disk, dir, found, &log).map_err(fail)?;
                if !find_start(&mut log, &begins, &secrets).map_err(fail)? {
                    self.lose(&path, "all changes: its header is damaged, and no change is valid");
                    return Ok(());
                }
                self.lose(&path, "its header is damaged; no change is lost with it");
            }
        }
        if number == found.first() && found.snapshot().is_none() && log.began > 0 {
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
            let goes_on = frames.skip_to_valid().map_err(fail)?;
            let to = log.offset_of(frames.position());
            if to > from {
                self.lose(&path, format_args!("bytes {from} to {to} are damaged"));
            }
            if !goes_on {
                self.end = self.end.max(frames.position());
                self.next_began = frames.position();
                return Ok(());
            }
        }
    }

    /// Returns where a log with a damaged header may begin, and what its secret may be.
    fn candidates(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        found: &Folder,
        log: &LogFile,
    ) -> std::io::Result<(Vec<u64>, Vec<u64>)> {
        let mut begins = vec![log.began, self.next_began, 0];
        // All logs that a server writes before it is upgraded have the same secret. Those of version 2 have the secret 0.
        let mut secrets = vec![log.secret, found.secret, 0];
        for number in found.logs().filter(|number| *number != log.number) {
            let Ok((other, Header::Valid { .. })) = LogFile::open(disk, dir, number) else {
                continue;
            };
            secrets.push(other.secret);
            if number == log.number + 1 {
                // The next log begins where this one ends.
                let len = log.file.len()?;
                for secret in [0, 1] {
                    let frames = len.saturating_sub(log_file::header_bytes(secret));
                    begins.extend(other.began.checked_sub(frames));
                }
            }
        }
        for candidates in [&mut begins, &mut secrets] {
            candidates.sort_unstable();
            candidates.dedup();
        }
        Ok((begins, secrets))
    }

    /// Returns how many changes there were, what is lost, and the position behind everything.
    fn finish(mut self) -> (u64, Vec<String>, u64) {
        self.replay.finish().unwrap_or_else(|why| self.lost.push(why));
        if self.unnamed > 0 {
            self.lost.push(format!("{} more changes that cannot be applied", self.unnamed));
        }
        (self.replay.changes, self.lost, self.end)
    }
}

/// Returns a key as it can be printed.
fn shown(key: &[u8]) -> String {
    let start = &key[..key.len().min(64)];
    let dots = if start.len() < key.len() { " ..." } else { "" };
    format!("\"{}\"{dots}", start.escape_ascii())
}
