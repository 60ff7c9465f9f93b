//! Follows the stream of changes and applies the changes to the set.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::begin::{Begin, Work};
use crate::kinds::postgres::change_stream::{Applied, ChangeStream, Event};
use crate::kinds::postgres::connection::Connection;
use crate::kinds::postgres::definition::{Definition, Versions};
use crate::kinds::postgres::log_place::LogPlace;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::resume::{Resume, TABLE_DIFFERS};
use crate::kinds::postgres::server::{Server, ServerState};
use crate::kinds::postgres::transaction::{Effect, Transaction};
use crate::kinds::postgres::unfinished_slot::UnfinishedSlot;
use crate::source::follow::{self, Effect as FollowEffect};
use crate::source::run::Run;
use crate::source::runtime::with_timeout;

/// The maximum number of changes that the follower applies before it handles other work.
const BATCH: usize = 256;

/// The follower closes the stream if the server sends no message for the time `SILENCE`. The server sends a message
/// when half of its `wal_sender_timeout` has passed, even while it decodes a large transaction. The default of
/// `wal_sender_timeout` is one minute.
const SILENCE: Duration = Duration::from_secs(60);

/// The follower requests a message if the server sends no message for the time `ASK_AFTER`.
const ASK_AFTER: Duration = Duration::from_secs(10);

/// The time for which the follower waits for the server to flush its log, before the follower requests the flush.
const FLUSH_AFTER: Duration = Duration::from_millis(100);

/// The connections and the state of following a table.
pub(super) struct Follower<'r> {
    run: &'r Run,
    connection: Connection<'r>,
    resume: &'r mut Resume,
    /// The name of the slot.
    slot: String,
    /// The identity of the server of a permanent slot: see [`LogPlace`].
    permanent: Option<String>,
    /// The follower has applied all transactions that end before this position.
    position: Lsn,
    transaction: Transaction<'r>,
    /// The definition of the table at the start of the stream.
    definition: Definition,
    /// The catalog versions of the relations at the last query.
    versions: Versions,
    /// The running full read. The result of the future is `None` if the definition of the table changes during the full
    /// read.
    full_read: Option<Work<'r, Option<Lsn>>>,
    /// The running query for the server state. The result of the future contains the time before the query.
    question: Option<Work<'r, (Instant, ServerState)>>,
    /// The earliest time of the next full read.
    read_after: Instant,
    /// The end of the log on disk at the last query.
    flushed: Lsn,
}

impl<'r> Follower<'r> {
    /// Connects, does a full read, and follows the stream until an error occurs. Returns `Ok` if the definition of the
    /// table has changed, so that the caller starts a new follower.
    pub(super) async fn follow(
        options: &PostgresOptions,
        run: &Run,
        resume: &mut Resume,
    ) -> Result<(), SourceError> {
        let (address, unfinished) = (Address::new(options)?, UnfinishedSlot::default());
        resume.load(run);
        let work = Self::connect_and_run(options, run, &address, &unfinished, resume);
        let result = run.unless_stopped(work).await;
        unfinished.cancel(&address).await;
        result
    }

    async fn connect_and_run(
        options: &PostgresOptions,
        run: &Run,
        address: &Address,
        unfinished: &UnfinishedSlot,
        resume: &mut Resume,
    ) -> Result<(), SourceError> {
        let limit = run.options.stale_after.max(Duration::from_secs(1));
        let id = &run.ids.options().id;
        let server = with_timeout(limit, Server::open(address, options, id, limit)).await?;
        run.set_fold(server.table.ids.fold);
        resume.compare(run, server.definition);
        let connection = Connection { run, server: &server, address, unfinished, options };
        let begin = match resume.slot.clone() {
            Some(slot) => connection.begin_permanent(&slot, resume).await?,
            None => connection.begin_temporary().await?,
        };
        let Begin { stream, slot, permanent, position, definition, full_read } = begin;
        resume.step(run, follow::Event::Connected { continues: full_read.is_none() }, position);
        if full_read.is_some() {
            resume.step(run, follow::Event::ReadBegun, position);
        }
        let follower = Follower {
            run,
            connection,
            slot,
            permanent,
            position,
            transaction: Transaction::new(run, &server.table),
            definition,
            versions: server.versions,
            full_read,
            read_after: Instant::now(),
            question: None,
            flushed: Lsn::default(),
            resume,
        };
        follower.run(stream).await
    }

