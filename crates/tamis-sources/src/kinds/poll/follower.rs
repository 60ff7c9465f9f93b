//! Polls a database and applies its changes to the set.

use std::time::{Duration, Instant, SystemTime};

use crate::errors::source_error::SourceError;
use crate::ids::snapshot::SnapshotOptions;
use crate::kinds::poll::column_value::ColumnValue;
use crate::kinds::poll::history::History;
use crate::kinds::poll::options::PollOptions;
use crate::kinds::poll::place::Place;
use crate::kinds::poll::polled_database::PolledDatabase;
use crate::source::follow::{Event, Follow};
use crate::source::run::Run;
use crate::source::snapshots::Snapshots;
use crate::source::status::Rows;

/// Polls a database and applies its changes to the set.
#[derive(Debug)]
pub(crate) struct Follower {
    has_changes: bool,
    reread: Duration,
    schema: Option<String>,
    /// The data version of the database at the last poll.
    version: Option<i64>,
    history: History,
    /// The time at which the last poll began.
    polled: Instant,
    /// The last poll saw all rows that were committed before this time. The value is `None` before the first poll, and
    /// until a replica has returned a time.
    known: Option<Instant>,
    /// The state of the source. Polls have no log position.
    follow: Follow<(), Instant>,
    /// The last complete full read.
    read: Option<FullRead>,
    /// The earliest time of the next full read.
    read_after: Instant,
    snapshots: Snapshots,
}

/// A complete full read.
#[derive(Clone, Copy, Debug)]
struct FullRead {
    /// The time at which the next full read is due, if the database had commits.
    ends: Instant,
    /// The value of `ends` on the system clock.
    ends_at: SystemTime,
    version: Option<i64>,
}

impl FullRead {
    /// Creates the record of a full read that must be repeated after the time `after`.
    fn new(after: Duration, version: Option<i64>) -> Self {
        Self { ends: Instant::now() + after, ends_at: SystemTime::now() + after, version }
    }
}

impl Follower {
    /// Creates a follower that has read nothing. `identity` identifies the ids that the follower reads.
    pub(crate) fn new(
        options: &PollOptions,
        snapshot: Option<SnapshotOptions>,
        identity: String,
    ) -> Self {
        let overlap = options.changes.as_ref().map_or(Duration::ZERO, |changes| changes.overlap);
        let has_changes = options.changes.is_some();
        Self {
            has_changes,
            reread: options.reread,
            schema: None,
            version: None,
            history: History::new(overlap),
            polled: Instant::now(),
            known: None,
            follow: Follow::default(),
            read: None,
            read_after: Instant::now(),
            // Without a change column, the source cannot find the changes since a snapshot.
            snapshots: Snapshots::new(snapshot.filter(|_| has_changes), identity),
        }
    }

    /// Reads the changes since the last call.
    pub(crate) fn read(
        &mut self,
        run: &Run,
        database: &impl PolledDatabase,
    ) -> Result<(), SourceError> {
        if !self.has_changes {
            return self.read_if_changed(run, database);
        }
        self.load_snapshot(run, database)?;
        self.poll(run, database)?;
        let is_changed = |read: FullRead| self.version.is_none() || read.version != self.version;
        let is_old = |read: FullRead| read.ends <= Instant::now() && is_changed(read);
        if self.read.is_some_and(is_old) || run.is_rebuild_due() {
            self.step(run, Event::RebuildDue);
        }
        // Without a bound, the polls during the full read would miss rows.
        let is_due = self.follow.is_read_due() && self.bound().is_some();
        if is_due && Instant::now() >= self.read_after {
            match self.read_all(run, database, self.version) {
                Ok(()) => self.report_known(run),
                // After a failed full read, the current generation stays valid.
                Err(error)
                    if self.follow.is_current() && !matches!(error, SourceError::Stopped) =>
                {
                    run.report(&error);
                    run.abandon_generation();
                    self.read_after = Instant::now() + run.options.max_pause;
                }
                Err(error) => return Err(error),
            }
        }
        if self.snapshots.is_due() {
            let position = self.position(database);
            self.snapshots.save(run, position, Vec::new);
        }
        Ok(())
    }

    /// Publishes the ids of the snapshot. The next poll finds the rows that were committed after the snapshot.
    fn load_snapshot(
        &mut self,
        run: &Run,
        database: &impl PolledDatabase,
    ) -> Result<(), SourceError> {
        let Some(snapshot) = self.snapshots.load(run) else { return Ok(()) };
        let mut refuse = |reason: &str| self.snapshots.refuse(run, reason);
        let Some(place) = Place::decode(&snapshot.head.position) else {
            refuse("it has no place in a database");
            return Ok(());
        };
        // If the file was replaced after the open call, its identity no longer matches the snapshot.
        let is_same = Some(&place.database) == database.lasting_identity().as_ref();
        if !is_same || !database.is_same()? {
            refuse("the database is another one, or the machine was started again");
            return Ok(());
        }
        if place.schema != database.schema()? {
            refuse("the schema of the database has changed");
            return Ok(());
        }
        let fold = database.fold()?;
        if snapshot.generation.fold() != fold {
            refuse("its ids have the keys of another collation");
            return Ok(());
        }
        run.set_fold(fold);
        self.history.resume(place.bound);
        self.schema = Some(place.schema);
        self.step(run, Event::Loaded(()));
        let left = place.ends.duration_since(SystemTime::now()).unwrap_or_default();
        self.read = Some(FullRead::new(left.min(self.reread), None));
        run.publish_snapshot(snapshot);
        Ok(())
    }

    /// Returns the position for a snapshot of the current generation.
    fn position(&self, database: &impl PolledDatabase) -> Option<Vec<u8>> {
        let place = Place {
            database: database.lasting_identity()?,
            schema: self.schema.clone()?,
            bound: self.bound()?.clone(),
            ends: self.read?.ends_at,
        };
        Some(place.encode())
    }

