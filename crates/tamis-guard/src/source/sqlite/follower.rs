//! Follows the changes of a database.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::ErrorCode;
use serde_json::{Value, json};

use crate::generation::Generation;
use crate::snapshot::SnapshotError;
use crate::source::error::SourceError;
use crate::source::run::Run;
use crate::source::snapshots::Snapshots;
use crate::source::sqlite::cell::Cell;
use crate::source::sqlite::database::Database;
use crate::source::sqlite::history::History;
use crate::source::sqlite::options::SqliteOptions;
use crate::source::status::Rows;

/// Follows the changes of a database.
#[derive(Debug)]
pub(super) struct Follower {
    has_changes: bool,
    reread: Duration,
    chunk: u32,
    schema: Option<i64>,
    /// The data version of the last read.
    version: Option<i64>,
    history: History,
    /// When the last poll began.
    polled: Instant,
    /// True if polls insert what they find.
    is_following: bool,
    /// The last read of all ids.
    read: Option<FullRead>,
    snapshots: Snapshots,
}

/// A complete read of all ids.
#[derive(Clone, Copy, Debug)]
struct FullRead {
    /// When the ids must be read again, if there were commits.
    ends: Instant,
    /// The same, by the clock of the system.
    ends_at: SystemTime,
    version: Option<i64>,
}

impl FullRead {
    /// Creates a read that must be repeated after a time.
    fn new(after: Duration, version: Option<i64>) -> Self {
        Self { ends: Instant::now() + after, ends_at: SystemTime::now() + after, version }
    }
}

impl Follower {
    pub(super) fn new(options: &SqliteOptions) -> Self {
        let overlap = options.changes.as_ref().map_or(Duration::ZERO, |changes| changes.overlap);
        Self {
            has_changes: options.changes.is_some(),
            reread: options.reread,
            chunk: options.chunk.max(1),
            schema: None,
            version: None,
            history: History::new(overlap),
            polled: Instant::now(),
            is_following: false,
            read: None,
            snapshots: Snapshots::new(
                options.snapshot.clone().filter(|_| options.changes.is_some()),
                options.identity(),
            ),
        }
    }

    /// Reads what has changed since the last call.
    pub(super) fn read(&mut self, run: &Run, database: &Database) -> Result<(), SourceError> {
        if !self.has_changes {
            return self.read_if_changed(run, database);
        }
        self.load_snapshot(run, database)?;
        self.poll(run, database)?;
        let is_due = match self.read {
            // Rows without a bound would be lost.
            None => self.history.bound(self.polled).is_some(),
            Some(read) => {
                let is_old = read.ends <= Instant::now() && read.version != self.version;
                is_old || run.is_rebuild_due()
            }
        };
        if is_due && self.read_all(run, database, self.version)? {
            run.known_until(self.polled);
        }
        if self.snapshots.is_due() {
            let position = self.position(database);
            self.snapshots.save(run, position, Vec::new);
        }
        Ok(())
    }

    /// Publishes the ids of the snapshot. The next poll finds what was committed after it.
    fn load_snapshot(&mut self, run: &Run, database: &Database) -> Result<(), SourceError> {
        let Some(snapshot) = self.snapshots.load(run) else { return Ok(()) };
        let refuse =
            |reason: &str| run.snapshots.refuse(&SnapshotError::Outdated(reason.to_owned()));
        let Some(place) = Place::decode(&snapshot.head.position) else {
            refuse("it has no place in a database");
            return Ok(());
        };
        // A file that was replaced since it was opened is not the one of the snapshot.
        let is_same = Some(&place.file) == database.lasting_identity().as_ref();
        if !is_same || !database.is_at_path()? {
            refuse("the database is another file, or the machine was started again");
            return Ok(());
        }
        if place.schema != database.schema_version()? {
            refuse("the schema of the database has changed");
            return Ok(());
        }
        self.history.resume(place.bound);
        self.schema = Some(place.schema);
        self.is_following = true;
        let left = place.ends.duration_since(SystemTime::now()).unwrap_or_default();
        self.read = Some(FullRead::new(left.min(self.reread), None));
        run.publish_snapshot(snapshot);
        Ok(())
    }

    /// Returns the place for a snapshot of the generation in use.
    fn position(&self, database: &Database) -> Option<Vec<u8>> {
        let place = Place {
            file: database.lasting_identity()?,
            schema: self.schema?,
            bound: self.history.bound(self.polled)?.clone(),
            ends: self.read?.ends_at,
        };
        Some(place.encode())
    }

    /// Writes a last snapshot.
    pub(super) fn stop(&mut self, run: &Run, database: &Database) {
        let position = self.position(database);
        self.snapshots.finish(run, position, Vec::new);
    }

    /// Reads all ids if the database has changed.
    fn read_if_changed(&mut self, run: &Run, database: &Database) -> Result<(), SourceError> {
        let start = Instant::now();
        let version = database.data_version()?;
        if self.read.is_none_or(|read| read.version != Some(version)) || run.is_rebuild_due() {
            self.schema = Some(database.schema_version()?);
            if !self.read_all(run, database, Some(version))? {
                return Ok(());
            }
        }
        run.known_until(start);
        Ok(())
    }

