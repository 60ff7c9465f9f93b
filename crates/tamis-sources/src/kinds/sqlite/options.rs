//! The settings of an SQLite source.

use std::path::PathBuf;
use std::time::Duration;

use crate::kinds::poll::{ChangeColumn, PollOptions};

/// The settings of an SQLite source. The operator writes the SQL fragments, and the source does not check them.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The path of the database file.
    pub path: PathBuf,
    /// The table or view that contains the ids. A query in parentheses is also possible.
    pub from: String,
    /// The column that contains the ids. The column needs an index.
    pub id: String,
    /// The condition for rows that count, such as `deleted_at IS NULL`.
    pub condition: Option<String>,
    /// The column with which a poll finds new rows.
    pub changes: Option<ChangeColumn>,
    /// A query that returns the ids of deleted rows, such as `SELECT id FROM deleted_products`. The query must return
    /// ids in the same form as the table. If a row with the id exists, the id does not count as deleted. With `None`, a
    /// deleted id passes until the next full read.
    pub deletions: Option<String>,
    /// The time between two full reads, if a change column is set. If the database has no commits, the source skips the
    /// full read.
    pub reread: Duration,
    /// The number of ids that one transaction reads.
    pub chunk: u32,
}

impl SqliteOptions {
    /// Returns the default settings for a column of ids. The source does a full read after each change.
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

    /// Returns the settings for the poll.
    pub(super) fn poll(&self) -> PollOptions {
        PollOptions {
            changes: self.changes.clone(),
            deletions: self.deletions.clone(),
            reread: self.reread,
        }
    }

    /// Returns the identity of the ids for a snapshot.
    pub(super) fn identity(&self) -> String {
        let Self { path, from, id, condition, changes, deletions, .. } = self;
        let column = changes.as_ref().map(|changes| (&changes.column, changes.overlap));
        format!("sqlite {path:?} {from:?} {id:?} {condition:?} {column:?} {deletions:?}")
    }
}
