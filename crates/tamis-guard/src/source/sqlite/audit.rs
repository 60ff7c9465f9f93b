//! A database as an audit reads it.

use std::sync::Arc;

use crate::ids::id::IdType;
use crate::source::audit_source::AuditSource;
use crate::source::error::SourceError;
use crate::source::poll::ColumnValue;
use crate::source::sqlite::database::Database;
use crate::source::sqlite::options::SqliteOptions;

/// Reads the ids of an SQLite database for an audit.
#[derive(Debug)]
pub struct SqliteAudit {
    database: Database,
    chunk: u64,
}

impl SqliteAudit {
    /// Opens a database for reading.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if there is no database at the path.
    pub fn open(options: &SqliteOptions, id: &IdType) -> Result<Self, SourceError> {
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
