//! Reads all ids of the table, over several connections at once.
//!
//! All connections see the snapshot of the slot. The place of a row in the files (`ctid`) splits the
//! rows into ranges of blocks, and each thread takes the next range. The last range has no end, so
//! each row is in one range, however many blocks there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_postgres::{Client, CopyOutStream};

use crate::generation::Generation;
use crate::id_set::IdSet;
use crate::source::error::SourceError;
use crate::source::loader::Loader;
use crate::source::postgres::address::Address;
use crate::source::postgres::column::ColumnKind;
use crate::source::postgres::explain::explained;
use crate::source::postgres::server::SERVER_IDENTITY;
use crate::source::postgres::table::IdColumn;
use crate::source::read_threads::{ReadJob, ReadThreads};
use crate::source::run::Run;
use crate::source::status::Rows;

/// The number of ranges. With more than threads, no thread waits long for the last one.
const RANGES: u64 = 32;

/// A table with fewer blocks of 8 KiB is read over one connection.
const FEW_BLOCKS: u64 = 256;

/// How long a thread that is not the first one may take to open its connection.
const OPEN: Duration = Duration::from_secs(2);

/// Without a row for this time, a read is given up.
const SILENCE: Duration = Duration::from_secs(300);

/// Which rows a read sees.
#[derive(Clone, Copy, Debug)]
pub(super) enum Snapshot<'a> {
    /// Those of the snapshot of a slot, by its name.
    Slot(&'a str),
    /// The present ones of a server, by its identity.
    Present(&'a str),
}

/// A read of all ids in threads of its own. Dropping it stops them.
pub(super) struct FullRead {
    threads: ReadThreads,
    /// Keeps the table as it is.
    _holder: Bulk,
}

impl FullRead {
    /// Starts to read all ids into a generation. The connection of a slot must stay unused until
    /// this returns: its snapshot ends with its next command.
    pub(super) async fn start(
        run: &Run,
        address: &Address,
        host: usize,
        column: &IdColumn,
        snapshot: Snapshot<'_>,
        generation: Arc<Generation>,
    ) -> Result<Self, SourceError> {
        let slot = match snapshot {
            Snapshot::Slot(name) => Some(name),
            Snapshot::Present(_) => None,
        };
        let holder = Bulk::open(address, host, slot).await?;
        let blocks = holder.hold(column).await?;
        let snapshot = match snapshot {
            Snapshot::Slot(name) => name.to_owned(),
            Snapshot::Present(server) => holder.export(server).await?,
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
            first_opened: Semaphore::new(0),
            opened,
        });
        let threads = ReadThreads::start(&job, job.copies.len())?;
        for _ in 0..threads.running() {
            // The threads have the sender as long as they run.
            _ = all_opened.recv().await;
        }
        Ok(Self { threads, _holder: holder })
    }

    /// Waits until all ids are read. Returns the number of rows. The returned future may be dropped: the
    /// next call continues.
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
    /// Has a permit for each other thread after the first one has opened its connection: the last
    /// connection that the server allows is for the first thread.
    first_opened: Semaphore,
    /// Each thread sends that its connection sees the snapshot, or that it has failed.
    opened: UnboundedSender<()>,
}

impl ReadJob for Job {
    async fn read(&self, is_first: bool) -> Result<Rows, SourceError> {
        let bulk = self.open(is_first).await;
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

impl Job {
    async fn open(&self, is_first: bool) -> Result<Bulk, SourceError> {
        let open = async {
            let bulk = Bulk::open(&self.address, self.host, Some(&self.snapshot)).await?;
            bulk.lock(&self.table, "200ms").await?;
            Ok(bulk)
        };
        if is_first {
            let bulk = open.await;
            match &bulk {
                Ok(_) => self.first_opened.add_permits(1 << 10),
                Err(_) => self.first_opened.close(),
            }
            return bulk;
        }
        let late = || SourceError::Connect("the server does not answer".to_owned());
        _ = self.first_opened.acquire().await.map_err(|_| late())?;
        timeout(OPEN, open).await.map_err(|_| late())?
    }
}

/// A connection that sees one snapshot of the database.
pub(super) struct Bulk {
    client: Client,
}

impl Bulk {
    /// Opens a connection. It sees a snapshot, by its name, or the present rows. In the latter case it
    /// takes its snapshot after its locks: `TRUNCATE` would empty an older one.
    pub(super) async fn open(
        address: &Address,
        host: usize,
        snapshot: Option<&str>,
    ) -> Result<Self, SourceError> {
        let client = address.client(host).await?;
        let sql = match snapshot {
            // The server has chosen the name: hexadecimal digits and hyphens.
            Some(name) => format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '{}'",
                name.replace('\'', "''")
            ),
            None => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY".to_owned(),
        };
        client.batch_execute(&sql).await.map_err(|error| explained(&error))?;
        Ok(Self { client })
    }

    /// Keeps the definition and the files of the table as they are until the connection is dropped.
    /// Returns about how many blocks the table has; 0 if its rows have no places in the blocks of
    /// one relation, such as those of a partitioned table or a view.
    async fn hold(&self, column: &IdColumn) -> Result<u64, SourceError> {
        self.lock(&column.table, "1s").await?;
        // Older servers, and some settings, would read the whole table for each range. The size of a
        // table that is being dropped is NULL.
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

    /// Locks the table until the connection is dropped, as its later reads do. Fails if this takes
    /// long.
    ///
    /// A command that wants the table for itself, such as `ALTER TABLE`, waits for the connection that
    /// holds the table. A connection that waits behind this command would wait for ever, and so would
    /// all other queries of the table: the server cannot see that the holder waits for the reads.
    async fn lock(&self, table: &str, limit: &str) -> Result<(), SourceError> {
        let sql = format!(
            "SET LOCAL lock_timeout = '{limit}'; SELECT FROM {table} LIMIT 0;
            SET LOCAL lock_timeout = 0"
        );
        self.client.batch_execute(&sql).await.map_err(|error| explained(&error))
    }

    /// Returns the name of the present snapshot, for other connections. Fails if this is another server
    /// than the one with the identity `server`.
    async fn export(&self, server: &str) -> Result<String, SourceError> {
        let sql = format!("SELECT pg_export_snapshot(), {SERVER_IDENTITY}");
        let row = self.client.query_one(&sql, &[]).await.map_err(|error| explained(&error))?;
        if row.get::<_, &str>(1) != server {
            let message = "a further connection has reached another server than the first one; the \
                URL must name one server";
            return Err(SourceError::Preflight(message.to_owned()));
        }
        Ok(row.get(0))
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
        let silent = |_| SourceError::Connect("the server sends no more rows".to_owned());
        loop {
            // A timer for each row took a sixth of the time of the read.
            let chunk = match lines.next().now_or_never() {
                Some(chunk) => chunk,
                None => timeout(SILENCE, lines.next()).await.map_err(silent)?,
            };
            let Some(chunk) = chunk else { break };
            let chunk: Bytes = chunk.map_err(|error| explained(&error))?;
            let mut chunk: &[u8] = &chunk;
            // PostgreSQL sends one line in each chunk. The protocol does not promise it.
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
