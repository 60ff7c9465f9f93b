//! Records the results of snapshots.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::system::clock::now_millis;

/// The history of snapshots since the server started.
#[derive(Debug, Default)]
pub(crate) struct Saves(Mutex<SaveHistory>);

#[derive(Debug, Default)]
struct SaveHistory {
    /// The number of completed snapshots.
    count: u64,
    has_failed: bool,
    last: Option<Duration>,
    began_millis: Option<u64>,
    /// The number of changes that the last snapshot contains.
    changes: u64,
}

/// The numbers that `INFO persistence` shows.
#[derive(Debug, PartialEq)]
pub(crate) struct SaveInfo {
    /// The number of completed snapshots.
    pub count: u64,
    /// True if the last snapshot failed.
    pub has_failed: bool,
    /// The duration of the last snapshot, in seconds; -1 if there was no snapshot.
    pub last_seconds: i64,
    /// The time since the running snapshot began, in seconds; -1 if no snapshot is running.
    pub current_seconds: i64,
}

impl Saves {
    /// Runs a function that writes a snapshot of a keyspace after `changes` changes. Records the
    /// result of the function.
    pub fn watch<E>(&self, changes: u64, save: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let began = Instant::now();
        self.0.lock().began_millis = Some(now_millis());
        let saved = save();
        let mut state = self.0.lock();
        state.began_millis = None;
        state.has_failed = saved.is_err();
        state.last = Some(began.elapsed());
        if saved.is_ok() {
            state.count += 1;
            state.changes = changes;
        }
        saved
    }

    /// Returns how many of `changes` changes are not in the last snapshot.
    pub fn changes_since(&self, changes: u64) -> u64 {
        changes.saturating_sub(self.0.lock().changes)
    }

    /// Records, at the start of the server, that the data files contain `changes` changes.
    pub fn begin(&self, changes: u64) {
        self.0.lock().changes = changes;
    }

    pub fn info(&self, now_millis: u64) -> SaveInfo {
        let state = self.0.lock();
        let current = state.began_millis.map(|began| now_millis.saturating_sub(began) / 1000);
        SaveInfo {
            count: state.count,
            has_failed: state.has_failed,
            last_seconds: state.last.map_or(-1, |it| it.as_secs() as i64),
            current_seconds: current.map_or(-1, |it| it as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_counted_with_results_and_durations() {
        let saves = Saves::default();
        saves.begin(5);
        let none = SaveInfo { count: 0, has_failed: false, last_seconds: -1, current_seconds: -1 };
        assert_eq!((saves.info(0), saves.changes_since(7)), (none, 2));
        let during = || {
            assert!(saves.info(now_millis() + 9500).current_seconds >= 9);
            Ok::<(), ()>(())
        };
        assert_eq!(saves.watch(7, during), Ok(()));
        let one = SaveInfo { count: 1, has_failed: false, last_seconds: 0, current_seconds: -1 };
        assert_eq!((saves.info(0), saves.changes_since(8)), (one, 1));
        assert_eq!(saves.watch(9, || Err("full")), Err("full"));
        let failed = SaveInfo { count: 1, has_failed: true, last_seconds: 0, current_seconds: -1 };
        assert_eq!((saves.info(0), saves.changes_since(9)), (failed, 2));
    }
}
