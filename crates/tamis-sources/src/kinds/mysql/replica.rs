//! Determines how current the rows of a replica are.
//!
//! A replica shows a row only after it has received and applied the row. A replica cannot detect missing log events.
//! The lag that a replica reports stays at zero while its receiver is slow or disconnected. Therefore the guard queries
//! the primary for the end of its log. When the replica has applied the log up to the queried end, the replica shows
//! all rows that were committed before the query. If the replication has stopped, the source returns an error and the
//! set becomes stale.

use std::collections::HashSet;
use std::time::Instant;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::cluster::catch_up;
use crate::kinds::mysql::connect::connect_at;
use crate::kinds::mysql::explain::{explained, user};
use crate::kinds::mysql::log_end::{LogEnd, filtered, log_end};
use crate::source::follow::LogPosition as _;

use crate::kinds::mysql::log_place::Position;
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::replica_filter::{FILTERS, check_filters};
use crate::kinds::mysql::table::Table;

/// The status statement of MariaDB, of MySQL since 8.0.22, and of older MySQL.
const STATEMENTS: [&str; 3] =
    ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];

/// Reads the replication state of a server.
#[derive(Debug, Default)]
pub(super) struct Replica {
    /// The index of the statement that the server supports.
    statement: usize,
    primary: Option<Primary>,
}

/// The primary of a replica.
#[derive(Debug)]
struct Primary {
    connection: Conn,
    server_id: u64,
    /// The server id of the replica.
    replica_id: u64,
    /// The replication state of the primary. The field `primary` of this value stays `None`.
    replication: Box<Replica>,
    /// The time before the last query, and the end of the log of the primary that the query returned.
    asked: Option<(Instant, Position)>,
    /// The replica shows all rows that were committed before this time.
    known: Option<Instant>,
}

/// The replication status for one primary.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Status {
    /// The server id of the primary.
    server_id: u64,
    receiver: String,
    applier: String,
    /// The positions in the log of the primary up to which the replica has received and applied events.
    received: Position,
    applied: Position,
    /// True if MariaDB may apply transactions of several GTID domains out of order.
    is_unordered: bool,
    /// The names and the values of the replication filters.
    filters: Vec<(&'static str, String)>,
    error: String,
}

/// The response of a server to the query for its primaries.
enum Answer {
    Statuses(Vec<Status>),
    /// The user lacks the privilege for the query.
    Denied,
}

impl Replica {
    /// Returns a time: the server shows all rows that were committed before this time. The guarantee includes commits
    /// on the primary of a replica and on other nodes of a cluster. Returns `None` if a replica has not reached any
    /// queried position yet.
    pub(super) async fn known_before(
        &mut self,
        connection: &mut Conn,
        table: &Table,
        options: &MysqlOptions,
    ) -> Result<Option<Instant>, SourceError> {
        let now = Instant::now();
        catch_up(connection, options).await?;
        let Some(status) = self.status(connection, options).await? else {
            self.primary = None;
            return Ok(Some(now));
        };
        check_filters(&status.filters, &table.database, &table.name)?;
        let mut primary = match self.primary.take() {
            Some(primary) if primary.server_id == status.server_id => primary,
            _ => Primary::connect(connection, options, &status).await?,
        };
        primary.note(&status, connection, options).await?;
        if primary.asked.is_none() {
            primary.ask(table, options).await?;
            match self.status(connection, options).await? {
                Some(status) if status.server_id == primary.server_id => {
                    primary.note(&status, connection, options).await?;
                }
                // The replica has switched to another primary.
                _ => return Ok(None),
            }
        }
        let known = primary.known;
        self.primary = Some(primary);
        Ok(known)
    }

    /// Returns the status of a running replica. Returns `None` for a server without a primary.
    async fn status(
        &mut self,
        connection: &mut Conn,
        options: &MysqlOptions,
    ) -> Result<Option<Status>, SourceError> {
        only(self.statuses(connection, options).await?)
    }

