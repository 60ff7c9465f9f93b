//! Reads all ids of the table.

use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio_postgres::{Client, CopyOutStream};

use crate::source::error::SourceError;
use crate::source::postgres::address::Address;
use crate::source::postgres::explain::explained;
use crate::source::postgres::table::Table;

/// A connection that sees one snapshot of the database.
pub(super) struct Bulk {
    client: Client,
}

impl Bulk {
    /// Opens a connection. It sees the snapshot of a slot, or the present one.
    pub(super) async fn open(
        address: &Address,
        host: usize,
        snapshot: Option<&str>,
    ) -> Result<Self, SourceError> {
        let client = address.client(host).await?;
        let mut sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".to_owned();
        if let Some(snapshot) = snapshot {
            // The server has chosen the name: hexadecimal digits and hyphens.
            sql += &format!("; SET TRANSACTION SNAPSHOT '{}'", snapshot.replace('\'', "''"));
        }
        client.batch_execute(&sql).await.map_err(|error| explained(&error))?;
        Ok(Self { client })
    }

    /// Passes the id of each row to `each`. `None` stands for NULL.
    ///
    /// Until this connection is dropped, the table keeps the definition and the files that were read.
    pub(super) async fn each_row(
        &self,
        table: &Table,
        mut each: impl FnMut(Option<&[u8]>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let lines = self.client.copy_out(&table.copy).await;
        let lines: CopyOutStream = lines.map_err(|error| explained(&error))?;
        let mut lines = std::pin::pin!(lines);
        let mut rest: Vec<u8> = Vec::new();
        let mut count = 0_u32;
        while let Some(chunk) = lines.next().await {
            let mut chunk: Bytes = chunk.map_err(|error| explained(&error))?;
            // PostgreSQL sends one line in each chunk. The protocol does not promise it.
            while let Some(end) = chunk.iter().position(|&byte| byte == b'\n') {
                let line = chunk.split_to(end + 1);
                let line = &line[..end];
                if rest.is_empty() {
                    each(table.kind.line_text(line).as_deref())?;
                } else {
                    rest.extend_from_slice(line);
                    each(table.kind.line_text(&rest).as_deref())?;
                    rest.clear();
                }
            }
            rest.extend_from_slice(&chunk);
            count = count.wrapping_add(1);
            if count.is_multiple_of(1024) {
                // The stream is followed meanwhile.
                tokio::task::yield_now().await;
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        Err(SourceError::Connect("the last line of the table is not complete".to_owned()))
    }
}
