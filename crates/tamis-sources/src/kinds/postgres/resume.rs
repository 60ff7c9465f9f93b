//! Continues the log after a snapshot or a broken connection.
//!
//! Only a permanent slot retains the log while the source is disconnected. The guard requests that the server retains
//! the log from the position of the last snapshot on disk. Therefore a restart with the last snapshot finds all changes
//! after the snapshot.
//!
//! A snapshot has a start and an end. The start and the end are ends of transactions. The ids of the snapshot contain
//! all changes up to the start, and no deletion after the end. The reason is a lock: the follower applies the deletions
//! of a transaction and records its end under one lock. The writer copies the deletions before it reads the end under
//! the lock of the follower.
//!
//! After a restart, the source applies all changes after the start of the snapshot. When the source has passed the end
//! of the snapshot, no id has a wrong state (see `snapshot.rs`). After the end of the snapshot, the source queries the
//! end of the server log. The set is synced when the source has passed the end of the server log.
//!
//! The source continues if all of these conditions hold:
//!
//! * The server has the same system identifier and the same timeline.
//! * The log reaches the end of the snapshot.
//! * The slot has retained all changes after the start.
//! * The table has the same definition, and no command has altered its relations (see `definition.rs`).
//!
//! If the source cannot continue, the source removes the snapshot file, replaces the slot by a new slot, and does a
//! full read. The source never confirms a position before the confirmed position of the slot. Older releases of
//! PostgreSQL would move the slot back, although the server has deleted the log before the confirmed position.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use crate::ids::snapshot::{Snapshot, SnapshotOptions};
use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::definition::{Definition, Versions};
use crate::kinds::postgres::log_place::LogPlace;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::permanent_slot::PermanentSlot;
use crate::kinds::postgres::server::Server;
use crate::source::follow::{Effect, Event, Follow};
use crate::source::run::Run;
use crate::source::snapshots::Snapshots;

/// If this number of attempts receives no commit, the source does a full read. The log may contain a change that the
/// server or the source cannot decode.
const MAX_ATTEMPTS: u32 = 5;

/// The reason for not continuing a snapshot after the table has changed.
pub(super) const TABLE_DIFFERS: &str = "the table or its publication is another one";

/// The state that a source keeps between two connections.
#[derive(Debug)]
pub(super) struct Resume {
    snapshots: Snapshots,
    /// The position up to which the current generation contains all changes. The value is `None` without a permanent
    /// slot.
    place: Arc<Mutex<Option<LogPlace>>>,
    /// The state of the set at the position of the stream.
    pub(super) follow: Follow<Lsn, Instant>,
    /// The loaded snapshot. The source publishes the snapshot when the stream has begun.
    snapshot: Option<Snapshot>,
    /// The server process that used the slot for the last connection.
    pub(super) process: Option<i32>,
    /// The number of attempts to continue since the stream last sent a commit, or since the set was last synced.
    attempts: u32,
    /// The definition of the table at the last connection.
    definition: Option<Definition>,
    /// The name of the permanent slot. The value is `None` if the source writes no snapshots, because a slot can be
    /// continued only from a snapshot.
    pub(super) slot: Option<String>,
}

impl Resume {
    pub(super) fn new(options: &PostgresOptions, snapshot: Option<SnapshotOptions>) -> Self {
        let (slot, snapshot) = options.slot.clone().zip(snapshot).unzip();
        Self {
            slot,
            snapshots: Snapshots::new(snapshot, identity(options)),
            place: Arc::default(),
            follow: Follow::default(),
            snapshot: None,
            process: None,
            attempts: 0,
            definition: None,
        }
    }

    /// Compares the table definition with the definition at the last connection. If the definition has changed, the set
    /// is stale until the next full read ends.
    pub(super) fn compare(&mut self, run: &Run, definition: Definition) {
        if self.definition.replace(definition).is_some_and(|known| known != definition) {
            self.step(run, Event::Lost, Lsn::default());
        }
    }

    /// Applies an event at a position of the stream to the state machine.
    pub(super) fn step(
        &mut self,
        run: &Run,
        event: Event<Lsn, Instant>,
        position: Lsn,
    ) -> Vec<Effect<Instant>> {
        let effects = run.step(&mut self.follow, event, &position);
        if effects.iter().any(|effect| matches!(effect, Effect::KnownUntil(_))) {
            self.snapshots.end_resume();
            self.attempts = 0;
        }
        effects
    }

    /// Returns the position at which the stream can continue. Returns `None` if a full read is required.
    pub(super) fn find(
        &mut self,
        run: &Run,
        server: &Server,
        slot: &PermanentSlot,
    ) -> Option<LogPlace> {
        let place = self.place.lock().clone()?;
        let state = slot.state.as_ref().filter(|state| !state.is_lost);
        let reason = if place.server != slot.server {
            "the server is another one"
        } else if place.definition != server.definition || place.versions != server.versions {
            TABLE_DIFFERS
        } else if server.end
            < self.follow.resumes_to().map_or(place.position, |to| place.position.max(*to))
        {
            "the log of the server does not have all changes that it has"
        } else if state.is_none_or(|state| state.confirmed > place.position) {
            "the replication slot no longer has the changes after it"
        } else if self.attempts > MAX_ATTEMPTS {
            "the changes after it cannot be read"
        } else {
            self.attempts += 1;
            return Some(place);
        };
        self.forget(run, reason);
        None
    }

