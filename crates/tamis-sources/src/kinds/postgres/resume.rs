//! Goes on in the log that a snapshot or a broken connection has left.
//!
//! Only a permanent slot keeps the log. The guard tells the server to keep it from the position of the
//! last snapshot on the disk. So a restart with this snapshot finds all later changes.
//!
//! A snapshot has a start and an end, both ends of transactions. Its ids have all changes up to the
//! start, and none after the end: the follower applies the deletions of a transaction and records its
//! end under one lock, and the writer asks for the end under this lock after it has copied the
//! deletions. The source applies all changes from the start on again, so no id has a wrong state when
//! it has passed the end (see `snapshot.rs`). It is synced when it has passed the end that the log of
//! the server has at a later question.
//!
//! The log is the one that was read before if
//!
//! * the server has the same system identifier and the same timeline,
//! * the log reaches the end of the snapshot,
//! * the slot has kept all changes after the start, and
//! * the table has the same definition, and no command has altered its relations. See `definition.rs`.
//!
//! Otherwise the source removes the snapshot file, drops the slot and creates it again, and reads all
//! ids. The source never confirms a place before the one that the slot has: older releases of
//! PostgreSQL would move the slot back, although they have deleted that part of the log.

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

/// After this number of attempts without a commit, the source reads all ids. The log may contain
/// something that the server cannot decode or the source cannot read.
const MAX_ATTEMPTS: u32 = 5;

/// Why a source does not go on.
pub(super) const TABLE_DIFFERS: &str = "the table or its publication is another one";

/// What a source knows between two connections.
#[derive(Debug)]
pub(super) struct Resume {
    snapshots: Snapshots,
    /// The place up to which the generation in use has all changes. `None` without a permanent slot.
    place: Arc<Mutex<Option<LogPlace>>>,
    /// What is known at the position of the stream.
    pub(super) follow: Follow<Lsn, Instant>,
    /// The snapshot that will be published when the stream has begun.
    snapshot: Option<Snapshot>,
    /// The process of the server that had the slot last.
    pub(super) process: Option<i32>,
    /// The number of attempts to continue since the last commit that the stream sent, or since the set
    /// was synced.
    attempts: u32,
    /// What the table was at the last connection.
    definition: Option<Definition>,
}

impl Resume {
    pub(super) fn new(options: &PostgresOptions, snapshot: Option<SnapshotOptions>) -> Self {
        let snapshot = snapshot.filter(|_| options.slot.is_some());
        Self {
            snapshots: Snapshots::new(snapshot, identity(options)),
            place: Arc::default(),
            follow: Follow::default(),
            snapshot: None,
            process: None,
            attempts: 0,
            definition: None,
        }
    }

    /// Compares the table with the one of the last connection. If it is another one, the set is stale
    /// until all ids are read.
    pub(super) fn compare(&mut self, run: &Run, definition: Definition) {
        if self.definition.replace(definition).is_some_and(|known| known != definition) {
            self.step(run, Event::Lost, Lsn::default());
        }
    }

    /// Reports an event at a position of the stream to the state.
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

    /// Returns the place at which the stream can go on; `None` if all ids must be read.
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

    /// Records that the stream has begun, and the process of the server that sends it.
    pub(super) fn begin(&mut self, run: &Run, process: i32) {
        self.process = Some(process);
        if let Some(snapshot) = self.snapshot.take() {
            run.publish_snapshot(snapshot);
        }
    }

    /// Records that the ids in use are not those of the table any more, and why. No later start goes on
    /// from their snapshot.
    pub(super) fn forget(&mut self, run: &Run, reason: &str) {
        self.snapshots.refuse(run, reason);
        *self.place.lock() = None;
        (self.snapshot, self.attempts) = (None, 0);
        self.snapshots.discard();
        self.step(run, Event::Lost, Lsn::default());
    }

    /// Records the place up to which the generation in use has all changes.
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

    /// Locks the place.
    pub(super) fn lock(&self) -> Reached<'_> {
        Reached(self.place.lock())
    }

    /// Writes a snapshot if it is time for one.
    pub(super) fn save_when_due(&mut self, run: &Run) {
        if self.snapshots.is_due() && self.is_saveable() {
            let (position, end) = self.places();
            self.snapshots.save(run, position, end);
        }
    }

    /// Returns the position from which on a restart needs the log of a server; `None` without a
    /// snapshot.
    pub(super) fn needed(&mut self, server: &str) -> Option<Lsn> {
        let places = self.snapshots.positions().filter_map(LogPlace::decode);
        // The positions of another server mean nothing.
        places.filter(|place| place.server == server).map(|place| place.position).min()
    }

    /// Writes a last snapshot.
    pub(super) fn stop(&mut self, run: &Run) {
        let (position, end) = self.places();
        let position = position.filter(|_| self.is_saveable());
        self.snapshots.finish(run, position, end);
    }

    /// Tests whether the generation in use may be written. A snapshot is not in use before the stream has begun.
    fn is_saveable(&self) -> bool {
        self.follow.is_saveable() && self.snapshot.is_none()
    }

    /// Returns the position for a snapshot that is begun now, and what returns its end.
    fn places(&self) -> (Option<Vec<u8>>, impl FnOnce() -> Vec<u8> + Send + use<>) {
        let place = Arc::clone(&self.place);
        let now = place.lock().as_ref().map(LogPlace::encode);
        // A snapshot without an end is not used.
        (now, move || place.lock().as_ref().map(LogPlace::encode).unwrap_or_default())
    }
}

/// Returns which ids the source reads.
fn identity(options: &PostgresOptions) -> String {
    // Without a valid URL, the source reads nothing.
    let database = Address::new(options).map(|address| address.database).unwrap_or_default();
    let exact = if options.exact { " exact" } else { "" };
    format!("postgres {database:?} {:?} {:?}{exact}", options.table, options.column)
}

/// The place, while no other thread reads it.
pub(super) struct Reached<'a>(MutexGuard<'a, Option<LogPlace>>);

impl Reached<'_> {
    /// Records that all changes up to a position are applied.
    pub(super) fn reach(&mut self, position: Lsn) {
        if let Some(place) = &mut *self.0 {
            place.position = position;
        }
    }
}
