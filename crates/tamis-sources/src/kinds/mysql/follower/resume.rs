//! Continues the log after a snapshot or a broken connection.
//!
//! # Why no id is missing
//!
//! A snapshot has a start and an end. The start and the end are ends of transactions. The ids of the snapshot contain
//! all changes up to the start, and no deletion after the end. The reason is a lock: [`Follower`] applies the deletions
//! of a transaction and records its end under one lock. The snapshot writer copies the deletions first. After the copy,
//! the writer reads the end of the snapshot while it holds the lock of [`Follower`].
//!
//! ```text
//! log   ──────┬───────────────┬──────────────────┬────────▶
//!           start            end        position that the
//! ids    all changes   some changes     server reported
//! ```
//!
//! The reader applies all changes after the start. The set becomes synced if three conditions hold:
//!
//! * The log is the log from which the snapshot was written. The server is the same, and the file has the same name and
//!   the same creation time in seconds.
//! * The stream reaches exactly the end of the snapshot. If a server loses its last transactions in a crash, the server
//!   continues in another file, so the stream skips the end. Without the test of the end, the set would refuse an id
//!   whose deletion was lost.
//! * The stream reaches the position that the server reported after the start of the reader.
//!
//! When the set becomes synced, the reader has applied all changes up to the end, so no id has a wrong state (see
//! `snapshot.rs`).

use std::sync::Arc;

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::follower::Follower;
use crate::kinds::mysql::log_place::LogPlace;
use crate::kinds::mysql::server::Server;
use crate::source::follow::{Event, LogPosition as _};
use crate::source::run::Run;

impl Follower {
    /// Publishes the ids of the snapshot, if the server and the columns of the table are unchanged.
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

    /// Tests whether the log contains the end of the snapshot. The test runs when the stream reaches the end.
    pub(super) fn find_end(&mut self, run: &Run) {
        let is_reached = |end: &mut LogPlace| self.position.has_reached(&end.position);
        let Some(end) = self.snapshot_end.take_if(is_reached) else { return };
        // `created` is `None` at the start, before the stream opens the file.
        let is_file = self.created.is_none() || self.created == end.created;
        // The end must be the end of a transaction, and not the end of an event inside a transaction.
        let is_end = self.known.lock().as_ref().is_some_and(|known| known.position == end.position);
        if !is_file || !is_end || end.position != self.position {
            // A server that crashed may have lost the end of its log.
            self.snapshots.refuse(run, "the binary log does not have all changes that it has");
            self.lose(run);
        }
    }

    /// Writes a snapshot if a snapshot is due.
    pub(super) fn save_when_due(&mut self, run: &Run) {
        if self.follow.is_saveable() && self.snapshots.is_due() {
            let (position, end) = self.places();
            self.snapshots.save(run, position, end);
        }
    }

    /// Returns the position for a snapshot that starts now, and a function that returns the end of the snapshot.
    fn places(&self) -> (Option<Vec<u8>>, impl FnOnce() -> Vec<u8> + Send + use<>) {
        let (known, shape) = (Arc::clone(&self.known), self.shape.clone());
        let place = known.lock().as_ref().and_then(|place| place.encode(&shape));
        let end = move || known.lock().as_ref().and_then(|place| place.encode(&shape));
        // An empty end makes the snapshot invalid.
        (place, move || end().unwrap_or_default())
    }

    /// Writes the last snapshot before the source ends.
    pub(in crate::kinds::mysql) fn stop(&mut self, run: &Run) {
        let (position, end) = self.places();
        let position = position.filter(|_| self.follow.is_saveable());
        self.snapshots.finish(run, position, end);
    }

    /// Rejects a log file that has the expected name but another creation time.
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

    /// Records that the server has restarted its log, for example by `RESET MASTER`.
    pub(super) fn begun_again(&mut self, run: &Run) -> SourceError {
        *self.known.lock() = None;
        let message = "the server has started a new binary log, as RESET MASTER does, so the guard \
            reads all ids again";
        self.snapshots.refuse(run, message);
        self.lose(run);
        SourceError::Reread(message.to_owned())
    }
}
