//! Converts errors of the server, and adds the SQL that fixes each error.

use mysql_async::{Error, Opts};

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::options::MysqlOptions;

/// Converts an error of `mysql_async`. Adds the SQL that grants a missing privilege.
pub(super) fn explained(error: &Error, options: &MysqlOptions) -> SourceError {
    match error {
        Error::Server(server) => {
            explained_code(server.code, &server.message, server.to_string(), options)
        }
        _ => SourceError::Connect(error.to_string()),
    }
}

/// Converts an error of the binary log stream. The login has succeeded before, so the code 1045 also means a missing
/// privilege.
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

/// Converts an error by its code. `text` is the complete error.
fn explained_code(code: u16, message: &str, text: String, options: &MysqlOptions) -> SourceError {
    let (user, table) = (user(options), options.named_table());
    let sql = match code {
        // The codes 1044, 1142 and 1143 mean that access to a database or a table is denied. The code 1227 means that a
        // privilege is missing.
        1044 | 1142 | 1143 => format!("GRANT SELECT ON {table} TO '{user}'@'%'"),
        1227 => format!("GRANT REPLICATION CLIENT ON *.* TO '{user}'@'%'"),
        _ => return SourceError::Connect(text),
    };
    SourceError::Preflight(format!("{message}; run: {sql}"))
}

/// Returns the user name in the URL.
pub(super) fn user(options: &MysqlOptions) -> String {
    let opts = Opts::from_url(&options.url).ok();
    opts.as_ref().and_then(Opts::user).unwrap_or("USER").to_owned()
}
