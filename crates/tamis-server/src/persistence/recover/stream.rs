//! The stream of changes in the logs after a snapshot. A server that starts reads the stream of
//! changes.

use crate::persistence::error::DurabilityError;
use crate::persistence::folder::Folder;
use crate::persistence::log::frames::{Candidates, Frames, find_start};
use crate::persistence::log::log_file::{self, Header, LogFile};
use crate::persistence::log::record::Record;
use crate::persistence::recover::replay::Replay;
use crate::persistence::snapshot;

/// The logs after a snapshot.
pub(crate) struct Stream<'f> {
    pub folder: &'f Folder<'f>,
    pub logs: Vec<LogFile>,
    /// The files after `logs` that a crash has torn. The torn files contain no synced change.
    pub torn: Vec<LogFile>,
    /// All bytes before this position were durable.
    pub synced: u64,
    /// The end of the valid part of the stream. The end is in the log with the index `last`, which
    /// contains `tail_bytes` bytes after the end.
    pub end: u64,
    pub last: usize,
    pub tail_bytes: u64,
}

impl<'f> Stream<'f> {
    /// Loads the snapshot and all valid changes after the snapshot.
    ///
    /// # Errors
    ///
    /// [`DurabilityError`] if files are damaged, missing or cannot be used.
    pub fn load(folder: &'f Folder<'f>, replay: &mut Replay<'_>) -> Result<Self, DurabilityError> {
        let mut stream = Self::open(folder, replay)?;
        stream.replay(replay)?;
        Ok(stream)
    }

    /// Loads the snapshot and opens the logs.
    fn open(folder: &'f Folder<'f>, replay: &mut Replay<'_>) -> Result<Self, DurabilityError> {
        folder.check_numbers()?;
        let (mut start, mut synced) = (0, 0);
        if let Some(number) = folder.snapshot() {
            let load = |entry| replay.take(entry);
            (start, synced) = snapshot::reader::load(folder.disk, number, load)?;
            replay.snapshot_end = synced;
        }
        let missing = |number, what| {
            Err(DurabilityError::Missing { path: log_file::path(folder.disk, number), what })
        };
        // Two kinds of logs were durable, with their names and headers: all logs up to the newest
        // recorded log, and the log of the snapshot.
        let was_recorded = |number| folder.recorded.is_some_and(|recorded| number <= recorded);
        let was_durable = |number| was_recorded(number) || folder.snapshot() == Some(number);
        let (mut logs, mut torn) = (Vec::new(), Vec::new());
        let mut next = folder.first();
        for number in folder.logs() {
            if number != next && was_recorded(next) {
                return missing(next, "a log between others");
            }
            let (log, header) = LogFile::open(folder.disk, number)?;
            if let Header::Valid { synced: recorded } = header {
                // The manifest records a log only after this log and all logs before it are
                // durable.
                let began = if was_recorded(number) { log.began } else { 0 };
                synced = synced.max(recorded).max(began);
            }
            match header {
                Header::OtherVersion => return Err(DurabilityError::Version { path: log.path }),
                Header::Invalid if was_durable(number) || is_first_damaged(folder, &log)? => {
                    return Err(DurabilityError::damaged(&log.path, 0, "its header is invalid"));
                }
                // Files after a missing or invalid file are not part of the stream.
                Header::Valid { .. } if number == next && torn.is_empty() => logs.push(log),
                _ => torn.push(log),
            }
            next = number + 1;
        }
        if was_recorded(next) {
            return missing(next, "the newest log");
        }
        if folder.snapshot().is_some() && logs.is_empty() {
            return missing(folder.first(), "the log of the snapshot");
        }
        if let Some(first) = logs.first().filter(|first| first.began != start) {
            let what = "it does not begin where the snapshot ends";
            return Err(DurabilityError::damaged(&first.path, 12, what));
        }
        Ok(Self { folder, logs, torn, synced, end: start, last: 0, tail_bytes: 0 })
    }

    /// Applies all valid changes to the keyspace.
    fn replay(&mut self, replay: &mut Replay<'_>) -> Result<(), DurabilityError> {
        for (index, log) in self.logs.iter().enumerate() {
            if index > 0 && log.began != self.end {
                break;
            }
            self.last = index;
            let fail = DurabilityError::io(&log.path);
            let damaged = |position, what: String| {
                DurabilityError::damaged(&log.path, log.offset_of(position), what)
            };
            let mut frames = Frames::new(log).map_err(fail)?;
            while let Some((position, mut records)) = frames.next().map_err(fail)? {
                while !records.is_empty() {
                    let record = Record::decode(&mut records)
                        .ok_or_else(|| damaged(position, "a change has no meaning".to_owned()))?;
                    replay.apply(position, &record).map_err(|what| damaged(position, what))?;
                }
            }
            self.end = frames.position();
            self.tail_bytes = frames.left();
            replay.finish().map_err(|what| damaged(self.end, what))?;
            if self.tail_bytes > 0 {
                break;
            }
        }
        if self.end >= self.synced {
            return self.check_torn();
        }
        let Some(log) = self.logs.get(self.last) else { return Ok(()) };
        let what = if self.tail_bytes == 0 {
            let lost = self.synced - self.end;
            format!("the file ends here, and {lost} bytes that were synced are missing")
        } else {
            "a change that was synced is damaged".to_owned()
        };
        Err(DurabilityError::damaged(&log.path, log.offset_of(self.end), what))
    }

    /// If no manifest exists, checks that the torn files contain no changes. Only a manifest
    /// records whether changes in torn files were durable.
    fn check_torn(&mut self) -> Result<(), DurabilityError> {
        if self.folder.recorded.is_some() {
            return Ok(());
        }
        let known: Vec<u64> = self.logs.iter().map(|log| log.secret).collect();
        for log in &mut self.torn {
            let begins = vec![log.began, self.end];
            let own = Some(log.secret).filter(|secret| *secret != 0);
            let secrets = known.iter().copied().chain(own).collect();
            let candidates = Candidates { begins, secrets };
            if find_start(log, &candidates).map_err(DurabilityError::io(&log.path))? {
                let what = "it has changes, but it does not follow another log, and the manifest \
                            is missing";
                return Err(DurabilityError::damaged(&log.path, 0, what));
            }
        }
        Ok(())
    }

    /// Returns the number of bytes that a crash has torn.
    pub fn torn_bytes(&self) -> u64 {
        let later = self.logs.iter().skip(self.last + 1).chain(&self.torn);
        self.tail_bytes + later.map(|log| log.frame_bytes().unwrap_or(0)).sum::<u64>()
    }
}

/// Tests whether a log with an invalid header is the first log and is damaged. The log is not
/// damaged if the first start of a server ended before the header was durable, because that start
/// has written no changes.
fn is_first_damaged(folder: &Folder<'_>, log: &LogFile) -> Result<bool, DurabilityError> {
    if folder.snapshot().is_some() || log.number != folder.first() {
        return Ok(false);
    }
    let len = log.file.len().map_err(DurabilityError::io(&log.path))?;
    Ok(log.number > 0 || folder.logs().count() > 1 || len > log_file::HEADER_BYTES as u64)
}
