//! The settings of a MySQL source.

use std::fmt;
use std::path::PathBuf;

use mysql_async::Opts;

use crate::kinds::condition::{Condition, InvalidCondition};
use crate::kinds::mysql::quoted::quoted;
use crate::kinds::poll::PollOptions;

/// The settings of a source in MySQL or MariaDB.
#[derive(Clone, PartialEq, Eq)]
pub struct MysqlOptions {
    /// The URL of the server, the user and the database: `mysql://user:password@host:3306/shop`. `?require_ssl=true`
    /// enables TLS.
    pub url: String,
    /// The PEM file of the CA that has signed the certificate of the server. If the CA file is set, all connections use
    /// TLS. With `None`, the client trusts the CAs of the operating system.
    pub ca: Option<PathBuf>,
    /// The URL of the primary, if the server of `url` is a replica. The source queries the primary for the end of its
    /// log.
    pub primary: Option<String>,
    /// The name of the table in the database of the URL.
    pub table: String,
    /// The column that contains the ids. The type is an integer, `DECIMAL` without a fraction, a text, or `BINARY(16)`
    /// or `UUID` for UUIDs.
    pub column: String,
    /// The condition for rows that count, such as `deleted_at IS NULL`. The source accepts comparisons of integers and
    /// texts, `IN`, `IS NULL`, `NOT`, `AND`, `OR` and parentheses, because the source also tests each row of the log.
    /// For a polled table, the condition may be any SQL, and the source does not check the SQL.
    pub condition: Option<String>,
    /// True if requests write each text id exactly as the table stores it. If the field is false, every text passes
    /// that is equal to an id under the collation of the column.
    pub exact: bool,
    /// The server id of the source, which must be unique among the replicas of the server. `None` selects a random id.
    pub server_id: Option<u32>,
    /// The settings for polling, for a server without a usable binary log. With `None`, the source follows the log. The
    /// change column must have an integer type, `TIMESTAMP` or `DATETIME`. A polled table has no snapshots.
    pub poll: Option<PollOptions>,
}

impl MysqlOptions {
    /// Returns the default settings for a column of ids.
    #[must_use]
    pub fn new(url: &str, table: &str, column: &str) -> Self {
        Self {
            url: url.to_owned(),
            ca: None,
            primary: None,
            table: table.to_owned(),
            column: column.to_owned(),
            condition: None,
            exact: false,
            server_id: None,
            poll: None,
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

    /// Returns the table name with its database for messages.
    pub(super) fn named_table(&self) -> String {
        let opts = Opts::from_url(&self.url).ok();
        match opts.as_ref().and_then(Opts::db_name) {
            Some(database) => format!("{}.{}", written(database), written(&self.table)),
            None => written(&self.table),
        }
    }

    /// Returns the identity of the ids for a snapshot.
    pub(super) fn identity(&self) -> String {
        let opts = Opts::from_url(&self.url).ok();
        let database = opts.as_ref().and_then(Opts::db_name).unwrap_or_default();
        let exact = if self.exact { " exact" } else { "" };
        let condition = self.condition.as_ref().map(|it| format!(" where {it:?}"));
        let condition = condition.unwrap_or_default();
        format!("mysql {database:?} {:?} {:?}{exact}{condition}", self.table, self.column)
    }
}

/// Returns a name as SQL. The function omits the quotes if the name needs no quotes.
fn written(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { name.to_owned() } else { quoted(name) }
}

impl fmt::Debug for MysqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The output omits the URL, which may contain a password.
        f.debug_struct("MysqlOptions")
            .field("table", &self.table)
            .field("column", &self.column)
            .field("condition", &self.condition)
            .field("server_id", &self.server_id)
            .field("poll", &self.poll)
            .finish_non_exhaustive()
    }
}