    /// Reads the snapshot at the first call.
    pub(super) fn load(&mut self, run: &Run) {
        let Some(snapshot) = self.snapshots.load(run) else { return };
        let places = LogPlace::decode(&snapshot.head.position);
        let Some((start, end)) = places.zip(LogPlace::decode(&snapshot.end)) else {
            return self.snapshots.refuse(run, "it has no place in the log of a server");
        };
        self.step(run, Event::Loaded(end.position), start.position);
        *self.place.lock() = Some(start);
        self.snapshot = Some(snapshot);
    }

    /// Records that the stream has begun. `process` is the server process that sends the stream.
    pub(super) fn begin(&mut self, run: &Run, process: i32) {
        self.process = Some(process);
        if let Some(snapshot) = self.snapshot.take() {
            run.publish_snapshot(snapshot);
        }
    }

    /// Records that the current ids no longer match the table, with the reason. The method removes the snapshot, so
    /// that no later start continues from the snapshot.
    pub(super) fn forget(&mut self, run: &Run, reason: &str) {
        self.snapshots.refuse(run, reason);
        *self.place.lock() = None;
        (self.snapshot, self.attempts) = (None, 0);
        self.snapshots.discard();
        self.step(run, Event::Lost, Lsn::default());
    }

    /// Records the position up to which the current generation contains all changes.
    pub(super) fn published(&mut self, place: Option<LogPlace>) {
        *self.place.lock() = place;
    }

    /// Records that all changes up to a position are applied.
    pub(super) fn reach(&self, position: Lsn) {
        self.lock().reach(position);
    }

    /// Records that the stream has sent a commit.
    pub(super) fn progress(&mut self) {
        self.attempts = 0;
    }

    /// Records the versions of the relations.
    pub(super) fn see(&self, versions: Versions) {
        if let Some(place) = &mut *self.place.lock() {
            place.versions = versions;
        }
    }

    /// Locks the position.
    pub(super) fn lock(&self) -> Reached<'_> {
        Reached(self.place.lock())
    }

    /// Writes a snapshot if a snapshot is due.
    pub(super) fn save_when_due(&mut self, run: &Run) {
        if self.snapshots.is_due() && self.is_saveable() {
            let (position, end) = self.places();
            self.snapshots.save(run, position, end);
        }
    }

    /// Returns the position from which a restart needs the log of a server. Returns `None` if no snapshot exists.
    pub(super) fn needed(&mut self, server: &str) -> Option<Lsn> {
        let places = self.snapshots.positions().filter_map(LogPlace::decode);
        // Positions of another server are not comparable with positions of this server.
        places.filter(|place| place.server == server).map(|place| place.position).min()
    }

    /// Writes the last snapshot before the source ends.
    pub(super) fn stop(&mut self, run: &Run) {
        let (position, end) = self.places();
        let position = position.filter(|_| self.is_saveable());
        self.snapshots.finish(run, position, end);
    }

    /// Tests whether the current generation may be written. Before the stream has begun, a loaded snapshot is not
    /// published yet, so the result is false.
    fn is_saveable(&self) -> bool {
        self.follow.is_saveable() && self.snapshot.is_none()
    }

    /// Returns the position for a snapshot that starts now, and a function that returns the end of the snapshot.
    fn places(&self) -> (Option<Vec<u8>>, impl FnOnce() -> Vec<u8> + Send + use<>) {
        let place = Arc::clone(&self.place);
        let now = place.lock().as_ref().map(LogPlace::encode);
        // An empty end makes the snapshot invalid.
        (now, move || place.lock().as_ref().map(LogPlace::encode).unwrap_or_default())
    }
}

/// Returns the identity of the ids for a snapshot.
fn identity(options: &PostgresOptions) -> String {
    // If the URL is invalid, the source reads nothing.
    let database = Address::new(options).map(|address| address.database).unwrap_or_default();
    let exact = if options.exact { " exact" } else { "" };
    let condition = options.condition.as_ref().map(|it| format!(" where {it:?}"));
    let condition = condition.unwrap_or_default();
    format!("postgres {database:?} {:?} {:?}{exact}{condition}", options.table, options.column)
}

/// A lock guard of the position. While the guard exists, no other thread can access the position.
pub(super) struct Reached<'a>(MutexGuard<'a, Option<LogPlace>>);

impl Reached<'_> {
    /// Records that all changes up to a position are applied.
    pub(super) fn reach(&mut self, position: Lsn) {
        if let Some(place) = &mut *self.0 {
            place.position = position;
        }
    }
}
