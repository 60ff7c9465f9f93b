//! Errors of the server, with the SQL that fixes them.

use mysql_async::{Error, Opts};

use crate::source::error::SourceError;
use crate::source::mysql::options::MysqlOptions;

/// Returns an error of a query.
pub(super) fn explained(error: &Error, options: &MysqlOptions) -> SourceError {
    match error {
        Error::Server(server) => {
            let text = server.to_string();
            explained_code(server.code, &server.message, text, options)
        }
        _ => SourceError::Connect(error.to_string()),
    }
}

/// Returns an error of a query of a [`RowReader`](super::row_reader::RowReader).
pub(super) fn explained_row(error: &mysql::Error, options: &MysqlOptions) -> SourceError {
    match error {
        mysql::Error::MySqlError(server) => {
            let text = server.to_string();
            explained_code(server.code, &server.message, text, options)
        }
        _ => SourceError::Connect(error.to_string()),
    }
}

/// Returns an error of the stream. Its login has succeeded.
pub(super) fn explained_stream(error: &Error, options: &MysqlOptions) -> SourceError {
    match error {
        Error::Server(server) if matches!(server.code, 1045 | 1227) => {
            let user = user(options);
            SourceError::Preflight(format!(
                "{}; run: GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'",
                server.message
            ))
        }
        _ => explained(error, options),
    }
}

/// Returns an error by its code. `text` is all that the server said.
fn explained_code(code: u16, message: &str, text: String, options: &MysqlOptions) -> SourceError {
    let (user, table) = (user(options), &options.table);
    let sql = match code {
        // Access denied: to a database or a table, and for want of a privilege.
        1044 | 1142 | 1143 => format!("GRANT SELECT ON {table} TO '{user}'@'%'"),
        1227 => format!("GRANT REPLICATION CLIENT ON *.* TO '{user}'@'%'"),
        _ => return SourceError::Connect(text),
    };
    SourceError::Preflight(format!("{message}; run: {sql}"))
}

/// Returns the user of the URL.
fn user(options: &MysqlOptions) -> String {
    let opts = Opts::from_url(&options.url).ok();
    opts.as_ref().and_then(Opts::user).unwrap_or("USER").to_owned()
}
