//! Polls a table or view on a server without logical replication.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use futures_util::StreamExt as _;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::errors::source_error::SourceError;
use crate::ids::fold::Fold;
use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::kinds::poll::{
    BATCH, ColumnValue, EachDeleted, PollOptions, PollRuntime, PolledDatabase, PolledTable,
    in_deletions,
};
use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::column::ColumnKind;
use crate::kinds::postgres::definition::{LINEAGE, TREE};
use crate::kinds::postgres::explain::explained;
use crate::kinds::postgres::full_read::{FullRead, Snapshot};
use crate::kinds::postgres::id_column::IdColumn;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::preflight::{
    TableName, check_text_encoding, check_version, find_table,
};
use crate::kinds::postgres::server::{SERVER_IDENTITY, connect, rows};
use crate::kinds::postgres::table::{ChangeColumn, check_change_column, check_column};
use crate::source::run::Run;

/// The oldest supported version of PostgreSQL. The catalog of older versions lacks columns that the queries need.
const OLDEST: i32 = 120_000;

/// The time limit for cancelling a query on the server.
const CANCEL: Duration = Duration::from_secs(1);

/// A connection to a polled table.
pub(crate) struct PostgresTable {
    client: Client,
    runtime: PollRuntime,
    address: Address,
    host: usize,
    identity: String,
    name: TableName,
    column: IdColumn,
    /// The names of the id column and the change column in the catalog.
    columns: [String; 2],
    schema: String,
    all_ids: String,
    changed_ids: Option<String>,
    highest: Option<String>,
    deletions: Option<String>,
    live_ids: String,
}

/// A table that was found on a server.
pub(super) struct Found {
    client: Client,
    pub(super) host: usize,
    name: TableName,
    pub(super) column: IdColumn,
}

/// Opens a connection, and finds the configured table and its id column.
pub(super) async fn find(
    address: &Address,
    options: &PostgresOptions,
    id: &IdType,
    limit: Duration,
) -> Result<Found, SourceError> {
    let (client, host) = connect(address, limit).await?;
    check_version(&client, OLDEST).await?;
    let name = find_table(&client, &options.table).await?;
    let column = check_column(&client, &name, options, id).await?;
    if matches!(id, IdType::Text { .. }) {
        check_text_encoding(&client).await?;
    }
    Ok(Found { client, host, name, column })
}

impl PolledTable for PostgresTable {
    type Options = PostgresOptions;

    fn open(run: &Run, options: &PostgresOptions, poll: &PollOptions) -> Result<Self, SourceError> {
        let (runtime, address) = (PollRuntime::new(run)?, Address::new(options)?);
        let changed = poll.changes.as_ref().map(|changes| &*changes.column);
        let open = async {
            let id = &run.ids.options().id;
            let Found { client, host, name, column } =
                find(&address, options, id, runtime.limit).await?;
            let changes = match changed {
                Some(changed) => Some(check_change_column(&client, &name, options, changed).await?),
                None => None,
            };
            // In a text column, one UUID may have several texts, but a deleted row has only one of these texts.
            if poll.deletions.is_some() && !column.kind.is_one_to_one(id) {
                let message = "deletions needs a column of the type uuid: a text column may have \
                    one UUID in upper and in lower case";
                return Err(SourceError::Preflight(message.to_owned()));
            }
            let sql = format!(
                "SELECT set_config('default_transaction_isolation', 'read committed', false), \
                 {SERVER_IDENTITY}"
            );
            let row = client.query_one(&sql, &[]).await.map_err(|error| explained(&error))?;
            Ok((Found { client, host, name, column }, changes, row.get(1)))
        };
        let (found, changes, identity) = runtime.wait(open)?;
        let Found { client, host, name, column } = found;
        let (id, from, filter) = (&column.column, &column.table, &column.filter);
        let all_ids = format!("SELECT {id}::text FROM {from} WHERE {filter} AND {id} IS NOT NULL");
        let array = match column.kind {
            ColumnKind::Integer => "$1::text[]::int8[]",
            ColumnKind::Uuid => "$1::text[]::uuid[]",
            ColumnKind::Text | ColumnKind::Case => "$1::text[]",
            ColumnKind::Padded => "$1::text[]::bpchar[]",
        };
        Ok(Self {
            changed_ids: changes.as_ref().map(|column| {
                let (name, cast) = (&column.name, column.cast);
                format!("{all_ids} AND ({name} >= $1::{cast} OR {name} IS NULL)")
            }),
            highest: changes.as_ref().map(|column| highest_sql(column, from)),
            deletions: poll.deletions.clone(),
            live_ids: format!(
                "SELECT {id}::text FROM {from} WHERE {filter} AND {id} = ANY ({array})"
            ),
            schema: schema_sql(),
            columns: [options.column.clone(), changed.unwrap_or_default().to_owned()],
            all_ids,
            client,
            runtime,
            address,
            host,
            identity,
            name,
            column,
        })
    }

