//! `check-data --repair` keeps the valid data of damaged files and reports the losses.

use std::path::{Path, PathBuf};

use crate::client::with_items;
use crate::data_folder::{
    HEADER_BYTES, LOG_HEADER_BYTES, assert_refused, check, config, copy_of, only_log, repair,
    secret_of, start, start_new,
};
use tamis_resp::Reply;
use tamis_server::Server;
use xxhash_rust::xxh3::xxh3_64_with_seed;

#[test]
fn a_repair_keeps_valid_data_and_reports_the_losses() {
    let (dir, server, mut client) = start_new();
    client.say(&["BF.RESERVE", "seen", "0.001", "1000"]);
    client.say(&["SET", "early", "1"]);
    client.say(&["SAVE"]);
    for i in 0..100 {
        client.say(&["BF.ADD", "seen", &format!("item:{i}")]);
    }
    client.say(&["SET", "late", "1"]);
    drop(server);
    assert_eq!(check(dir.path()).unwrap().keys, 3);
    let sound = repair(dir.path()).unwrap();
    assert!(sound.lost.is_empty() && sound.aside.is_none(), "nothing to repair");
    let log = only_log(dir.path());
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[LOG_HEADER_BYTES + 200] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let refused = Server::start(config(dir.path())).unwrap_err().to_string();
    let checked = check(dir.path()).unwrap_err().to_string();
    assert_eq!(checked, refused);
    assert_eq!(std::fs::read(&log).unwrap(), bytes, "a check changes nothing");
    let report = repair(dir.path()).unwrap();
    assert_eq!((report.keys, report.lost.len()), (3, 1), "{report:?}");
    assert!(report.lost[0].contains("log-1.tamis: bytes"), "{report:?}");
    let aside = report.aside.unwrap();
    assert_eq!(std::fs::read(aside.join("log-1.tamis")).unwrap(), bytes);
    let (server, mut client) = start(dir.path());
    let found = client.list(&with_items("BF.MEXISTS seen", 0..100));
    assert_eq!(found.iter().filter(|it| **it == Reply::Integer(1)).count(), 99);
    assert_eq!(client.say(&["EXISTS", "early", "late"]), Reply::Integer(2));
    drop(server);
    // The snapshot is damaged too, and the newest log is missing.
    let snapshot = dir.path().join("snapshot-2.tamis");
    let mut bytes = std::fs::read(&snapshot).unwrap();
    // The last byte of the last key, before the end item and the second header.
    let at = bytes.len() - HEADER_BYTES - 40 - 1;
    bytes[at] ^= 1;
    std::fs::write(&snapshot, &bytes).unwrap();
    std::fs::remove_file(only_log(dir.path())).unwrap();
    let report = repair(dir.path()).unwrap();
    assert_eq!((report.keys, report.lost.len()), (2, 2), "{report:?}");
    drop(start(dir.path()));
    assert!(check(&dir.path().join("none")).is_err());
}

/// Returns a folder with a snapshot and later changes, its log, its snapshot, and its number of
/// keys.
fn saved() -> (tempfile::TempDir, PathBuf, PathBuf, usize) {
    let (dir, server, mut client) = start_new();
    for i in 0..20 {
        client.say(&["SET", &format!("early:{i}"), &"x".repeat(i)]);
    }
    client.say(&["SAVE"]);
    for i in 0..20 {
        client.say(&["SET", &format!("late:{i}"), "1"]);
    }
    drop(server);
    let log = only_log(dir.path());
    let snapshot = dir.path().join("snapshot-1.tamis");
    assert!(snapshot.exists());
    (dir, log, snapshot, 40)
}

/// Returns a copy of a folder in which one file has other bytes.
fn copy_with(dir: &Path, path: &Path, bytes: &[u8]) -> tempfile::TempDir {
    let copy = copy_of(dir);
    std::fs::write(copy.path().join(path.file_name().unwrap()), bytes).unwrap();
    copy
}

