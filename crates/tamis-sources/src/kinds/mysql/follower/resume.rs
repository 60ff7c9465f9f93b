//! Goes on in the log that a snapshot or a broken connection has left.
//!
//! # Why no id is missing
//!
//! A snapshot has a start and an end, both ends of transactions. Its ids have all changes up to the
//! start, and no deletion after the end: [`Follower`] applies the deletions of a transaction and
//! records its end under one lock, and the writer asks for the end under this lock after it has
//! copied the deletions.
//!
//! ```text
//! log   ──────┬───────────────┬──────────────────┬────────▶
//!           start            end        what the server said
//! ids    all changes   any of them        when it was asked
//! ```
//!
//! The reader applies all changes from the start on. Three things make the set synced:
//!
//! * The log is the one that the writer read: the same server, and a file of the same name that was
//!   created in the same second.
//! * The stream passes the end exactly. A server that has lost the last transactions of its log in a
//!   crash goes on in another file, so the stream jumps over the end. Without this test, an id whose
//!   deletion was lost would be refused.
//! * The stream reaches the position that the server had when it was asked, after the start of the
//!   reader.
//!
//! All changes up to the end are then applied again, so no id has a wrong state (see `snapshot.rs`).

use std::sync::Arc;

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::follower::Follower;
use crate::kinds::mysql::log_place::LogPlace;
use crate::kinds::mysql::server::Server;
use crate::source::follow::{Event, LogPosition as _};
use crate::source::run::Run;

impl Follower {
    /// Publishes the ids of the snapshot, if the server has its log and the table its columns.
    pub(super) fn load_snapshot(&mut self, run: &Run, server: &Server) {
        let Some(snapshot) = self.snapshots.load(run) else { return };
        let mut refuse = |reason: &str| self.snapshots.refuse(run, reason);
        let places = LogPlace::decode(&snapshot.head.position);
        let Some(((start, shape), (end, _))) = places.zip(LogPlace::decode(&snapshot.end)) else {
            return refuse("it has no place in a binary log");
        };
        if start.server != server.identity || end.server != server.identity {
            return refuse("the server is another one");
        }
        if shape != server.table.shape {
            return refuse("the table has other columns or unique indexes");
        }
        run.publish_snapshot(snapshot);
        self.position = start.position.clone();
        *self.known.lock() = Some(start);
        self.step(run, Event::Loaded(end.position.clone()));
        self.snapshot_end = Some(end);
    }

    /// Tests whether the log has the end of the snapshot, when the stream reaches it.
    pub(super) fn find_end(&mut self, run: &Run) {
        let is_reached = |end: &mut LogPlace| self.position.has_reached(&end.position);
        let Some(end) = self.snapshot_end.take_if(is_reached) else { return };
        // `None` at the start, when the file was not opened yet.
        let is_file = self.created.is_none() || self.created == end.created;
        // The end is the end of a transaction, not of an event in one.
        let is_end = self.known.lock().as_ref().is_some_and(|known| known.position == end.position);
        if !is_file || !is_end || end.position != self.position {
            // A server that crashed may lose the end of its log.
            self.snapshots.refuse(run, "the binary log does not have all changes that it has");
            self.lose(run);
        }
    }

    /// Writes a snapshot if it is time for one.
    pub(super) fn save_when_due(&mut self, run: &Run) {
        if self.follow.is_saveable() && self.snapshots.is_due() {
            let (position, end) = self.places();
            self.snapshots.save(run, position, end);
        }
    }

    /// Returns the place for a snapshot that is begun now, and what returns its end.
    fn places(&self) -> (Option<Vec<u8>>, impl FnOnce() -> Vec<u8> + Send + use<>) {
        let (known, shape) = (Arc::clone(&self.known), self.shape.clone());
        let place = known.lock().as_ref().and_then(|place| place.encode(&shape));
        let end = move || known.lock().as_ref().and_then(|place| place.encode(&shape));
        // A snapshot without an end is not used.
        (place, move || end().unwrap_or_default())
    }

    /// Writes a last snapshot.
    pub(in crate::kinds::mysql) fn stop(&mut self, run: &Run) {
        let (position, end) = self.places();
        let position = position.filter(|_| self.follow.is_saveable());
        self.snapshots.finish(run, position, end);
    }

    /// Refuses a file that has the name of the known one and was created at another time.
    pub(super) fn check_file(&mut self, run: &Run, created: u32) -> Result<(), SourceError> {
        self.created = Some(created);
        let mut known = self.known.lock();
        let place = known.as_mut().filter(|known| known.position.file == self.position.file);
        match place {
            Some(place) if place.created.is_none_or(|it| it == created) => {
                place.created = Some(created);
                Ok(())
            }
            None => Ok(()),
            Some(_) => {
                drop(known);
                Err(self.begun_again(run))
            }
        }
    }

    /// Records that the server has begun its log again, such as by `RESET MASTER`.
    pub(super) fn begun_again(&mut self, run: &Run) -> SourceError {
        *self.known.lock() = None;
        let message = "the server has started a new binary log, as RESET MASTER does, so the guard \
            reads all ids again";
        self.snapshots.refuse(run, message);
        self.lose(run);
        SourceError::Reread(message.to_owned())
    }
}
