//! How a database is polled.

use std::time::Duration;

/// How a database is polled.
///
/// `deletions` is sent to the database as it is. SQLite also inserts the name of the change column as
/// it is; MySQL and PostgreSQL check and quote it. Take both from a trusted operator only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollOptions {
    /// How new rows are found. With `None`, SQLite reads all ids after each commit. MySQL and PostgreSQL
    /// do not report commits: with `None` they read all ids at each
    /// [`interval`](crate::SourceOptions::interval).
    pub changes: Option<ChangeColumn>,
    /// A query that returns the ids of deleted rows, such as `SELECT id FROM deleted_products`. It
    /// must write an id as the table does. An id that a row has is not deleted. Without it, a
    /// deleted id passes until all ids are read again.
    pub deletions: Option<String>,
    /// The time from one read of all ids to the next, if there is a change column.
    pub reread: Duration,
}

/// A column whose values never decrease: a transaction takes a value that is at least as large as
/// all values that were taken before, such as `updated_at` or an `AUTOINCREMENT` key.
///
/// Without `AUTOINCREMENT`, SQLite gives the key of the last row again after its deletion. Local
/// time decreases when summer time ends; a `TIMESTAMP` of MySQL does not.
/// A row with a smaller value is found by the next read of all ids, so its sync delay is
/// [`PollOptions::reread`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeColumn {
    /// The column. It needs an index. `NULL` counts as a new value.
    pub column: String,
    /// The longest time from the moment when a transaction takes its value to its commit. If several
    /// machines take values from their own clocks, add the largest difference between these clocks.
    /// The first read of all ids starts after this time.
    pub overlap: Duration,
}

impl Default for PollOptions {
    /// Returns the settings without a change column. With one, all ids are read every 10 minutes.
    fn default() -> Self {
        Self { changes: None, deletions: None, reread: Duration::from_secs(600) }
    }
}

impl ChangeColumn {
    /// Returns a column with an overlap of 10 seconds.
    #[must_use]
    pub fn new(column: &str) -> Self {
        Self { column: column.to_owned(), overlap: Duration::from_secs(10) }
    }
}
