//! The settings of an SQLite source.

use std::path::PathBuf;
use std::time::Duration;

use crate::kinds::poll::{ChangeColumn, PollOptions};

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

    /// Returns how the database is polled.
    pub(super) fn poll(&self) -> PollOptions {
        PollOptions {
            changes: self.changes.clone(),
            deletions: self.deletions.clone(),
            reread: self.reread,
        }
    }

    /// Returns which ids the source reads, for its snapshot.
    pub(super) fn identity(&self) -> String {
        let Self { path, from, id, condition, changes, deletions, .. } = self;
        let column = changes.as_ref().map(|changes| (&changes.column, changes.overlap));
        format!("sqlite {path:?} {from:?} {id:?} {condition:?} {column:?} {deletions:?}")
    }
}
