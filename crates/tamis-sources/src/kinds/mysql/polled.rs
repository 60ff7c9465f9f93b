//! Polls a table on a server without a usable binary log.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, Params, Row, Value};
use tokio::sync::Mutex;

use crate::errors::source_error::SourceError;
use crate::ids::fold::Fold;
use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::kinds::mysql::column::ColumnKind;
use crate::kinds::mysql::full_read::FullRead;
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::quoted::quoted;
use crate::kinds::mysql::server::Server;
use crate::kinds::mysql::table::Table;
use crate::kinds::poll::{
    BATCH, ColumnValue, EachDeleted, PollOptions, PollRuntime, PolledDatabase, PolledTable,
    in_deletions,
};
use crate::source::audit_source::canonical_row;
use crate::source::run::Run;

/// A connection to a polled table.
#[derive(Debug)]
pub(crate) struct MysqlTable {
    runtime: PollRuntime,
    server: Mutex<Server>,
    identity: String,
    id: IdType,
    table: Table,
    all_ids: String,
    changed_ids: Option<String>,
    highest: Option<String>,
    deletions: Option<String>,
    live_ids: String,
}

impl PolledTable for MysqlTable {
    type Options = MysqlOptions;

    fn open(run: &Run, options: &MysqlOptions, poll: &PollOptions) -> Result<Self, SourceError> {
        let column = poll.changes.as_ref().map(|changes| &*changes.column);
        let runtime = PollRuntime::new(run)?;
        let id_type = &run.ids.options().id;
        let open = Server::open_for_polls(options, id_type, column);
        let server = runtime.wait(open)?;
        let table = server.table.clone();
        // In a text column, one UUID may have several texts, but a deleted row has only one of these texts.
        if poll.deletions.is_some() && !table.kind.is_one_to_one(id_type) {
            let message = "deletions needs a column of the type BINARY(16) or UUID: a text column may have one UUID \
                in upper and in lower case, and with and without hyphens";
            return Err(SourceError::Preflight(message.to_owned()));
        }
        let (id, from) = (quoted(&table.column), table.quoted());
        let all_ids = table.select(&format!("{id} IS NOT NULL"));
        let column = column.map(quoted);
        let changed = |column| format!("{all_ids} AND ({column} >= ? OR {column} IS NULL)");
        let places = vec!["?"; BATCH].join(", ");
        Ok(Self {
            runtime,
            identity: server.identity.clone(),
            id: id_type.clone(),
            server: Mutex::new(server),
            changed_ids: column.as_ref().map(changed),
            highest: column.map(|column| format!("SELECT MAX({column}) FROM {from}")),
            deletions: poll.deletions.clone(),
            live_ids: table.select(&format!("{id} IN ({places})")),
            all_ids,
            table,
        })
    }

    fn server(&self) -> &str {
        &self.identity
    }
}

impl MysqlTable {
    /// Passes the first column of each row to `each`.
    async fn each(
        &self,
        sql: &str,
        params: Params,
        mut each: impl FnMut(&Value) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let mut server = self.server.lock().await;
        let mut rows = server.connection.exec_iter(sql, params).await.map_err(|it| broken(&it))?;
        while let Some(row) = rows.next().await.map_err(|it| broken(&it))? {
            self.runtime.note_progress();
            each(row.as_ref(0).unwrap_or(&Value::NULL))?;
        }
        Ok(())
    }

    /// Returns the key of an id. Returns `None` if the text is not an id of the type. Texts that are equal in the
    /// column have the same key.
    fn key(&self, text: &[u8]) -> Option<Vec<u8>> {
        let id = canonical_row(&self.id, text)?;
        Some(self.table.fold.key(&id).into_owned())
    }

    /// Returns the keys of the `ids` that exist in the table. A row may spell an id differently than `ids`.
    async fn live(&self, ids: &[Value]) -> Result<HashSet<Vec<u8>>, SourceError> {
        let mut live = HashSet::new();
        let Some(last) = ids.last() else { return Ok(live) };
        // The last id is repeated, so that all queries have the same number of parameters.
        let params: Vec<Value> =
            ids.iter().chain(std::iter::repeat(last)).take(BATCH).cloned().collect();
        self.each(&self.live_ids, Params::Positional(params), |value| {
            live.extend(self.table.kind.text(value).and_then(|text| self.key(&text)));
            Ok(())
        })
        .await?;
        Ok(live)
    }
}

fn broken(error: &Error) -> SourceError {
    SourceError::Connect(error.to_string())
}

/// Returns a value of the change column.
fn column_value(value: &Value) -> ColumnValue {
    match *value {
        Value::NULL | Value::Time(..) => ColumnValue::Null,
        Value::Int(value) => ColumnValue::Integer(value),
        // The conversion may return a smaller bound than the value. With a smaller bound, a poll only finds more rows.
        Value::UInt(value) => ColumnValue::Integer(i64::try_from(value).unwrap_or(i64::MAX)),
        Value::Float(value) => ColumnValue::Real(value.into()),
        Value::Double(value) => ColumnValue::Real(value),
        Value::Bytes(ref bytes) => ColumnValue::Text(bytes.clone()),
        // For texts in the form `YYYY-MM-DD hh:mm:ss`, the order of texts is the chronological order.
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let text = format!(
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}"
            );
            ColumnValue::Text(text.into_bytes())
        }
    }
}

