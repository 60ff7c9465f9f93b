//! Keeps the valid data of damaged files.
//!
//! The damaged originals are complete at any time, either at their original paths or in a folder
//! `damaged-N`:
//!
//! 1. The repair creates a hard link in `damaged-N` for every original. If the file system does not
//!    support links, the repair creates a copy. The original name and the new name are durable.
//! 2. The repair writes the new log and the new snapshot. A server that starts loads the newest
//!    snapshot.
//! 3. The repair writes the number of the new log to the manifest.
//! 4. The repair removes the original names of the old files.
//!
//! After a crash between two steps, the user runs the repair again.

mod salvage;

use std::io;
use std::path::{Path, PathBuf};

use tamis_commands::Value;

use crate::config::hash_key::{self, HashKey};
use crate::keyspace::Keyspace;
use crate::persistence::check::{DataReport, check, check_hash_key, lock_existing};
use crate::persistence::disk::{Disk, OsDisk, copy_bytes};
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::Folder;
use crate::persistence::log::log_file;
use crate::persistence::manifest::{self, Manifest};
use crate::persistence::recover::begin_durable;
use crate::persistence::snapshot;
use crate::persistence::snapshot::writer::SnapshotWriter;
use salvage::{Salvaged, salvage};

/// Writes the valid data of a server's files as a new snapshot. Moves the old files to a new folder
/// inside `dir`. Does nothing if a server with this option `hash-key` can start with the files.
///
/// If the option requires a hash key from `dir`, a damaged hash key file is moved with the old
/// files. After the move of the key file, the next start generates a new key.
///
/// The repair skips damaged changes and keeps the changes after the damage. After the repair, a
/// filter may lack items, and a removed key may exist again if the change that removed the key is
/// lost. The old files are never lost. If the machine fails during the repair, run the repair
/// again.
///
/// # Errors
///
/// [`DurabilityError`] if the files cannot be read or written. On an error, the old files are
/// unchanged.
pub fn repair_data(dir: &Path, hash_key: HashKey) -> Result<DataReport, DurabilityError> {
    let _lock = lock_existing(dir)?;
    let disk = OsDisk(dir.to_owned());
    let is_key_damaged = match check_hash_key(dir, hash_key) {
        Err(DurabilityError::Damaged { .. }) => true,
        checked => checked.map(|()| false)?,
    };
    let mut report = repair(&disk)?;
    if is_key_damaged {
        let aside = report.aside.take().map_or_else(|| free_folder(&disk), Ok)?;
        let (path, kept) = (hash_key::path(dir), aside.join(hash_key::FILE_NAME));
        disk.rename(&path, &kept).map_err(DurabilityError::io(&path))?;
        for dir in [&*aside, dir] {
            disk.sync_dir(dir).map_err(DurabilityError::io(dir))?;
        }
        let what = "the hash key: new filters get another key, and do not merge with old ones";
        report.lost.push(format!("{}: {what}", path.display()));
        report.aside = Some(aside);
    }
    Ok(report)
}

fn repair(disk: &dyn Disk) -> Result<DataReport, DurabilityError> {
    match check(disk) {
        Err(DurabilityError::Damaged { .. } | DurabilityError::Missing { .. }) => {}
        checked => return checked,
    }
    let folder = Folder::read(disk)?;
    let Salvaged { keyspace, changes, lost, end, .. } = salvage(&folder)?;
    let number = folder.next_number()?;
    let aside = set_aside(&folder)?;
    write_new(disk, number, end, &keyspace)?;
    for path in folder.paths_below(u64::MAX) {
        disk.remove(&path).map_err(DurabilityError::io(&path))?;
    }
    disk.sync_dir(disk.dir()).map_err(DurabilityError::io(disk.dir()))?;
    let keys = keyspace.shared().len();
    Ok(DataReport { keys, changes, torn_bytes: 0, lost, aside: Some(aside) })
}

/// Links every file into a new folder and makes the links durable. After an error, the folder
/// contains no file.
fn set_aside(folder: &Folder<'_>) -> Result<PathBuf, DurabilityError> {
    let disk = folder.disk;
    let aside = free_folder(disk)?;
    let files = folder.paths_below(u64::MAX).chain(folder.recorded.map(|_| manifest::path(disk)));
    let in_aside = |path: PathBuf| (aside.join(path.file_name().expect("a file has a name")), path);
    let files: Vec<(PathBuf, PathBuf)> = files.map(in_aside).collect();
    let keep_all = || {
        for (link, path) in &files {
            keep(disk, path, link).map_err(DurabilityError::io(path))?;
        }
        [&*aside, disk.dir()]
            .into_iter()
            .try_for_each(|dir| disk.sync_dir(dir).map_err(DurabilityError::io(dir)))
    };
    keep_all().inspect_err(|_| files.iter().for_each(|(link, _)| _ = disk.remove(link)))?;
    Ok(aside)
}