    async fn run(mut self, mut stream: ChangeStream) -> Result<(), SourceError> {
        let pause = self.run.options.interval;
        let mut ticks = interval(pause.min(Duration::from_millis(200)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut asked, mut heard) = (None::<Instant>, Instant::now());
        // The time at which the follower last requested a message from the server.
        let mut nudged = heard;
        loop {
            if self.resume.follow.is_read_due() && Instant::now() >= self.read_after {
                self.start_read().await?;
            }
            let was_current = self.resume.follow.is_current();
            let is_same = tokio::select! {
                event = stream.next() => {
                    heard = Instant::now();
                    self.apply(event?, &mut stream).await?
                }
                read = wait(&mut self.full_read), if self.full_read.is_some() => {
                    self.full_read = None;
                    self.end_read(read)?
                }
                state = wait(&mut self.question), if self.question.is_some() => {
                    self.question = None;
                    let (moment, state) = state?;
                    self.compare(moment, &state)
                }
                _ = ticks.tick() => {
                    stream.confirm_soon(self.applied()).await?;
                    self.resume.save_when_due(self.run);
                    if heard.elapsed() > ASK_AFTER && nudged.elapsed() > ASK_AFTER {
                        nudged = Instant::now();
                        stream.ask().await?;
                    }
                    if self.resume.follow.asked().is_some() && heard.elapsed() > SILENCE.max(pause) {
                        let message = "the stream of changes has stalled".to_owned();
                        return Err(SourceError::Connect(message));
                    }
                    if self.run.is_rebuild_due() {
                        self.step(follow::Event::RebuildDue);
                    }
                    if self.question.is_none() && asked.is_none_or(|it| it.elapsed() >= pause) {
                        asked = Some(Instant::now());
                        self.ask();
                    }
                    true
                }
            };
            if !is_same {
                self.resume.forget(self.run, TABLE_DIFFERS);
                return Ok(());
            }
            self.step(follow::Event::Reached);
            if self.resume.follow.is_current() && !was_current {
                // The set becomes synced with the next response about the end of the log, so the timer fires
                // immediately.
                asked = None;
                ticks.reset_immediately();
            }
        }
    }

    /// Applies an event to the state machine.
    fn step(&mut self, event: follow::Event<Lsn, Instant>) {
        if self.resume.step(self.run, event, self.position).contains(&FollowEffect::Publish) {
            let place = self.place();
            self.resume.published(place);
        }
    }

    /// Returns the position up to which all changes are applied. Returns `None` if the slot is temporary.
    fn place(&self) -> Option<LogPlace> {
        let (server, definition) = (self.permanent.clone()?, self.definition);
        let (versions, position) = (self.versions, self.position);
        Some(LogPlace { server, definition, versions, position })
    }

    /// Returns the progress for the server. The server must keep the part of the log that follows the position of the
    /// stored snapshot.
    fn applied(&mut self) -> Applied {
        let needed = self.permanent.as_ref().and_then(|server| self.resume.needed(server));
        let deletable = needed.map_or(self.position, |needed| needed.min(self.position));
        Applied { position: self.position, deletable }
    }

    /// Applies an event and the events that were already received. Returns false if the definition of the table has
    /// changed.
    async fn apply(
        &mut self,
        mut event: Event,
        stream: &mut ChangeStream,
    ) -> Result<bool, SourceError> {
        for applied in 1.. {
            match event {
                Event::Decoded { end, wants_reply } => {
                    self.position = self.position.max(end);
                    self.resume.reach(self.position);
                    if wants_reply {
                        let applied = self.applied();
                        stream.confirm(applied).await?;
                    }
                }
                Event::Change(change) => {
                    // The lock ensures that no snapshot contains a deletion after its end.
                    let mut reached = self.resume.lock();
                    match self.transaction.apply(change)? {
                        Effect::None => {}
                        Effect::Committed(end) => {
                            self.position = self.position.max(end);
                            reached.reach(self.position);
                            drop(reached);
                            self.resume.progress();
                        }
                        Effect::NeedsRead => {
                            drop(reached);
                            self.step(follow::Event::ReadRequired);
                        }
                        Effect::Defined => {
                            drop(reached);
                            // The source queries the state of the server before it applies the next deletion. If a
                            // command alters the table after this query of the state, the stream sends a new
                            // definition.
                            let moment = Instant::now();
                            let state = self.connection.server.state(&self.slot).await?;
                            if !self.compare(moment, &state) {
                                return Ok(false);
                            }
                        }
                        Effect::OtherTable => return Ok(false),
                    }
                }
            }
            if applied == BATCH || !stream.has_next() {
                break;
            }
            event = stream.next().await?;
        }
        Ok(true)
    }

    /// Starts a query for the end of the log and the definition of the table.
    fn ask(&mut self) {
        let (server, slot) = (self.connection.server, self.slot.clone());
        let must_flush = self
            .resume
            .follow
            .asked()
            .is_some_and(|(since, end)| self.flushed < *end && since.elapsed() > FLUSH_AFTER);
        self.question = Some(Box::pin(async move {
            if must_flush {
                server.flush_log().await;
            }
            let moment = Instant::now();
            Ok((moment, server.state(&slot).await?))
        }));
    }

    /// Compares the server state with the definition of the followed table. Returns false if the definition of the
    /// table has changed.
    fn compare(&mut self, moment: Instant, state: &ServerState) -> bool {
        if state.definition != self.definition {
            return false;
        }
        self.versions = state.versions;
        self.resume.see(state.versions);
        self.flushed = state.flushed;
        self.run.lag_bytes(Some(state.end.0.saturating_sub(self.position.0)));
        self.step(follow::Event::LogEnd(moment, state.end));
        true
    }

    /// Starts a full read into a second generation, while the current generation stays in use. The full read creates a
    /// separate slot for its snapshot.
    async fn start_read(&mut self) -> Result<(), SourceError> {
        self.step(follow::Event::ReadBegun);
        // The generation is created before the slot, so that the generation receives all changes after the point of the
        // slot.
        let server = self.connection.server;
        let (rows, has_condition) = (server.rows().await?, server.table.condition.is_some());
        let generation = self.run.start_generation_of_table(rows, has_condition)?;
        let (connection, slot) = (self.connection, self.slot.clone());
        self.full_read = Some(Box::pin(connection.read_again(slot, self.definition, generation)));
        Ok(())
    }

    /// Handles the end of a full read. Returns false if the definition of the table has changed.
    fn end_read(&mut self, read: Result<Option<Lsn>, SourceError>) -> Result<bool, SourceError> {
        match read {
            Ok(Some(point)) => self.step(follow::Event::ReadEnded(point)),
            Ok(None) => return Ok(false),
            Err(error) if !self.resume.follow.is_current() => return Err(error),
            // After a failed full read, the current generation stays valid.
            Err(error) => {
                self.run.report(&error);
                self.run.abandon_generation();
                self.step(follow::Event::ReadFailed);
                self.read_after = Instant::now() + self.run.options.max_pause;
            }
        }
        Ok(true)
    }
}

async fn wait<T>(work: &mut Option<Work<'_, T>>) -> Result<T, SourceError> {
    work.as_mut().expect("tested by the caller").await
}
