//! What the stories need to know of a database.

use tamis_sources::SourceKind;

/// A server on which the stories happen.
pub trait Database {
    type Options: SourceKind + Clone;

    /// The scheme of the URL.
    const SCHEME: &'static str;
    /// Settings of a server that keeps each commit when it is killed.
    const DURABLE: &'static [&'static str];
    /// Settings of a server without a log of changes.
    const WITHOUT_LOG: &'static [&'static str];
    /// Settings of a server whose log a source continues after its restart.
    const CONTINUED: &'static [&'static str];
    /// Whether a source without a snapshot continues the log after it has lost its connection.
    const KEEPS_PLACE: bool;
    /// Whether a restarted source continues the log after an older snapshot.
    const KEEPS_OLD_LOG: bool;
    /// Begins another file of the log.
    const NEXT_LOG: &'static str;
    /// Creates the table `items`, whose column `updated_at` shows changes, and the table `deleted`.
    const ITEMS: &'static str;
    /// Makes the ids in the table `deleted` texts.
    const DELETED_TEXTS: &'static str;
    /// Creates and publishes the table `goods`, whose columns conditions test.
    const GOODS: &'static str;
    /// Counts the rows of the table `goods` for the server's estimates.
    const ANALYZE_GOODS: &'static str;
    /// Makes it possible that a condition tests the column `name` of the table `products`.
    const TEST_NAMES: &'static str;

    /// Returns the options of a source that continues the log after a restart.
    fn continued(options: &Self::Options) -> Self::Options;

    /// Returns a query whose column `id` has the numbers from `first` to `last`.
    fn numbers(first: u64, last: u64) -> String;

    /// Returns the SQL that deletes a row of `products` and inserts it again.
    fn replace(id: u64) -> String;

    /// Returns the SQL that creates an empty table `new`, which is like `table`.
    fn create_new(table: &str) -> String;

    /// Returns the SQL that renames a table to `old`, and the table `new` to its name, in one step.
    fn swap(table: &str) -> String;
}
