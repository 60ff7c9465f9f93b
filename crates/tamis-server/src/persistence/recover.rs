//! Fills a keyspace at the start: loads the newest snapshot, then applies all changes after it.
//!
//! All logs together are one stream. It is valid from its start to the first invalid byte. If that
//! byte is before the last position that is recorded as synced, changes are lost and the start is
//! refused. After that position a crash may leave any bytes, since the system writes pages in any
//! order: such a torn tail is put aside.
//!
//! All data is durable before the server answers from it. Bytes that may not be durable are written
//! once more, because after a failed sync the system marks pages as written that are not.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::keyspace::Keyspace;
use crate::persistence::disk::{Disk, DiskFile};
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::Folder;
use crate::persistence::frames::{Candidates, Frames, find_start};
use crate::persistence::header::new_secret;
use crate::persistence::log_file::{self, BeginError, Header, LogFile, read_at_most};
use crate::persistence::manifest::Manifest;
use crate::persistence::record::Record;
use crate::persistence::replay::Replay;
use crate::persistence::{manifest, snapshot};
use crate::system_error::without_code;

/// The result of a recovery.
pub(crate) struct Recovered {
    /// The log that the server continues, and the position of its end.
    pub file: LogFile,
    pub end: u64,
    /// The number of changes in the logs.
    pub changes: u64,
    /// The number of torn bytes that were put aside after a crash.
    pub torn_bytes: u64,
}

/// Creates the folder if it does not exist, and locks it for this process. The lock ends when the
/// file is closed.
///
/// # Errors
///
/// [`DurabilityError`] if another process uses the folder.
pub(crate) fn lock(dir: &Path) -> Result<File, DurabilityError> {
    std::fs::create_dir_all(dir).map_err(DurabilityError::io(dir))?;
    let path = dir.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(DurabilityError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(DurabilityError::Locked { path: dir.to_owned() })
        }
        Err(std::fs::TryLockError::Error(error)) => Err(DurabilityError::Io { path, error }),
    }
}

/// Fills a keyspace with the data of the folder.
///
/// # Errors
///
/// [`DurabilityError`] if files are damaged, missing or cannot be used. The files are not changed
/// then.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    keyspace: &Keyspace,
) -> Result<Recovered, DurabilityError> {
    let disk = &**disk;
    let found = Folder::read(disk, dir)?;
    let mut replay = Replay::new(keyspace);
    let mut stream = Stream::open(disk, dir, &found, &mut replay)?;
    stream.replay(&mut replay)?;
    let changes = replay.changes;
    let torn_bytes = stream.torn_bytes();
    let (file, end) = stream.make_durable(disk, dir, found.recorded)?;
    found.remove_before(disk, dir, found.first());
    Ok(Recovered { file, end, changes, torn_bytes })
}

/// Tests whether a log with an invalid header is the first one and damaged. It is not damaged if
/// the very first start ended before the header was durable: then nothing else was written.
fn is_first_damaged(found: &Folder, log: &LogFile) -> Result<bool, DurabilityError> {
    if found.snapshot().is_some() || log.number != found.first() {
        return Ok(false);
    }
    let len = log.file.len().map_err(DurabilityError::io(&log.path))?;
    Ok(log.number > 0 || found.logs().count() > 1 || len > log_file::MAX_HEADER_BYTES as u64)
}

/// The logs after a snapshot.
pub(super) struct Stream {
    logs: Vec<LogFile>,
    /// The files after these logs that a crash has torn. They contain no synced change.
    torn: Vec<LogFile>,
    /// The folder has a manifest.
    has_manifest: bool,
    /// All bytes before this position were durable.
    synced: u64,
    /// The end of the valid part of the stream. The log with index `last` contains it, with
    /// `tail_bytes` bytes after it.
    end: u64,
    last: usize,
    tail_bytes: u64,
}