    /// Reads the rows that were committed since the last poll.
    fn poll(&mut self, run: &Run, database: &Database) -> Result<(), SourceError> {
        let start = Instant::now();
        // Before the rows: a commit between both is found by the next poll.
        let version = database.data_version()?;
        if self.version == Some(version) {
            self.history.repeat(Instant::now(), start);
        } else {
            let snapshot = database.begin()?;
            let schema = database.schema_version()?;
            if self.schema.is_some_and(|last| last != schema) {
                self.forget(run);
            }
            self.schema = Some(schema);
            let highest = database.highest()?;
            let at = Instant::now();
            if self.is_following {
                let bound = self.history.bound(self.polled).cloned().unwrap_or(Cell::Null);
                self.read_changed(run, database, &smaller(bound, &highest))?;
            }
            drop(snapshot);
            self.history.sample(at, highest, start);
            self.version = Some(version);
        }
        self.polled = start;
        if self.read.is_some() {
            run.known_until(start);
        }
        Ok(())
    }

    fn read_changed(
        &self,
        run: &Run,
        database: &Database,
        bound: &Cell,
    ) -> Result<(), SourceError> {
        let mut rows = Rows::default();
        database.each_changed(bound, |_, text| {
            let id = run.canonical(text);
            rows.add(id.is_some());
            if let Some(id) = id {
                run.ids.insert(&id)?;
            }
            Ok(())
        })?;
        run.count(rows);
        database.each_deleted(|value, text| {
            let Some(id) = run.canonical(text) else { return Ok(()) };
            if !database.is_live(&value.into())? {
                run.ids.delete(&id);
            } else if !run.ids.generation().contains(&id) {
                // It was deleted and created again.
                run.ids.insert(&id)?;
            }
            Ok(())
        })
    }

    /// Reads all ids into a new generation. Returns false if the database was replaced meanwhile.
    fn read_all(
        &mut self,
        run: &Run,
        database: &Database,
        version: Option<i64>,
    ) -> Result<bool, SourceError> {
        let read = FullRead::new(self.reread, version);
        let schema = self.schema;
        self.is_following = true;
        let generation = run.start_generation(0)?;
        let mut last = Cell::Null;
        loop {
            let next = retry(run, || self.read_chunk(run, database, &generation, &last))?;
            let Some(next) = next else { break };
            last = next;
            if run.is_stopped() {
                return Err(SourceError::Stopped);
            }
            if self.has_changes && self.polled.elapsed() >= run.options.interval {
                retry(run, || self.poll(run, database))?;
                if !self.is_following {
                    break;
                }
            }
        }
        if !database.is_at_path()? || database.schema_version()? != schema.unwrap_or_default() {
            self.forget(run);
        }
        if !self.is_following {
            run.ids.abandon_generation();
            return Ok(false);
        }
        run.publish_generation();
        self.read = Some(read);
        Ok(true)
    }

    /// Reads the next ids. Returns the last one; `None` after the last chunk.
    fn read_chunk(
        &self,
        run: &Run,
        database: &Database,
        generation: &Generation,
        after: &Cell,
    ) -> Result<Option<Cell>, SourceError> {
        let (mut rows, mut last) = (Rows::default(), Cell::Null);
        let count = database.chunk(after, |value, text| {
            let id = run.canonical(text);
            rows.add(id.is_some());
            if let Some(id) = id {
                // The chunk is younger than all deletions that a poll has found.
                generation.insert(&id, run.ids.options().id.value_of(&id))?;
            }
            last = value.into();
            Ok(())
        })?;
        run.count(rows);
        Ok((count >= u64::from(self.chunk)).then_some(last))
    }

    /// Forgets what is known about the database. All ids must be read again.
    pub(super) fn forget(&mut self, run: &Run) {
        run.lost();
        self.schema = None;
        self.version = None;
        self.history.clear();
        self.is_following = false;
        self.read = None;
    }
}

/// Reads again while another connection holds a lock, so that a long read goes on after it.
fn retry<T>(run: &Run, mut read: impl FnMut() -> Result<T, SourceError>) -> Result<T, SourceError> {
    let start = Instant::now();
    loop {
        match read() {
            Err(SourceError::Sqlite(error))
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && !run.is_stopped()
                    && start.elapsed() < run.options.stale_after =>
            {
                run.sleep(run.options.interval);
            }
            result => return result,
        }
    }
}

/// Where a snapshot is continued.
#[derive(Debug, PartialEq)]
struct Place {
    /// Which file it is.
    file: String,
    schema: i64,
    /// The smallest value of rows that were committed after the snapshot.
    bound: Cell,
    /// When all ids must be read again.
    ends: SystemTime,
}

impl Place {
    fn encode(&self) -> Vec<u8> {
        let ends = self.ends.duration_since(UNIX_EPOCH).unwrap_or_default();
        let place = json!({
            "file": self.file,
            "schema": self.schema,
            "bound": self.bound.encode(),
            "ends": ends.as_secs(),
        });
        place.to_string().into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let place: Value = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            file: place.get("file")?.as_str()?.to_owned(),
            schema: place.get("schema")?.as_i64()?,
            bound: Cell::decode(place.get("bound")?)?,
            ends: UNIX_EPOCH.checked_add(Duration::from_secs(place.get("ends")?.as_u64()?))?,
        })
    }
}

fn smaller(one: Cell, other: &Cell) -> Cell {
    if one.order(other).is_gt() { other.clone() } else { one }
}
