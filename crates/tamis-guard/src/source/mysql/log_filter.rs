//! Tests whether the binary log of a server has the changes of a database.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};

/// If the server is a replica that does not log the changes of its primary, returns a message with the
/// setting that enables it.
pub(super) async fn unlogged_updates(connection: &mut Conn) -> Result<Option<String>, Error> {
    // MySQL 8.0.26 has renamed the variable.
    let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
        ('log_slave_updates', 'log_replica_updates')";
    let settings: Vec<(String, String)> = connection.query(sql).await?;
    let Some((name, _)) = settings.iter().find(|it| it.1.eq_ignore_ascii_case("OFF")) else {
        return Ok(None);
    };
    Ok(is_replica(connection).await?.then(|| {
        format!(
            "the server is a replica and {name} is OFF, so its binary log has no changes of its \
             primary; add to its configuration and restart it: {name} = ON (or connect to the \
             primary)"
        )
    }))
}

/// Tests whether a server has a primary.
async fn is_replica(connection: &mut Conn) -> Result<bool, Error> {
    // MariaDB, with all its primaries; MySQL since 8.0.22; MySQL before.
    for sql in ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"] {
        match connection.query_first::<Row, _>(sql).await {
            Ok(row) => return Ok(row.is_some()),
            Err(Error::Server(error)) if error.code == 1064 => {}
            // Without the privilege (SLAVE MONITOR in MariaDB), a replica that runs is found.
            Err(Error::Server(error)) if error.code == 1227 => break,
            Err(error) => return Err(error),
        }
    }
    // `Slaves_connected` is another number: the readers of the log of this server, such as guards.
    let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slave_running', 'Slaves_running')";
    let counters: Vec<(String, String)> = connection.query(sql).await?;
    Ok(counters.iter().any(|it| it.1 != "0" && !it.1.eq_ignore_ascii_case("OFF")))
}

/// Returns why the log leaves out a database. `only` and `ignored` are the columns of
/// `SHOW MASTER STATUS`: names with commas between them.
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
            // The server tests the second list only without the first.
            ("shop", "shop", true),
        ] {
            assert_eq!(filtered("shop", only, ignored).is_none(), is_logged, "{only} {ignored}");
        }
    }
}
