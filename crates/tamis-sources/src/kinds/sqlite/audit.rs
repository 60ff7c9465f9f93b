//! Reads an SQLite database for an audit.

use std::sync::Arc;

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::poll::ColumnValue;
use crate::kinds::sqlite::database::Database;
use crate::kinds::sqlite::options::SqliteOptions;
use crate::source::audit_source::AuditSource;

/// Reads the ids of an SQLite database for an audit.
#[derive(Debug)]
pub(super) struct SqliteAudit {
    database: Database,
    chunk: u64,
}

impl SqliteAudit {
    /// Opens a database read-only.
    pub(super) fn open(options: &SqliteOptions, id: &IdType) -> Result<Self, SourceError> {
        let database = Database::open(options, id, Arc::default())?;
        Ok(Self { database, chunk: options.chunk.max(1).into() })
    }
}

impl AuditSource for SqliteAudit {
    /// Reads all ids in chunks, so that writers do not wait.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let mut last = ColumnValue::Null;
        loop {
            let after = last.clone();
            let count = self.database.chunk(&after, |value, text| {
                last = value.into();
                each(text)
            })?;
            if count < self.chunk {
                return Ok(());
            }
        }
    }
}