#[test]
fn a_flipped_bit_in_a_header_is_damage_and_a_repair_loses_nothing() {
    let (dir, log, snapshot, keys) = saved();
    for (path, header_bytes) in [(&log, LOG_HEADER_BYTES), (&snapshot, HEADER_BYTES)] {
        let whole = std::fs::read(path).unwrap();
        for bit in 0..header_bytes * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path, &flipped).unwrap();
            let checked = check(dir.path());
            // One of the two `synced` fields is enough.
            if bit >= HEADER_BYTES * 8 {
                assert_eq!(checked.unwrap().keys, keys, "bit {bit}");
                continue;
            }
            let refused = checked.unwrap_err().to_string();
            assert!(refused.contains("damaged at byte"), "bit {bit}: {refused}");
            assert!(refused.contains("tamis check-data --repair"), "bit {bit}: {refused}");
            if bit % 8 == bit / 8 % 8 {
                let copy = copy_with(dir.path(), path, &flipped);
                let report = repair(copy.path()).unwrap();
                assert_eq!((report.keys, report.lost.len()), (keys, 1), "bit {bit}: {report:?}");
                assert_eq!(check(copy.path()).unwrap().keys, keys);
            }
        }
        std::fs::write(path, &whole).unwrap();
    }
    // Damages both fields, and then the whole header.
    let whole = std::fs::read(&log).unwrap();
    for damaged in [HEADER_BYTES..LOG_HEADER_BYTES, 0..LOG_HEADER_BYTES] {
        let mut bytes = whole.clone();
        bytes[damaged].fill(0x55);
        let copy = copy_with(dir.path(), &log, &bytes);
        let report = repair(copy.path()).unwrap();
        assert_eq!((report.keys, report.lost.len()), (keys, 1), "{report:?}");
    }
}

#[test]
fn a_repair_loses_only_the_damaged_keys_of_a_snapshot() {
    let (dir, _, snapshot, keys) = saved();
    let whole = std::fs::read(&snapshot).unwrap();
    let (mut named, mut repairs) = (0, 0);
    // After the end item of 40 bytes comes the second header, which is unused while the first one
    // is valid.
    let end = whole.len() - HEADER_BYTES - 40;
    for at in (HEADER_BYTES..end + 40).step_by(19) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        let copy = copy_with(dir.path(), &snapshot, &flipped);
        let report = repair(copy.path()).unwrap();
        let lost = usize::from(at < end);
        assert_eq!((report.keys, report.lost.len()), (keys - lost, 1), "{at}: {report:?}");
        assert!(report.lost[0].contains("snapshot-1.tamis: bytes "), "{report:?}");
        named += usize::from(report.lost[0].contains("of key \"early:"));
        repairs += 1;
        assert_eq!(check(copy.path()).unwrap().keys, keys - lost);
    }
    assert!(named > repairs / 2, "only {named} of {repairs} reports name the key");
    // Damages several keys so that none of their lengths can be read.
    let mut bytes = whole.clone();
    bytes[100..250].fill(0xff);
    let copy = copy_with(dir.path(), &snapshot, &bytes);
    let report = repair(copy.path()).unwrap();
    assert!(report.keys < keys - 1 && report.keys > keys - 6, "{report:?}");
    assert!(report.lost.last().unwrap().contains(" of 20 keys in all"), "{report:?}");
}

#[test]
fn files_that_are_missing_are_named_by_a_repair() {
    let (dir, log, snapshot, keys) = saved();
    let bytes = std::fs::read(&log).unwrap();
    // As if another log had existed between the two.
    let copy = copy_with(dir.path(), Path::new("log-3.tamis"), &bytes);
    std::fs::write(copy.path().join("manifest"), "log 3 secret 0000000000000063\n").unwrap();
    assert_refused(copy.path(), &["log-2.tamis: a log between others is missing"]);
    let report = repair(copy.path()).unwrap();
    assert_eq!((report.keys, report.lost.len()), (keys, 1), "{report:?}");
    assert!(report.lost[0].ends_with("log-2.tamis: the file is missing"), "{report:?}");
    std::fs::remove_file(&snapshot).unwrap();
    let report = repair(dir.path()).unwrap();
    assert_eq!((report.keys, report.lost.len()), (20, 1), "{report:?}");
    assert!(report.lost[0].ends_with("snapshot-1.tamis: the file is missing"), "{report:?}");
}

