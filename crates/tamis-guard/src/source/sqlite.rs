//! Ids in an SQLite database.
//!
//! At each interval, `PRAGMA data_version` shows whether another connection has committed. After a
//! commit, [`SqliteOptions::changes`] decides what the source reads:
//!
//! * Without a change column, it reads all ids into a new generation.
//! * With one, it reads the rows whose value is new, and all ids only every
//!   [`reread`](SqliteOptions::reread). See `sqlite/history.rs` for the bound of these reads.
//!
//! The source reads all ids in chunks, in the order of the ids. Each chunk is a short transaction, so
//! the source does not block writers. Between two chunks it reads new rows. A row that
//! exists during the whole read is in one of the chunks. A row that is committed behind the chunk
//! is found as a change.
//!
//! Another file at the path or a changed schema may be another table. The set is then stale until
//! all ids are read again. Each statement that changes the schema has this effect, also `VACUUM`
//! and `CREATE INDEX`.

mod cell;
mod database;
mod follower;
mod history;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::source::{Reader, Run, SourceError};
use database::Database;
use follower::Follower;

/// The settings of an SQLite source. The operator writes the parts of SQL; they are not checked.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database.
    pub path: PathBuf,
    /// The table or view with the ids. A query in parentheses is possible.
    pub from: String,
    /// The column with the ids. It needs an index.
    pub id: String,
    /// Which rows count, such as `deleted_at IS NULL`.
    pub condition: Option<String>,
    /// How new rows are found.
    pub changes: Option<ChangeColumn>,
    /// A query that returns the ids of deleted rows, such as `SELECT id FROM deleted_products`. It
    /// must write an id as the table does. An id that a row has is not deleted. Without it, a
    /// deleted id passes until all ids are read again.
    pub deletions: Option<String>,
    /// The time from one read of all ids to the next, if there is a change column. A database
    /// without commits is not read.
    pub reread: Duration,
    /// The number of ids that one transaction reads.
    pub chunk: u32,
}

/// A column whose values never decrease: a transaction takes a value that is at least as large as
/// all values that were taken before, such as `updated_at` or an `AUTOINCREMENT` key.
///
/// Without `AUTOINCREMENT`, SQLite gives the key of the last row again after its deletion.
/// A row with a smaller value is found by the next read of all ids, so its sync delay is
/// [`SqliteOptions::reread`].
#[derive(Clone, Debug)]
pub struct ChangeColumn {
    /// The column. It needs an index. `NULL` counts as a new value.
    pub column: String,
    /// The longest time from the moment in which a transaction takes its value to its commit. With
    /// clocks of several machines, their difference counts too. The first read of the ids begins
    /// after this time.
    pub overlap: Duration,
}

impl SqliteOptions {
    /// Returns the usual settings for a column of ids. All ids are read after each change.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, from: &str, id: &str) -> Self {
        Self {
            path: path.into(),
            from: from.to_owned(),
            id: id.to_owned(),
            condition: None,
            changes: None,
            deletions: None,
            reread: Duration::from_secs(600),
            chunk: 10_000,
        }
    }
}

/// Opens the database and reads its changes.
#[derive(Debug)]
pub(super) struct SqliteReader {
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
}

impl SqliteReader {
    pub(super) fn new(options: SqliteOptions) -> Self {
        Self { follower: Follower::new(&options), options, database: None }
    }

    fn read_changes(&mut self, run: &Run) -> Result<(), SourceError> {
        let is_open = match &self.database {
            Some(database) => database.is_at_path()?,
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