    fn server(&self) -> &str {
        &self.identity
    }
}

/// Returns the query for the largest value of the change column. The query limits the result, because a future time
/// such as `infinity` would hide all new rows.
fn highest_sql(column: &ChangeColumn, from: &str) -> String {
    let name = &column.name;
    match column.cast {
        "timestamptz" => format!(
            "SELECT CASE WHEN max({name}) IS NOT NULL THEN LEAST(max({name}), clock_timestamp()) END
             FROM {from}"
        ),
        "timestamp" => format!("SELECT max({name}) FROM {from} WHERE {name} < 'infinity'"),
        cast => format!("SELECT max({name})::{cast} FROM {from}"),
    }
}

/// Returns the query for the definition of the table: its relations, their files, and both columns. For a view, the
/// definition is its query. The result includes the identity of the server, because a proxy may keep a connection while
/// it switches to another server.
fn schema_sql() -> String {
    format!(
        "{TREE}, {LINEAGE} SELECT count(*), hashtextextended(concat_ws('/',
          string_agg(concat_ws(':', c.oid, c.relkind, c.relfilenode, a.attnum, a.atttypid,
            k.attnum, k.atttypid, i.inhparent), ' ' ORDER BY c.oid),
          (SELECT pg_get_viewdef(v.oid) FROM named JOIN pg_class v ON v.oid = named.oid
            WHERE v.relkind = 'v'),
          (SELECT count(*) FROM pg_subscription_rel r JOIN lineage l ON l.oid = r.srrelid), {SERVER_IDENTITY}) COLLATE \"C\", 0)::text
        FROM tree JOIN pg_class c ON c.oid = tree.oid
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $3 AND NOT a.attisdropped
        LEFT JOIN pg_attribute k ON k.attrelid = c.oid AND k.attname = $4 AND NOT k.attisdropped
        LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
    )
}

