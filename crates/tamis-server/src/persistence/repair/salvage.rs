//! Reads the valid data of damaged files.

use std::path::Path;

use crate::keyspace::Keyspace;
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::Folder;
use crate::persistence::log::frames::{Candidates, Frames, find_start};
use crate::persistence::log::log_file::{self, Header, LogFile};
use crate::persistence::log::record::Record;
use crate::persistence::recover::replay::Replay;
use crate::persistence::snapshot;
use crate::persistence::snapshot::reader::{SnapshotItem, SnapshotReader};

/// The valid data of damaged files.
pub(crate) struct Salvaged {
    pub keyspace: Keyspace,
    /// The number of changes in the logs.
    pub changes: u64,
    /// One line of text for each loss of data.
    pub lost: Vec<String>,
    /// The size of the loss: the bytes of damaged or missing files, plus one for each change that
    /// cannot be applied.
    pub lost_bytes: u64,
    /// The position after all data that was read.
    pub end: u64,
}

/// Reads the valid data of the newest snapshot and of the logs after the snapshot. Uses an older
/// snapshot and its logs if the older files exist and lose less data than the newest snapshot.
///
/// # Errors
///
/// [`DurabilityError`] if a file cannot be read or has an unknown version.
pub(crate) fn salvage(folder: &Folder<'_>) -> Result<Salvaged, DurabilityError> {
    let loss = |it: &Salvaged| (!it.lost.is_empty(), it.lost_bytes);
    let newest = salvage_newest(folder);
    let mut older = folder.without_newest_snapshot();
    if older.is_none() || newest.as_ref().is_ok_and(|it| it.lost.is_empty()) {
        return newest;
    }
    let (mut least, mut best) = (newest.ok().as_ref().map(loss), folder.clone());
    // Keep only one set of keys in memory at a time. A file that cannot be read causes an error
    // only if the file is used.
    while let Some(folder) = older {
        let other = salvage_newest(&folder).ok().as_ref().map(loss);
        older = folder.without_newest_snapshot();
        if other.is_some_and(|other| least.is_none_or(|least| other < least)) {
            (least, best) = (other, folder);
        }
    }
    salvage_newest(&best)
}

fn salvage_newest(folder: &Folder<'_>) -> Result<Salvaged, DurabilityError> {
    let keyspace = Keyspace::new();
    let mut salvage = Salvage {
        folder,
        replay: Replay::new(&keyspace),
        lost: Vec::new(),
        lost_bytes: 0,
        unnamed: 0,
        end: 0,
        next_began: 0,
    };
    salvage.snapshot()?;
    salvage.logs()?;
    let Salvage { mut replay, mut lost, lost_bytes, unnamed, end, .. } = salvage;
    replay.finish().unwrap_or_else(|why| lost.push(why));
    if unnamed > 0 {
        lost.push(format!("{unnamed} more changes that cannot be applied"));
    }
    let changes = replay.changes;
    Ok(Salvaged { keyspace, changes, lost, lost_bytes, end })
}

/// Reads the valid data of one snapshot and of the logs after the snapshot.
struct Salvage<'f> {
    folder: &'f Folder<'f>,
    replay: Replay<'f>,
    lost: Vec<String>,
    lost_bytes: u64,
    /// The number of changes that could not be applied and are not listed in `lost`.
    unnamed: u64,
    /// The position after all data that was read.
    end: u64,
    /// The position at which the next log begins if no log is missing.
    next_began: u64,
}

/// The number of bytes that count as lost if a snapshot is lost from some item to its end. The
/// length of the lost part is unknown. The number is larger than any known loss, and smaller than
/// the number for a missing file.
const REST_BYTES: u64 = 1 << 60;

/// The highest position that can be valid. Positions count bytes that a server has written, so no
/// server reaches a position above this limit.
const MAX_POSITION: u64 = 1 << 62;

/// The maximum number of lines in `lost`. Above this number of lines, changes that cannot be
/// applied are counted without a line.
const NAMED_CHANGES: usize = 100;

