//! What a poll asks a database.

use std::sync::Arc;

use crate::generation::Generation;
use crate::source::error::SourceError;
use crate::source::poll::cell::Cell;
use crate::source::run::Run;

/// Takes a deleted id, and whether a row has the id.
pub(in crate::source) type EachDeleted<'e> =
    &'e mut dyn FnMut(&[u8], bool) -> Result<(), SourceError>;

/// A database that is polled. What it does by itself is right for each database server.
pub(in crate::source) trait PolledDatabase {
    /// Returns a number that differs after each commit of another connection. `None` if the
    /// database has none: then it may have changed.
    fn version(&self) -> Result<Option<i64>, SourceError> {
        Ok(None)
    }

    /// Returns a text that differs after a change of the table's definition.
    fn schema(&self) -> Result<String, SourceError>;

    /// Called after `schema` has returned another text. Fails if the database must be opened again:
    /// the columns of a server may have other types.
    fn after_change(&self) -> Result<(), SourceError> {
        let message = "the definition of the table has changed; all ids are read again";
        Err(SourceError::Connect(message.to_owned()))
    }

    /// Tests whether the database is still the one that was opened.
    fn is_same(&self) -> Result<bool, SourceError> {
        // A connection has one server.
        Ok(true)
    }

    /// Returns what tells the database from all others, also from one that takes its place later.
    /// `None` if nothing does, or if a crash may undo its last commits.
    fn lasting_identity(&self) -> Option<String> {
        // A server may lose its last commits in a crash or a failover.
        None
    }

    /// Runs `queries` so that all of them see the same rows, if the database has such a thing at a
    /// low price. Their order makes them correct without it.
    fn in_snapshot<T>(
        &self,
        queries: impl FnOnce() -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        queries()
    }

    /// Returns the largest value of the change column.
    fn highest(&self) -> Result<Cell, SourceError>;

    /// Passes the ids of all rows whose change column has at least the value `bound`, or `NULL`. All
    /// rows for the bound `NULL`.
    fn each_changed(
        &self,
        bound: &Cell,
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
