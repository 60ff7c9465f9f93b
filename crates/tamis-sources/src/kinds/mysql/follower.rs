//! Follows the binary log and applies its changes to the set.

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

/// The maximum number of pending deletions in a transaction. If a transaction exceeds the maximum, a full read is
/// required.
const MAX_DELETED: usize = 1 << 20;

/// The type of the last event in a file when the server shuts down.
const STOP: u8 = 3;

/// The type of table map events.
const TABLE_MAP: u8 = 19;

/// The types of events that change no rows.
///
/// The types up to 42 are the end of a file, variables for statements, heartbeats, texts of statements, GTIDs, GTID
/// lists, and events of group replication. The types from 160 on are events of MariaDB: annotations, checkpoints,
/// GTIDs, GTID lists, and the start of encryption.
const HARMLESS: [u8; 19] =
    [3, 5, 13, 14, 27, 28, 29, 33, 34, 35, 36, 37, 41, 42, 160, 161, 162, 163, 164];

/// The flag of events that a reader may ignore.
const IGNORABLE: u16 = 0x80;

/// The move of the position after an event.
enum Step {
    /// The position stays: this event has set the position, or later events move it.
    KeepPosition,
    /// The position moves to the end of the event.
    ToEnd,
    /// The position moves to the end of the event, and the event ends a transaction.
    EndTransaction,
}

/// The state of following the log.
#[derive(Debug)]
pub(super) struct Follower {
    options: MysqlOptions,
    server_id: u32,
    /// The end of the last applied transaction.
    known: Arc<Mutex<Option<LogPlace>>>,
    /// The position of the stream.
    position: Position,
    /// The time at which the server created the current log file.
    created: Option<u32>,
    /// The value of [`Table::shape`] at the last connection.
    shape: String,
    snapshots: Snapshots,
    /// The end of the snapshot from which the source continues.
    snapshot_end: Option<LogPlace>,
    /// The table maps of the current transaction.
    maps: TableMaps,
    /// The deletions of the current transaction.
    deleted: HashSet<Vec<u8>>,
    /// The two-phase transactions whose rows the newest generation contains.
    prepared: HashSet<String>,
    /// The latest time at which an `XA COMMIT` may have entered the log.
    last_xa_commit: Option<Instant>,
    /// True if the last event was the end of a file.
    is_file_closed: bool,
    /// True if the server syncs each transaction to the log before it commits the transaction.
    is_log_synced: bool,
    /// True if the definition of the table may have changed.
    must_open: bool,
    /// The end of the compressed transaction whose events are being applied.
    payload_end: Option<u64>,
    /// The state of the set at the position.
    follow: Follow<Position, Instant>,
}

