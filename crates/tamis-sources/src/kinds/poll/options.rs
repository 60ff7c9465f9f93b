//! The settings of polling a database.

use std::time::Duration;

/// The settings of polling a database.
///
/// The source sends the query `deletions` to the database unchanged. SQLite also uses the name of the change column
/// unchanged. MySQL and PostgreSQL check and quote the name. Accept the query and the column name only from a trusted
/// operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollOptions {
    /// The column with which a poll finds new rows. With `None`, SQLite does a full read after each commit. MySQL and
    /// PostgreSQL do not report commits. With `None`, a source in MySQL or PostgreSQL does a full read at each
    /// [`interval`](crate::SourceOptions::interval).
    pub changes: Option<ChangeColumn>,
    /// A query that returns the ids of deleted rows, such as `SELECT id FROM deleted_products`. The query must return
    /// ids in the same form as the table. If a row with the id exists, the id does not count as deleted. With `None`, a
    /// deleted id passes until the next full read.
    pub deletions: Option<String>,
    /// The time between two full reads, if a change column is set.
    pub reread: Duration,
}

/// A column whose values never decrease, such as `updated_at` or an `AUTOINCREMENT` key. Each transaction takes a value
/// that is at least as large as all earlier values.
///
/// Without `AUTOINCREMENT`, SQLite reuses the key of the last row after its deletion. Local time decreases when summer
/// time ends, but a `TIMESTAMP` of MySQL does not decrease. If a new row has a smaller value than earlier rows, only
/// the next full read finds the row. The lag of a row with a smaller value is up to [`PollOptions::reread`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeColumn {
    /// The name of the column. The column needs an index. A row with `NULL` counts as new.
    pub column: String,
    /// The maximum time between taking a value and committing the transaction. If several machines take values from
    /// their own clocks, add the maximum difference between these clocks. The first full read starts after the time
    /// `overlap`.
    pub overlap: Duration,
}

impl Default for PollOptions {
    /// Returns settings without a change column. If the caller sets a change column, the source does a full read every
    /// 10 minutes.
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
