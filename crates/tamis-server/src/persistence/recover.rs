//! Fills a keyspace at the start of a server: loads the newest snapshot, and applies all changes
//! after the snapshot.
//!
//! All logs together are one stream. The stream is valid from its start to the first invalid byte.
//! If the first invalid byte is before the last position that is recorded as synced, changes are
//! lost and the server does not start. After the synced position, a crash may leave any bytes,
//! because the system writes pages in any order. The bytes after the valid part are a torn tail,
//! which the server moves to another file.
//!
//! The server makes all data durable before a reply contains the data. The server writes bytes
//! again if the bytes may not be durable: a failed sync may mark pages as written that are not on
//! the disk.

pub(super) mod replay;
pub(super) mod stream;

use std::io;
use std::path::{Path, PathBuf};

use crate::keyspace::Keyspace;
use crate::persistence::disk::{Disk, copy_bytes};
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::Folder;
use crate::persistence::header::new_secret;
use crate::persistence::log::log_file::{self, BeginError, LogFile};
use crate::persistence::manifest::record_newest;
use crate::system::system_error::without_code;
use replay::Replay;
use stream::Stream;

/// The result of a recovery.
pub(super) struct Recovered {
    /// The log that the server continues, and the position of the end of the log.
    pub file: LogFile,
    pub end: u64,
    /// The number of changes in the logs.
    pub changes: u64,
    /// The number of torn bytes that were moved to another file after a crash.
    pub torn_bytes: u64,
}

/// Fills a keyspace with the data of the folder.
///
/// # Errors
///
/// [`DurabilityError`] if files are damaged, missing or cannot be used. On an error, no file is
/// changed.
pub(super) fn recover(disk: &dyn Disk, keyspace: &Keyspace) -> Result<Recovered, DurabilityError> {
    let folder = Folder::read(disk)?;
    let mut replay = Replay::new(keyspace);
    let stream = Stream::load(&folder, &mut replay)?;
    let torn_bytes = stream.torn_bytes();
    let (file, end) = make_durable(stream)?;
    folder.remove_before(folder.first());
    Ok(Recovered { file, end, changes: replay.changes, torn_bytes })
}

/// Moves the torn bytes to another file and makes the valid bytes durable. Returns the log that the
/// server continues, and the end of the stream.
fn make_durable(stream: Stream<'_>) -> Result<(LogFile, u64), DurabilityError> {
    let Stream { folder, mut logs, torn, synced, end, last, tail_bytes } = stream;
    let (disk, dir) = (folder.disk, folder.disk.dir());
    let later = logs.split_off((last + 1).min(logs.len()));
    for LogFile { path, .. } in later.into_iter().chain(torn) {
        let aside = free_name(disk, &path)?;
        disk.rename(&path, &aside).map_err(DurabilityError::io(&path))?;
    }
    for name in disk.names(dir).map_err(DurabilityError::io(dir))? {
        if name.ends_with(".part") {
            _ = disk.remove(&dir.join(name));
        }
    }
    let Some(last) = logs.pop() else {
        // Without a log, this is the first start of a server with this folder.
        let fail = |BeginError { error, .. }| DurabilityError::io(&log_file::path(disk, 0))(error);
        let log = begin_durable(disk, 0, 0).map_err(fail)?;
        record_newest(disk, &log);
        return Ok((log, 0));
    };
    if tail_bytes > 0 {
        keep_tail(disk, &last, end, tail_bytes)?;
    }
    for log in &logs {
        let rewrite = || write_again(log, synced, u64::MAX).and_then(|()| log.file.sync());
        rewrite().map_err(DurabilityError::io(&log.path))?;
    }
    let rewrite = || {
        write_again(&last, synced, end)?;
        last.file.set_len(last.offset_of(end))?;
        last.file.sync()
    };
    rewrite().map_err(DurabilityError::io(&last.path))?;
    disk.sync_dir(dir).map_err(DurabilityError::io(dir))?;
    if folder.recorded != Some(last.number) {
        record_newest(disk, &last);
    }
    last.try_record_synced(end);
    Ok((last, end))
}

/// Creates a log that begins at `position`. The stream of logs is durable up to `position`. Returns
/// after the header and the name of the log are durable.
pub(super) fn begin_durable(
    disk: &dyn Disk,
    number: u64,
    position: u64,
) -> Result<LogFile, BeginError> {
    let secret = new_secret().map_err(|error| BeginError { error, may_exist: false })?;
    let log = LogFile::begin(disk, number, position, position, position, secret)?;
    let synced = log.file.sync().and_then(|()| disk.sync_dir(disk.dir()));
    synced.map_err(|error| BeginError { error, may_exist: true })?;
    Ok(log)
}

