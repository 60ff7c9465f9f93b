//! The settings of a MySQL source.

use std::fmt;
use std::path::PathBuf;

use mysql_async::Opts;

use crate::kinds::mysql::quoted::quoted;
use crate::kinds::poll::PollOptions;

/// The settings of a source in MySQL or MariaDB.
#[derive(Clone, PartialEq, Eq)]
pub struct MysqlOptions {
    /// The server, the user and the database: `mysql://user:password@host:3306/shop`. With
    /// `?require_ssl=true` the connection uses TLS.
    pub url: String,
    /// The certificates of the CA that has signed the certificate of the server, as PEM. The connections then use TLS. With
    /// `None`, the CAs of the system are trusted.
    pub ca: Option<PathBuf>,
    /// The URL of the primary, if the server of `url` is a replica. The source asks the primary for the end of its log.
    pub primary: Option<String>,
    /// The table, in the database of the URL.
    pub table: String,
    /// The column with the ids. It is an integer, a text, or `BINARY(16)` for UUIDs.
    pub column: String,
    /// True if requests write each text id exactly as the table has it. Otherwise all texts pass that are equal to an id
    /// under the collation of the column.
    pub exact: bool,
    /// The number by which the server knows the source, unique among its replicas. `None` for a
    /// random one.
    pub server_id: Option<u32>,
    /// How the table is polled, for a server without a usable binary log. `None` follows the log.
    /// The change column has an integer type, `TIMESTAMP` or `DATETIME`. A polled table has no
    /// snapshots.
    pub poll: Option<PollOptions>,
}

impl MysqlOptions {
    /// Returns the usual settings for a column of ids.
    #[must_use]
    pub fn new(url: &str, table: &str, column: &str) -> Self {
        Self {
            url: url.to_owned(),
            ca: None,
            primary: None,
            table: table.to_owned(),
            column: column.to_owned(),
            exact: false,
            server_id: None,
            poll: None,
        }
    }

    /// Returns the table with its database, as messages name it.
    pub(super) fn named_table(&self) -> String {
        let opts = Opts::from_url(&self.url).ok();
        match opts.as_ref().and_then(Opts::db_name) {
            Some(database) => format!("{}.{}", written(database), written(&self.table)),
            None => written(&self.table),
        }
    }

    /// Returns which ids the source reads, for its snapshot.
    pub(super) fn identity(&self) -> String {
        let opts = Opts::from_url(&self.url).ok();
        let database = opts.as_ref().and_then(Opts::db_name).unwrap_or_default();
        let exact = if self.exact { " exact" } else { "" };
        format!("mysql {database:?} {:?} {:?}{exact}", self.table, self.column)
    }
}

/// Returns a name as SQL writes it, without quotes if it needs none.
fn written(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { name.to_owned() } else { quoted(name) }
}

impl fmt::Debug for MysqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("MysqlOptions")
            .field("table", &self.table)
            .field("column", &self.column)
            .field("server_id", &self.server_id)
            .field("poll", &self.poll)
            .finish_non_exhaustive()
    }
}
