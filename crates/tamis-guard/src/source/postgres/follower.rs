//! Follows the stream of changes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use crate::generation::Generation;
use crate::source::error::SourceError;
use crate::source::postgres::address::Address;
use crate::source::postgres::bulk::{FullRead, Snapshot};
use crate::source::postgres::change_stream::{ChangeStream, Event};
use crate::source::postgres::definition::Definition;
use crate::source::postgres::lsn::Lsn;
use crate::source::postgres::options::PostgresOptions;
use crate::source::postgres::server::{Look, Server, in_time};
use crate::source::postgres::slot::{Slot, create_slot};
use crate::source::postgres::transaction::{Effect, Transaction};
use crate::source::postgres::unfinished_slot::UnfinishedSlot;
use crate::source::run::Run;

/// How many changes are applied before the follower looks at other work.
const BATCH: usize = 256;

/// Without any message for this time, the stream is given up. The server sends one when half of its
/// `wal_sender_timeout` is over, also while it decodes a large transaction. The default is a minute.
const SILENCE: Duration = Duration::from_secs(60);

/// For this time the follower waits until the server writes its log to disk by itself.
const FLUSH_AFTER: Duration = Duration::from_millis(100);

/// All ids of a snapshot were read.
struct Read {
    /// The snapshot is complete up to this point of the log.
    point: Lsn,
    /// What the table was during the read.
    definition: Definition,
}

/// Work beside the stream.
type Work<'r, T> = Pin<Box<dyn Future<Output = Result<T, SourceError>> + 'r>>;

/// The connections that follow a table, and what is known.
pub(super) struct Follower<'r> {
    run: &'r Run,
    server: &'r Server,
    address: &'r Address,
    unfinished: &'r UnfinishedSlot,
    /// The name of the slot.
    slot: &'r str,
    /// All transactions that end before this place are applied.
    position: Lsn,
    transaction: Transaction<'r>,
    /// What the table was when it was read.
    definition: Definition,
    /// The read of all ids that is going on. `None` if the table becomes another one during it.
    full_read: Option<Work<'r, Option<Read>>>,
    /// The question that is going on, with the moment before it.
    question: Option<Work<'r, (Instant, Look)>>,
    /// The point of the read that is complete.
    read_point: Option<Lsn>,
    /// True if all ids must be read.
    needs_read: bool,
    /// When the next read may begin.
    read_after: Instant,
    /// True if the generation in use has all ids up to the position.
    is_current: bool,
    /// A moment, and the end of the log after it.
    asked: Option<(Instant, Lsn)>,
    /// The part of the log that was on disk at the last question.
    flushed: Lsn,
}

impl<'r> Follower<'r> {
    /// Connects, reads all ids, and follows the stream until an error. Returns without one if all
    /// must begin again because the definition of the table has changed.
    pub(super) async fn follow(options: &PostgresOptions, run: &Run) -> Result<(), SourceError> {
        let (address, unfinished) = (Address::new(options)?, UnfinishedSlot::default());
        let work = Self::connect_and_run(options, run, &address, &unfinished);
        let result = run.unless_stopped(work).await;
        unfinished.cancel(&address).await;
        result
    }

    async fn connect_and_run(
        options: &PostgresOptions,
        run: &Run,
        address: &Address,
        unfinished: &UnfinishedSlot,
    ) -> Result<(), SourceError> {
        let limit = run.options.stale_after.max(Duration::from_secs(1));
        let id = &run.ids.options().id;
        let server = in_time(limit, Server::open(address, options, id, limit)).await?;
        let (session, slot) = create_slot(run, &server, address, unfinished).await?;
        let generation = run.start_generation(server.rows().await?)?;
        let full_read = start_read(run, address, &server, &slot, generation);
        let full_read = server.in_time(full_read).await?;
        let stream = ChangeStream::start(session, &slot, &options.publication, &address.user);
        let stream = server.in_time(stream).await?;
        let read = Read { point: slot.point, definition: server.definition };
        let full_read = read_all(run, &server, full_read, &slot.name, read);
        let follower = Follower {
            run,
            server: &server,
            address,
            unfinished,
            slot: &slot.name,
            position: slot.point,
            transaction: Transaction::new(run, &server.table),
            definition: server.definition,
            full_read: Some(Box::pin(full_read)),
            read_point: None,
            needs_read: false,
            read_after: Instant::now(),
            is_current: false,
            question: None,
            asked: None,
            flushed: Lsn::default(),
        };
        follower.run(stream).await
    }