impl PostgresTable {
    /// Waits for a response. If the wait fails, the method cancels the query. Without a cancel request, the query would
    /// continue on the server, which does not detect the closed connection.
    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        let result = self.runtime.wait(answer);
        if result.is_err() && !self.client.is_closed() {
            self.runtime.finish(CANCEL, async {
                let transport = self.address.connect(self.host).await?;
                let cancelled = self.client.cancel_token().cancel_query_raw(transport, NoTls).await;
                cancelled.map_err(|error| explained(&error))
            });
        }
        result
    }

    /// Passes the first column of each row to `each`.
    async fn each(
        &self,
        sql: &str,
        parameter: Option<&(dyn ToSql + Sync)>,
        mut each: impl FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let rows = self.client.query_raw(sql, parameter).await;
        let mut rows = pin!(rows.map_err(|error| explained(&error))?);
        while let Some(row) = rows.next().await {
            self.runtime.note_progress();
            let row = row.map_err(|error| explained(&error))?;
            let text: &str = row.try_get(0).map_err(|error| explained(&error))?;
            each(text.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the ids from the query for deletions, in the form of the column.
    async fn deleted(&self, sql: &str) -> Result<Vec<String>, SourceError> {
        let mut ids = Vec::new();
        // The simple query protocol returns the values of all types as texts.
        let messages = self.client.simple_query_raw(sql).await;
        let mut messages = pin!(messages.map_err(|error| explained(&error))?);
        while let Some(message) = messages.next().await {
            self.runtime.note_progress();
            if let SimpleQueryMessage::Row(row) = message.map_err(|error| explained(&error))? {
                let text = row.try_get(0).map_err(|error| explained(&error))?;
                ids.extend(text.and_then(|text| as_column(self.column.kind, text)));
            }
        }
        Ok(ids)
    }

    /// Returns the ids of `ids` that exist in the table.
    async fn live(&self, ids: &[String]) -> Result<HashSet<Vec<u8>>, SourceError> {
        let mut live = HashSet::new();
        self.each(&self.live_ids, Some(&ids), |text| {
            live.insert(text.to_owned());
            Ok(())
        })
        .await?;
        Ok(live)
    }
}

/// Converts a deleted id to the form of the column. Returns `None` if the column cannot contain the id.
fn as_column(kind: ColumnKind, text: &str) -> Option<String> {
    match kind {
        ColumnKind::Integer => text.trim().parse::<i64>().ok().map(|id| id.to_string()),
        ColumnKind::Uuid => {
            let id = IdType::Uuid.canonical(text.trim().as_bytes()).ok()?;
            String::from_utf8(id.into_owned()).ok()
        }
        ColumnKind::Text | ColumnKind::Case => Some(text.to_owned()),
        ColumnKind::Padded => Some(text.trim_end_matches(' ').to_owned()),
    }
}

impl PolledDatabase for PostgresTable {
    fn fold(&self) -> Result<Fold, SourceError> {
        Ok(self.column.fold)
    }

    fn schema(&self) -> Result<String, SourceError> {
        let TableName { schema, table, .. } = &self.name;
        let [column, changed] = &self.columns;
        self.wait(async {
            let row = self.client.query_one(&self.schema, &[schema, table, column, changed]).await;
            let row = row.map_err(|error| explained(&error))?;
            if row.get::<_, i64>(0) == 0 {
                let message = format!("there is no table {}", self.column.table);
                return Err(SourceError::Preflight(message));
            }
            Ok(row.get(1))
        })
    }

    fn highest(&self) -> Result<ColumnValue, SourceError> {
        let Some(sql) = &self.highest else { return Ok(ColumnValue::Null) };
        self.wait(async {
            let row = self.client.query_one(sql, &[]).await.map_err(|error| explained(&error))?;
            let highest: Option<Ordinal> = row.try_get(0).map_err(|error| explained(&error))?;
            Ok(highest.map_or(ColumnValue::Null, |Ordinal(value)| ColumnValue::Integer(value)))
        })
    }

    fn each_changed(
        &self,
        bound: &ColumnValue,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        match (&self.changed_ids, bound) {
            (Some(sql), ColumnValue::Integer(bound)) => {
                let bound = Ordinal(*bound);
                self.wait(self.each(sql, Some(&bound), each))
            }
            // The table was empty at the last poll.
            _ => self.wait(self.each(&self.all_ids, None, each)),
        }
    }

    fn each_deleted(&self, each: EachDeleted<'_>) -> Result<(), SourceError> {
        let Some(sql) = &self.deletions else { return Ok(()) };
        let ids = self.wait(self.deleted(sql)).map_err(in_deletions)?;
        for batch in ids.chunks(BATCH) {
            let live = self.wait(self.live(batch))?;
            for id in batch {
                each(id.as_bytes(), live.contains(id.as_bytes()))?;
            }
        }
        Ok(())
    }

    fn read_all(
        &self,
        run: &Run,
        generation: &Arc<Generation>,
        pause: &mut dyn FnMut() -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        let Self { address, host, column, .. } = self;
        let (snapshot, generation) = (Snapshot::Present(&self.identity), Arc::clone(generation));
        let start = FullRead::start(run, address, *host, column, snapshot, generation);
        let mut read = self.runtime.wait(start)?;
        // The full read has its own connections, and the polls continue on this connection.
        self.runtime.alternate(run, async || read.finish().await, pause)
    }

    fn rows(&self) -> Result<u64, SourceError> {
        let TableName { schema, table, .. } = &self.name;
        self.wait(rows(&self.client, schema, table))
    }
}

/// A value of a change column: an integer, or a number of microseconds. The order of the numbers is the order of the
/// values.
#[derive(Debug)]
struct Ordinal(i64);

impl<'a> FromSql<'a> for Ordinal {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?)))
    }

    accepts!(INT8, TIMESTAMP, TIMESTAMPTZ);
}

impl ToSql for Ordinal {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_i64(self.0);
        Ok(IsNull::No)
    }

    accepts!(INT8, TIMESTAMP, TIMESTAMPTZ);
    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_ids_are_written_as_the_column_has_them() {
        let uuid = "0190163d-8694-739b-aea5-966c26f8ad91";
        for (kind, text, expected) in [
            (ColumnKind::Integer, " 007", Some("7")),
            (ColumnKind::Integer, "-7", Some("-7")),
            (ColumnKind::Integer, "7.0", None),
            (ColumnKind::Integer, "9223372036854775808", None),
            (ColumnKind::Uuid, "0190163D8694739BAEA5966C26F8AD91", Some(uuid)),
            (ColumnKind::Uuid, "7", None),
            (ColumnKind::Text, "a ", Some("a ")),
            (ColumnKind::Padded, "a ", Some("a")),
        ] {
            assert_eq!(as_column(kind, text).as_deref(), expected, "{kind:?} {text}");
        }
    }
}
