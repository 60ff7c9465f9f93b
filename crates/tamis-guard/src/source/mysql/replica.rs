//! How far a server is behind its primary.
//!
//! A replica shows ids only after it has applied them. So the set knows the ids that were committed on the primary
//! before the question, less the lag of the replica. A replica whose replication has stopped knows nothing new: it is
//! an error, and the set becomes stale.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};

use crate::source::error::SourceError;
use crate::source::mysql::explain::{explained, user};
use crate::source::mysql::options::MysqlOptions;

/// The statement of MariaDB, that of MySQL since 8.0.22, and that of MySQL before.
const STATEMENTS: [&str; 3] =
    ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];

/// Reads the state of the replication of a server.
#[derive(Debug, Default)]
pub(super) struct Replica {
    /// The statement that the server understands.
    statement: usize,
}

/// What the status says about one primary.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    receiver: String,
    applier: String,
    /// `None` if the server does not know it.
    seconds_behind: Option<u64>,
    /// True if all that was received is applied.
    is_applied: bool,
    error: String,
}

/// What a server says about its primaries.
enum Answer {
    Statuses(Vec<Status>),
    /// The user may not ask.
    Denied,
}

impl Replica {
    /// Returns the lag of a server; zero for one that is no replica.
    pub(super) async fn lag(
        &mut self,
        connection: &mut Conn,
        options: &MysqlOptions,
    ) -> Result<Duration, SourceError> {
        let broken = |error: Error| explained(&error, options);
        match self.ask(connection).await.map_err(broken)? {
            Answer::Statuses(statuses) => longest_lag(&statuses).map_err(SourceError::Connect),
            Answer::Denied if may_be_replica(connection).await.map_err(broken)? => {
                let user = user(options);
                let grant = match self.statement {
                    0 => "SLAVE MONITOR",
                    _ => "REPLICATION CLIENT",
                };
                Err(SourceError::Preflight(format!(
                    "the server may be a replica, and the user {user} may not ask how far it is behind its \
                     primary; run: GRANT {grant} ON *.* TO '{user}'@'%' (or connect to the primary)"
                )))
            }
            Answer::Denied => Ok(Duration::ZERO),
        }
    }

    /// Tests whether a server has a primary, or may have one.
    pub(super) async fn is_replica(&mut self, connection: &mut Conn) -> Result<bool, Error> {
        match self.ask(connection).await? {
            Answer::Statuses(statuses) => Ok(!statuses.is_empty()),
            Answer::Denied => may_be_replica(connection).await,
        }
    }

    async fn ask(&mut self, connection: &mut Conn) -> Result<Answer, Error> {
        loop {
            match connection.query::<Row, _>(STATEMENTS[self.statement]).await {
                Ok(rows) => return Ok(Answer::Statuses(rows.iter().map(status).collect())),
                Err(Error::Server(error)) if error.code == 1227 => return Ok(Answer::Denied),
                Err(Error::Server(error))
                    if error.code == 1064 && self.statement + 1 < STATEMENTS.len() =>
                {
                    self.statement += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Tests whether a server shows any sign of a primary, without the privilege to ask for it.
async fn may_be_replica(connection: &mut Conn) -> Result<bool, Error> {
    // `Slaves_connected` is another number: the readers of the log of this server, such as guards.
    let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slave_running', 'Slaves_running')";
    let running: Vec<(String, String)> = connection.query(sql).await?;
    // MariaDB keeps the place in the log of a primary also after the replication has stopped. A replica is
    // usually read-only.
    let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('gtid_slave_pos', 'read_only')";
    let signs: Vec<(String, String)> = connection.query(sql).await?;
    let is_set = |value: &str| !["", "0"].contains(&value) && !value.eq_ignore_ascii_case("OFF");
    Ok(running.iter().chain(&signs).any(|it| is_set(&it.1)))
}

/// Reads a row of the status. MySQL 8.0.22 has renamed the columns.
fn status(row: &Row) -> Status {
    let text = |names: &[&str]| {
        let value = |name: &&str| row.get_opt::<Option<String>, _>(*name)?.ok()?;
        names.iter().find_map(value).unwrap_or_default()
    };
    let received = (
        text(&["Master_Log_File", "Source_Log_File"]),
        text(&["Read_Master_Log_Pos", "Read_Source_Log_Pos"]),
    );
    let applied = (
        text(&["Relay_Master_Log_File", "Relay_Source_Log_File"]),
        text(&["Exec_Master_Log_Pos", "Exec_Source_Log_Pos"]),
    );
    let errors = [text(&["Last_SQL_Error"]), text(&["Last_IO_Error"])];
    Status {
        receiver: text(&["Slave_IO_Running", "Replica_IO_Running"]),
        applier: text(&["Slave_SQL_Running", "Replica_SQL_Running"]),
        seconds_behind: text(&["Seconds_Behind_Master", "Seconds_Behind_Source"]).parse().ok(),
        is_applied: received == applied,
        error: errors.into_iter().find(|error| !error.is_empty()).unwrap_or_default(),
    }
}

/// Returns the longest lag behind a primary, or why it is not known.
fn longest_lag(statuses: &[Status]) -> Result<Duration, String> {
    let mut longest = Duration::ZERO;
    for status in statuses {
        let Status { receiver, applier, seconds_behind, is_applied, error } = status;
        let Some(seconds) = seconds_behind.filter(|_| receiver == "Yes" && applier == "Yes") else {
            let error = if error.is_empty() { String::new() } else { format!(": {error}") };
            return Err(format!(
                "the server is a replica whose replication has stopped (receiver: {receiver}, applier: \
                 {applier}){error}; start it, connect to the primary, or run RESET SLAVE ALL if the server \
                 has no primary any more"
            ));
        };
        // The server counts whole seconds.
        let lag = if *is_applied { 0 } else { seconds.saturating_add(1) };
        longest = longest.max(Duration::from_secs(lag));
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(receiver: &str, applier: &str, behind: Option<u64>, is_applied: bool) -> Status {
        Status {
            receiver: receiver.to_owned(),
            applier: applier.to_owned(),
            seconds_behind: behind,
            is_applied,
            error: String::new(),
        }
    }

    #[test]
    fn the_primary_that_is_farthest_ahead_decides() {
        let running = |behind, is_applied| status("Yes", "Yes", Some(behind), is_applied);
        for (statuses, seconds) in [
            (vec![], 0),
            (vec![running(0, true)], 0),
            // Part of a second counts.
            (vec![running(0, false)], 1),
            (vec![running(0, true), running(7, false)], 8),
        ] {
            assert_eq!(longest_lag(&statuses), Ok(Duration::from_secs(seconds)), "{statuses:?}");
        }
    }

    #[test]
    fn a_replication_that_does_not_run_has_no_lag() {
        for stopped in [
            status("No", "Yes", Some(0), true),
            status("Connecting", "Yes", Some(0), true),
            status("Yes", "No", Some(0), true),
            status("Yes", "Yes", None, true),
        ] {
            let running = status("Yes", "Yes", Some(0), true);
            let error = longest_lag(&[running, stopped]).unwrap_err();
            assert!(error.contains("has stopped"), "{error}");
        }
    }
}