impl Stream {
    /// Loads the snapshot and opens the logs.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        found: &Folder,
        replay: &mut Replay<'_>,
    ) -> Result<Self, DurabilityError> {
        found.check_numbers(dir)?;
        let mut start = 0;
        let mut synced = 0;
        if let Some(number) = found.snapshot() {
            let path = snapshot::path(dir, number);
            let positions = snapshot::reader::load(disk, &path, |entry| replay.take(entry))?;
            replay.set_snapshot_end(positions.end);
            (start, synced) = (positions.began, positions.end);
        }
        let missing = |number, what| {
            Err(DurabilityError::Missing { path: log_file::path(dir, number), what })
        };
        // The names and headers of all logs up to the newest recorded one were durable, and those
        // of the log of the snapshot.
        let was_recorded = |number| found.recorded.is_some_and(|recorded| number <= recorded);
        let was_durable = |number| was_recorded(number) || found.snapshot() == Some(number);
        let (mut logs, mut torn) = (Vec::new(), Vec::new());
        let mut next = found.first();
        for number in found.logs() {
            if number != next && was_recorded(next) {
                return missing(next, "a log between others");
            }
            let path = log_file::path(dir, number);
            let opened = LogFile::open(disk, dir, number);
            let (log, header) = opened.map_err(DurabilityError::io(&path))?;
            if let Header::Valid { synced: recorded } = header {
                synced = synced.max(recorded);
                if was_recorded(number) {
                    // A log is recorded only after it and all earlier logs are durable.
                    synced = synced.max(log.began);
                }
            }
            match header {
                Header::OtherVersion => return Err(DurabilityError::Version { path }),
                Header::Invalid if was_durable(number) || is_first_damaged(found, &log)? => {
                    return Err(DurabilityError::damaged(&path, 0, "its header is invalid"));
                }
                // Files after a missing or invalid one are not part of the stream.
                Header::Valid { .. } if number == next && torn.is_empty() => logs.push(log),
                _ => torn.push(log),
            }
            next = number + 1;
        }
        if found.recorded.is_some_and(|recorded| next <= recorded) {
            return missing(next, "the newest log");
        }
        if found.snapshot().is_some() && logs.is_empty() {
            return missing(found.first(), "the log of the snapshot");
        }
        if let Some(first) = logs.first()
            && first.began != start
        {
            let what = "it does not begin where the snapshot ends";
            return Err(DurabilityError::damaged(&first.path, 12, what));
        }
        let has_manifest = found.recorded.is_some();
        Ok(Self { logs, torn, has_manifest, synced, end: start, last: 0, tail_bytes: 0 })
    }

    /// Applies all valid changes.
    pub fn replay(&mut self, replay: &mut Replay<'_>) -> Result<(), DurabilityError> {
        for index in 0..self.logs.len() {
            let log = &self.logs[index];
            if index > 0 && log.began != self.end {
                break;
            }
            self.last = index;
            let mut frames = Frames::new(log).map_err(DurabilityError::io(&log.path))?;
            let damaged = |at, what: String| DurabilityError::damaged(&log.path, at, what);
            while let Some((position, records)) =
                frames.next().map_err(DurabilityError::io(&log.path))?
            {
                let at = log.offset_of(position);
                let mut rest = records;
                while !rest.is_empty() {
                    let record = Record::decode(&mut rest)
                        .ok_or_else(|| damaged(at, "a change has no meaning".to_owned()))?;
                    replay.apply(position, &record).map_err(|what| damaged(at, what))?;
                }
            }
            self.end = frames.position();
            self.tail_bytes = frames.left().map_err(DurabilityError::io(&log.path))?;
            let at = log.offset_of(self.end);
            replay.finish().map_err(|what| damaged(at, what))?;
            if self.tail_bytes > 0 {
                break;
            }
        }
        if self.end >= self.synced {
            return self.check_torn();
        }
        let (path, at) = match self.logs.get(self.last) {
            Some(log) => (log.path.clone(), log.offset_of(self.end)),
            None => return Ok(()),
        };
        let what = if self.tail_bytes == 0 {
            let lost = self.synced - self.end;
            format!("the file ends here, and {lost} bytes that were synced are missing")
        } else {
            "a change that was synced is damaged".to_owned()
        };
        Err(DurabilityError::damaged(&path, at, what))
    }

    /// If no manifest exists, checks that the torn files contain no changes: only a manifest
    /// records whether those were durable.
    fn check_torn(&mut self) -> Result<(), DurabilityError> {
        if self.has_manifest {
            return Ok(());
        }
        let known = self.logs.iter().map(|log| log.secret);
        let known: Vec<u64> = known.chain([0]).collect();
        for log in &mut self.torn {
            let begins = vec![log.began, self.end];
            let first: Vec<u64> = known.iter().copied().chain([log.secret]).collect();
            let candidates = Candidates { begins, searched: first.clone(), first };
            if find_start(log, &candidates).map_err(DurabilityError::io(&log.path))? {
                let what = "it has changes, but it does not follow another log, and the manifest is missing";
                return Err(DurabilityError::damaged(&log.path, 0, what));
            }
        }
        Ok(())
    }

    /// Returns how many bytes a crash has torn.
    pub fn torn_bytes(&self) -> u64 {
        let later = self.logs.iter().skip(self.last + 1).chain(&self.torn);
        self.tail_bytes + later.map(|log| log.frame_bytes().unwrap_or(0)).sum::<u64>()
    }

    /// Puts the torn bytes aside and makes the rest durable. Returns the log that the server
    /// continues, and the end of the stream.
    fn make_durable(
        mut self,
        disk: &dyn Disk,
        dir: &Path,
        recorded: Option<u64>,
    ) -> Result<(LogFile, u64), DurabilityError> {
        let later = self.logs.split_off((self.last + 1).min(self.logs.len()));
        for LogFile { path, .. } in later.into_iter().chain(self.torn) {
            let aside = free_name(disk, dir, &path)?;
            disk.rename(&path, &aside).map_err(DurabilityError::io(&path))?;
        }
        for name in disk.names(dir).map_err(DurabilityError::io(dir))? {
            if name.ends_with(".part") {
                _ = disk.remove(&dir.join(name));
            }
        }
        let Some(last) = self.logs.last() else {
            // This is the first start.
            let log = begin_durable(disk, dir, 0, 0).map_err(|error| DurabilityError::Io {
                path: log_file::path(dir, 0),
                error: error.error,
            })?;
            record_newest(disk, dir, &log);
            return Ok((log, 0));
        };
        if self.tail_bytes > 0 {
            keep_tail(disk, dir, last, self.end, self.tail_bytes)?;
        }
        for log in &self.logs {
            let fail = |error| DurabilityError::Io { path: log.path.clone(), error };
            let log_end = if log.number == last.number { self.end } else { u64::MAX };
            write_again(log, self.synced.max(log.began), log_end).map_err(fail)?;
            if log.number == last.number {
                log.file.set_len(log.offset_of(self.end)).map_err(fail)?;
            }
            log.file.sync().map_err(fail)?;
        }
        disk.sync_dir(dir).map_err(DurabilityError::io(dir))?;
        if recorded != Some(last.number) {
            record_newest(disk, dir, last);
        }
        if let Err(error) = last.record_synced(self.end) {
            tracing::warn!(%error, "cannot record the position of the last fsync");
        }
        let last = self.logs.pop().expect("just seen");
        let log = if last.secret == 0 { end_old(disk, dir, last, self.end)? } else { last };
        Ok((log, self.end))
    }
}

