//! The settings of a PostgreSQL source.

use std::fmt;
use std::path::PathBuf;

use crate::kinds::poll::PollOptions;

/// The settings of a source in PostgreSQL.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// The server, the user and the database: `postgres://user:password@host:5432/shop`. With
    /// `?sslmode=require` the connections use TLS, and the certificate of the server is verified.
    /// With several hosts, the first one is used that is no standby.
    pub url: String,
    /// The certificates of the CA that has signed that of the server, as PEM, instead of those of the system. The
    /// connections then use TLS.
    pub ca: Option<PathBuf>,
    /// The table, as `table` or `schema.table`. Names with dots stand in double quotes.
    pub table: String,
    /// The column with the ids. It is an integer, a text, or a `uuid`.
    pub column: String,
    /// True if requests write each text id exactly as the table has it, although different texts may be equal in the
    /// column: `citext`, or a collation that is not deterministic.
    pub exact: bool,
    /// The publication that has the table. It does not matter if the table is polled.
    pub publication: String,
    /// How the table or view is polled, for a server without logical replication. `None` follows the
    /// changes. The change column has an integer type, or is a `timestamptz` or a `timestamp`.
    pub poll: Option<PollOptions>,
    /// The name of a permanent replication slot, so that a restart need not read the table again. Each
    /// source needs its own: the source creates the slot, and drops a slot of this name that it cannot
    /// use. It is used only with a snapshot. `None` for a temporary slot: it ends with its connection.
    pub slot: Option<String>,
}

impl PostgresOptions {
    /// Returns the usual settings for a column of ids. The publication is `tamis_guard`.
    #[must_use]
    pub fn new(url: &str, table: &str, column: &str) -> Self {
        Self {
            url: url.to_owned(),
            ca: None,
            table: table.to_owned(),
            column: column.to_owned(),
            exact: false,
            publication: "tamis_guard".to_owned(),
            poll: None,
            slot: None,
        }
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("PostgresOptions")
            .field("table", &self.table)
            .field("column", &self.column)
            .field("publication", &self.publication)
            .field("poll", &self.poll)
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
