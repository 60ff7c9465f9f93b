//! Keeps the valid data of damaged files.
//!
//! The damaged originals are complete at every moment, either in their place or in a folder
//! `damaged-N`:
//!
//! 1. Every original gets a hard link in `damaged-N`, or a copy where the file system does not
//!    support links. Both names are durable.
//! 2. The repair writes the new log and the new snapshot. A start loads the newest snapshot.
//! 3. The manifest names the new log.
//! 4. The repair removes the original names.
//!
//! After a crash between two of these steps, the same command works again.

use std::io;
use std::path::{Path, PathBuf};

use crate::keyspace::Keyspace;
use crate::persistence::check::{DataReport, check, lock_existing};
use crate::persistence::disk::{Disk, OsDisk};
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::Folder;
use crate::persistence::log_file;
use crate::persistence::manifest::{self, Manifest};
use crate::persistence::recover::{begin_durable, copy_bytes};
use crate::persistence::salvage::{Salvaged, salvage};
use crate::persistence::snapshot;
use crate::persistence::snapshot::writer::SnapshotWriter;

/// Writes the valid data of a server's files as a new snapshot, and keeps the old files in a new
/// folder inside `dir`. Does nothing if a server would start with the files.
///
/// Damaged changes are skipped, and the changes after them are kept: a filter then misses items,
/// and a key that a lost change removed may exist again. The old files are never lost: if the
/// machine fails meanwhile, run the repair again.
///
/// # Errors
///
/// [`DurabilityError`] if the files cannot be read or written. The old files are not changed then.
pub fn repair_data(dir: &Path) -> Result<DataReport, DurabilityError> {
    let _lock = lock_existing(dir)?;
    repair(&OsDisk, dir)
}

fn repair(disk: &dyn Disk, dir: &Path) -> Result<DataReport, DurabilityError> {
    match check(disk, dir) {
        Err(DurabilityError::Damaged { .. } | DurabilityError::Missing { .. }) => {}
        checked => return checked,
    }
    let found = Folder::read(disk, dir)?;
    let Salvaged { keyspace, changes, lost, end, .. } = salvage(disk, dir, &found)?;
    let number = found.next_number(dir)?;
    let aside = set_aside(disk, dir, &found)?;
    write_new(disk, dir, number, end, &keyspace)?;
    for path in found.paths(dir) {
        disk.remove(&path).map_err(DurabilityError::io(&path))?;
    }
    disk.sync_dir(dir).map_err(DurabilityError::io(dir))?;
    let keys = keyspace.shared().len();
    Ok(DataReport { keys, changes, torn_bytes: 0, lost, aside: Some(aside) })
}

/// Links every file into a new folder and makes the links durable. After an error the folder
/// contains no file.
fn set_aside(disk: &dyn Disk, dir: &Path, found: &Folder) -> Result<PathBuf, DurabilityError> {
    let aside = free_folder(disk, dir)?;
    let mut files: Vec<PathBuf> = found.paths(dir).collect();
    files.extend(found.recorded.map(|_| manifest::path(dir)));
    let in_aside = |path: &Path| aside.join(path.file_name().expect("a file has a name"));
    let keep_all = || -> Result<(), DurabilityError> {
        for path in &files {
            keep(disk, path, &in_aside(path)).map_err(DurabilityError::io(path))?;
        }
        disk.sync_dir(&aside).map_err(DurabilityError::io(&aside))?;
        disk.sync_dir(dir).map_err(DurabilityError::io(dir))
    };
    keep_all().inspect_err(|_| {
        for path in &files {
            _ = disk.remove(&in_aside(path));
        }
    })?;
    Ok(aside)
}