/// Ends a log of version 2, so that the stream continues in a log with a secret.
fn end_old(
    disk: &dyn Disk,
    dir: &Path,
    old: LogFile,
    end: u64,
) -> Result<LogFile, DurabilityError> {
    match begin_durable(disk, dir, old.number + 1, end) {
        Ok(log) => {
            record_newest(disk, dir, &log);
            Ok(log)
        }
        // A full disk must not prevent a start.
        Err(BeginError { error, may_exist: false }) => {
            tracing::warn!(%error, "cannot start a new log: the server continues with the old log");
            Ok(old)
        }
        Err(BeginError { error, .. }) => {
            Err(DurabilityError::Io { path: log_file::path(dir, old.number + 1), error })
        }
    }
}

/// Creates a log that begins at `position`, up to which the stream is durable. Returns after its
/// header and its name are durable.
pub(super) fn begin_durable(
    disk: &dyn Disk,
    dir: &Path,
    number: u64,
    position: u64,
) -> Result<LogFile, BeginError> {
    let secret = new_secret().map_err(|error| BeginError { error, may_exist: false })?;
    let log = LogFile::begin(disk, dir, number, position, position, secret)?;
    let synced = log.file.sync().and_then(|()| disk.sync_dir(dir));
    synced.map_err(|error| BeginError { error, may_exist: true })?;
    Ok(log)
}

