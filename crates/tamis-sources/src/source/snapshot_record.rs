//! Records the result of reading and writing snapshots.

use std::time::SystemTime;

use parking_lot::Mutex;

use crate::ids::snapshot::SnapshotError;
use crate::source::status::SnapshotStatus;

/// The record of reading and writing the snapshots of a source.
#[derive(Debug, Default)]
pub(crate) struct SnapshotRecord(Mutex<Record>);

#[derive(Debug, Default)]
struct Record {
    /// The time at which the last snapshot was written.
    created: Option<SystemTime>,
    failures: u64,
    last_error: Option<String>,
    unused: Option<String>,
}

impl SnapshotRecord {
    /// Records why the source cannot continue from its snapshot.
    pub(crate) fn refuse(&self, error: &SnapshotError) {
        self.0.lock().unused = Some(error.to_string());
    }

    /// Records the time at which the loaded snapshot was written. `None` means that no snapshot exists.
    pub(crate) fn loaded(&self, created: Option<SystemTime>) {
        self.0.lock().created = created;
    }

    /// Tests whether the last write of a snapshot failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.lock().last_error.is_some()
    }

    /// Records the result of a write.
    pub(crate) fn saved(&self, created: SystemTime, result: Result<(), SnapshotError>) {
        let mut record = self.0.lock();
        match result {
            Ok(()) => (record.created, record.last_error) = (Some(created), None),
            Err(error) => {
                record.failures += 1;
                record.last_error = Some(error.to_string());
            }
        }
    }

    pub(crate) fn status(&self) -> SnapshotStatus {
        let record = self.0.lock();
        let age = |created| SystemTime::now().duration_since(created).unwrap_or_default();
        SnapshotStatus {
            age: record.created.map(age),
            failures: record.failures,
            last_error: record.last_error.clone(),
            unused: record.unused.clone(),
        }
    }
}
