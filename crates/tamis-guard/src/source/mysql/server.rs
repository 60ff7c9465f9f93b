//! Connections for queries: they find the table, check the settings of the server, and read its
//! position in the log.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Opts, OptsBuilder, Row, UrlError};

use crate::id::IdType;
use crate::source::error::SourceError;
use crate::source::mysql::log_filter::{filtered, unlogged_updates};
use crate::source::mysql::log_place::Position;
use crate::source::mysql::options::MysqlOptions;
use crate::source::mysql::table::{ColumnKind, Table, quoted};

/// Why a server without a binary log is refused.
const NO_LOG: &str = "the server writes no binary log; add to its configuration and restart it: \
    log_bin = binlog, server_id = 1, binlog_format = ROW; or poll the table with follow = \"poll\"";

/// A connection for queries.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) connection: Conn,
    /// The identity of the server.
    pub(super) identity: String,
    pub(super) table: Table,
}

/// The settings of each session, whatever the defaults of the server are.
const SETTINGS: [&str; 3] = [
    // Each query has its own snapshot, results are not truncated, `CHAR` values are not padded, and a
    // backslash escapes in texts.
    "SET autocommit = 1, sql_select_limit = 18446744073709551615, sql_mode = \
     REPLACE(REPLACE(@@sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', ''), 'NO_BACKSLASH_ESCAPES', '')",
    // Queries do not see uncommitted rows.
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    // Texts arrive in UTF-8.
    "SET NAMES utf8mb4",
];

/// Connects to the server.
pub(super) async fn connect(options: &MysqlOptions) -> Result<Conn, SourceError> {
    let opts = opts(&options.url)
        .map_err(|wrong| SourceError::Preflight(format!("the URL of the database {wrong}")))?;
    let user = opts.user().unwrap_or_default().to_owned();
    // Only over the address in the URL: it may be that of a tunnel.
    let opts = OptsBuilder::from_opts(opts).prefer_socket(false).setup(SETTINGS.to_vec());
    Conn::new(opts).await.map_err(|error| explained(&error, &user, options))
}

/// Reads a URL. Returns what is wrong in it.
fn opts(url: &str) -> Result<Opts, &'static str> {
    // The host ends at one of these. If an `@` follows, the host or the database may be a part of the
    // password, and messages name both.
    let (_, rest) = url.split_once("://").unwrap_or_default();
    if rest.find(['/', '?', '#']).is_some_and(|end| rest[end..].contains('@')) {
        return Err("has an `@` after a `/`, `?` or `#`; percent-encode the characters of the \
            password, such as `@` as %40 and `/` as %2F");
    }
    Opts::from_url(url).map_err(|error| explained_url(&error))
}

/// Returns what is wrong in a URL, without its text: a part of it may be the password.
fn explained_url(error: &UrlError) -> &'static str {
    match error {
        UrlError::UnsupportedScheme { .. } => "does not begin with mysql://",
        UrlError::UnknownParameter { .. }
        | UrlError::InvalidParamValue { .. }
        | UrlError::FeatureRequired { .. } => {
            "has a parameter after `?` that is not known or has a wrong value; if `?` is a part of \
             the password, write it as %3F"
        }
        _ => {
            "cannot be read; write mysql://user:password@host:3306/database, with other characters \
             than letters and digits in the password percent-encoded"
        }
    }
}

/// Connects to a server that is known already, and to no other one behind its address.
pub(super) async fn connect_to(
    options: &MysqlOptions,
    identity: &str,
) -> Result<Conn, SourceError> {
    let mut connection = connect(options).await?;
    let user = connection.opts().user().unwrap_or_default().to_owned();
    let other = self::identity(&mut connection).await;
    check_identity(identity, &other.map_err(|error| explained(&error, &user, options))?)?;
    Ok(connection)
}

/// Refuses another server: its log and its rows do not fit to what is known.
pub(super) fn check_identity(known: &str, other: &str) -> Result<(), SourceError> {
    if other == known {
        return Ok(());
    }
    Err(SourceError::Preflight(format!(
        "one connection reached the server {known}, and a later one another server ({other}); \
         write the address of one server in the URL, not that of a load balancer"
    )))
}

