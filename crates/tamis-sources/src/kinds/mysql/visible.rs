//! Waits until queries see all transactions up to a position in the binary log.
//!
//! A server writes a transaction to its log before the storage engine commits the transaction. Between the write to the
//! log and the commit in the storage engine, the server syncs the log to disk. With semi-synchronous replication, the
//! server also waits for a replica. A query between the write and the commit does not see the transaction, although the
//! log contains the transaction:
//!
//! ```text
//! log      T ── position of the stream ──────────────────▶
//! engine                      query ─── T is committed ──▶
//! ```
//!
//! A generation receives the transactions of the log after its start, and the rows of its full read. Therefore the full
//! read begins only after the storage engine has committed all transactions up to the start position of the stream.
//!
//! Proof: let T be a transaction. If all of T is after the position, the stream applies T to the generation. If all of
//! T is before the position, the engine has committed T before the full read, so the full read sees T. If the position
//! is inside T, the full read also sees T, because the status of the server contains only ends of transactions.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};
use tokio::time::{sleep, timeout};

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::log_place::Position;
use crate::source::follow::LogPosition as _;

/// The time between two queries.
const PAUSE: Duration = Duration::from_millis(20);

/// The maximum wait for a transaction.
const LIMIT: Duration = Duration::from_secs(60);

/// The assumed maximum time in which a MySQL server syncs its log. MySQL does not report which transactions its storage
/// engine has committed.
const LONGEST_SYNC: Duration = Duration::from_secs(5);

/// The assumed maximum time in which the storage engine commits the second phase of a transaction (`XA`). The status of
/// the server does not contain the second phase.
const LONGEST_SECOND_PHASE: Duration = Duration::from_secs(1);

/// The transactions that a full read must see.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    /// The position of the stream at the start of the generation.
    pub(super) place: Position,
    /// The latest time at which the commit of a two-phase transaction (`XA`) may have entered the log. The storage
    /// engine may commit this transaction up to [`LONGEST_SECOND_PHASE`] later.
    pub(super) last_xa_commit: Option<Instant>,
}

impl Visible {
    /// Waits until queries on a server see the transactions up to `place`.
    pub(super) async fn wait(&self, connection: &mut Conn) -> Result<(), SourceError> {
        if let Some(moment) = self.last_xa_commit {
            sleep(LONGEST_SECOND_PHASE.saturating_sub(moment.elapsed())).await;
        }
        let broken = |error: Error| SourceError::Connect(error.to_string());
        let Some(first) = committed(connection).await.map_err(broken)? else {
            sleep(LONGEST_SYNC).await;
            // After the time limit, the full read begins even if a session waits for a replica, because a busy server
            // may always have a waiting session.
            let idle = timeout(LIMIT, wait_for_replicas(connection)).await;
            return idle.unwrap_or(Ok(())).map_err(broken);
        };
        let mut at = first;
        let wait = async {
            while !at.has_reached(&self.place) {
                sleep(PAUSE).await;
                at = committed(connection).await?.unwrap_or_default();
            }
            Ok(())
        };
        let late = |_| {
            let message = "the server has a transaction in its binary log that it does not commit";
            SourceError::Connect(message.to_owned())
        };
        timeout(LIMIT, wait).await.map_err(late)?.map_err(broken)
    }
}

/// Returns the log position up to which the storage engine has committed all transactions. Returns `None` if the server
/// does not report the position. MariaDB and Percona Server report the position.
async fn committed(connection: &mut Conn) -> Result<Option<Position>, Error> {
    connection.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
    let status = connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'").await;
    connection.query_drop("COMMIT").await?;
    let status: Vec<(String, String)> = status?;
    let value = |name: &str| {
        let found = status.iter().find(|it| it.0.eq_ignore_ascii_case(name));
        found.map(|it| it.1.clone()).filter(|value| !value.is_empty())
    };
    let file = value("binlog_snapshot_file").map(String::into_bytes);
    let offset = value("binlog_snapshot_position").and_then(|value| value.parse().ok());
    Ok(file.zip(offset).map(|(file, offset)| Position { file, offset }))
}

/// Waits until no session of the server waits for a replica.
async fn wait_for_replicas(connection: &mut Conn) -> Result<(), Error> {
    loop {
        // MySQL 8.0.26 has renamed `master` to `source`.
        let sql = "SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync\\_%\\_wait\\_sessions'";
        let counters: Vec<(String, String)> = connection.query(sql).await?;
        if counters.iter().all(|it| it.1 == "0") {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
}
