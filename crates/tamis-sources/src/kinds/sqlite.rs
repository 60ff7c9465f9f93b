//! Reads ids from an SQLite database.
//!
//! The source polls the database, as `poll.rs` describes. `PRAGMA data_version` shows whether another connection has
//! committed. A full read reads all ids in chunks, in the order of the ids. Each chunk is a short transaction, so the
//! source does not block writers.
//!
//! A snapshot contains the bound of the next poll. A starting source polls from this bound, so it finds all rows that
//! were committed after the last poll. The source does a full read in three cases: the file was replaced, the machine
//! was restarted after the snapshot, or the schema has changed.
//!
//! If the file at the path was replaced or the schema has changed, the table may be another table. After a replacement
//! of the file or a change of the schema, the set is stale until the next full read ends. Each statement that changes
//! the schema makes the set stale, including `VACUUM` and `CREATE INDEX`.

mod audit;
mod column_value;
mod database;
mod options;

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::ids::snapshot::SnapshotOptions;
use crate::kinds::poll::{Follower, PolledDatabase as _};
use crate::source::audit_source::AuditSource;
use crate::source::kind::SourceKind;
use crate::source::run::{Reader, Run, SourceOptions};
use audit::SqliteAudit;
use database::Database;
pub use options::SqliteOptions;

impl SourceKind for SqliteOptions {
    fn name(&self) -> String {
        format!("sqlite {}.{} in {}", self.from, self.id, self.path.display())
    }

    fn reader(&self, options: &SourceOptions) -> Box<dyn Reader> {
        Box::new(SqliteReader::new(self.clone(), options.snapshot.clone()))
    }

    fn audit(&self, id: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Ok(Box::new(SqliteAudit::open(self, id)?))
    }
}

/// Opens the database and reads its changes.
#[derive(Debug)]
struct SqliteReader {
    options: SqliteOptions,
    database: Option<Database>,
    follower: Follower,
}

impl Reader for SqliteReader {
    fn read(&mut self, run: &Run) -> Result<(), SourceError> {
        let result = self.read_changes(run);
        if let Err(SourceError::Sqlite(error)) = &result {
            if run.is_stopped() {
                return Err(SourceError::Stopped);
            }
            // After a lock or an error in a query, the connection stays open.
            let harmless = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked, ErrorCode::Unknown];
            if error.sqlite_error_code().is_none_or(|code| !harmless.contains(&code)) {
                self.follower.forget(run);
                self.database = None;
            }
        }
        result
    }

    fn stop(&mut self, run: &Run) {
        if let Some(database) = &self.database {
            self.follower.stop(run, database);
        }
    }
}

impl SqliteReader {
    fn new(options: SqliteOptions, snapshot: Option<SnapshotOptions>) -> Self {
        let follower = Follower::new(&options.poll(), snapshot, options.identity());
        Self { follower, options, database: None }
    }

    fn read_changes(&mut self, run: &Run) -> Result<(), SourceError> {
        let is_open = match &self.database {
            Some(database) => database.is_same()?,
            None => false,
        };
        if !is_open {
            self.follower.forget(run);
            self.database = None;
        }
        let database = match &mut self.database {
            Some(database) => database,
            none => {
                let is_stopped = Arc::clone(&run.is_stopped);
                none.insert(Database::open(&self.options, &run.ids.options().id, is_stopped)?)
            }
        };
        self.follower.read(run, database)
    }
}