    /// Returns the replication status of a server for each of its primaries.
    async fn statuses(
        &mut self,
        connection: &mut Conn,
        options: &MysqlOptions,
    ) -> Result<Vec<Status>, SourceError> {
        let broken = |error: Error| explained(&error, options);
        match self.ask(connection).await.map_err(broken)? {
            Answer::Statuses(statuses) => Ok(statuses),
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
            Answer::Denied => Ok(Vec::new()),
        }
    }

    /// Tests whether a server has a primary or may have a primary.
    pub(super) async fn is_replica(&mut self, connection: &mut Conn) -> Result<bool, Error> {
        match self.ask(connection).await? {
            Answer::Statuses(statuses) => Ok(!statuses.is_empty()),
            Answer::Denied => may_be_replica(connection).await,
        }
    }

    async fn ask(&mut self, connection: &mut Conn) -> Result<Answer, Error> {
        loop {
            match connection.query::<Row, _>(STATEMENTS[self.statement]).await {
                Ok(rows) => return Ok(Answer::Statuses(rows.iter().filter_map(status).collect())),
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

impl Primary {
    /// Connects to the primary of a replica with the configured URL.
    async fn connect(
        replica: &mut Conn,
        options: &MysqlOptions,
        status: &Status,
    ) -> Result<Self, SourceError> {
        let refuse = |message: &str| Err(SourceError::Preflight(message.to_owned()));
        let Some(url) = &options.primary else {
            return refuse(
                "the server is a replica, and only its primary knows how far it is behind; write the address of the \
                 primary into the source: primary = \"mysql://user:password@host:3306\" (or connect to the primary)",
            );
        };
        let mut connection = connect_at(url, options).await.map_err(of_primary)?;
        let broken = |error: Error| of_primary(explained(&error, options));
        let server_id = server_id(&mut connection).await.map_err(broken)?;
        if server_id != status.server_id {
            let expected = status.server_id;
            return refuse(&format!(
                "the server in `primary` has the server_id {server_id}, and the primary of the replica has {expected}; \
                 write the address of the primary"
            ));
        }
        let own = self::server_id(replica).await.map_err(|error| explained(&error, options))?;
        Ok(Self {
            connection,
            server_id,
            replica_id: own,
            replication: Box::default(),
            asked: None,
            known: None,
        })
    }

    /// Queries the primary for the end of its log. Rejects a primary that is the replica of a third server.
    async fn ask(&mut self, table: &Table, options: &MysqlOptions) -> Result<(), SourceError> {
        let now = Instant::now();
        let statuses = self.replication.statuses(&mut self.connection, options).await;
        // Two servers may be the primaries of each other.
        if statuses.map_err(of_primary)?.iter().any(|it| it.server_id != self.replica_id) {
            let message = "the server in `primary` is a replica itself; make the source a direct replica of the server \
                that writes, connect to that server, or run RESET SLAVE ALL on the server in `primary` if it has no \
                primary any more";
            return Err(SourceError::Preflight(message.to_owned()));
        }
        catch_up(&mut self.connection, options).await.map_err(of_primary)?;
        let end = log_end(&mut self.connection).await;
        let end = end.map_err(|error| of_primary(explained(&error, options)))?;
        let off = || of_primary(SourceError::Connect("it writes no binary log".to_owned()));
        let LogEnd { position, only, ignored } = end.ok_or_else(off)?;
        if let Some(message) = filtered(&table.database, &only, &ignored) {
            return Err(of_primary(SourceError::Preflight(message)));
        }
        self.asked = Some((now, position));
        Ok(())
    }

    /// Rejects a replica whose reported position may be after a transaction of another GTID domain that the replica has
    /// not applied. The log of the primary contains the transactions of all domains up to its end.
    async fn check_domains(
        &mut self,
        replica: &mut Conn,
        options: &MysqlOptions,
    ) -> Result<(), SourceError> {
        let sql = "SELECT @@global.slave_parallel_threads";
        let threads: Result<Option<u64>, Error> = replica.query_first(sql).await;
        let threads = threads.map_err(|error| explained(&error, options))?.unwrap_or_default();
        let sql = "SELECT @@global.gtid_binlog_pos";
        let gtids: Result<Option<String>, Error> = self.connection.query_first(sql).await;
        let gtids = gtids.map_err(|error| of_primary(explained(&error, options)))?;
        let domains = domains(&gtids.unwrap_or_default());
        if threads == 0 || domains < 2 {
            return Ok(());
        }
        Err(SourceError::Preflight(format!(
            "the replica applies transactions of {domains} GTID domains in parallel and out of order, and the guard \
             cannot know which ones it has applied; run on the replica: STOP SLAVE; SET GLOBAL slave_parallel_threads = 0; \
             START SLAVE (or connect to the primary)"
        )))
    }

    /// Records the position that the replica has applied.
    async fn note(
        &mut self,
        status: &Status,
        replica: &mut Conn,
        options: &MysqlOptions,
    ) -> Result<(), SourceError> {
        if status.is_unordered {
            self.check_domains(replica, options).await?;
        }
        if let Some((moment, _)) = self.asked.take_if(|(_, end)| status.has_applied(end)) {
            self.known = Some(moment);
        }
        Ok(())
    }
}

impl Status {
    /// Tests whether the replica has applied the log of the primary up to the position `end`.
    fn has_applied(&self, end: &Position) -> bool {
        // After a change of the primary, the replica may still apply the log of the old primary. Positions of the old
        // log are not comparable with positions of the new log.
        self.received.has_reached(&self.applied) && self.applied.has_reached(end)
    }
}

/// Returns an error that names the primary.
fn of_primary(error: SourceError) -> SourceError {
    match error {
        SourceError::Connect(why) => {
            SourceError::Connect(format!("the server in `primary`: {why}"))
        }
        SourceError::Preflight(why) => {
            SourceError::Preflight(format!("the server in `primary`: {why}"))
        }
        other => other,
    }
}

/// Counts the domains in a list of GTIDs such as `0-1-7,3-1-20`.
fn domains(gtids: &str) -> usize {
    let domains = gtids.split(',').filter_map(|gtid| gtid.trim().split_once('-'));
    domains.map(|(domain, _)| domain).collect::<HashSet<_>>().len()
}

async fn server_id(connection: &mut Conn) -> Result<u64, Error> {
    let id: Option<u64> = connection.query_first("SELECT @@global.server_id").await?;
    Ok(id.unwrap_or_default())
}

/// Tests whether a server shows any sign of a primary. The test needs no privilege for the replication status.
async fn may_be_replica(connection: &mut Conn) -> Result<bool, Error> {
    // `Slaves_connected` has another meaning: it counts the readers of the log of this server, such as guards.
    let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slave_running', 'Slaves_running')";
    let running: Vec<(String, String)> = connection.query(sql).await?;
    // MariaDB keeps the position in the log of the primary after the replication has stopped. A replica is usually
    // read-only.
    let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('gtid_slave_pos', 'read_only')";
    let signs: Vec<(String, String)> = connection.query(sql).await?;
    let is_set = |value: &str| !["", "0"].contains(&value) && !value.eq_ignore_ascii_case("OFF");
    Ok(running.iter().chain(&signs).any(|it| is_set(&it.1)))
}

/// Parses a row of the replication status. MySQL 8.0.22 has renamed the columns. Returns `None` for a channel of a
/// MySQL group, which `cluster.rs` checks.
fn status(row: &Row) -> Option<Status> {
    let text = |names: &[&str]| {
        let value = |name: &&str| row.get_opt::<Option<String>, _>(*name)?.ok()?;
        names.iter().find_map(value).unwrap_or_default()
    };
    let place = |file: &[&str], offset: &[&str]| Position {
        file: text(file).into_bytes(),
        offset: text(offset).parse().unwrap_or(0),
    };
    if text(&["Channel_Name"]).starts_with("group_replication_") {
        return None;
    }
    // Without GTIDs and in the mode `minimal`, MariaDB treats all domains as one domain.
    let has_gtids = !["", "No"].contains(&&*text(&["Using_Gtid"]));
    let is_parallel = !["", "none", "minimal"].contains(&&*text(&["Parallel_Mode"]));
    let errors = [text(&["Last_SQL_Error"]), text(&["Last_IO_Error"])];
    Some(Status {
        server_id: text(&["Master_Server_Id", "Source_Server_Id"]).parse().unwrap_or(0),
        receiver: text(&["Slave_IO_Running", "Replica_IO_Running"]),
        applier: text(&["Slave_SQL_Running", "Replica_SQL_Running"]),
        received: place(
            &["Master_Log_File", "Source_Log_File"],
            &["Read_Master_Log_Pos", "Read_Source_Log_Pos"],
        ),
        applied: place(
            &["Relay_Master_Log_File", "Relay_Source_Log_File"],
            &["Exec_Master_Log_Pos", "Exec_Source_Log_Pos"],
        ),
        is_unordered: has_gtids && is_parallel,
        filters: FILTERS.map(|name| (name, text(&[name]))).to_vec(),
        error: errors.into_iter().find(|error| !error.is_empty()).unwrap_or_default(),
    })
}

/// Returns the status of the only primary. Returns `None` if the server has no primary. Rejects a replica whose
/// replication has stopped.
fn only(mut statuses: Vec<Status>) -> Result<Option<Status>, SourceError> {
    if statuses.len() > 1 {
        let message = "the server is a replica of several primaries, and the guard can ask only one of them; connect to \
            the primary that writes the table";
        return Err(SourceError::Preflight(message.to_owned()));
    }
    let Some(status) = statuses.pop() else { return Ok(None) };
    let Status { receiver, applier, error, .. } = &status;
    if receiver == "Yes" && applier == "Yes" {
        return Ok(Some(status));
    }
    let error = if error.is_empty() { String::new() } else { format!(": {error}") };
    Err(SourceError::Connect(format!(
        "the server is a replica whose replication has stopped (receiver: {receiver}, applier: {applier}){error}; \
         start it, connect to the primary, or run RESET SLAVE ALL if the server has no primary any more"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, offset: u64) -> Position {
        Position { file: file.as_bytes().to_vec(), offset }
    }

    fn status(receiver: &str, applier: &str) -> Status {
        Status {
            server_id: 1,
            receiver: receiver.to_owned(),
            applier: applier.to_owned(),
            received: at("log.000003", 90),
            applied: at("log.000003", 80),
            is_unordered: false,
            filters: Vec::new(),
            error: String::new(),
        }
    }

    #[test]
    fn a_replica_has_applied_what_is_before_its_place() {
        let running = status("Yes", "Yes");
        for (end, is_applied) in [
            (at("log.000003", 80), true),
            (at("log.000002", 900), true),
            (at("log.000003", 81), false),
            (at("log.000004", 4), false),
        ] {
            assert_eq!(running.has_applied(&end), is_applied, "{end:?}");
        }
        // The replica applies the log of the old primary and receives the log of the new primary.
        let moved = Status { received: at("log.000001", 50), ..running.clone() };
        assert!(!moved.has_applied(&at("log.000001", 40)));
        // The replica has not applied any event yet.
        let new = Status { applied: at("", 4), received: at("", 4), ..running };
        assert!(!new.has_applied(&at("log.000001", 4)));
    }

    #[test]
    fn the_domains_of_gtids_are_counted() {
        for (gtids, count) in [("", 0), ("0-1-7", 1), ("0-1-7,0-2-9", 1), ("0-1-7,3-1-20", 2)] {
            assert_eq!(domains(gtids), count, "{gtids}");
        }
    }

    #[test]
    fn only_one_primary_and_a_replication_that_runs_are_accepted() {
        assert_eq!(only(vec![]).unwrap(), None);
        let running = status("Yes", "Yes");
        assert_eq!(only(vec![running.clone()]).unwrap(), Some(running.clone()));
        for stopped in [status("No", "Yes"), status("Connecting", "Yes"), status("Yes", "No")] {
            let error = only(vec![stopped]).unwrap_err().to_string();
            assert!(error.contains("has stopped"), "{error}");
        }
        let error = only(vec![running.clone(), running]).unwrap_err().to_string();
        assert!(error.contains("several primaries"), "{error}");
    }
}