/// Creates a folder `damaged-N`, or returns an empty one that an earlier repair has left.
fn free_folder(disk: &dyn Disk, dir: &Path) -> Result<PathBuf, DurabilityError> {
    let names = disk.names(dir).map_err(DurabilityError::io(dir))?;
    for number in 1_u64.. {
        let name = format!("damaged-{number}");
        let path = dir.join(&name);
        if !names.contains(&name) {
            disk.create_dir(&path).map_err(DurabilityError::io(&path))?;
            return Ok(path);
        }
        if disk.names(&path).is_ok_and(|names| names.is_empty()) {
            return Ok(path);
        }
    }
    unreachable!("a folder has fewer names")
}

/// Creates a hard link to a file, or copies the file.
fn keep(disk: &dyn Disk, path: &Path, to: &Path) -> io::Result<()> {
    if disk.link(path, to).is_ok() {
        return Ok(());
    }
    // The copy is never written under the final name: a link that reports an error may exist.
    let part = to.with_extension("part");
    let copy = || -> io::Result<()> {
        let (from, copy) = (disk.open(path)?, disk.create(&part)?);
        copy_bytes(&*from, 0, &*copy, 0, from.len()?)?;
        copy.sync()?;
        disk.rename(&part, to)
    };
    copy().inspect_err(|_| _ = disk.remove(&part))
}

