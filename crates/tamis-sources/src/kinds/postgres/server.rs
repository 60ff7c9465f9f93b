//! The connection for queries: the table, the end of the log, and the processes that block a slot.

use std::future::Future;
use std::time::Duration;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::condition::{Condition, InvalidCondition};
use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::condition;
use crate::kinds::postgres::definition::{Definition, TREE, Versions, server_state_sql};
use crate::kinds::postgres::explain::explained;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::preflight::{Settings, check_settings, find_table};
use crate::kinds::postgres::slot_state::SlotState;
use crate::kinds::postgres::table::{Table, check_table};
use crate::source::runtime::with_timeout;

/// The SQL for the identity of the server. The identity changes after a promotion (new timeline) and after a crash
/// (statistics reset), because a promotion and a crash may lose commits.
pub(super) const SERVER_IDENTITY: &str = "concat_ws('/',
    (SELECT system_identifier FROM pg_control_system()),
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
    (SELECT extract(epoch FROM stats_reset) FROM pg_stat_bgwriter))";

/// A connection for queries.
pub(super) struct Server {
    client: Client,
    state_query: Statement,
    /// The index of the host in the URL that is not a standby.
    pub(super) host: usize,
    pub(super) table: Table,
    pub(super) definition: Definition,
    pub(super) versions: Versions,
    /// The end of the log when the connection was opened.
    pub(super) end: Lsn,
    publication: String,
    settings: Settings,
    /// The time limit for a response.
    limit: Duration,
}

/// The state of the server at one time.
#[derive(Debug)]
pub(super) struct ServerState {
    /// The end of the log. All commits that the server has confirmed are before this position.
    pub(super) end: Lsn,
    /// The end of the log on disk. The server sends only changes before this position.
    pub(super) flushed: Lsn,
    pub(super) definition: Definition,
    pub(super) versions: Versions,
}

/// Connects to the first host that is not a standby.
pub(super) async fn connect(
    address: &Address,
    limit: Duration,
) -> Result<(Client, usize), SourceError> {
    let mut failures = Vec::new();
    // If a host does not respond, this limit leaves time for the other hosts.
    let limit = limit / (address.hosts() as u32 + 1);
    for host in 0..address.hosts() {
        let found = async {
            let client = address.client(host).await?;
            let sql = "SELECT pg_is_in_recovery()";
            let row = client.query_one(sql, &[]).await.map_err(|error| explained(&error))?;
            if row.get(0) {
                let message = "the server is a standby; name the primary in the URL";
                return Err(SourceError::Preflight(message.to_owned()));
            }
            Ok(client)
        };
        match with_timeout(limit, found).await {
            Ok(client) => return Ok((client, host)),
            Err(error) => failures.push((address.host_name(host), error)),
        }
    }
    match &mut *failures {
        [_] => Err(failures.remove(0).1),
        _ => {
            let failures = failures.iter().map(|(host, error)| format!("{host}: {error}"));
            let failures = failures.collect::<Vec<_>>().join("; ");
            let message = format!("no host of the URL can be used: {failures}");
            Err(SourceError::Preflight(message))
        }
    }
}

impl Server {
    /// Opens a connection. Rejects a server whose stream would not contain all changes of the table.
    pub(super) async fn open(
        address: &Address,
        options: &PostgresOptions,
        id: &IdType,
        limit: Duration,
    ) -> Result<Self, SourceError> {
        let (client, host) = connect(address, limit).await?;
        let settings = check_settings(&client, options.slot.is_some()).await?;
        let name = find_table(&client, &options.table).await?;
        let state_query =
            client.prepare(&server_state_sql()).await.map_err(|error| explained(&error))?;
        // The state is read before the checks, so that the source later detects a change during the checks.
        let condition = options.condition_of_log().map_err(InvalidCondition::into_error)?;
        let tested = condition.iter().flat_map(Condition::columns);
        let tested: Vec<String> = tested.map(condition::catalog_name).collect();
        let (schema, table, publication) = (&name.schema, &name.table, &options.publication);
        let parameters: [&(dyn ToSql + Sync); 6] =
            [schema, table, &options.column, publication, &"", &tested];
        let row = client.query_one(&state_query, &parameters).await;
        let row = row.map_err(|error| explained(&error))?;
        let (definition, versions, end) = (definition(&row), versions(&row), place(&row, 0)?);
        let table = check_table(&client, &name, options, id).await?;
        let publication = options.publication.clone();
        let server = Self {
            client,
            state_query,
            host,
            table,
            definition,
            versions,
            end,
            publication,
            settings,
            limit,
        };
        if let Some(slot) = &options.slot {
            server.check_permanent(slot).await?;
        }
        Ok(server)
    }