/// Returns the identity of the server: its host name, port, server id and UUID. Two servers behind one
/// address have different identities.
async fn identity(connection: &mut Conn) -> Result<String, Error> {
    let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
        ('hostname', 'port', 'server_id', 'server_uid', 'server_uuid')";
    let mut values: Vec<(String, String)> = connection.query(sql).await?;
    values.sort();
    Ok(values.into_iter().map(|it| it.1).collect::<Vec<_>>().join(" "))
}

/// Returns an error with the SQL that fixes it.
pub(super) fn explained(error: &Error, user: &str, options: &MysqlOptions) -> SourceError {
    let Error::Server(server) = error else { return SourceError::Connect(error.to_string()) };
    let user = if user.is_empty() { "USER" } else { user };
    let table = &options.table;
    let sql = match server.code {
        // Access denied: to a database or a table, and for want of a privilege.
        1044 | 1142 | 1143 => format!("GRANT SELECT ON {table} TO '{user}'@'%'"),
        1227 => format!("GRANT REPLICATION CLIENT ON *.* TO '{user}'@'%'"),
        _ => return SourceError::Connect(server.to_string()),
    };
    SourceError::Preflight(format!("{}; run: {sql}", server.message))
}

/// As `explained`, for an error of the stream. Its login has succeeded.
pub(super) fn explained_stream(error: &Error, user: &str, options: &MysqlOptions) -> SourceError {
    match error {
        Error::Server(server) if matches!(server.code, 1045 | 1227) => SourceError::Preflight(
            format!("{}; run: GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'", server.message),
        ),
        _ => explained(error, user, options),
    }
}

impl Server {
    /// Connects, and refuses a server whose log has not all changes of the table.
    pub(super) async fn open(options: &MysqlOptions, id: &IdType) -> Result<Self, SourceError> {
        let mut server = Self::connect(options, id).await?;
        let user = server.connection.opts().user().unwrap_or_default().to_owned();
        let checked = check_settings(&mut server.connection).await;
        checked.map_err(|error| error.explained(&user, options))?;
        let Table { database, name, table_type, .. } = &server.table;
        // `SYSTEM VERSIONED` is a table of MariaDB that keeps its old rows.
        if !["", "BASE TABLE", "SYSTEM VERSIONED"].contains(&&**table_type) {
            return Err(SourceError::Preflight(format!(
                "{database}.{name} is a {table_type}, and the binary log has only rows of tables; \
                 name the table that has the ids, or poll the view with follow = \"poll\""
            )));
        }
        // Tests the privileges, too.
        server.position(options).await?;
        Ok(server)
    }

    /// Connects, and finds the column.
    pub(super) async fn connect(options: &MysqlOptions, id: &IdType) -> Result<Self, SourceError> {
        let mut connection = connect(options).await?;
        let user = connection.opts().user().unwrap_or_default().to_owned();
        let database = connection.opts().db_name().map(str::to_owned).ok_or_else(|| {
            let message = "the URL names no database; write mysql://user@host/DATABASE";
            SourceError::Preflight(message.to_owned())
        })?;
        let identity = identity(&mut connection).await;
        let identity = identity.map_err(|error| explained(&error, &user, options))?;
        let table = table(&mut connection, &database, options, id).await;
        let table = table.map_err(|error| error.explained(&user, options))?;
        let (column, from) = (quoted(&table.column), table.quoted());
        let select = connection.query_drop(format!("SELECT {column} FROM {from} LIMIT 0")).await;
        select.map_err(|error| explained(&error, &user, options))?;
        Ok(Self { connection, identity, table })
    }

    /// Returns the columns of the table.
    pub(super) async fn columns(
        &mut self,
        options: &MysqlOptions,
    ) -> Result<Vec<Column>, SourceError> {
        let found = columns(&mut self.connection, &self.table.database, &self.table.name).await;
        found.map_err(|error| explained(&error, "", options))
    }

    /// Returns the estimated number of rows; 0 if the server has no estimate.
    pub(super) async fn rows(&mut self) -> u64 {
        let sql = "SELECT TABLE_ROWS FROM information_schema.TABLES \
            WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ?";
        let names = (&self.table.database, &self.table.name);
        let rows = self.connection.exec_first::<Option<u64>, _, _>(sql, names).await;
        rows.ok().flatten().flatten().unwrap_or(0)
    }