/// Creates a folder `damaged-N`. If a previous repair has left an empty folder `damaged-N`, returns
/// the empty folder.
fn free_folder(disk: &dyn Disk) -> Result<PathBuf, DurabilityError> {
    let names = disk.names(disk.dir()).map_err(DurabilityError::io(disk.dir()))?;
    let is_free = |name: &String| {
        let is_empty = |names: Vec<String>| names.is_empty();
        !names.contains(name) || disk.names(&disk.dir().join(name)).is_ok_and(is_empty)
    };
    let name = (1..).map(|number| format!("damaged-{number}")).find(is_free);
    let name = name.expect("a folder does not have that many files");
    let path = disk.dir().join(&name);
    if !names.contains(&name) {
        disk.create_dir(&path).map_err(DurabilityError::io(&path))?;
    }
    Ok(path)
}

/// Creates a hard link to a file. Copies the file if a link is not possible.
fn keep(disk: &dyn Disk, path: &Path, to: &Path) -> io::Result<()> {
    if disk.link(path, to).is_ok() {
        return Ok(());
    }
    // Write the copy under a temporary name: after a failed link, the final name may exist as a
    // link to the original.
    let part = to.with_extension("part");
    let copy = || {
        let (from, copy) = (disk.open(path)?, disk.create(&part)?);
        copy_bytes((&*from, 0), (&*copy, 0), from.len()?)?;
        copy.sync()?;
        disk.rename(&part, to)
    };
    copy().inspect_err(|_| _ = disk.remove(&part))
}