    /// Writes the last snapshot before the source ends.
    pub(crate) fn stop(&mut self, run: &Run, database: &impl PolledDatabase) {
        let position = self.position(database);
        self.snapshots.finish(run, position, Vec::new);
    }

    /// Does a full read if the database may have changed.
    fn read_if_changed(
        &mut self,
        run: &Run,
        database: &impl PolledDatabase,
    ) -> Result<(), SourceError> {
        let known = database.known_before()?;
        let version = database.version()?;
        let is_unchanged = |read: FullRead| version.is_some() && read.version == version;
        if !self.read.is_some_and(is_unchanged) || run.is_rebuild_due() {
            self.note_schema(run, database)?;
            // Without a change column, the source cannot find the changes since the last read.
            self.step(run, Event::Connected { continues: false });
            self.read_all(run, database, version)?;
        }
        self.known = known;
        self.report_known(run);
        Ok(())
    }

    /// Records the definition of the table. If the definition has changed, a full read is required, and the database
    /// may reject the table.
    fn note_schema(
        &mut self,
        run: &Run,
        database: &impl PolledDatabase,
    ) -> Result<(), SourceError> {
        let schema = database.schema()?;
        if self.schema.as_ref().is_some_and(|last| *last != schema) {
            self.forget(run);
            database.after_change()?;
        }
        self.schema = Some(schema);
        Ok(())
    }

    /// Returns the lower bound of the change column for rows that the last poll has not seen.
    fn bound(&self) -> Option<&ColumnValue> {
        self.history.bound(self.known)
    }

    /// Reports the time up to which the set contains all committed ids.
    fn report_known(&mut self, run: &Run) {
        if let Some(known) = self.known {
            self.step(run, Event::LogEnd(known, ()));
        }
    }

    fn step(&mut self, run: &Run, event: Event<(), Instant>) {
        run.step(&mut self.follow, event, &());
    }

    /// Reads the rows that were committed since the last poll.
    fn poll(&mut self, run: &Run, database: &impl PolledDatabase) -> Result<(), SourceError> {
        let start = Instant::now();
        // A later poll sees all rows that an earlier poll saw.
        let Some(known) = database.known_before()?.max(self.known) else { return Ok(()) };
        // The version is read before the rows, so that the next poll finds a commit between the two queries.
        let version = database.version()?;
        if version.is_some() && self.version == version {
            self.history.repeat(Instant::now(), known);
        } else {
            let (at, highest) = database.in_snapshot(|| {
                self.note_schema(run, database)?;
                let highest = database.highest()?;
                let at = Instant::now();
                if !self.follow.is_lost() {
                    let bound = self.bound().cloned().unwrap_or(ColumnValue::Null);
                    read_changed(run, database, &smaller(bound, &highest))?;
                }
                Ok((at, highest))
            })?;
            self.history.sample(at, highest, known);
            self.version = version;
        }
        (self.polled, self.known) = (start, Some(known));
        self.report_known(run);
        Ok(())
    }

    /// Does a full read into a new generation. The method publishes the generation unless the database was replaced
    /// during the full read.
    fn read_all(
        &mut self,
        run: &Run,
        database: &impl PolledDatabase,
        version: Option<i64>,
    ) -> Result<(), SourceError> {
        let result = self.read_rows(run, database, version);
        if result.is_err() {
            self.step(run, Event::ReadFailed);
        }
        result
    }

    fn read_rows(
        &mut self,
        run: &Run,
        database: &impl PolledDatabase,
        version: Option<i64>,
    ) -> Result<(), SourceError> {
        let read = FullRead::new(self.reread, version);
        let schema = self.schema.clone();
        self.step(run, Event::ReadBegun);
        run.set_fold(database.fold()?);
        let generation = run.start_generation(database.rows()?)?;
        database.read_all(run, &generation, &mut || {
            if run.is_stopped() {
                return Err(SourceError::Stopped);
            }
            if self.has_changes && self.polled.elapsed() >= run.options.interval {
                self.poll(run, database)?;
            }
            Ok(!self.follow.is_lost())
        })?;
        if !database.is_same()? || Some(database.schema()?) != schema {
            self.forget(run);
            database.after_change()?;
        }
        if self.follow.is_lost() {
            run.abandon_generation();
            return Ok(());
        }
        self.step(run, Event::ReadEnded(()));
        self.read = Some(read);
        Ok(())
    }

    /// Drops all state about the database. After this call, a full read is required.
    pub(crate) fn forget(&mut self, run: &Run) {
        self.step(run, Event::Lost);
        self.schema = None;
        self.version = None;
        self.history.clear();
        self.known = None;
        self.read = None;
    }
}

/// Reads the deletions, and the rows whose change column is at least `bound`.
fn read_changed(
    run: &Run,
    database: &impl PolledDatabase,
    bound: &ColumnValue,
) -> Result<(), SourceError> {
    let mut rows = Rows::default();
    database.each_changed(bound, &mut |text| {
        let id = run.canonical(text);
        rows.add(id.is_some());
        if let Some(id) = id {
            run.insert_key(&id)?;
        }
        Ok(())
    })?;
    run.count(rows);
    database.each_deleted(&mut |text, is_live| {
        let Some(id) = run.canonical(text) else { return Ok(()) };
        if !is_live {
            run.delete_key(&id);
        } else if !run.generation().contains(&id) {
            // The id was deleted and then created again.
            run.insert_key(&id)?;
        }
        Ok(())
    })
}

fn smaller(one: ColumnValue, other: &ColumnValue) -> ColumnValue {
    if one.order(other).is_gt() { other.clone() } else { one }
}