impl Follower {
    pub(super) fn new(options: MysqlOptions, snapshot: Option<SnapshotOptions>) -> Self {
        let mut random = [0; 4];
        // Without random bytes, two sources could get the same server id.
        _ = getrandom::fill(&mut random);
        // The random id is in the upper half of the range, because administrators assign small ids.
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

    /// Connects, and follows the log until an error occurs.
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
                    // A large transaction may take longer than the limit, so each event resets the start of the time
                    // limit.
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
                        // The query for the time precedes the query for the position, so that the log contains
                        // everything that a replica has applied.
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
                // The set becomes synced with the next response about the end of the log, so the timer fires
                // immediately.
                ticks.reset_immediately();
            }
        }
    }

    /// Applies an event to the state machine.
    fn step(&mut self, run: &Run, event: follow::Event<Position, Instant>) {
        let effects = run.step(&mut self.follow, event, &self.position);
        if effects.iter().any(|effect| matches!(effect, Effect::KnownUntil(_))) {
            self.snapshots.end_resume();
        }
    }

    /// Begins a full read into a new generation. The server has `limit` for each response. The allocation of a large
    /// generation has no time limit.
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
        let has_condition = server.table.condition.is_some();
        let generation = run.start_generation_of_table(rows, has_condition)?;
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

    /// Sets the position at which the stream starts.
    async fn find_start(&mut self, run: &Run, server: &mut Server) -> Result<(), SourceError> {
        self.deleted.clear();
        self.maps.clear();
        self.payload_end = None;
        self.created = None;
        self.is_file_closed = false;
        self.is_log_synced = server.is_log_synced;
        if !self.shape.is_empty() && self.shape != server.table.shape {
            // Log events before a change of the columns contain rows with the old columns.
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
                // The log before the position may contain an `XA COMMIT` whose rows queries do not see yet.
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
        // `server` was opened just before this call.
        self.must_open = false;
        self.find_end(run);
        self.step(run, follow::Event::Connected { continues: true });
        Ok(())
    }

    async fn open_stream(&self, server: &Server) -> Result<BinlogStream, SourceError> {
        let mut connection = connect_to(&self.options, &server.identity).await?;
        // MariaDB replaces GTID events for clients that do not declare GTID support, and fails at GTIDs of two-phase
        // transactions. The value 4 declares GTID support. MySQL ignores the variable.
        let declared = connection.query_drop("SET @mariadb_slave_capability = 4").await;
        declared.map_err(|error| explained_stream(&error, &self.options))?;
        let request = BinlogStreamRequest::new(self.server_id)
            .with_filename(&self.position.file)
            .with_pos(self.position.offset);
        let stream = connection.get_binlog_stream(request).await;
        stream.map_err(|error| explained_stream(&error, &self.options))
    }

    /// Records that the log contains a change that the source cannot interpret.
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
            // The server has deleted the part of the log that the source requested.
            *self.known.lock() = None;
            self.snapshots
                .refuse(run, &format!("the server no longer has its log: {}", server.message));
            self.lose(run);
        }
        explained_stream(error, &self.options)
    }

    /// Applies an event, and moves the position to the end of the event.
    fn apply(&mut self, run: &Run, event: &Event, table: &Table) -> Result<(), SourceError> {
        let mut end = u64::from(event.header().log_pos());
        let mut ends_transaction = false;
        match self.apply_data(run, event, table)? {
            Step::KeepPosition => return Ok(()),
            Step::ToEnd => {}
            Step::EndTransaction => ends_transaction = true,
        }
        if let Some(payload_end) = self.payload_end {
            // The events inside a compressed transaction have no positions.
            end = if ends_transaction { payload_end } else { 0 };
        }
        self.advance(end);
        if ends_transaction {
            self.payload_end = None;
            self.end_transaction(run);
        }
        Ok(())
    }

    /// Applies an event. Returns how the position moves. An event of an unknown type requires a full read, unless the
    /// server has marked the event as ignorable.
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
                // The first event of a stream repeats the file name, followed by a checksum. The decoder does not
                // remove the checksum, because the stream has not announced checksums yet.
                if end > 0 || !file.starts_with(&self.position.file) {
                    // The last file has no end event, so the server has crashed. If the server does not sync its log,
                    // the log may lack transactions that the storage engine has committed.
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
                // The events inside this compressed event follow. After the last inner event, the stream is at the end
                // of the compressed event.
                self.payload_end = Some(end);
                return Ok(Step::KeepPosition);
            }
            _ if header.flags_raw() & IGNORABLE != 0 => {}
            _ => self.lose(run),
        }
        Ok(Step::ToEnd)
    }

    /// Applies a statement event.
    fn apply_query(&mut self, run: &Run, query: &QueryEvent<'_>, table: &Table) -> Step {
        match meaning(&query.query(), &query.schema(), &table.database, &table.name) {
            Statement::Begin => return Step::ToEnd,
            // After the rollback, the deleted rows may exist. The ids of the deleted rows pass until the next full
            // read.
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

    /// Moves the position to the end of an event. The value 0 means that the event has no end position. The log
    /// contains only the lower 32 bits of a position.
    fn advance(&mut self, end: u64) {
        if end == 0 {
            return;
        }
        let before = self.position.offset;
        let offset = before & !u64::from(u32::MAX) | end;
        let is_wrapped = offset + (1 << 31) < before;
        self.position.offset = if is_wrapped { offset + (1 << 32) } else { offset };
    }

    /// Applies the pending deletions of the transaction, and records the end of the transaction.
    fn end_transaction(&mut self, run: &Run) {
        // The deletions are applied under the lock, so that a snapshot never contains a deletion after its end.
        let mut known = self.known.lock();
        self.maps.clear();
        for id in self.deleted.drain() {
            run.delete_key(&id);
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
            // Without a unique index, another row may have the same id, so the id is not deleted. A row with an
            // unchanged id may have become visible to the upstream service, so its id is inserted.
            let is_moved = before != after;
            let before = before.filter(|_| is_moved);
            if let Some(id) = before.as_deref().and_then(|text| run.canonical(text)) {
                if table.is_unique {
                    self.deleted.insert(id.into_owned());
                } else {
                    run.delete_row_of_key(&id);
                }
            }
            if let Some(text) = after {
                run.insert_live(&text, |id| _ = self.deleted.remove(id))?;
            }
        }
        if self.deleted.len() > MAX_DELETED {
            // The ids of the deleted rows pass until the next full read.
            self.deleted.clear();
            self.step(run, follow::Event::ReadRequired);
        }
        Ok(())
    }
}

/// Tests whether the server has closed the stream because another reader uses the same server id. MariaDB returns a
/// specific error code for this case. MySQL returns only a text, which calls the reader a slave or a replica.
fn is_same_id(error: &mysql_async::ServerError) -> bool {
    error.code == 1945 || error.message.contains("same server_uuid/server_id")
}

fn closed() -> mysql_async::Error {
    mysql_async::Error::Other("the server has closed the binary log".into())
}
