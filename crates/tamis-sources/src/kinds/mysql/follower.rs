//! Follows the binary log.

mod resume;
mod two_phase;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use mysql_async::binlog::events::{Event, EventData, QueryEvent};
use mysql_async::prelude::Queryable as _;
use mysql_async::{BinlogStream, BinlogStreamRequest};
use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};

use crate::errors::source_error::SourceError;
use crate::ids::snapshot::SnapshotOptions;
use crate::kinds::mysql::connect::{check_identity, connect_to};
use crate::kinds::mysql::explain::explained_stream;
use crate::kinds::mysql::full_read::FullRead;
use crate::kinds::mysql::log_place::{LogPlace, Position};
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::row_events::{TableMaps, has_rows};
use crate::kinds::mysql::server::Server;
use crate::kinds::mysql::statement::{Statement, meaning};
use crate::kinds::mysql::table::Table;
use crate::kinds::mysql::visible::Visible;
use crate::source::follow::{self, Effect, Follow, LogPosition as _};
use crate::source::run::Run;
use crate::source::runtime::with_timeout;
use crate::source::snapshots::Snapshots;

/// The deletions of a transaction that wait for its commit. With more, all ids are read again.
const MAX_DELETED: usize = 1 << 20;

/// The type of the last event of a file before the server is stopped.
const STOP: u8 = 3;

/// The type of table maps.
const TABLE_MAP: u8 = 19;

/// The types of events that change no rows: the end of a file, values for statements that follow, heartbeats, the
/// texts of statements, GTIDs and lists of GTIDs, and what group replication writes; of MariaDB (from 160 on)
/// annotations, checkpoints, GTIDs, lists of GTIDs, and the start of encryption.
const HARMLESS: [u8; 19] =
    [3, 5, 13, 14, 27, 28, 29, 33, 34, 35, 36, 37, 41, 42, 160, 161, 162, 163, 164];

/// The flag of events that a reader may ignore.
const IGNORABLE: u16 = 0x80;

/// How the position moves after an event.
enum Step {
    /// The position stays: the event has set it, or later events move it.
    KeepPosition,
    /// To the end of the event.
    ToEnd,
    /// To the end of the event, which ends a transaction.
    EndTransaction,
}

/// What is known about the log.
#[derive(Debug)]
pub(super) struct Follower {
    options: MysqlOptions,
    server_id: u32,
    /// The end of the last transaction that was applied.
    known: Arc<Mutex<Option<LogPlace>>>,
    /// Where the stream is.
    position: Position,
    /// When the server created this file.
    created: Option<u32>,
    /// [`Table::shape`] at the last connection.
    shape: String,
    snapshots: Snapshots,
    /// The end of the snapshot that is being continued.
    snapshot_end: Option<LogPlace>,
    /// The table maps of the present transaction.
    maps: TableMaps,
    /// The deletions of the present transaction.
    deleted: HashSet<Vec<u8>>,
    /// The transactions in two phases whose rows the newest generation has.
    prepared: HashSet<String>,
    /// When the log may have got the last `XA COMMIT`.
    last_xa_commit: Option<Instant>,
    /// True if the last event was the end of a file.
    is_file_closed: bool,
    /// True if the server syncs each transaction in its log before it commits it.
    is_log_synced: bool,
    /// True if the definition of the table may be another one.
    must_open: bool,
    /// The end of a compressed transaction whose events are being applied.
    payload_end: Option<u64>,
    /// What the source knows at the position.
    follow: Follow<Position, Instant>,
}

impl Follower {
    pub(super) fn new(options: MysqlOptions, snapshot: Option<SnapshotOptions>) -> Self {
        let mut random = [0; 4];
        // Without random bytes, two sources might have the same number.
        _ = getrandom::fill(&mut random);
        // The upper half: replicas of people have small numbers.
        let server_id = options.server_id.unwrap_or(u32::from_le_bytes(random) | 1 << 31);
        Self {
            snapshots: Snapshots::new(snapshot, options.identity()),
            options,
            server_id,
            known: Arc::default(),
            position: Position::default(),
            created: None,
            shape: String::new(),
            snapshot_end: None,
            maps: TableMaps::default(),
            deleted: HashSet::new(),
            prepared: HashSet::new(),
            last_xa_commit: None,
            is_file_closed: false,
            is_log_synced: false,
            must_open: false,
            payload_end: None,
            follow: Follow::default(),
        }
    }