fn parameter(value: &ColumnValue) -> Value {
    match value {
        ColumnValue::Null => Value::NULL,
        ColumnValue::Integer(value) => Value::Int(*value),
        ColumnValue::Real(value) => Value::Double(*value),
        ColumnValue::Text(bytes) | ColumnValue::Blob(bytes) => Value::Bytes(bytes.clone()),
    }
}

/// Converts a deleted id to a value of the column. Returns `None` if the column cannot contain the id.
fn as_column(kind: ColumnKind, value: &Value) -> Option<Value> {
    let Value::Bytes(bytes) = value else {
        let is_possible = !matches!((kind, value), (ColumnKind::Unsigned(_), Value::Int(..0)));
        return is_possible.then(|| value.clone());
    };
    match kind {
        // The database would compare a text with an integer column as an inexact number.
        ColumnKind::Signed | ColumnKind::Unsigned(_) | ColumnKind::Decimal(_) => {
            let text = std::str::from_utf8(bytes).ok()?.trim();
            let signed = text.parse().map(Value::Int);
            signed.or_else(|_| text.parse().map(Value::UInt)).ok()
        }
        ColumnKind::Text(_) | ColumnKind::Binary | ColumnKind::Uuid => Some(value.clone()),
    }
}

impl PolledDatabase for MysqlTable {
    fn fold(&self) -> Result<Fold, SourceError> {
        Ok(self.table.fold)
    }

    fn known_before(&self) -> Result<Option<Instant>, SourceError> {
        self.runtime.wait(async { self.server.lock().await.known_before().await })
    }

    fn schema(&self) -> Result<String, SourceError> {
        self.runtime.wait(async { self.server.lock().await.schema().await })
    }

    fn highest(&self) -> Result<ColumnValue, SourceError> {
        let Some(sql) = &self.highest else { return Ok(ColumnValue::Null) };
        let mut highest = ColumnValue::Null;
        self.runtime.wait(self.each(sql, Params::Empty, |value| {
            highest = column_value(value);
            Ok(())
        }))?;
        Ok(highest)
    }

    fn each_changed(
        &self,
        bound: &ColumnValue,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let row = |value: &Value| self.table.kind.text(value).map_or(Ok(()), |text| each(&text));
        match &self.changed_ids {
            Some(sql) if *bound != ColumnValue::Null => {
                let params = Params::Positional(vec![parameter(bound)]);
                self.runtime.wait(self.each(sql, params, row))
            }
            // The table was empty at the last poll.
            _ => self.runtime.wait(self.each(&self.all_ids, Params::Empty, row)),
        }
    }

    fn each_deleted(&self, each: EachDeleted<'_>) -> Result<(), SourceError> {
        let Some(sql) = &self.deletions else { return Ok(()) };
        let mut ids = Vec::new();
        let deleted = self.runtime.wait(self.each(sql, Params::Empty, |value| {
            ids.extend(as_column(self.table.kind, value));
            Ok(())
        }));
        deleted.map_err(in_deletions)?;
        for batch in ids.chunks(BATCH) {
            let live = self.runtime.wait(self.live(batch))?;
            for text in batch.iter().filter_map(|value| self.table.kind.text(value)) {
                let is_live = self.key(&text).is_some_and(|key| live.contains(&key));
                each(&text, is_live)?;
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
        let start = async {
            let (mut server, generation) = (self.server.lock().await, Arc::clone(generation));
            FullRead::start(run, &mut server, generation, None).await
        };
        let mut read = self.runtime.wait(start)?;
        // The full read has its own connections, and the polls continue on this connection.
        self.runtime.alternate(run, async || read.finish().await, pause)
    }

    fn rows(&self) -> Result<u64, SourceError> {
        self.runtime.wait(async { Ok(self.server.lock().await.rows().await) })
    }
}

impl Server {
    /// Opens a connection for polls. Rejects a change column whose values have no usable order.
    async fn open_for_polls(
        options: &MysqlOptions,
        id: &IdType,
        column: Option<&str>,
    ) -> Result<Self, SourceError> {
        let mut server = Self::connect(options, id).await?;
        server.known_before().await?;
        if let Some(column) = column {
            let columns = server.columns().await?;
            let found = columns.iter().find(|it| it.name.eq_ignore_ascii_case(column));
            let types =
                ["tinyint", "smallint", "mediumint", "int", "bigint", "timestamp", "datetime"];
            let message = match found {
                None => format!("the table {} has no column {column}", options.table),
                Some(found) if !types.contains(&&*found.data_type) => format!(
                    "the column {column} is {}; a change column is an integer, a TIMESTAMP or a \
                     DATETIME",
                    found.column_type
                ),
                Some(_) => String::new(),
            };
            if !message.is_empty() {
                return Err(SourceError::Preflight(message));
            }
        }
        // Local time goes back when summer time ends, so the session uses UTC.
        server.connection.query_drop("SET time_zone = '+00:00'").await.map_err(|it| broken(&it))?;
        Ok(server)
    }

    /// Returns a text that differs after most changes of the table definition.
    async fn schema(&mut self) -> Result<String, SourceError> {
        let columns = self.columns().await?;
        let sql = "SELECT CAST(CREATE_TIME AS CHAR) FROM information_schema.TABLES \
            WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ?";
        let names = (&self.table.database, &self.table.name);
        let created: Option<Row> =
            self.connection.exec_first(sql, names).await.map_err(|it| broken(&it))?;
        let missing = || SourceError::Preflight(format!("there is no table {}", self.table.name));
        let created = created.ok_or_else(missing)?.get::<Option<String>, _>(0).flatten();
        Ok(format!("{created:?} {columns:?}"))
    }
}
