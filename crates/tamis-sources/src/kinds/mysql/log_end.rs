//! Reads the end of the binary log of a server.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};

use crate::kinds::mysql::log_place::Position;

/// The end of the log, and the filters that exclude databases from the log.
#[derive(Debug)]
pub(super) struct LogEnd {
    pub(super) position: Position,
    /// The variables `binlog_do_db` and `binlog_ignore_db`: names that are separated by commas.
    pub(super) only: String,
    pub(super) ignored: String,
}

/// Returns the end of the log. Returns `None` if the server writes no log. The log before this end contains all
/// transactions that were committed before the call.
pub(super) async fn log_end(connection: &mut Conn) -> Result<Option<LogEnd>, Error> {
    let mut row: Result<Option<Row>, Error> = connection.query_first("SHOW MASTER STATUS").await;
    // MySQL 8.4 has renamed the statement `SHOW MASTER STATUS`.
    if let Err(Error::Server(error)) = &row
        && error.code == 1064
    {
        row = connection.query_first("SHOW BINARY LOG STATUS").await;
    }
    Ok(row?.and_then(|row| {
        let file = row.get_opt::<Vec<u8>, _>(0)?.ok()?;
        let offset = row.get_opt::<u64, _>(1)?.ok()?;
        let names = |column| row.get_opt::<String, _>(column).and_then(Result::ok);
        let [only, ignored] = [names(2), names(3)].map(Option::unwrap_or_default);
        Some(LogEnd { position: Position { file, offset }, only, ignored })
    }))
}

/// Returns the reason why the log does not contain a database. `only` and `ignored` are columns of `SHOW MASTER
/// STATUS`: names that are separated by commas.
pub(super) fn filtered(database: &str, only: &str, ignored: &str) -> Option<String> {
    let has = |names: &str| names.split(',').any(|name| name.trim() == database);
    if !only.is_empty() && !has(only) {
        return Some(format!(
            "the binary log has only changes of the databases {only} (binlog_do_db); add to the \
             server's configuration and restart it: binlog_do_db = {database}"
        ));
    }
    (only.is_empty() && has(ignored)).then(|| {
        format!(
            "the binary log has no changes of the databases {ignored} (binlog_ignore_db); remove \
             from the server's configuration and restart it: binlog_ignore_db = {database}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_logged_unless_a_filter_leaves_it_out() {
        for (only, ignored, is_logged) in [
            ("", "", true),
            ("a,shop", "", true),
            ("a", "", false),
            ("", "a", true),
            ("", "a,shop", false),
            ("shops", "", false),
            // The server tests `binlog_ignore_db` only if `binlog_do_db` is empty.
            ("shop", "shop", true),
        ] {
            assert_eq!(filtered("shop", only, ignored).is_none(), is_logged, "{only} {ignored}");
        }
    }
}
