//! Follows the stream of changes.

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

/// How many changes are applied before the follower looks at other work.
const BATCH: usize = 256;

/// Without any message for this time, the stream is given up. The server sends one when half of its
/// `wal_sender_timeout` is over, also while it decodes a large transaction. The default is a minute.
const SILENCE: Duration = Duration::from_secs(60);

/// Without any message for this time, the server is asked for one.
const ASK_AFTER: Duration = Duration::from_secs(10);

/// For this time the follower waits until the server writes its log to disk by itself.
const FLUSH_AFTER: Duration = Duration::from_millis(100);

/// The connections that follow a table, and what is known.
pub(super) struct Follower<'r> {
    run: &'r Run,
    connection: Connection<'r>,
    resume: &'r mut Resume,
    /// The name of the slot.
    slot: String,
    /// The server of a permanent slot: see [`LogPlace`].
    permanent: Option<String>,
    /// All transactions that end before this place are applied.
    position: Lsn,
    transaction: Transaction<'r>,
    /// What the table was when it was read.
    definition: Definition,
    /// The versions of its relations at the last question.
    versions: Versions,
    /// The read of all ids that is going on. `None` if the table becomes another one during it.
    full_read: Option<Work<'r, Option<Lsn>>>,
    /// The question that is going on, with the moment before it.
    question: Option<Work<'r, (Instant, ServerState)>>,
    /// When the next read may begin.
    read_after: Instant,
    /// The part of the log that was on disk at the last question.
    flushed: Lsn,
}

impl<'r> Follower<'r> {
    /// Connects, reads all ids, and follows the stream until an error. Returns without one if all
    /// must begin again because the definition of the table has changed.
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
        // A slot without a snapshot cannot be continued.
        let slot = options.slot.as_deref().filter(|_| run.options.snapshot.is_some());
        let begin = match slot {
            Some(slot) => connection.begin_permanent(slot, resume).await?,
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
        // When the server was asked for a message.
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
                // The set is synced with the next answer about the end of the log.
                asked = None;
                ticks.reset_immediately();
            }
        }
    }

    /// Reports an event to the state.
    fn step(&mut self, event: follow::Event<Lsn, Instant>) {
        if self.resume.step(self.run, event, self.position).contains(&FollowEffect::Publish) {
            let place = self.place();
            self.resume.published(place);
        }
    }

    /// Returns the place up to which all changes are applied, if the slot is permanent.
    fn place(&self) -> Option<LogPlace> {
        let (server, definition) = (self.permanent.clone()?, self.definition);
        let (versions, position) = (self.versions, self.position);
        Some(LogPlace { server, definition, versions, position })
    }

    /// Returns what the server may know. It must keep the log after the last snapshot on the disk.
    fn applied(&mut self) -> Applied {
        let needed = self.permanent.as_ref().and_then(|server| self.resume.needed(server));
        let deletable = needed.map_or(self.position, |needed| needed.min(self.position));
        Applied { position: self.position, deletable }
    }

    /// Applies an event, and those that have been received behind it. Returns false if the table is
    /// another one.
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
                    // Locked, so that no snapshot has a deletion after its end.
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
                            // Before the next deletion. A later command is defined again.
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

    /// Asks for the end of the log and the definition of the table.
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

    /// Compares the answer with what is known. Returns false if the table is another one.
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

    /// Starts a read of all ids into a second generation, while the first one is in use. It has a
    /// slot of its own for its snapshot.
    async fn start_read(&mut self) -> Result<(), SourceError> {
        self.step(follow::Event::ReadBegun);
        // Before the slot: the generation gets all changes after the point of the slot.
        let generation = self.run.start_generation(self.connection.server.rows().await?)?;
        let (connection, slot) = (self.connection, self.slot.clone());
        self.full_read = Some(Box::pin(connection.read_again(slot, self.definition, generation)));
        Ok(())
    }

    /// Returns false if the table is another one.
    fn end_read(&mut self, read: Result<Option<Lsn>, SourceError>) -> Result<bool, SourceError> {
        match read {
            Ok(Some(point)) => self.step(follow::Event::ReadEnded(point)),
            Ok(None) => return Ok(false),
            Err(error) if !self.resume.follow.is_current() => return Err(error),
            // The ids in use are right without the new generation.
            Err(error) => {
                self.run.report(&error);
                self.run.ids.abandon_generation();
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