    /// Returns the end of the log. All transactions that were committed before the call are in it.
    pub(super) async fn position(
        &mut self,
        options: &MysqlOptions,
    ) -> Result<Position, SourceError> {
        let mut row: Result<Option<Row>, Error> =
            self.connection.query_first("SHOW MASTER STATUS").await;
        // MySQL 8.4 has another name for it.
        if let Err(Error::Server(error)) = &row
            && error.code == 1064
        {
            row = self.connection.query_first("SHOW BINARY LOG STATUS").await;
        }
        let user = self.connection.opts().user().unwrap_or_default().to_owned();
        let row = row.map_err(|error| explained(&error, &user, options))?;
        let off = || SourceError::Preflight(NO_LOG.to_owned());
        let row = row.ok_or_else(off)?;
        let file = row.get::<Vec<u8>, _>(0).ok_or_else(off)?;
        let offset = row.get::<u64, _>(1).ok_or_else(off)?;
        let names = |column| row.get_opt::<String, _>(column).and_then(Result::ok);
        let [only, ignored] = [names(2), names(3)].map(Option::unwrap_or_default);
        if let Some(message) = filtered(&self.table.database, &only, &ignored) {
            return Err(SourceError::Preflight(message));
        }
        Ok(Position { file, offset })
    }
}

enum CheckError {
    Query(Error),
    Setting(String),
}

impl CheckError {
    fn explained(self, user: &str, options: &MysqlOptions) -> SourceError {
        match self {
            Self::Query(error) => explained(&error, user, options),
            Self::Setting(message) => SourceError::Preflight(message),
        }
    }
}

impl From<Error> for CheckError {
    fn from(error: Error) -> Self {
        Self::Query(error)
    }
}

/// Refuses a server whose log is incomplete.
async fn check_settings(connection: &mut Conn) -> Result<(), CheckError> {
    let settings = "SELECT CAST(@@log_bin AS CHAR), @@global.binlog_format, \
        @@global.binlog_row_image";
    let settings: Option<(String, String, String)> = connection.query_first(settings).await?;
    let Some((log, format, image)) = settings else {
        return Err(CheckError::Setting("the server returned no binary log settings".to_owned()));
    };
    let refuse = |message: String| Err(CheckError::Setting(message));
    if log != "1" && !log.eq_ignore_ascii_case("ON") {
        return refuse(NO_LOG.to_owned());
    }
    if !format.eq_ignore_ascii_case("ROW") {
        return refuse(format!(
            "binlog_format is {format}, so the log has statements instead of rows; run: \
             SET GLOBAL binlog_format = 'ROW' (and set it in the server's configuration)"
        ));
    }
    if !image.eq_ignore_ascii_case("FULL") {
        return refuse(format!(
            "binlog_row_image is {image}, so rows in the log may have no id; run: \
             SET GLOBAL binlog_row_image = 'FULL' (and set it in the server's configuration)"
        ));
    }
    // Only MariaDB has this variable.
    let compressed: Result<Option<String>, Error> =
        connection.query_first("SELECT CAST(@@global.log_bin_compress AS CHAR)").await;
    if matches!(&compressed, Ok(Some(value)) if value == "1" || value.eq_ignore_ascii_case("ON")) {
        return refuse(
            "log_bin_compress is ON, and the guard cannot read compressed rows; run: \
             SET GLOBAL log_bin_compress = OFF (and set it in the server's configuration)"
                .to_owned(),
        );
    }
    match unlogged_updates(connection).await? {
        Some(message) => refuse(message),
        None => Ok(()),
    }
}

/// A column: its name, `DATA_TYPE`, `COLUMN_TYPE`, and its character set.
pub(super) type Column = (String, String, String, String);

async fn columns(connection: &mut Conn, database: &str, table: &str) -> Result<Vec<Column>, Error> {
    let sql = "SELECT COLUMN_NAME, LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), \
        COALESCE(CHARACTER_SET_NAME, '') FROM information_schema.COLUMNS \
        WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
    connection.exec(sql, (database, table)).await
}

