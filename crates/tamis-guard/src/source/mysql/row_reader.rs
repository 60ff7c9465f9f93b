//! A connection that reads the ids of a table.

use std::pin::pin;

use futures_util::FutureExt as _;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tokio::time::timeout;

use crate::source::error::SourceError;
use crate::source::mysql::blocking_reader::{BlockingReader, CONNECT_TIMEOUT};
use crate::source::mysql::connect::connect_to;
use crate::source::mysql::explain::explained;
use crate::source::mysql::options::MysqlOptions;
use crate::source::mysql::table::{Table, quoted};
use crate::source::mysql::visible::Visible;
use crate::source::runtime::{ROW_TIMEOUT, row_timeout_error, with_timeout};

/// A connection that reads the ids of a table. A plain connection over TCP waits for the server in the
/// calling thread, which is faster; see [`BlockingReader`].
pub(super) enum RowReader {
    Blocking(BlockingReader),
    Asynchronous(Conn, MysqlOptions),
}

impl RowReader {
    /// Connects, and fails if the address leads to a server with another identity. Then waits until the
    /// server shows the transactions of `visible`.
    pub(super) async fn open(
        options: &MysqlOptions,
        identity: &str,
        visible: Option<&Visible>,
    ) -> Result<Self, SourceError> {
        let mut connection = with_timeout(CONNECT_TIMEOUT, connect_to(options, identity)).await?;
        if let Some(visible) = visible {
            with_timeout(ROW_TIMEOUT, visible.wait(&mut connection)).await?;
        }
        if !BlockingReader::is_possible(connection.opts()) {
            return Ok(Self::Asynchronous(connection, options.clone()));
        }
        _ = connection.disconnect().await;
        Ok(Self::Blocking(BlockingReader::open(options, identity)?))
    }

    /// Passes the id of each row that satisfies a condition to `each`, from one snapshot. `None` stands
    /// for NULL. After an error, do not use the reader again.
    pub(super) async fn each_row(
        &mut self,
        table: &Table,
        condition: &str,
        mut each: impl FnMut(Option<&[u8]>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let (column, from) = (quoted(&table.column), table.quoted());
        let sql = format!("SELECT {column} FROM {from} WHERE {condition}");
        let (connection, options) = match self {
            Self::Blocking(reader) => return reader.each_row(&sql, table.kind, each),
            Self::Asynchronous(connection, options) => (connection, options),
        };
        let broken = |error| explained(&error, options);
        let late = |_| row_timeout_error();
        let rows = timeout(ROW_TIMEOUT, connection.query_iter(sql)).await.map_err(late)?;
        let mut rows = rows.map_err(broken)?;
        let mut count = 0_u32;
        loop {
            let mut next = pin!(rows.next());
            // Most rows have arrived already, and need no timer.
            let row = match (&mut next).now_or_never() {
                Some(row) => row,
                None => timeout(ROW_TIMEOUT, next).await.map_err(late)?,
            };
            let Some(row) = row.map_err(broken)? else { break };
            each(row.as_ref(0).and_then(|value| table.kind.text(value)).as_deref())?;
            count = count.wrapping_add(1);
            if count.is_multiple_of(4096) {
                // So that a dropped read ends soon.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