/// Returns an unused file name for torn bytes.
fn free_name(disk: &dyn Disk, path: &Path) -> Result<PathBuf, DurabilityError> {
    let names = disk.names(disk.dir()).map_err(DurabilityError::io(disk.dir()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = (1..).map(|n| format!("{stem}.torn-{n}")).find(|name| !names.contains(name));
    Ok(disk.dir().join(name.expect("a folder does not have that many files")))
}

/// Copies a torn tail to a separate file. The torn tail contains no synced change, so a full disk
/// must not prevent a start.
fn keep_tail(disk: &dyn Disk, log: &LogFile, end: u64, len: u64) -> Result<(), DurabilityError> {
    let aside = free_name(disk, &log.path)?;
    let copy = || {
        let file = disk.create(&aside)?;
        copy_bytes((&*log.file, log.offset_of(end)), (&*file, 0), len)?;
        file.sync()
    };
    if let Err(error) = copy() {
        let error = without_code(&error);
        let path = aside.display();
        tracing::warn!(%error, %path, "cannot copy the incomplete end of the log");
        _ = disk.remove(&aside);
    }
    Ok(())
}

/// Writes the header of a log, and the bytes between two positions, again in place.
fn write_again(log: &LogFile, from: u64, to: u64) -> io::Result<()> {
    let rewrite = |at, len| copy_bytes((&*log.file, at), (&*log.file, at), len);
    rewrite(0, log_file::HEADER_BYTES as u64)?;
    let from = from.max(log.began);
    let to = to.min(log.began + log.frame_bytes()?);
    if from < to { rewrite(log.offset_of(from), to - from) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::manifest::{self, Manifest};
    use crate::persistence::sim_disk::SimDisk;
    use crate::persistence::test_files::write_log;

    /// Starts a server. Returns the number of keys or the error.
    fn started(disk: &SimDisk) -> Result<usize, String> {
        let keyspace = Keyspace::new();
        let recovered = recover(disk, &keyspace);
        recovered.map(|_| keyspace.shared().len()).map_err(|error| error.to_string())
    }

    #[test]
    fn damage_before_a_log_that_the_manifest_names_is_refused() {
        // No `synced` field contains the position of the damage, as after a crash before the next
        // field was durable.
        let disk = SimDisk::default();
        let (first, end) = write_log(&disk, 0, 0, &["a", "b", "c"]);
        write_log(&disk, 1, end, &["d"]);
        disk.flip(&first.path, first.offset_of(end) - 1);
        let torn = disk.after_crash(None);
        assert_eq!(started(&torn), Ok(2), "without a manifest it is a torn tail");
        manifest::write(&disk, Manifest { log: 1, secret: 99 }).unwrap();
        let error = started(&disk).unwrap_err();
        assert!(error.contains("log-0.tamis: damaged at byte"), "{error}");
        assert!(error.contains("a change that was synced is damaged"), "{error}");
    }

    #[test]
    fn a_damaged_header_is_refused_without_a_manifest_if_changes_follow() {
        for at in [0, 8, 13, 20, 25, 33] {
            let disk = SimDisk::default();
            let assert_refused = |number| {
                let error = started(&disk).unwrap_err();
                let expected = format!("log-{number}.tamis: damaged at byte 0");
                assert!(error.contains(&expected), "{at}: {error}");
            };
            let (first, end) = write_log(&disk, 0, 0, &["a", "b"]);
            disk.flip(&first.path, at);
            assert_refused(0);
            disk.flip(&first.path, at);
            // A second log whose header is damaged is refused like a damaged first log.
            let (second, _) = write_log(&disk, 1, end, &["c"]);
            disk.flip(&second.path, at);
            assert_refused(1);
            // A truncated first log is refused, because the second log proves that changes existed.
            disk.flip(&second.path, at);
            first.file.set_len(10).unwrap();
            assert_refused(0);
        }
    }

    #[test]
    fn a_log_whose_header_the_first_start_did_not_complete_is_put_aside() {
        for missing in [1, 10, 60] {
            let disk = SimDisk::default();
            let (log, _) = write_log(&disk, 0, 0, &[]);
            log.file.set_len(log_file::HEADER_BYTES as u64 - missing).unwrap();
            assert_eq!(started(&disk), Ok(0));
            assert_eq!(started(&disk), Ok(0));
        }
        let disk = SimDisk::default();
        let (log, _) = write_log(&disk, 0, 0, &[]);
        log.file.write_all_at(&[0; log_file::HEADER_BYTES - 12], 12).unwrap();
        assert_eq!(started(&disk), Ok(0));
    }
}
