//! Reads all ids of the table, over several connections at once.
//!
//! All connections see the snapshot of the slot. The place of a row in the files (`ctid`) splits the
//! rows into ranges of blocks, and each thread takes the next range. The last range has no end, so
//! each row is in one range, however many blocks there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_postgres::{Client, CopyOutStream};

use crate::generation::Generation;
use crate::id_set::IdSet;
use crate::source::error::SourceError;
use crate::source::loader::Loader;
use crate::source::postgres::address::Address;
use crate::source::postgres::column::ColumnKind;
use crate::source::postgres::explain::explained;
use crate::source::postgres::table::IdColumn;
use crate::source::read_threads::{ReadJob, ReadThreads};
use crate::source::run::Run;
use crate::source::status::Rows;

/// The number of ranges. With more than threads, no thread waits long for the last one.
const RANGES: u64 = 32;

/// A table with fewer blocks of 8 KiB is read over one connection.
const FEW_BLOCKS: u64 = 256;

/// A read of all ids in threads of its own. Dropping it stops them.
pub(super) struct FullRead {
    threads: ReadThreads,
    /// Keeps the table as it is.
    _holder: Bulk,
}

impl FullRead {
    /// Starts to read all ids into a generation. They are those of the snapshot of a slot, or the
    /// present ones. The slot's connection must stay unused until this returns: the snapshot ends
    /// with its next command.
    pub(super) async fn start(
        run: &Run,
        address: &Address,
        host: usize,
        column: &IdColumn,
        snapshot: Option<&str>,
        generation: Arc<Generation>,
    ) -> Result<Self, SourceError> {
        let holder = Bulk::open(address, host, snapshot).await?;
        let blocks = holder.hold(column).await?;
        let snapshot = match snapshot {
            Some(snapshot) => snapshot.to_owned(),
            None => holder.export().await?,
        };
        let (opened, mut all_opened) = unbounded_channel();
        let job = Arc::new(Job {
            address: address.clone(),
            host,
            snapshot,
            table: column.table.clone(),
            kind: column.kind,
            copies: copies(column, blocks),
            taken: AtomicUsize::new(0),
            generation,
            ids: Arc::clone(&run.ids),
            opened,
        });
        let threads = ReadThreads::start(&job, job.copies.len())?;
        for _ in 0..threads.running() {
            // A thread that failed before it sent anything is reported by `finish`.
            _ = all_opened.recv().await;
        }
        Ok(Self { threads, _holder: holder })
    }

    /// Waits until all ids are read. Returns the number of rows. A call may be cut off and repeated.
    pub(super) async fn finish(&mut self) -> Result<Rows, SourceError> {
        self.threads.finish().await
    }
}

/// Returns the commands that read the ranges of a table.
fn copies(column: &IdColumn, blocks: u64) -> Vec<String> {
    if blocks < FEW_BLOCKS {
        return vec![column.copy()];
    }
    let first = |range: u64| blocks * range / RANGES;
    let end = |range: u64| (range + 1 < RANGES).then(|| first(range + 1));
    (0..RANGES).map(|range| column.copy_of_blocks(first(range), end(range))).collect()
}

/// What the threads of a read have in common.
struct Job {
    address: Address,
    host: usize,
    snapshot: String,
    /// The table as SQL writes it.
    table: String,
    kind: ColumnKind,
    /// The command of each range.
    copies: Vec<String>,
    /// The number of ranges that threads have taken.
    taken: AtomicUsize,
    generation: Arc<Generation>,
    ids: Arc<IdSet>,
    /// Each thread sends that its connection sees the snapshot, or that it has failed.
    opened: UnboundedSender<()>,
}

impl ReadJob for Job {
    async fn read(&self, is_first: bool) -> Result<Rows, SourceError> {
        let open = async {
            let bulk = Bulk::open(&self.address, self.host, Some(&self.snapshot)).await?;
            bulk.lock(&self.table).await?;
            Ok(bulk)
        };
        let bulk = open.await;
        // The read may have been dropped.
        _ = self.opened.send(());
        let mut loader = Loader::new(&self.ids.options().id, &self.generation);
        let bulk = match bulk {
            Ok(bulk) => bulk,
            // The server may allow fewer connections, or another command waits for the table. The
            // first thread then reads all ranges.
            Err(_) if !is_first => return loader.finish(),
            Err(error) => return Err(error),
        };
        while let Some(copy) = self.copies.get(self.taken.fetch_add(1, Ordering::Relaxed)) {
            bulk.each_row(self.kind, copy, |text| loader.row(text)).await?;
        }
        loader.finish()
    }
}

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

    /// Keeps the definition and the files of the table as they are until the connection is dropped.
    /// Returns about how many blocks the table has; 0 if its rows have no places in the blocks of
    /// one relation, such as those of a partitioned table or a view.
    async fn hold(&self, column: &IdColumn) -> Result<u64, SourceError> {
        let sql = format!("SELECT FROM {} LIMIT 0", column.table);
        self.client.batch_execute(&sql).await.map_err(|error| explained(&error))?;
        let sql = "SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint
            FROM pg_class c JOIN pg_am a ON a.oid = c.relam
            WHERE c.oid = $1 AND c.relkind = 'r' AND a.amname = 'heap'
            AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)";
        let row = self.client.query_opt(sql, &[&column.relation]).await;
        let row = row.map_err(|error| explained(&error))?;
        Ok(row.map_or(0, |row| row.get::<_, i64>(0)).unsigned_abs())
    }

    /// Locks the table until the connection is dropped, as its later reads do. Fails if this takes
    /// long.
    ///
    /// A command that wants the table for itself, such as `ALTER TABLE`, waits for the connection that
    /// holds the table. A connection that waits behind this command would wait for ever, and so would
    /// all other queries of the table: the server cannot see that the holder waits for the reads.
    async fn lock(&self, table: &str) -> Result<(), SourceError> {
        let sql = format!(
            "SET LOCAL lock_timeout = '200ms'; SELECT FROM {table} LIMIT 0;
            SET LOCAL lock_timeout = 0"
        );
        self.client.batch_execute(&sql).await.map_err(|error| explained(&error))
    }

    /// Returns the name of the snapshot of this connection, for other ones.
    async fn export(&self) -> Result<String, SourceError> {
        let row = self.client.query_one("SELECT pg_export_snapshot()", &[]).await;
        Ok(row.map_err(|error| explained(&error))?.get(0))
    }

    /// Passes the id of each row of a command of [`IdColumn`] to `each`. `None` stands for NULL.
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
        while let Some(chunk) = lines.next().await {
            let mut chunk: Bytes = chunk.map_err(|error| explained(&error))?;
            // PostgreSQL sends one line in each chunk. The protocol does not promise it.
            while let Some(end) = chunk.iter().position(|&byte| byte == b'\n') {
                let line = chunk.split_to(end + 1);
                let line = &line[..end];
                if rest.is_empty() {
                    each(kind.line_text(line).as_deref())?;
                } else {
                    rest.extend_from_slice(line);
                    each(kind.line_text(&rest).as_deref())?;
                    rest.clear();
                }
            }
            rest.extend_from_slice(&chunk);
            count = count.wrapping_add(1);
            if count.is_multiple_of(1024) {
                // So that a read that is not needed any more ends.
                tokio::task::yield_now().await;
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        Err(SourceError::Connect("the last line of the table is not complete".to_owned()))
    }
}
