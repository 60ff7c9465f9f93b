//! Reads all ids of the table over several connections concurrently.
//!
//! All connections use the snapshot of the slot. The physical position of a row (`ctid`) splits the rows into ranges of
//! blocks, and each thread takes the next range. The last range has no end, so each row is in exactly one range for any
//! number of blocks.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::errors::source_error::SourceError;
use crate::ids::generation::Generation;
use crate::ids::id_set::IdSet;
use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::column::ColumnKind;
use crate::kinds::postgres::id_column::IdColumn;
use crate::kinds::postgres::row_reader::RowReader;
use crate::source::loader::Loader;
use crate::source::read_threads::{Ranges, ReadJob, ReadThreads};
use crate::source::run::Run;
use crate::source::runtime::{no_answer, runtime, with_timeout};
use crate::source::status::Rows;
use crate::source::stop_flag::StopFlag;

/// The number of ranges, which exceeds the number of threads so that no thread waits long for the last range.
const RANGES: u64 = 32;

/// If a table has fewer blocks of 8 KiB than this number, the source reads the table over one connection.
const FEW_BLOCKS: u64 = 256;

/// The time limit for opening the connection of each thread except the first.
const OPEN: Duration = Duration::from_secs(2);

/// The rows that a full read sees.
#[derive(Clone, Copy, Debug)]
pub(super) enum Snapshot<'a> {
    /// The rows in the snapshot of a slot. The field is the name of the snapshot.
    Slot(&'a str),
    /// The current rows of a server. The field is the identity of the server.
    Present(&'a str),
}

/// A full read on separate threads. Dropping the `FullRead` stops the threads.
pub(super) struct FullRead {
    threads: ReadThreads,
    /// The connection that locks the definition of the table.
    _holder: RowReader,
}

impl FullRead {
    /// Starts a full read into a generation. For a slot, the caller must not use the connection of the slot until this
    /// method returns. The next command on the connection of the slot would end the snapshot.
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
        let holder = RowReader::open(address, host, slot).await?;
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
            copies: Ranges::new(copies(column, blocks)),
            generation,
            ids: Arc::clone(&run.ids),
            first_opened: Semaphore::new(0),
            opened,
        });
        let threads = ReadThreads::start(&job, job.copies.len())?;
        for _ in 0..threads.running() {
            // The threads hold the sender while they run, so the channel stays open.
            _ = all_opened.recv().await;
        }
        Ok(Self { threads, _holder: holder })
    }

    /// Waits until all ids are read. Returns the number of rows. The caller may drop the returned future: the next call
    /// continues the wait.
    pub(super) async fn finish(&mut self) -> Result<Rows, SourceError> {
        self.threads.finish().await
    }
}

/// Returns the `COPY` commands that read the ranges of a table.
fn copies(column: &IdColumn, blocks: u64) -> Vec<String> {
    if blocks < FEW_BLOCKS {
        return vec![column.copy()];
    }
    let first = |range: u64| blocks * range / RANGES;
    let end = |range: u64| (range + 1 < RANGES).then(|| first(range + 1));
    (0..RANGES).map(|range| column.copy_of_blocks(first(range), end(range))).collect()
}

/// The data that the threads of a full read share.
struct Job {
    address: Address,
    host: usize,
    snapshot: String,
    /// The quoted name of the table for SQL.
    table: String,
    kind: ColumnKind,
    /// The `COPY` commands of the ranges.
    copies: Ranges,
    generation: Arc<Generation>,
    ids: Arc<IdSet>,
    /// Contains one permit for each thread except the first, after the first thread has opened its connection. If the
    /// server allows only one additional connection, the first thread gets the connection.
    first_opened: Semaphore,
    /// Each thread sends a message when its connection sees the snapshot or has failed.
    opened: UnboundedSender<()>,
}

impl ReadJob for Job {
    fn read(&self, is_first: bool, stop: &StopFlag) -> Result<Rows, SourceError> {
        runtime()?.block_on(stop.until_requested(self.read_ranges(is_first)))
    }
}

impl Job {
    async fn read_ranges(&self, is_first: bool) -> Result<Rows, SourceError> {
        let reader = self.open(is_first).await;
        // The channel is closed if the full read was dropped.
        _ = self.opened.send(());
        let mut loader = Loader::new(&self.ids.options().id, &self.generation);
        let reader = match reader {
            Ok(reader) => reader,
            // The server may limit the number of connections, or another command may wait for the table. If a thread
            // cannot open its connection, the first thread reads all ranges.
            Err(_) if !is_first => return loader.finish(),
            Err(error) => return Err(error),
        };
        while let Some(copy) = self.copies.take() {
            reader.each_row(self.kind, copy, |text| loader.row(text)).await?;
        }
        loader.finish()
    }

    async fn open(&self, is_first: bool) -> Result<RowReader, SourceError> {
        let open = async {
            let reader = RowReader::open(&self.address, self.host, Some(&self.snapshot)).await?;
            reader.lock(&self.table, "200ms").await?;
            Ok(reader)
        };
        if is_first {
            let reader = open.await;
            match &reader {
                Ok(_) => self.first_opened.add_permits(1 << 10),
                Err(_) => self.first_opened.close(),
            }
            return reader;
        }
        _ = self.first_opened.acquire().await.map_err(|_| no_answer())?;
        with_timeout(OPEN, open).await
    }
}
