//! Follows the changes of a database.

use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use crate::generation::Generation;
use crate::source::error::SourceError;
use crate::source::run::Run;
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
}

/// A complete read of all ids.
#[derive(Clone, Copy, Debug)]
struct FullRead {
    began: Instant,
    version: Option<i64>,
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
        }
    }

    /// Reads what has changed since the last call.
    pub(super) fn read(&mut self, run: &Run, database: &Database) -> Result<(), SourceError> {
        if !self.has_changes {
            return self.read_if_changed(run, database);
        }
        self.poll(run, database)?;
        let is_due = match self.read {
            // Rows without a bound would be lost.
            None => self.history.bound(self.polled).is_some(),
            Some(read) => {
                let is_old = read.began.elapsed() >= self.reread && read.version != self.version;
                is_old || run.is_rebuild_due()
            }
        };
        if is_due && self.read_all(run, database, self.version)? {
            run.known_until(self.polled);
        }
        Ok(())
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
        let began = Instant::now();
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
        self.read = Some(FullRead { began, version });
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

fn smaller(one: Cell, other: &Cell) -> Cell {
    if one.order(other).is_gt() { other.clone() } else { one }
}