    /// Waits for a response, for at most the time limit.
    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        with_timeout(self.limit, answer).await
    }

    /// Returns the state of the server. Returns an error if the slot does not exist: the connection has reached another
    /// server, or the server has ended the stream.
    pub(super) async fn state(&self, slot: &str) -> Result<ServerState, SourceError> {
        let table = &self.table;
        let parameters: [&(dyn ToSql + Sync); 6] =
            [&table.schema, &table.name, &table.column, &self.publication, &slot, &table.tested()];
        let row = self.client.query_one(&self.state_query, &parameters);
        let row = self.in_time(async { row.await.map_err(|error| explained(&error)) }).await?;
        if !row.get::<_, bool>(2) {
            return Err(lost_slot());
        }
        let end = place(&row, 0)?.end_of_record(self.settings.page, self.settings.segment);
        let (definition, versions) = (definition(&row), versions(&row));
        Ok(ServerState { end, flushed: place(&row, 1)?, definition, versions })
    }

    /// Returns the state of a slot. Returns `None` if no slot with this name exists.
    pub(super) async fn slot(&self, name: &str) -> Result<Option<SlotState>, SourceError> {
        self.in_time(self.read_slot(name)).await
    }

    /// Rejects a slot that another program has created.
    async fn check_permanent(&self, slot: &str) -> Result<(), SourceError> {
        if self.read_slot(slot).await?.is_none_or(|state| state.is_usable) {
            return Ok(());
        }
        Err(SourceError::Preflight(format!(
            "the replication slot {slot} is not one of the guard: it is temporary, physical, for \
             two-phase commits, of another database or of another plugin than pgoutput; choose \
             another name for `slot`"
        )))
    }

    async fn read_slot(&self, name: &str) -> Result<Option<SlotState>, SourceError> {
        let sql = "SELECT GREATEST(confirmed_flush_lsn, restart_lsn, '0/0')::text, active_pid,
            COALESCE(wal_status = 'lost', false),
            COALESCE(plugin = 'pgoutput' AND database = current_database(), false)
              AND NOT temporary AND NOT two_phase
            FROM pg_replication_slots WHERE slot_name = $1::text";
        let row = self.client.query_opt(sql, &[&name]).await;
        let row = row.map_err(|error| explained(&error))?;
        let state = |row: Row| {
            Ok(SlotState {
                confirmed: place(&row, 0)?,
                process: row.get(1),
                is_lost: row.get(2),
                is_usable: row.get(3),
            })
        };
        row.map(state).transpose()
    }

    pub(super) async fn drop_slot(&self, name: &str) -> Result<(), SourceError> {
        self.call("SELECT pg_drop_replication_slot($1)", &name).await
    }

    /// Terminates another server process of the same user.
    pub(super) async fn end_process(&self, process: i32) -> Result<(), SourceError> {
        self.call("SELECT pg_terminate_backend($1)", &process).await
    }

    /// Calls an SQL function and ignores its result.
    async fn call(&self, sql: &str, argument: &(dyn ToSql + Sync)) -> Result<(), SourceError> {
        let call = async {
            let row = self.client.query_one(sql, &[argument]).await;
            row.map(drop).map_err(|error| explained(&error))
        };
        self.in_time(call).await
    }

    /// Lets the server flush its log to disk soon. The log may end with an open transaction for a long time, and on a
    /// quiet server no other event flushes its records.
    pub(super) async fn flush_log(&self) {
        let sql = "SELECT pg_logical_emit_message(false, 'tamis_guard', '')";
        // If the user lacks the privilege, the server flushes the records later.
        _ = self
            .in_time(async {
                self.client.query_one(sql, &[]).await.map_err(|error| explained(&error))
            })
            .await;
    }

    /// Returns the processes whose transactions block another process.
    pub(super) async fn blockers(&self, process: i32) -> Result<Vec<i32>, SourceError> {
        let row = async {
            let sql = "SELECT pg_blocking_pids($1)";
            self.client.query_one(sql, &[&process]).await.map_err(|error| explained(&error))
        };
        Ok(self.in_time(row).await?.get(0))
    }

    /// Returns the approximate number of rows in the table.
    pub(super) async fn rows(&self) -> Result<u64, SourceError> {
        self.in_time(rows(&self.client, &self.table.schema, &self.table.name)).await
    }
}

/// Returns the approximate number of rows in a table. Returns 0 for a view.
pub(super) async fn rows(client: &Client, schema: &str, table: &str) -> Result<u64, SourceError> {
    let sql = format!(
        "{TREE} SELECT COALESCE(sum(GREATEST(c.reltuples, 0)), 0)::float8
         FROM tree JOIN pg_class c ON c.oid = tree.oid WHERE c.relkind = 'r'"
    );
    let row = client.query_one(&sql, &[&schema, &table]).await;
    let rows: f64 = row.map_err(|error| explained(&error))?.get(0);
    Ok(rows as u64)
}

fn definition(row: &Row) -> Definition {
    // The value is NULL if the table no longer exists.
    Definition(row.get::<_, Option<i64>>(3).unwrap_or_default())
}

fn versions(row: &Row) -> Versions {
    Versions(row.get::<_, Option<i64>>(4).unwrap_or_default())
}

fn place(row: &Row, column: usize) -> Result<Lsn, SourceError> {
    let text: &str = row.get(column);
    text.parse().map_err(|_| SourceError::Connect(format!("{text} is no place in the log")))
}

/// Returns the error for a slot that does not exist.
pub(super) fn lost_slot() -> SourceError {
    SourceError::Connect("the server has ended the replication slot, or is another server".into())
}
