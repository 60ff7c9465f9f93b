//! What a poll asks a database.

use std::sync::Arc;
use std::time::Instant;

use crate::errors::source_error::SourceError;
use crate::ids::fold::Fold;
use crate::ids::generation::Generation;
use crate::kinds::poll::column_value::ColumnValue;
use crate::source::run::Run;

/// Takes a deleted id, and whether a row has the id.
pub(crate) type EachDeleted<'e> = &'e mut dyn FnMut(&[u8], bool) -> Result<(), SourceError>;

/// Names the query for deletions, which people write, in its error.
pub(crate) fn in_deletions(error: SourceError) -> SourceError {
    match error {
        SourceError::Connect(why) => {
            SourceError::Connect(format!("the query `deletions` failed: {why}"))
        }
        other => other,
    }
}

/// A database that is polled. What it does by itself is right for each database server.
pub(crate) trait PolledDatabase {
    /// Returns a number that differs after each commit of another connection. `None` if the
    /// database has none: then it may have changed.
    fn version(&self) -> Result<Option<i64>, SourceError> {
        Ok(None)
    }

    /// Returns a moment: queries that follow show all rows that were committed before it. A replica shows them later.
    /// `None` if no such moment is known.
    fn known_before(&self) -> Result<Option<Instant>, SourceError> {
        Ok(Some(Instant::now()))
    }

    /// Returns the fold of text ids.
    fn fold(&self) -> Result<Fold, SourceError>;

    /// Returns a text that differs after a change of the table's definition.
    fn schema(&self) -> Result<String, SourceError>;

    /// Called after `schema` has returned another text. Fails if the database must be opened again:
    /// the columns of a server may have other types.
    fn after_change(&self) -> Result<(), SourceError> {
        let message = "the definition of the table has changed, so the guard reads all ids again";
        Err(SourceError::Reread(message.to_owned()))
    }

    /// Tests whether the database is still the one that was opened.
    fn is_same(&self) -> Result<bool, SourceError> {
        // A connection has one server.
        Ok(true)
    }

    /// Returns an identity that no other database ever has. `None` if there is none, or if a crash may
    /// undo the last commits.
    fn lasting_identity(&self) -> Option<String> {
        // A server may lose its last commits in a crash or a failover.
        None
    }

    /// Runs `queries` in one read transaction if that is cheap, as in SQLite. The queries are correct
    /// without it, because of their order.
    fn in_snapshot<T>(
        &self,
        queries: impl FnOnce() -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        queries()
    }

    /// Returns the largest value of the change column.
    fn highest(&self) -> Result<ColumnValue, SourceError>;

    /// Passes the ids of all rows whose change column is at least `bound` or is `NULL`. If `bound` is
    /// `NULL`, passes the ids of all rows.
    fn each_changed(
        &self,
        bound: &ColumnValue,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Passes the ids that the query for deletions returns, and whether a row has the id.
    fn each_deleted(&self, each: EachDeleted<'_>) -> Result<(), SourceError>;

    /// Reads the ids of all rows that exist during the whole call into a new generation. Calls
    /// `pause` often, and ends when it returns false.
    fn read_all(
        &self,
        run: &Run,
        generation: &Arc<Generation>,
        pause: &mut dyn FnMut() -> Result<bool, SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns about how many rows the table has; 0 if it is not known.
    fn rows(&self) -> Result<u64, SourceError>;
}