impl Salvage<'_> {
    fn lose(&mut self, path: &Path, bytes: u64, what: impl std::fmt::Display) {
        self.lost.push(format!("{}: {what}", path.display()));
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// Reads the valid keys of the snapshot.
    fn snapshot(&mut self) -> Result<(), DurabilityError> {
        let Some(number) = self.folder.snapshot() else { return Ok(()) };
        let path = snapshot::path(self.folder.disk, number);
        // The changes of a lost key cannot be applied. The report contains one line for the key,
        // and not one line for each change.
        self.replay.snapshot_end = u64::MAX;
        let mut reader = match SnapshotReader::open(self.folder.disk, number) {
            Err(DurabilityError::Damaged { what, .. }) => {
                self.lose(&path, REST_BYTES, format_args!("all keys: {what}"));
                return Ok(());
            }
            opened => opened?,
        };
        if reader.has_damaged_header {
            self.lose(&path, 0, "its header is damaged; no key is lost with it");
        }
        self.next_began = reader.began;
        let lost_before = self.lost.len();
        let mut keys = 0;
        loop {
            let from = reader.at;
            match reader.next() {
                Ok(SnapshotItem::Key(entry)) => {
                    keys += 1;
                    self.replay.take(entry);
                }
                Ok(SnapshotItem::End { end, .. }) if end > MAX_POSITION => {
                    self.lose(&path, REST_BYTES, format_args!("its end is not valid: {end}"));
                    return Ok(());
                }
                Ok(SnapshotItem::End { keys: counted, end }) => {
                    self.end = end;
                    if self.lost.len() == lost_before && keys == counted {
                        self.replay.snapshot_end = end;
                    } else if counted > keys + (self.lost.len() - lost_before) as u64 {
                        // If the damaged part contained more than one key, report the number of
                        // missing keys.
                        let missing = counted - keys;
                        let what = format_args!("{missing} of {counted} keys in all");
                        self.lose(&path, missing, what);
                    }
                    return Ok(());
                }
                Err(DurabilityError::Damaged { what, .. }) => {
                    let (key, goes_on) = reader.skip_damaged()?;
                    let to = reader.at;
                    let of = key.map_or(String::new(), |key| format!(" of key {}", shown(&key)));
                    self.lose(&path, to - from, format_args!("bytes {from} to {to}{of}: {what}"));
                    if !goes_on {
                        // The length of the missing part up to the end of the snapshot is unknown.
                        self.lost_bytes = self.lost_bytes.saturating_add(REST_BYTES);
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Applies the valid changes of all logs.
    fn logs(&mut self) -> Result<(), DurabilityError> {
        let recorded = self.folder.recorded;
        let mut next = self.folder.first();
        for number in self.folder.logs() {
            if number > next {
                if recorded.is_some_and(|recorded| next > recorded) {
                    // If a log was never durable, the logs after it contain no synced change.
                    return Ok(());
                }
                self.lose_logs(next, number - 1);
            }
            self.log(number)?;
            next = number + 1;
        }
        if let Some(recorded) = recorded.filter(|recorded| *recorded >= next) {
            self.lose_logs(next, recorded);
        }
        Ok(())
    }

    /// Records that the logs with these numbers are missing.
    fn lose_logs(&mut self, first: u64, last: u64) {
        let path = log_file::path(self.folder.disk, first);
        let mut what = "the file is missing".to_owned();
        if first < last {
            what += &format!(", and so are all up to log-{last}");
        }
        self.lose(&path, u64::MAX, what);
    }

    /// Applies the valid changes of a log.
    fn log(&mut self, number: u64) -> Result<(), DurabilityError> {
        let folder = self.folder;
        let (mut log, header) = LogFile::open(folder.disk, number)?;
        let path = log.path.clone();
        let fail = DurabilityError::io(&path);
        let mut synced = 0;
        match header {
            Header::Valid { synced: recorded } => synced = recorded,
            Header::OtherVersion => return Err(DurabilityError::Version { path }),
            Header::Invalid => {
                let candidates = self.candidates(&log).map_err(fail)?;
                if !find_start(&mut log, &candidates).map_err(fail)? {
                    let bytes = log.file.len().map_err(fail)?;
                    let what = "all changes: its header is damaged, and no change is valid";
                    self.lose(&path, bytes, what);
                    return Ok(());
                }
                self.lose(&path, 0, "its header is damaged; no change is lost with it");
            }
        }
        if number == folder.first() && folder.snapshot().is_none() && log.began > 0 {
            let missing = snapshot::path(folder.disk, number);
            self.lose(&missing, u64::MAX, "the file is missing");
            self.replay.snapshot_end = u64::MAX;
        }
        let mut frames = Frames::new(&log).map_err(fail)?;
        loop {
            while let Some((position, mut records)) = frames.next().map_err(fail)? {
                while !records.is_empty() {
                    let applied = match Record::decode(&mut records) {
                        Some(record) => self.replay.apply(position, &record),
                        None => {
                            records = &[];
                            Err("it has no meaning".to_owned())
                        }
                    };
                    match applied {
                        Ok(()) => {}
                        Err(why) if self.lost.len() < NAMED_CHANGES => {
                            let at = log.offset_of(position);
                            self.lose(&path, 1, format_args!("a change at byte {at}: {why}"));
                        }
                        Err(_) => {
                            self.unnamed += 1;
                            self.lost_bytes = self.lost_bytes.saturating_add(1);
                        }
                    }
                }
            }
            let from = log.offset_of(frames.position());
            let goes_on = frames.skip_to_valid().map_err(fail)?;
            let to = log.offset_of(frames.position());
            if to > from {
                self.lose(&path, to - from, format_args!("bytes {from} to {to} are damaged"));
            }
            if !goes_on {
                break;
            }
        }
        self.next_began = frames.position();
        self.end = self.end.max(self.next_began);
        if let Some(missing @ 1..) = synced.checked_sub(self.next_began) {
            let what =
                format_args!("the file ends, and {missing} bytes that were synced are missing");
            self.lose(&path, missing, what);
        }
        Ok(())
    }

    /// Returns the possible start positions and secrets of a log with a damaged header.
    ///
    /// The result includes only secrets whose own check is valid.
    fn candidates(&self, log: &LogFile) -> std::io::Result<Candidates> {
        let mut begins = vec![log.began, self.next_began, 0];
        // All logs that a server writes before a repair have the same secret.
        let mut secrets = vec![self.folder.secret, log.secret];
        for number in self.folder.logs().filter(|number| *number != log.number) {
            let Ok((other, Header::Valid { .. })) = LogFile::open(self.folder.disk, number) else {
                continue;
            };
            secrets.push(other.secret);
            if number == log.number + 1 {
                // The next log begins at the position where this log ends.
                begins.extend(other.began.checked_sub(log.frame_bytes()?));
            }
        }
        secrets.retain(|secret| *secret != 0);
        let mut candidates = Candidates { begins, secrets };
        for list in [&mut candidates.begins, &mut candidates.secrets] {
            list.sort_unstable();
            list.dedup();
        }
        Ok(candidates)
    }
}

/// Formats a key for display.
fn shown(key: &[u8]) -> String {
    let start = &key[..key.len().min(64)];
    let dots = if start.len() < key.len() { " ..." } else { "" };
    format!("\"{}\"{dots}", start.escape_ascii())
}