    async fn run(mut self, mut stream: ChangeStream) -> Result<(), SourceError> {
        let pause = self.run.options.interval;
        let mut ticks = interval(pause.min(Duration::from_millis(200)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut asked, mut heard) = (None::<Instant>, Instant::now());
        loop {
            if self.needs_read && self.full_read.is_none() && Instant::now() >= self.read_after {
                self.start_read().await?;
            }
            let is_same = tokio::select! {
                event = stream.next() => {
                    heard = Instant::now();
                    self.apply(event?, &mut stream).await?
                }
                read = wait(&mut self.full_read), if self.full_read.is_some() => {
                    self.full_read = None;
                    self.end_read(read)?
                }
                look = wait(&mut self.question), if self.question.is_some() => {
                    self.question = None;
                    let (moment, look) = look?;
                    self.compare(moment, &look)
                }
                _ = ticks.tick() => {
                    stream.confirm_soon(self.position).await?;
                    if self.asked.is_some() && heard.elapsed() > SILENCE.max(pause) {
                        let message = "the stream of changes has stalled".to_owned();
                        return Err(SourceError::Connect(message));
                    }
                    let is_idle = self.full_read.is_none() && self.read_point.is_none();
                    self.needs_read |= self.is_current && is_idle && self.run.is_rebuild_due();
                    if self.question.is_none() && asked.is_none_or(|it| it.elapsed() >= pause) {
                        asked = Some(Instant::now());
                        self.ask();
                    }
                    true
                }
            };
            if !is_same {
                self.run.lost();
                return Ok(());
            }
            if self.read_point.take_if(|point| self.position >= *point).is_some() {
                self.run.publish_generation();
                self.is_current = true;
                // The set is synced with the next answer about the end of the log.
                asked = None;
                ticks.reset_immediately();
            }
            if let Some((moment, _)) = self.asked.take_if(|(_, end)| self.position >= *end)
                && self.is_current
            {
                self.run.known_until(moment);
            }
        }
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
                    if wants_reply {
                        stream.confirm(self.position).await?;
                    }
                }
                Event::Change(change) => match self.transaction.apply(change)? {
                    Effect::None => {}
                    Effect::Committed(end) => self.position = self.position.max(end),
                    Effect::NeedsRead => self.needs_read = true,
                    Effect::OtherTable => return Ok(false),
                },
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
        let (server, slot) = (self.server, self.slot);
        let must_flush = self.asked.is_some_and(|(since, end)| {
            self.position < end && self.flushed < end && since.elapsed() > FLUSH_AFTER
        });
        self.question = Some(Box::pin(async move {
            if must_flush {
                server.flush_log().await;
            }
            let moment = Instant::now();
            Ok((moment, server.look(slot).await?))
        }));
    }

    /// Compares the answer with what is known. Returns false if the table is another one.
    fn compare(&mut self, moment: Instant, look: &Look) -> bool {
        if look.definition.identity != self.definition.identity {
            return false;
        }
        // A read that is going on compares the files itself.
        if look.definition.files != self.definition.files && self.full_read.is_none() {
            self.definition = look.definition;
            self.needs_read = true;
        }
        self.flushed = look.flushed;
        self.run.lag_bytes(Some(look.end.0.saturating_sub(self.position.0)));
        self.asked.get_or_insert((moment, look.end));
        true
    }

    /// Starts a read of all ids into a second generation, while the first one is in use. It has a
    /// slot of its own for its snapshot.
    async fn start_read(&mut self) -> Result<(), SourceError> {
        (self.needs_read, self.read_point) = (false, None);
        // Before the slot: the generation gets all changes after the point of the slot.
        let generation = self.run.start_generation(self.server.rows().await?)?;
        let (run, server, address, name) = (self.run, self.server, self.address, self.slot);
        let unfinished = self.unfinished;
        self.full_read = Some(Box::pin(async move {
            let definition = server.look(name).await?.definition;
            let (session, slot) = create_slot(run, server, address, unfinished).await?;
            let full_read = start_read(run, address, server, &slot, generation);
            let full_read = server.in_time(full_read).await?;
            drop(session);
            let read = Read { point: slot.point, definition };
            read_all(run, server, full_read, name, read).await
        }));
        Ok(())
    }

    /// Returns false if the table is another one.
    fn end_read(&mut self, read: Result<Option<Read>, SourceError>) -> Result<bool, SourceError> {
        match read {
            Ok(Some(read)) => {
                self.read_point = Some(read.point);
                self.definition.files = read.definition.files;
            }
            Ok(None) if !self.is_current => return Ok(false),
            Ok(None) => self.needs_read = true,
            Err(error) if !self.is_current => return Err(error),
            // The ids in use are right without the new generation.
            Err(error) => {
                self.run.report(&error);
                self.run.ids.abandon_generation();
                self.needs_read = true;
                self.read_after = Instant::now() + self.run.options.max_pause;
            }
        }
        Ok(true)
    }
}

async fn wait<T>(work: &mut Option<Work<'_, T>>) -> Result<T, SourceError> {
    work.as_mut().expect("tested by the caller").await
}

/// Starts to read all ids of the snapshot of a slot.
async fn start_read(
    run: &Run,
    address: &Address,
    server: &Server,
    slot: &Slot,
    generation: Arc<Generation>,
) -> Result<FullRead, SourceError> {
    let snapshot = Snapshot::Slot(&slot.snapshot);
    FullRead::start(run, address, server.host, &server.table.ids, snapshot, generation).await
}

/// Waits until all ids are read.
async fn read_all(
    run: &Run,
    server: &Server,
    mut full_read: FullRead,
    stream_slot: &str,
    read: Read,
) -> Result<Option<Read>, SourceError> {
    let rows = full_read.finish().await?;
    // The read still keeps the table as it is. A table that was rewritten before the read began
    // looks empty in an older snapshot.
    let look = server.look(stream_slot).await?;
    drop(full_read);
    if look.definition != read.definition {
        return Ok(None);
    }
    run.count(rows);
    Ok(Some(read))
}
