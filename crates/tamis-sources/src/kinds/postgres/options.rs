//! The settings of a PostgreSQL source.

use std::fmt;
use std::path::PathBuf;

use crate::kinds::condition::{Condition, InvalidCondition};
use crate::kinds::poll::PollOptions;

/// The settings of a source in PostgreSQL.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// The URL of the server, the user and the database: `postgres://user:password@host:5432/shop`. With
    /// `?sslmode=require`, all connections use TLS, and the source verifies the certificate of the server. If the URL
    /// has several hosts, the source uses the first host that is not a standby.
    pub url: String,
    /// The PEM file of the CA that has signed the certificate of the server. If the CA file is set, all connections use
    /// TLS. With `None`, the client trusts the CAs of the operating system.
    pub ca: Option<PathBuf>,
    /// The table, as `table` or `schema.table`. A name with dots must be in double quotes.
    pub table: String,
    /// The column that contains the ids. The type is an integer, `numeric(N, 0)`, a text, or `uuid`.
    pub column: String,
    /// The condition for rows that count, such as `deleted_at IS NULL`. The source accepts comparisons of integers,
    /// booleans and texts, `IN`, `IS NULL`, `NOT`, `AND`, `OR` and parentheses, because the source also tests each row
    /// of the stream. For a polled table, the condition may be any SQL, and the source does not check the SQL.
    pub condition: Option<String>,
    /// True if requests write each text id exactly as the table stores it. Set this field for a column that compares
    /// different texts as equal: `citext`, or a nondeterministic collation.
    pub exact: bool,
    /// The publication that contains the table. A polled table needs no publication.
    pub publication: String,
    /// The settings for polling a table or view, for a server without logical replication. With `None`, the source
    /// follows the changes. The change column must have an integer type, `timestamptz` or `timestamp`.
    pub poll: Option<PollOptions>,
    /// The name of a permanent replication slot. With a permanent slot, a restart does not need a full read. Each
    /// source needs a unique slot: the source creates the slot, and drops an unusable slot with this name. The source
    /// uses the slot only together with a snapshot. `None` selects a temporary slot, which ends with its connection.
    pub slot: Option<String>,
}

impl PostgresOptions {
    /// Returns the default settings for a column of ids. The publication is `tamis_guard`.
    #[must_use]
    pub fn new(url: &str, table: &str, column: &str) -> Self {
        Self {
            url: url.to_owned(),
            ca: None,
            table: table.to_owned(),
            column: column.to_owned(),
            condition: None,
            exact: false,
            publication: "tamis_guard".to_owned(),
            poll: None,
            slot: None,
        }
    }

    /// Checks the form of the condition. The source compares the condition with the columns when the source starts.
    ///
    /// # Errors
    ///
    /// [`InvalidCondition`] if the source follows the log and cannot evaluate the condition for rows of the log.
    pub fn check(&self) -> Result<(), InvalidCondition> {
        self.condition_of_log().map(drop)
    }

    /// Parses the condition. Returns `None` if the source has no condition, or if the source polls its table.
    pub(super) fn condition_of_log(&self) -> Result<Option<Condition>, InvalidCondition> {
        Condition::of_log(self.condition.as_deref(), self.poll.is_some())
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The output omits the URL, which may contain a password.
        f.debug_struct("PostgresOptions")
            .field("table", &self.table)
            .field("column", &self.column)
            .field("condition", &self.condition)
            .field("publication", &self.publication)
            .field("poll", &self.poll)
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