/// Writes the keys as a snapshot with an empty log. A start uses these instead of any older file.
fn write_new(
    disk: &dyn Disk,
    dir: &Path,
    number: u64,
    position: u64,
    keyspace: &Keyspace,
) -> Result<(), DurabilityError> {
    let log_path = log_file::path(dir, number);
    // A snapshot without its log counts as damaged, so the log is written first.
    let log = begin_durable(disk, dir, number, position)
        .map_err(|begun| DurabilityError::io(log_path)(begun.error))?;
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
        manifest::write(disk, dir, Manifest::of(&log))
    };
    write().map_err(DurabilityError::io(snapshot::path(dir, number)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use tamis_commands::Value;

    use super::super::frame;
    use super::super::log_file::{LogFile, read_at_most};
    use super::super::record::Record;
    use super::super::recover::recover;
    use super::super::sim_disk::{Fault, Random, SimDisk};
    use super::*;

    const DIR: &str = "/data";

    /// Returns a disk with only durable data: a snapshot of four keys and a log of four more. One
    /// key of each is damaged.
    fn damaged_disk() -> SimDisk {
        let (disk, dir) = (SimDisk::default(), Path::new(DIR));
        let log = LogFile::begin(&disk, dir, 1, 100, 100, 99).unwrap();
        let mut bytes = Vec::new();
        for i in 0..4 {
            let key = format!("late:{i}");
            let argv: Vec<&[u8]> = vec![b"SET", key.as_bytes(), b"1"];
            let record = Record::Command { now_millis: 0, argv };
            let position = 100 + bytes.len() as u64;
            frame::append(&mut bytes, log.seed(position), |out| record.encode(out));
        }
        let end = 100 + bytes.len() as u64;
        bytes[frame::HEADER_BYTES + 2] ^= 1;
        log.file.write_all_at(&bytes, log.offset_of(100)).unwrap();
        log.record_synced(end).unwrap();
        log.file.sync().unwrap();
        let mut snapshot = SnapshotWriter::new(&disk, dir, 1, 100).unwrap();
        for i in 0..4 {
            let value = Value::Bytes(vec![b'x'; 40].into());
            snapshot.entry(format!("early:{i}").as_bytes(), &value, None, (100, None)).unwrap();
        }
        snapshot.finish(end).unwrap();
        let file = disk.open(&snapshot::path(dir, 1)).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, 100).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 100).unwrap();
        file.sync().unwrap();
        manifest::write(&disk, dir, Manifest { log: 1, secret: 99 }).unwrap();
        disk
    }

    /// The number of keys that a repair keeps.
    const KEPT: usize = 6;

    fn contents(disk: &SimDisk, path: &Path) -> Option<Vec<u8>> {
        let file = disk.open(path).ok()?;
        let mut bytes = vec![0; file.len().unwrap() as usize];
        read_at_most(&*file, &mut bytes, 0).unwrap();
        Some(bytes)
    }

    fn originals(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
        let names = disk.names(Path::new(DIR)).unwrap().into_iter();
        names
            .map(|name| (name.clone(), contents(disk, &Path::new(DIR).join(name)).unwrap()))
            .collect()
    }

    /// Checks that every original is in its place or in a folder beside it.
    fn assert_kept(disk: &SimDisk, originals: &BTreeMap<String, Vec<u8>>, when: &str) {
        let dir = Path::new(DIR);
        let mut places = vec![dir.to_owned()];
        let names = disk.names(dir).unwrap().into_iter();
        places.extend(names.filter(|name| name.starts_with("damaged-")).map(|name| dir.join(name)));
        for (name, bytes) in originals {
            let is_kept =
                |place: &PathBuf| contents(disk, &place.join(name)).as_ref() == Some(bytes);
            assert!(places.iter().any(is_kept), "{name} is lost {when}");
        }
    }

    /// Repairs again after a crash, and starts.
    fn assert_repairs(disk: &SimDisk, originals: &BTreeMap<String, Vec<u8>>, when: &str) {
        let dir = Path::new(DIR);
        assert_kept(disk, originals, when);
        match check(disk, dir) {
            Ok(report) => assert_eq!(report.keys, KEPT, "{when}"),
            Err(DurabilityError::Damaged { .. }) => {}
            Err(error) => panic!("{error} {when}"),
        }
        let report = repair(disk, dir).unwrap_or_else(|error| panic!("{error} {when}"));
        assert_eq!(report.keys, KEPT, "{when}");
        assert_kept(disk, originals, when);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let keyspace = Keyspace::new();
        recover(&shared, dir, &keyspace).unwrap_or_else(|error| panic!("{error} {when}"));
        assert_eq!(keyspace.shared().len(), KEPT, "{when}");
        assert_kept(disk, originals, when);
    }

    #[test]
    fn a_crash_of_a_repair_at_any_moment_loses_no_original_and_it_works_again() {
        let dir = Path::new(DIR);
        for (has_links, is_power_loss) in
            [(true, false), (true, true), (false, false), (false, true)]
        {
            for at in 0.. {
                let disk = damaged_disk();
                let originals = originals(&disk);
                assert_eq!(originals.len(), 3);
                if !has_links {
                    disk.refuse_links();
                }
                disk.end_at(disk.operations() + at);
                let repaired = repair(&disk, dir);
                for seed in 0..if is_power_loss { 4 } else { 1 } {
                    let mut random = Random(seed + 100 * at as u64);
                    let after = disk.after_crash(is_power_loss.then_some(&mut random));
                    let when = format!(
                        "at {at}, links {has_links}, power loss {is_power_loss}, seed {seed}"
                    );
                    assert_repairs(&after, &originals, &when);
                }
                if !disk.has_ended() {
                    let report = repaired.unwrap();
                    assert_eq!((report.keys, report.lost.len()), (KEPT, 2), "{report:?}");
                    assert!(at > 10);
                    break;
                }
            }
        }
    }

    #[test]
    fn a_failed_operation_of_a_repair_loses_no_original_and_it_works_again() {
        let dir = Path::new(DIR);
        for fault in [Fault::Io, Fault::Full] {
            for at in 0.. {
                let disk = damaged_disk();
                let originals = originals(&disk);
                let fails_at = disk.operations() + at;
                disk.fail_at(fails_at, fault);
                _ = repair(&disk, dir);
                if disk.operations() <= fails_at {
                    assert!(at > 10);
                    break;
                }
                assert_repairs(&disk, &originals, &format!("at {at}, {fault:?}"));
            }
        }
    }

    #[test]
    fn a_repair_that_cannot_keep_the_originals_changes_nothing() {
        let (disk, dir) = (damaged_disk(), Path::new(DIR));
        let before = originals(&disk);
        disk.refuse_links();
        // The repair creates the folder and the first copy, and then the disk is full.
        disk.fail_at(disk.operations() + 3, Fault::Full);
        assert!(matches!(repair(&disk, dir), Err(DurabilityError::Io { .. })));
        let mut after = disk.names(dir).unwrap();
        after.retain(|name| !name.starts_with("damaged-"));
        assert_eq!(after, before.keys().cloned().collect::<Vec<_>>());
        assert!(disk.names(&dir.join("damaged-1")).unwrap().is_empty());
        assert_eq!(repair(&disk, dir).unwrap().aside, Some(dir.join("damaged-1")));
    }

    #[test]
    fn an_older_snapshot_and_its_logs_replace_a_damaged_one() {
        // As after a kill between the write of a new snapshot and the removal of the old one.
        let (disk, dir) = (SimDisk::default(), Path::new(DIR));
        let set = |disk: &SimDisk, number, began: u64, key: &str| {
            let log = LogFile::begin(disk, dir, number, began, began, 99).unwrap();
            let record =
                Record::Command { now_millis: 0, argv: vec![b"SET", key.as_bytes(), b"1"] };
            let mut bytes = Vec::new();
            frame::append(&mut bytes, log.seed(began), |out| record.encode(out));
            log.file.write_all_at(&bytes, log.offset_of(began)).unwrap();
            began + bytes.len() as u64
        };
        let snapshot = |disk: &SimDisk, number, position, keys: &[&str]| {
            let mut snapshot = SnapshotWriter::new(disk, dir, number, position).unwrap();
            for key in keys {
                let value = Value::Bytes(vec![b'x'; 40].into());
                snapshot.entry(key.as_bytes(), &value, None, (position, None)).unwrap();
            }
            snapshot.finish(position).unwrap();
        };
        snapshot(&disk, 1, 100, &["a"]);
        let end = set(&disk, 1, 100, "b");
        snapshot(&disk, 2, end, &["a", "b"]);
        set(&disk, 2, end, "c");
        manifest::write(&disk, dir, Manifest { log: 2, secret: 99 }).unwrap();
        let file = disk.open(&snapshot::path(dir, 2)).unwrap();
        file.write_all_at(b"y", 100).unwrap();
        let [without_log, without_snapshot, empty] = [(); 3].map(|()| disk.after_crash(None));
        without_log.remove(&log_file::path(dir, 1)).unwrap();

        let report = repair(&disk, dir).unwrap();
        assert_eq!((report.keys, report.lost), (3, Vec::new()));
        assert_eq!(check(&disk, dir).unwrap().keys, 3);
        // Logs without the snapshot before them are no base for a start, even if few lines report
        // other losses.
        let snapshot_path = snapshot::path(dir, 1);
        without_snapshot.remove(&snapshot_path).unwrap();
        let report = repair(&without_snapshot, dir).unwrap();
        assert_eq!((report.keys, report.lost.len()), (2, 1), "{report:?}");
        // Truncated bytes count too.
        empty.create(&snapshot::path(dir, 2)).unwrap();
        let report = repair(&empty, dir).unwrap();
        assert_eq!((report.keys, report.lost), (3, Vec::new()));
        // Without its log, the older snapshot is not the base of the newer one.
        let report = repair(&without_log, dir).unwrap();
        assert_eq!((report.keys, report.lost.len()), (2, 1), "{report:?}");
    }

    #[test]
    fn an_end_that_no_server_has_written_is_not_where_the_next_log_begins() {
        let (disk, dir) = (SimDisk::default(), Path::new(DIR));
        let mut snapshot = SnapshotWriter::new(&disk, dir, 1, 100).unwrap();
        let value = Value::Bytes(b"1".to_vec().into());
        snapshot.entry(b"key", &value, None, (100, None)).unwrap();
        snapshot.finish(u64::MAX - 10).unwrap();
        assert!(check(&disk, dir).is_err(), "its log is missing");
        assert_eq!(repair(&disk, dir).unwrap().keys, 1);
        assert_eq!(check(&disk, dir).unwrap().keys, 1);
    }
}
