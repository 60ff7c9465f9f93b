//! A connection that reads the ids of a table.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tokio::time::timeout;

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::connect::connect_to;
use crate::kinds::mysql::explain::explained;
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::table::Table;
use crate::kinds::mysql::visible::Visible;
use crate::source::runtime::{ROW_TIMEOUT, row_timeout_error, with_timeout};

/// The time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that reads the ids of a table.
pub(super) struct RowReader {
    connection: Conn,
    options: MysqlOptions,
}

impl RowReader {
    /// Opens a connection, and waits until the server shows the transactions of `visible`. Returns an error if the
    /// address leads to a server with another identity.
    pub(super) async fn open(
        options: &MysqlOptions,
        identity: &str,
        visible: Option<&Visible>,
    ) -> Result<Self, SourceError> {
        let mut connection = with_timeout(CONNECT_TIMEOUT, connect_to(options, identity)).await?;
        if let Some(visible) = visible {
            with_timeout(ROW_TIMEOUT, visible.wait(&mut connection)).await?;
        }
        Ok(Self { connection, options: options.clone() })
    }

    /// Passes the id of each row to `each`, if the row satisfies `condition` and the condition of the source. All rows
    /// come from one snapshot. `None` stands for NULL. After an error, the reader must not be used again.
    pub(super) async fn each_row(
        &mut self,
        table: &Table,
        condition: &str,
        mut each: impl FnMut(Option<&[u8]>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let sql = table.select(condition);
        let broken = |error| explained(&error, &self.options);
        let late = |_| row_timeout_error();
        let rows = timeout(ROW_TIMEOUT, self.connection.query_iter(sql)).await.map_err(late)?;
        let mut rows = rows.map_err(broken)?;
        if rows.columns_ref().len() != 1 {
            let message = "the server has answered a query for rows without rows";
            return Err(SourceError::Connect(message.to_owned()));
        }
        let mut count = 0_u32;
        loop {
            let mut next = pin!(rows.next());
            // Most rows have already arrived, so the code starts no timer for these rows.
            let row = match (&mut next).now_or_never() {
                Some(row) => row,
                None => timeout(ROW_TIMEOUT, next).await.map_err(late)?,
            };
            let Some(row) = row.map_err(broken)? else { break };
            each(row.as_ref(0).and_then(|value| table.kind.text(value)).as_deref())?;
            count = count.wrapping_add(1);
            if count.is_multiple_of(4096) {
                // If the caller has dropped the read, the task ends at this yield.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
