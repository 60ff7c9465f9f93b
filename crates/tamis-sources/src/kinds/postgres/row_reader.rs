//! A connection that reads the ids of a table.

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::timeout;
use tokio_postgres::{Client, CopyOutStream};

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::column::ColumnKind;
use crate::kinds::postgres::explain::explained;
use crate::kinds::postgres::id_column::IdColumn;
use crate::kinds::postgres::server::SERVER_IDENTITY;
use crate::source::runtime::{ROW_TIMEOUT, row_timeout_error};

/// A connection whose queries use one snapshot of the database.
pub(super) struct RowReader {
    client: Client,
}

impl RowReader {
    /// Opens a connection. With `snapshot`, the connection uses the snapshot with this name. With `None`, the
    /// connection reads the current rows, and takes its snapshot after its locks. If the snapshot were taken before the
    /// locks, a concurrent `TRUNCATE` could empty the table in the snapshot.
    pub(super) async fn open(
        address: &Address,
        host: usize,
        snapshot: Option<&str>,
    ) -> Result<Self, SourceError> {
        let client = address.client(host).await?;
        let sql = match snapshot {
            // The server has generated the name from hexadecimal digits and hyphens, so the SQL needs no escapes.
            Some(name) => format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '{}'",
                name.replace('\'', "''")
            ),
            None => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY".to_owned(),
        };
        client.batch_execute(&sql).await.map_err(|error| explained(&error))?;
        Ok(Self { client })
    }

    /// Locks the definition and the files of the table until the connection is dropped. Returns the approximate number
    /// of blocks of the table. Returns 0 if the rows cannot be split by blocks, for example for a partitioned table or
    /// a view.
    pub(super) async fn hold(&self, column: &IdColumn) -> Result<u64, SourceError> {
        self.lock(&column.table, "1s").await?;
        // Before PostgreSQL 14, or if `enable_tidscan` is off, each range would scan the whole table. The size of a
        // table is NULL while the table is being dropped.
        let sql = "SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint
            FROM pg_class c JOIN pg_am a ON a.oid = c.relam
            WHERE c.oid = to_regclass($1) AND c.relkind = 'r' AND a.amname = 'heap'
            AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
            AND current_setting('server_version_num')::int >= 140000
            AND current_setting('enable_tidscan')::boolean";
        let row = self.client.query_opt(sql, &[&column.table]).await;
        let row = row.map_err(|error| explained(&error))?;
        let blocks = row.and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or(0);
        Ok(blocks.unsigned_abs())
    }

    /// Locks the table until the connection is dropped, in the lock mode of the later reads. Returns an error if the
    /// lock takes longer than `limit`.
    ///
    /// The time limit prevents a deadlock. A command such as `ALTER TABLE` needs an exclusive lock, so it waits for the
    /// connection that holds the table. A new connection waits behind the command. All other queries of the table also
    /// wait behind the command. The server cannot detect this deadlock, because the server does not see that the holder
    /// waits for the reads.
    pub(super) async fn lock(&self, table: &str, limit: &str) -> Result<(), SourceError> {
        let sql = format!(
            "SET LOCAL lock_timeout = '{limit}'; SELECT FROM {table} LIMIT 0;
            SET LOCAL lock_timeout = 0"
        );
        self.client.batch_execute(&sql).await.map_err(|error| explained(&error))
    }

    /// Exports the current snapshot, and returns its name for other connections. Returns an error if the server does
    /// not have the identity `server`.
    pub(super) async fn export(&self, server: &str) -> Result<String, SourceError> {
        let sql = format!("SELECT pg_export_snapshot(), {SERVER_IDENTITY}");
        let row = self.client.query_one(&sql, &[]).await.map_err(|error| explained(&error))?;
        if row.get::<_, &str>(1) != server {
            let message = "a further connection has reached another server than the first one; the \
                URL must name one server";
            return Err(SourceError::Preflight(message.to_owned()));
        }
        Ok(row.get(0))
    }

    /// Passes the id of each row to `each`. `copy` is a command of [`IdColumn`]. `None` stands for NULL.
    pub(super) async fn each_row(
        &self,
        kind: ColumnKind,
        copy: &str,
        mut each: impl FnMut(Option<&[u8]>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let lines = self.client.copy_out(copy).await;
        let lines: CopyOutStream = lines.map_err(|error| explained(&error))?;
        let mut lines = std::pin::pin!(lines);
        let mut rest: Vec<u8> = Vec::new();
        let mut count = 0_u32;
        loop {
            // The code starts no timer for a row that has already arrived, because a timer for each row took a sixth of
            // the read time.
            let chunk = match lines.next().now_or_never() {
                Some(chunk) => chunk,
                None => {
                    timeout(ROW_TIMEOUT, lines.next()).await.map_err(|_| row_timeout_error())?
                }
            };
            let Some(chunk) = chunk else { break };
            let chunk: Bytes = chunk.map_err(|error| explained(&error))?;
            let mut chunk: &[u8] = &chunk;
            // PostgreSQL sends one line in each chunk, but the protocol does not guarantee one line per chunk.
            while let Some(end) = chunk.iter().position(|&byte| byte == b'\n') {
                let line = &chunk[..end];
                chunk = &chunk[end + 1..];
                if rest.is_empty() {
                    each(kind.line_text(line).as_deref())?;
                } else {
                    rest.extend_from_slice(line);
                    each(kind.line_text(&rest).as_deref())?;
                    rest.clear();
                }
            }
            rest.extend_from_slice(chunk);
            count = count.wrapping_add(1);
            if count.is_multiple_of(1024) {
                // If the caller has dropped the read, the task ends at this yield.
                tokio::task::yield_now().await;
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        Err(SourceError::Connect("the last line of the table is not complete".to_owned()))
    }
}