/// Writes the keys as a snapshot with an empty log. A start uses the new snapshot and the new log
/// instead of all older files.
fn write_new(
    disk: &dyn Disk,
    number: u64,
    position: u64,
    keyspace: &Keyspace,
) -> Result<(), DurabilityError> {
    let log_path = log_file::path(disk, number);
    // Write the log before the snapshot, because a snapshot without its log counts as damaged.
    let log = begin_durable(disk, number, position)
        .map_err(|begun| DurabilityError::io(&log_path)(begun.error))?;
    let write = || {
        let mut out = SnapshotWriter::new(disk, number, position)?;
        for entry in keyspace.listed_keys() {
            let observe = |value: &Value| (position, value.counted_items());
            let written = entry.read(
                || true,
                observe,
                |value, expires, observed| out.entry(entry.key(), value, expires, observed),
            );
            written.transpose()?;
        }
        out.finish(position)?;
        manifest::write(disk, Manifest::of(&log))
    };
    write().map_err(DurabilityError::io(&snapshot::path(disk, number)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tamis_testing::Random;

    use super::*;
    use crate::persistence::log::frame;
    use crate::persistence::recover::recover;
    use crate::persistence::sim_disk::{Fault, SimDisk};
    use crate::persistence::test_files::{write_log, write_snapshot};

    const X: &[u8] = &[b'x'; 40];

    /// Returns a disk with only durable data: a snapshot of four keys, and a log of four other
    /// keys. One key in each file is damaged.
    fn damaged_disk() -> SimDisk {
        let disk = SimDisk::default();
        let (log, end) = write_log(&disk, 1, 100, &["late:0", "late:1", "late:2", "late:3"]);
        disk.flip(&log.path, log_file::HEADER_BYTES as u64 + frame::HEADER_BYTES as u64 + 2);
        log.record_synced(end).unwrap();
        log.file.sync().unwrap();
        let items = ["early:0", "early:1", "early:2", "early:3"].map(|key| (key, X));
        write_snapshot(&disk, 1, (100, end), &items);
        let path = snapshot::path(&disk, 1);
        disk.flip(&path, 100);
        disk.open(&path).unwrap().sync().unwrap();
        manifest::write(&disk, Manifest { log: 1, secret: 99 }).unwrap();
        disk
    }

    /// The number of keys that a repair keeps.
    const KEPT: usize = 6;

    fn originals(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
        let names = disk.names(disk.dir()).unwrap().into_iter();
        names.map(|name| (name.clone(), disk.contents(&disk.dir().join(name)).unwrap())).collect()
    }

    /// Checks that every original is at its original path or in a folder beside that path.
    fn assert_kept(disk: &SimDisk, originals: &BTreeMap<String, Vec<u8>>, when: &str) {
        let mut places = vec![disk.dir().to_owned()];
        let names = disk.names(disk.dir()).unwrap().into_iter();
        let folders = names.filter(|name| name.starts_with("damaged-"));
        places.extend(folders.map(|name| disk.dir().join(name)));
        for (name, bytes) in originals {
            let is_kept =
                |place: &PathBuf| disk.contents(&place.join(name)).as_ref() == Some(bytes);
            assert!(places.iter().any(is_kept), "{name} is lost {when}");
        }
    }

    /// Runs the repair again after a crash, and starts the server with the repaired folder.
    fn assert_repairs(disk: &SimDisk, originals: &BTreeMap<String, Vec<u8>>, when: &str) {
        assert_kept(disk, originals, when);
        match check(disk) {
            Ok(report) => assert_eq!(report.keys, KEPT, "{when}"),
            Err(DurabilityError::Damaged { .. }) => {}
            Err(error) => panic!("{error} {when}"),
        }
        let report = repair(disk).unwrap_or_else(|error| panic!("{error} {when}"));
        assert_eq!(report.keys, KEPT, "{when}");
        assert_kept(disk, originals, when);
        let keyspace = Keyspace::new();
        recover(disk, &keyspace).unwrap_or_else(|error| panic!("{error} {when}"));
        assert_eq!(keyspace.shared().len(), KEPT, "{when}");
        assert_kept(disk, originals, when);
    }

    #[test]
    fn a_crash_of_a_repair_at_any_moment_loses_no_original_and_it_works_again() {
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
                let repaired = repair(&disk);
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
        for fault in [Fault::Io, Fault::Full] {
            for at in 0.. {
                let disk = damaged_disk();
                let originals = originals(&disk);
                let fails_at = disk.operations() + at;
                disk.fail_at(fails_at, fault);
                _ = repair(&disk);
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
        let disk = damaged_disk();
        let before = originals(&disk);
        disk.refuse_links();
        // The disk is full after the repair has created the folder and the first copy.
        disk.fail_at(disk.operations() + 3, Fault::Full);
        assert!(matches!(repair(&disk), Err(DurabilityError::Io { .. })));
        let mut after = disk.names(disk.dir()).unwrap();
        after.retain(|name| !name.starts_with("damaged-"));
        assert_eq!(after, before.keys().cloned().collect::<Vec<_>>());
        let aside = disk.dir().join("damaged-1");
        assert!(disk.names(&aside).unwrap().is_empty());
        assert_eq!(repair(&disk).unwrap().aside, Some(aside));
    }

    #[test]
    fn an_older_snapshot_and_its_logs_replace_a_damaged_one() {
        // Simulate a process that was killed after the write of a new snapshot and before the
        // removal of the old snapshot.
        let disk = SimDisk::default();
        write_snapshot(&disk, 1, (100, 100), &[("a", X)]);
        let (_, end) = write_log(&disk, 1, 100, &["b"]);
        write_snapshot(&disk, 2, (end, end), &[("a", X), ("b", X)]);
        write_log(&disk, 2, end, &["c"]);
        manifest::write(&disk, Manifest { log: 2, secret: 99 }).unwrap();
        let newest = snapshot::path(&disk, 2);
        disk.open(&newest).unwrap().write_all_at(b"y", 100).unwrap();
        let [without_log, without_snapshot, empty] = [(); 3].map(|()| disk.after_crash(None));
        without_log.remove(&log_file::path(&disk, 1)).unwrap();
        without_snapshot.remove(&snapshot::path(&disk, 1)).unwrap();
        empty.create(&newest).unwrap();
        for (disk, keys, losses) in [
            (&disk, 3, 0),
            // Logs without a snapshot do not replace the snapshot before these logs, even if the
            // logs alone report fewer losses.
            (&without_snapshot, 2, 1),
            // The truncated bytes of a file count as lost.
            (&empty, 3, 0),
            // An older snapshot whose log is missing does not replace the newer snapshot.
            (&without_log, 2, 1),
        ] {
            let report = repair(disk).unwrap();
            assert_eq!((report.keys, report.lost.len()), (keys, losses), "{report:?}");
            assert_eq!(check(disk).unwrap().keys, keys);
        }
    }

    #[test]
    fn an_invalid_end_position_is_not_used_for_the_next_log() {
        let disk = SimDisk::default();
        write_snapshot(&disk, 1, (100, u64::MAX - 10), &[("key", b"1")]);
        assert!(check(&disk).is_err(), "its log is missing");
        assert_eq!(repair(&disk).unwrap().keys, 1);
        assert_eq!(check(&disk).unwrap().keys, 1);
    }
}