    /// Connects, and follows the log until an error.
    pub(super) async fn follow(&mut self, run: &Run) -> Result<(), SourceError> {
        let limit = run.options.stale_after.max(Duration::from_secs(1));
        let mut server =
            with_timeout(limit, Server::open(&self.options, &run.ids.options().id)).await?;
        with_timeout(limit, self.find_start(run, &mut server)).await?;
        let mut stream = with_timeout(limit, self.open_stream(&server)).await?;
        let mut ticks = interval(run.options.interval.min(Duration::from_millis(200)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut answered = Instant::now();
        // The highest log position that the server has reported.
        let mut newest = self.position.clone();
        let mut full_read: Option<FullRead> = None;
        loop {
            if self.follow.is_read_due() {
                drop(full_read.take());
                if std::mem::take(&mut self.must_open) {
                    with_timeout(limit, self.open_again(run, &mut server)).await?;
                }
                full_read = Some(self.begin_read(run, &mut server, limit).await?);
            }
            let was_current = self.follow.is_current();
            tokio::select! {
                event = stream.next() => {
                    let event = event.unwrap_or_else(|| Err(closed()));
                    let event = event.map_err(|error| self.broken(run, &error))?;
                    // A large transaction arrives for longer than the limit.
                    answered = Instant::now();
                    self.apply(run, &event, &server.table)?;
                }
                rows = async { full_read.as_mut().expect("tested").finish().await }, if full_read.is_some() => {
                    run.count(rows?);
                    full_read = None;
                    let end = with_timeout(limit, server.position()).await?;
                    self.step(run, follow::Event::ReadEnded(end));
                }
                _ = ticks.tick() => {
                    if run.is_rebuild_due() {
                        self.step(run, follow::Event::RebuildDue);
                    }
                    self.save_when_due(run);
                    if self.follow.asked().is_none() {
                        // Before the position: what a replica has applied is in its log.
                        let known = with_timeout(limit, server.known_before()).await?;
                        let at = with_timeout(limit, server.position()).await?;
                        if !at.has_reached(&newest) {
                            return Err(self.begun_again(run));
                        }
                        newest.clone_from(&at);
                        if let Some(moment) = known {
                            self.step(run, follow::Event::LogEnd(moment, at));
                        }
                        answered = Instant::now();
                    } else if answered.elapsed() > limit {
                        return Err(SourceError::Connect("the binary log has stalled".to_owned()));
                    }
                    run.lag_bytes(self.position.bytes_to(&newest));
                }
            }
            self.find_end(run);
            self.step(run, follow::Event::Reached);
            if self.follow.is_current() && !was_current {
                // The set is synced with the next answer about the end of the log.
                ticks.reset_immediately();
            }
        }
    }

    /// Reports an event to the state.
    fn step(&mut self, run: &Run, event: follow::Event<Position, Instant>) {
        let effects = run.step(&mut self.follow, event, &self.position);
        if effects.iter().any(|effect| matches!(effect, Effect::KnownUntil(_))) {
            self.snapshots.end_resume();
        }
    }

    /// Begins to read all ids into a new generation. The server has `limit` for each answer: a large generation
    /// takes time, too.
    async fn begin_read(
        &mut self,
        run: &Run,
        server: &mut Server,
        limit: Duration,
    ) -> Result<FullRead, SourceError> {
        self.step(run, follow::Event::ReadBegun);
        self.prepared.clear();
        let visible = Visible { place: self.position.clone(), last_xa_commit: self.last_xa_commit };
        let rows = with_timeout(limit, async { Ok(server.rows().await) }).await?;
        let generation = run.start_generation(rows)?;
        with_timeout(limit, FullRead::start(run, server, generation, Some(visible))).await
    }

    /// Reads the definition of the table again.
    async fn open_again(&mut self, run: &Run, server: &mut Server) -> Result<(), SourceError> {
        let again = Server::open(&self.options, &run.ids.options().id).await?;
        check_identity(&server.identity, &again.identity)?;
        *server = again;
        self.shape.clone_from(&server.table.shape);
        run.set_fold(server.table.fold);
        Ok(())
    }

    /// Sets the position at which the stream begins.
    async fn find_start(&mut self, run: &Run, server: &mut Server) -> Result<(), SourceError> {
        self.deleted.clear();
        self.maps.clear();
        self.payload_end = None;
        self.created = None;
        self.is_file_closed = false;
        self.is_log_synced = server.is_log_synced;
        if !self.shape.is_empty() && self.shape != server.table.shape {
            // Rows of the log that are older than the change have other columns.
            *self.known.lock() = None;
        }
        self.shape.clone_from(&server.table.shape);
        run.set_fold(server.table.fold);
        self.load_snapshot(run, server);
        let known = self.known.lock().clone().filter(|known| known.server == server.identity);
        match known {
            Some(known) => self.position = known.position,
            None => {
                self.lose(run);
                self.position = server.position().await?;
                // An `XA COMMIT` may be in the log before the position, and queries may not see its rows yet.
                if server.has_xa_commits().await? {
                    self.last_xa_commit = Some(Instant::now());
                }
                *self.known.lock() = Some(LogPlace {
                    server: server.identity.clone(),
                    created: None,
                    position: self.position.clone(),
                });
            }
        }
        // The server has just been opened.
        self.must_open = false;
        self.find_end(run);
        self.step(run, follow::Event::Connected { continues: true });
        Ok(())
    }

    async fn open_stream(&self, server: &Server) -> Result<BinlogStream, SourceError> {
        let mut connection = connect_to(&self.options, &server.identity).await?;
        // MariaDB replaces GTIDs for clients that do not declare that they read them, and fails at
        // those of transactions in two phases. 4 is the level of GTIDs. MySQL ignores the variable.
        let declared = connection.query_drop("SET @mariadb_slave_capability = 4").await;
        declared.map_err(|error| explained_stream(&error, &self.options))?;
        let request = BinlogStreamRequest::new(self.server_id)
            .with_filename(&self.position.file)
            .with_pos(self.position.offset);
        let stream = connection.get_binlog_stream(request).await;
        stream.map_err(|error| explained_stream(&error, &self.options))
    }

    /// Records that the log has a change that the source does not know.
    fn lose(&mut self, run: &Run) {
        self.step(run, follow::Event::Lost);
        self.must_open = true;
        self.snapshot_end = None;
        self.snapshots.end_resume();
    }

    /// Returns the error of a broken stream.
    fn broken(&mut self, run: &Run, error: &mysql_async::Error) -> SourceError {
        if let mysql_async::Error::Server(server) = error
            && is_same_id(server)
        {
            let id = self.server_id;
            return SourceError::Preflight(format!(
                "another reader of the binary log uses server_id {id}, and the server keeps only the newer one; give \
                 each guard and each replica a `server_id` of its own, or remove it from the configuration"
            ));
        }
        if let mysql_async::Error::Server(server) = error
            && server.code == 1236
        {
            // The server has deleted this part of the log.
            *self.known.lock() = None;
            self.snapshots
                .refuse(run, &format!("the server no longer has its log: {}", server.message));
            self.lose(run);
        }
        explained_stream(error, &self.options)
    }

    /// Applies an event, and moves the position to its end.
    fn apply(&mut self, run: &Run, event: &Event, table: &Table) -> Result<(), SourceError> {
        let mut end = u64::from(event.header().log_pos());
        let mut ends_transaction = false;
        match self.apply_data(run, event, table)? {
            Step::KeepPosition => return Ok(()),
            Step::ToEnd => {}
            Step::EndTransaction => ends_transaction = true,
        }
        if let Some(payload_end) = self.payload_end {
            // The events in a compressed transaction have no positions of their own.
            end = if ends_transaction { payload_end } else { 0 };
        }
        self.advance(end);
        if ends_transaction {
            self.payload_end = None;
            self.end_transaction(run);
        }
        Ok(())
    }

    /// Applies an event, and returns how the position moves. An event of a type that is not known costs a read of all ids,
    /// unless the server has marked it as one to ignore.
    fn apply_data(&mut self, run: &Run, event: &Event, table: &Table) -> Result<Step, SourceError> {
        let header = event.header();
        let end = u64::from(header.log_pos());
        let kind = header.event_type_raw();
        if kind == TABLE_MAP {
            if self.maps.add(event.data(), table).is_err() {
                self.lose(run);
            }
            return Ok(Step::ToEnd);
        }
        if has_rows(kind) {
            self.apply_rows(run, kind, event.data(), table)?;
            return Ok(Step::ToEnd);
        }
        let was_closed = std::mem::replace(&mut self.is_file_closed, kind == STOP);
        if HARMLESS.contains(&kind) {
            return Ok(Step::ToEnd);
        }
        let data = event.read_data();
        let data = data.map_err(|error| SourceError::Connect(format!("the log: {error}")))?;
        match data {
            Some(EventData::RotateEvent(rotate)) => {
                let file = rotate.name_raw().to_vec();
                // The first event of a stream repeats the name, and its checksum follows: the
                // stream does not know yet that events have one.
                if end > 0 || !file.starts_with(&self.position.file) {
                    // The last file has no end: the server has crashed. If it does not sync the log, it may have lost
                    // transactions that its storage engine has kept.
                    if end == 0 && !was_closed && !self.is_log_synced {
                        self.lose(run);
                    }
                    self.position = Position { file, offset: rotate.position() };
                }
                return Ok(Step::KeepPosition);
            }
            Some(EventData::FormatDescriptionEvent(_)) => {
                self.check_file(run, event.header().timestamp())?;
            }
            Some(EventData::XidEvent(_)) => return Ok(Step::EndTransaction),
            Some(EventData::QueryEvent(query)) => return Ok(self.apply_query(run, &query, table)),
            Some(EventData::XaPrepareLogEvent(_)) => {
                self.deleted.clear();
                return Ok(Step::EndTransaction);
            }
            Some(EventData::TransactionPayloadEvent(_)) => {
                // The events in it follow. The position is reached after them.
                self.payload_end = Some(end);
                return Ok(Step::KeepPosition);
            }
            _ if header.flags_raw() & IGNORABLE != 0 => {}
            _ => self.lose(run),
        }
        Ok(Step::ToEnd)
    }

    /// Applies a statement.
    fn apply_query(&mut self, run: &Run, query: &QueryEvent<'_>, table: &Table) -> Step {
        match meaning(&query.query(), &query.schema(), &table.database, &table.name) {
            Statement::Begin => return Step::ToEnd,
            // The rows may exist again, or still. Their ids pass until all are read.
            Statement::RollbackTo => {
                self.deleted.clear();
                return Step::ToEnd;
            }
            Statement::Commit | Statement::Other => {}
            Statement::Rollback => self.deleted.clear(),
            Statement::TwoPhase => self.apply_two_phase(run, &query.query()),
            Statement::Unexplained => self.lose(run),
        }
        Step::EndTransaction
    }

    /// Moves the position to the end of an event; 0 stands for no end. The log writes the lower half
    /// of a position.
    fn advance(&mut self, end: u64) {
        if end == 0 {
            return;
        }
        let before = self.position.offset;
        let offset = before & !u64::from(u32::MAX) | end;
        let is_wrapped = offset + (1 << 31) < before;
        self.position.offset = if is_wrapped { offset + (1 << 32) } else { offset };
    }

    /// Deletes the ids that the transaction has deleted, and records its end.
    fn end_transaction(&mut self, run: &Run) {
        // Under the lock, so that the end of a snapshot is not before a deletion in it.
        let mut known = self.known.lock();
        self.maps.clear();
        for id in self.deleted.drain() {
            run.ids.delete(&id);
        }
        if let Some(known) = &mut *known {
            known.position.clone_from(&self.position);
            known.created = self.created;
        }
    }

    fn apply_rows(
        &mut self,
        run: &Run,
        kind: u8,
        event: &[u8],
        table: &Table,
    ) -> Result<(), SourceError> {
        let Ok(ids) = self.maps.ids(kind, event, table) else {
            self.lose(run);
            return Ok(());
        };
        for (before, after) in ids {
            // Another row may have the id. A row that keeps its id may have become visible for the service.
            let is_moved = table.is_unique && before != after;
            let before = before.filter(|_| is_moved);
            if let Some(id) = before.as_deref().and_then(|text| run.canonical(text)) {
                self.deleted.insert(id.into_owned());
            }
            if let Some(text) = after {
                run.insert_live(&text, |id| _ = self.deleted.remove(id))?;
            }
        }
        if self.deleted.len() > MAX_DELETED {
            // The ids pass until all are read again.
            self.deleted.clear();
            self.step(run, follow::Event::ReadRequired);
        }
        Ok(())
    }
}

/// Tests whether the server has ended the stream because of another one with the same number. MariaDB has a code for
/// it. MySQL has only the text, and calls the reader a slave or a replica.
fn is_same_id(error: &mysql_async::ServerError) -> bool {
    error.code == 1945 || error.message.contains("same server_uuid/server_id")
}

fn closed() -> mysql_async::Error {
    mysql_async::Error::Other("the server has closed the binary log".into())
}