fn record_newest(disk: &dyn Disk, dir: &Path, log: &LogFile) {
    if let Err(error) = manifest::write(disk, dir, Manifest::of(log)) {
        tracing::warn!(%error, "cannot update the manifest: the next start cannot detect a missing newest log");
    }
}

/// Returns an unused name for bytes that are put aside.
fn free_name(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<PathBuf, DurabilityError> {
    let names = disk.names(dir).map_err(DurabilityError::io(dir))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = (1..).map(|n| format!("{stem}.torn-{n}")).find(|name| !names.contains(name));
    Ok(dir.join(name.expect("a folder does not have that many files")))
}

/// The number of bytes that are copied at a time.
const PIECE_BYTES: u64 = 4 << 20;

/// Copies a torn tail to its own file. The tail contains no synced change, so a full disk must not
/// prevent a start.
fn keep_tail(
    disk: &dyn Disk,
    dir: &Path,
    log: &LogFile,
    end: u64,
    len: u64,
) -> Result<(), DurabilityError> {
    let aside = free_name(disk, dir, &log.path)?;
    let copy = || -> std::io::Result<()> {
        let (file, start) = (disk.create(&aside)?, log.offset_of(end));
        copy_bytes(&*log.file, start, &*file, 0, len)?;
        file.sync()
    };
    if let Err(error) = copy() {
        let error = without_code(&error);
        tracing::warn!(%error, path = %aside.display(), "cannot copy the incomplete end of the log");
        _ = disk.remove(&aside);
    }
    Ok(())
}

/// Writes the header of a log, and its bytes between two positions, once more in place.
fn write_again(log: &LogFile, from: u64, to: u64) -> std::io::Result<()> {
    copy_bytes(&*log.file, 0, &*log.file, 0, log.header_bytes())?;
    let end = log.began + log.frame_bytes()?;
    let to = to.min(end);
    if from < to {
        let at = log.offset_of(from);
        copy_bytes(&*log.file, at, &*log.file, at, to - from)?;
    }
    Ok(())
}

/// Copies bytes from one file to another.
pub(super) fn copy_bytes(
    from: &dyn DiskFile,
    from_at: u64,
    to: &dyn DiskFile,
    to_at: u64,
    len: u64,
) -> std::io::Result<()> {
    let mut piece = vec![0; len.min(PIECE_BYTES) as usize];
    let mut done = 0;
    while done < len {
        let wanted = (len - done).min(PIECE_BYTES) as usize;
        let read = read_at_most(from, &mut piece[..wanted], from_at + done)?;
        if read == 0 {
            break;
        }
        to.write_all_at(&piece[..read], to_at + done)?;
        done += read as u64;
    }
    Ok(())
}

/// Removes the files that the snapshot with this number and its log replace.
///
/// # Errors
///
/// [`DurabilityError`] if the folder cannot be read.
pub(crate) fn forget(disk: &dyn Disk, dir: &Path, number: u64) -> Result<(), DurabilityError> {
    Folder::read(disk, dir)?.remove_before(disk, dir, number);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::super::sim_disk::SimDisk;
    use super::*;

    const DIR: &str = "/data";

    /// Writes a log of changes that set one key each; returns the log and its end position.
    fn log_of(disk: &SimDisk, number: u64, began: u64, keys: &[&str]) -> (LogFile, u64) {
        let log = LogFile::begin(disk, Path::new(DIR), number, began, 0, 99).unwrap();
        let mut bytes = Vec::new();
        for key in keys {
            let argv: Vec<&[u8]> = vec![b"SET", key.as_bytes(), b"1"];
            let record = Record::Command { now_millis: 0, argv };
            let position = began + bytes.len() as u64;
            frame::append(&mut bytes, log.seed(position), |out| record.encode(out));
        }
        log.file.write_all_at(&bytes, log.offset_of(began)).unwrap();
        (log, began + bytes.len() as u64)
    }

    fn flip(log: &LogFile, at: u64) {
        let mut byte = [0];
        log.file.read_at(&mut byte, at).unwrap();
        log.file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    }

    /// Starts a server; returns the number of keys, or the error.
    fn started(disk: &SimDisk) -> Result<usize, String> {
        let (keyspace, disk) = (Keyspace::new(), Arc::new(disk.clone()) as Arc<dyn Disk>);
        let recovered = recover(&disk, Path::new(DIR), &keyspace);
        recovered.map(|_| keyspace.shared().len()).map_err(|error| error.to_string())
    }

    #[test]
    fn damage_before_a_log_that_the_manifest_names_is_refused() {
        // No `synced` field has this position: the crash came before the next field was durable.
        let disk = SimDisk::default();
        let (first, end) = log_of(&disk, 0, 0, &["a", "b", "c"]);
        log_of(&disk, 1, end, &["d"]);
        flip(&first, first.offset_of(end) - 1);
        let torn = disk.after_crash(None);
        assert_eq!(started(&torn), Ok(2), "a torn tail, as far as anything says");
        manifest::write(&disk, Path::new(DIR), Manifest { log: 1, secret: 99 }).unwrap();
        let refused = started(&disk).unwrap_err();
        assert!(refused.contains("log-0.tamis: damaged at byte"), "{refused}");
        assert!(refused.contains("a change that was synced is damaged"), "{refused}");
    }

    #[test]
    fn a_damaged_header_is_refused_without_a_manifest_if_changes_follow() {
        for at in [0, 8, 13, 20, 25, 33] {
            let disk = SimDisk::default();
            let (first, end) = log_of(&disk, 0, 0, &["a", "b"]);
            flip(&first, at);
            let refused = started(&disk).unwrap_err();
            assert!(refused.contains("log-0.tamis: damaged at byte 0"), "{at}: {refused}");
            flip(&first, at);
            // The same for a later log.
            let (second, _) = log_of(&disk, 1, end, &["c"]);
            flip(&second, at);
            let refused = started(&disk).unwrap_err();
            assert!(refused.contains("log-1.tamis: damaged at byte 0"), "{at}: {refused}");
            // The first log is empty, and the second one proves that changes existed.
            flip(&second, at);
            first.file.set_len(10).unwrap();
            let refused = started(&disk).unwrap_err();
            assert!(refused.contains("log-0.tamis: damaged at byte 0"), "{at}: {refused}");
        }
    }

    #[test]
    fn a_log_whose_header_the_first_start_did_not_complete_is_put_aside() {
        for missing in [1, 10, 60] {
            let disk = SimDisk::default();
            let (log, _) = log_of(&disk, 0, 0, &[]);
            let len = log.header_bytes() - missing;
            log.file.set_len(len).unwrap();
            assert_eq!(started(&disk), Ok(0));
            assert_eq!(started(&disk), Ok(0));
        }
        let disk = SimDisk::default();
        let (log, _) = log_of(&disk, 0, 0, &[]);
        log.file.write_all_at(&[0; log_file::MAX_HEADER_BYTES - 12], 12).unwrap();
        assert_eq!(started(&disk), Ok(0));
    }
}
