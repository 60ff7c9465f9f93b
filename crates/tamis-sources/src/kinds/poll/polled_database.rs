//! The queries of a poll.

use std::sync::Arc;
use std::time::Instant;

use crate::errors::source_error::SourceError;
use crate::ids::fold::Fold;
use crate::ids::generation::Generation;
use crate::kinds::poll::column_value::ColumnValue;
use crate::source::run::Run;

/// A callback that receives a deleted id, and whether a row with the id exists.
pub(crate) type EachDeleted<'e> = &'e mut dyn FnMut(&[u8], bool) -> Result<(), SourceError>;

/// Adds the name of the setting `deletions` to the error of the query for deletions, because an operator writes the
/// query.
pub(crate) fn in_deletions(error: SourceError) -> SourceError {
    match error {
        SourceError::Connect(why) => {
            SourceError::Connect(format!("the query `deletions` failed: {why}"))
        }
        other => other,
    }
}

/// A database that is polled. The default methods fit every database server.
pub(crate) trait PolledDatabase {
    /// Returns a number that changes after each commit of another connection. Returns `None` if the database does not
    /// count its commits. After `None`, the caller must assume that the database has changed.
    fn version(&self) -> Result<Option<i64>, SourceError> {
        Ok(None)
    }

    /// Returns a time T. The queries after the call see all rows that were committed before T. A replica returns an
    /// earlier time than a primary. Returns `None` if a replica has not returned any time yet.
    fn known_before(&self) -> Result<Option<Instant>, SourceError> {
        Ok(Some(Instant::now()))
    }

    /// Returns the function that converts a text id to its key.
    fn fold(&self) -> Result<Fold, SourceError>;

    /// Returns a text that changes when the definition of the table changes.
    fn schema(&self) -> Result<String, SourceError>;

    /// Handles a change of the text that `schema` returns. Returns an error if the database must be opened again,
    /// because the columns may have other types.
    fn after_change(&self) -> Result<(), SourceError> {
        let message = "the definition of the table has changed, so the guard reads all ids again";
        Err(SourceError::Reread(message.to_owned()))
    }

    /// Tests whether the path or the address still leads to the opened database.
    fn is_same(&self) -> Result<bool, SourceError> {
        // A connection always talks to the same server.
        Ok(true)
    }

    /// Returns an identity that no other database ever has. Returns `None` if no identity exists, or if a crash may
    /// undo the last commits.
    fn lasting_identity(&self) -> Option<String> {
        // A server may lose its last commits in a crash or a failover.
        None
    }

    /// Runs `queries` in one read transaction if a transaction is cheap, as in SQLite. Without a transaction, the order
    /// of the queries ensures a correct result.
    fn in_snapshot<T>(
        &self,
        queries: impl FnOnce() -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        queries()
    }

    /// Returns the largest value of the change column.
    fn highest(&self) -> Result<ColumnValue, SourceError>;

    /// Passes the ids of all rows whose change column is `NULL` or at least `bound`. If `bound` is `NULL`, passes the
    /// ids of all rows.
    fn each_changed(
        &self,
        bound: &ColumnValue,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Passes each id that the query for deletions returns, and whether a row with the id exists.
    fn each_deleted(&self, each: EachDeleted<'_>) -> Result<(), SourceError>;

    /// Reads the ids of all rows that exist during the whole call into a new generation. The method calls `pause`
    /// often, and stops the read when `pause` returns false.
    fn read_all(
        &self,
        run: &Run,
        generation: &Arc<Generation>,
        pause: &mut dyn FnMut() -> Result<bool, SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns the approximate number of rows in the table. Returns 0 if the number is unknown.
    fn rows(&self) -> Result<u64, SourceError>;
}