/// Finds the column of ids.
async fn table(
    connection: &mut Conn,
    database: &str,
    options: &MysqlOptions,
    id: &IdType,
) -> Result<Table, CheckError> {
    let columns = columns(connection, database, &options.table).await?;
    let refuse = |message: String| Err(CheckError::Setting(message));
    let (name, column) = (&options.table, &options.column);
    let sql = "SELECT TABLE_TYPE FROM information_schema.TABLES \
        WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ?";
    let table_type: Option<String> = connection.exec_first(sql, (database, name)).await?;
    let table_type = table_type.unwrap_or_default();
    if columns.is_empty() {
        return refuse(format!("there is no table {database}.{name}, or the user may not read it"));
    }
    let Some(place) = columns.iter().position(|it| it.0.eq_ignore_ascii_case(column)) else {
        let names: Vec<&str> = columns.iter().map(|it| &*it.0).collect();
        let names = names.join(", ");
        return refuse(format!("the table {name} has no column {column}; it has: {names}"));
    };
    let (_, data, full, charset) = &columns[place];
    let kind = ColumnKind::of(data, full, charset);
    let fits = |kind| match id {
        IdType::Integer { .. } => matches!(kind, ColumnKind::Signed | ColumnKind::Unsigned(_)),
        IdType::Uuid => matches!(kind, ColumnKind::Text | ColumnKind::Uuid),
        IdType::Text { .. } => kind != ColumnKind::Uuid,
    };
    let Some(kind) = kind.filter(|kind| fits(*kind)) else {
        return refuse(format!(
            "the column {column} is {full} {charset}, which holds no ids of the configured type; \
             integers, texts in utf8mb4 and BINARY(16) for UUIDs are possible"
        ));
    };
    // The log also has deletions of old rows, whose ids may still exist.
    let is_unique = table_type != "SYSTEM VERSIONED"
        && is_unique(connection, database, name, &columns[place].0).await?;
    Ok(Table {
        has_index: has_index(connection, database, name, &columns[place].0).await?,
        is_unique,
        table_type,
        database: database.to_owned(),
        name: name.clone(),
        column: column.clone(),
        columns: columns.len(),
        id: place,
        kind,
        is_trimmed: kind == ColumnKind::Uuid && data == "binary",
        shape: format!("{columns:?} {is_unique}"),
    })
}

/// Tests whether an index begins with a column.
async fn has_index(
    connection: &mut Conn,
    database: &str,
    table: &str,
    column: &str,
) -> Result<bool, CheckError> {
    let sql = "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE BINARY TABLE_SCHEMA = ? \
        AND BINARY TABLE_NAME = ? AND BINARY COLUMN_NAME = ? AND SEQ_IN_INDEX = 1 \
        AND INDEX_TYPE = 'BTREE' AND SUB_PART IS NULL";
    let count: Option<u64> = connection.exec_first(sql, (database, table, column)).await?;
    Ok(count.is_some_and(|count| count > 0))
}

/// Tests whether a unique index has a column and no other one. NULL, which it may have several
/// times, is no id.
async fn is_unique(
    connection: &mut Conn,
    database: &str,
    table: &str,
    column: &str,
) -> Result<bool, CheckError> {
    let sql = "SELECT COUNT(*) FROM (SELECT INDEX_NAME FROM information_schema.STATISTICS \
        WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ? AND NON_UNIQUE = 0 \
        GROUP BY INDEX_NAME HAVING COUNT(*) = 1 \
        AND SUM(BINARY COLUMN_NAME = ? AND SUB_PART IS NULL) = 1) AS indexes_of_column";
    let count: Option<u64> = connection.exec_first(sql, (database, table, column)).await?;
    Ok(count.is_some_and(|count| count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_url_shows_no_part_of_it() {
        for url in [
            "mysql://guard:secret#1@host/shop",
            "mysql://guard:secret/1@host/shop",
            "mysql://guard:1?secret@host/shop",
            "mysql://guard:1?secret=secret@host/shop",
            "mysql://guard:1?pool_min=secret@host/shop",
            "secret://guard:1@host/shop",
            "secret",
        ] {
            let error = opts(url).unwrap_err();
            assert!(!error.contains("secret"), "{url}");
        }
    }

    #[test]
    fn a_host_that_may_be_a_part_of_the_password_is_refused() {
        for url in [
            "mysql://guard:a@secret/b@host/shop",
            "mysql://guard:a@secret?b@host/shop",
            "mysql://guard:1#secret@host/shop",
            "mysql://guard:1/secret@host/shop",
        ] {
            let error = opts(url).unwrap_err();
            assert!(error.contains("%40") && !error.contains("secret"), "{url}: {error}");
        }
        for url in ["mysql://guard:a@secret@host/shop", "mysql://guard:a%40secret@host/shop"] {
            let opts = opts(url).unwrap();
            assert_eq!((opts.ip_or_hostname(), opts.pass()), ("host", Some("a@secret")), "{url}");
        }
    }
}
