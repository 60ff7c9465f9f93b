//! Writes small logs and snapshots for tests.

use tamis_commands::Value;

use crate::persistence::log::frame;
use crate::persistence::log::log_file::LogFile;
use crate::persistence::log::record::Record;
use crate::persistence::sim_disk::SimDisk;
use crate::persistence::snapshot::writer::SnapshotWriter;

/// Writes a log in which each change sets one key. Returns the log and its end position.
pub(super) fn write_log(disk: &SimDisk, number: u64, began: u64, keys: &[&str]) -> (LogFile, u64) {
    let log = LogFile::begin(disk, number, began, 0, 0, 99).unwrap();
    let mut bytes = Vec::new();
    for key in keys {
        let record = Record::Command { now_millis: 0, argv: vec![b"SET", key.as_bytes(), b"1"] };
        let seed = log.seed(began + bytes.len() as u64);
        frame::append(&mut bytes, seed, |out| record.encode(out));
    }
    log.file.write_all_at(&bytes, log.offset_of(began)).unwrap();
    (log, began + bytes.len() as u64)
}

/// Writes a snapshot of strings for the log that begins at `began`. Each value contains all changes
/// before the position `began`.
pub(super) fn write_snapshot(
    disk: &SimDisk,
    number: u64,
    (began, end): (u64, u64),
    items: &[(&str, &[u8])],
) {
    let mut writer = SnapshotWriter::new(disk, number, began).unwrap();
    for (key, text) in items {
        let value = Value::Bytes(text.to_vec().into());
        writer.entry(key.as_bytes(), &value, None, (began, None)).unwrap();
    }
    writer.finish(end).unwrap();
}
