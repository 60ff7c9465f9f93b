//! A source with a snapshot.

use tamis_sources::SourceOptions;
use tamis_sources::{AuditSource, IdType, Reader, SnapshotOptions, SourceError, SourceKind};

/// A source with a snapshot, from which it continues after a restart.
#[derive(Clone, Debug)]
pub struct Lasting<K> {
    pub options: K,
    pub snapshot: SnapshotOptions,
}

impl<K: SourceKind> SourceKind for Lasting<K> {
    fn reader(&self, options: &SourceOptions) -> Box<dyn Reader> {
        let snapshot = Some(self.snapshot.clone());
        self.options.reader(&SourceOptions { snapshot, ..options.clone() })
    }

    fn audit(&self, id: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        self.options.audit(id)
    }
}
