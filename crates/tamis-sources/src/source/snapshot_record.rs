//! What happened to the snapshots of a source.

use std::time::SystemTime;

use parking_lot::Mutex;

use crate::ids::snapshot::SnapshotError;
use crate::source::status::SnapshotStatus;

/// What happened to the snapshots of a source.
#[derive(Debug, Default)]
pub(crate) struct SnapshotRecord(Mutex<Record>);

#[derive(Debug, Default)]
struct Record {
    /// When the last snapshot was written.
    created: Option<SystemTime>,
    failures: u64,
    last_error: Option<String>,
    unused: Option<String>,
}

impl SnapshotRecord {
    /// Records why the source cannot continue the snapshot that it found.
    pub(crate) fn refuse(&self, error: &SnapshotError) {
        self.0.lock().unused = Some(error.to_string());
    }

    /// Records when the snapshot was written that the source found.
    pub(crate) fn loaded(&self, created: Option<SystemTime>) {
        self.0.lock().created = created;
    }

    /// Tests whether the last snapshot was not written.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.lock().last_error.is_some()
    }

    /// Records the end of a write.
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