#[test]
fn a_length_beyond_the_memory_is_refused_in_a_line() {
    let (dir, log, snapshot, _) = saved();
    let (huge, tail) = (1_u64 << 42, LOG_HEADER_BYTES as u64);
    // A change with a length of four terabytes, in a file with a hole of that length.
    let mut bytes = std::fs::read(&log).unwrap();
    let began = u64::from_le_bytes(bytes[12..20].try_into().unwrap());
    bytes.truncate(LOG_HEADER_BYTES);
    bytes.extend(huge.to_le_bytes());
    let sum = xxh3_64_with_seed(&huge.to_le_bytes(), began ^ secret_of(&bytes)) as u32;
    bytes.extend(sum.to_le_bytes());
    let sparse = |path: &Path, bytes: &[u8]| {
        let copy = copy_with(dir.path(), path, bytes);
        let file = copy.path().join(path.file_name().unwrap());
        let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
        file.set_len(huge + 2 * tail).unwrap();
        let refused = check(copy.path()).unwrap_err().to_string();
        assert_eq!(refused.lines().count(), 1, "{refused}");
        refused
    };
    let refused = sparse(&log, &bytes);
    assert!(refused.contains("log-1.tamis: a change of"), "{refused}");
    assert!(refused.contains("larger than the machine's memory"), "{refused}");
    // A key with that length, and a value with that length.
    let whole = std::fs::read(&snapshot).unwrap();
    for at in [0, 24] {
        let mut bytes = whole.clone();
        bytes[HEADER_BYTES + at..][..8].copy_from_slice(&huge.to_le_bytes());
        let header = &mut bytes[HEADER_BYTES..HEADER_BYTES + 40];
        let sum = xxh3_64_with_seed(&header[..32], HEADER_BYTES as u64 ^ secret_of(&whole));
        header[32..].copy_from_slice(&sum.to_le_bytes());
        if at == 0 {
            let refused = sparse(&snapshot, &bytes);
            assert!(refused.contains("the length of a key exceeds the maximum"), "{refused}");
        } else {
            let copy = copy_with(dir.path(), &snapshot, &bytes);
            let refused = check(copy.path()).unwrap_err().to_string();
            assert!(refused.contains("longer than"), "{refused}");
        }
    }
}

#[test]
fn a_damaged_header_is_refused_even_if_the_manifest_is_removed() {
    let (dir, server, mut client) = start_new();
    client.say(&["SET", "number", "1"]);
    drop(server);
    let log = only_log(dir.path());
    std::fs::remove_file(dir.path().join("manifest")).unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[15] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    assert_refused(dir.path(), &["log-0.tamis: damaged at byte 0: its header is invalid"]);
    assert_eq!(std::fs::read(&log).unwrap(), bytes, "left as it is");
    let report = repair(dir.path()).unwrap();
    assert_eq!((report.keys, report.lost.len()), (1, 1), "{report:?}");
    let (_server, mut client) = start(dir.path());
    assert_eq!(client.say(&["GET", "number"]), Reply::bulk("1"));
}

#[test]
fn files_with_numbers_that_no_server_reaches_are_named() {
    let (dir, log, _, keys) = saved();
    let high = ["log-2147483648.tamis", "snapshot-99999999999999999999.tamis"];
    for name in high {
        std::fs::copy(&log, dir.path().join(name)).unwrap();
    }
    let started = Server::start(config(dir.path())).unwrap_err().to_string();
    let checked = check(dir.path()).unwrap_err();
    let repaired = repair(dir.path()).unwrap_err().to_string();
    assert!(matches!(checked, tamis_server::DurabilityError::Io { .. }), "{checked:?}");
    for refused in [started, checked.to_string(), repaired] {
        assert!(high.iter().all(|name| refused.contains(name)), "{refused}");
        assert!(
            refused.contains("to another folder") && !refused.contains("--repair"),
            "{refused}"
        );
    }
    for name in high {
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
    assert_eq!(check(dir.path()).unwrap().keys, keys);
    // A file with the highest valid number leaves no number for the new files of a repair.
    let last = "snapshot-2147483647.tamis";
    std::fs::write(dir.path().join(last), "damaged").unwrap();
    assert!(check(dir.path()).is_err());
    let refused = repair(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("2147483647") && !refused.contains("--repair"), "{refused}");
    assert!(!dir.path().join("damaged-1").exists());
}
