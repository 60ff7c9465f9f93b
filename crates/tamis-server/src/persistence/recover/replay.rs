//! Applies the changes of a log to a keyspace.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tamis_commands::{Env, Handler, Settings, Value, WriteKeys, find};
use tamis_resp::{Protocol, Reply};

use crate::keyspace::Keyspace;
use crate::persistence::log::record::Record;
use crate::persistence::snapshot::SnapshotEntry;
use crate::session::write_keys;

/// Applies changes in the order of the log.
pub(crate) struct Replay<'k> {
    keyspace: &'k Keyspace,
    settings: Settings,
    /// For each key, the position up to which the snapshot value contains all changes. The map is
    /// empty after the end of the snapshot.
    applied: HashMap<Vec<u8>, u64>,
    /// The position at which the snapshot was complete. The snapshot contains no change after
    /// `snapshot_end`. A change before `snapshot_end` has no effect if its key was removed before
    /// the snapshot reached the key.
    pub snapshot_end: u64,
    pending: PendingInserts,
    pub changes: u64,
}

/// The items of consecutive changes of one key. The replay inserts the pending items as one batch.
/// If the filter is larger than the CPU caches, a batch takes two thirds of the time of single
/// inserts.
#[derive(Default)]
struct PendingInserts {
    key: Vec<u8>,
    /// The time of the first change in the pending batch. The key had not expired at the time of
    /// the last change, so the time of the first change is correct for all changes.
    now_millis: u64,
    hashes: Vec<u64>,
    /// True if the last change came after the snapshot was complete.
    is_exact: bool,
}

/// The maximum number of pending items.
const MAX_PENDING: usize = 1 << 20;

impl<'k> Replay<'k> {
    /// Creates a replay that fills an empty keyspace.
    pub fn new(keyspace: &'k Keyspace) -> Self {
        Self {
            keyspace,
            settings: Settings::for_replay(),
            applied: HashMap::new(),
            snapshot_end: 0,
            pending: PendingInserts::default(),
            changes: 0,
        }
    }

    /// Inserts a value of the snapshot.
    pub fn take(&mut self, entry: SnapshotEntry) {
        self.keyspace.shared().put(&entry.key, 0, entry.value, entry.expires_millis);
        self.applied.insert(entry.key, entry.applied);
    }

    /// Applies a change. Does nothing if the snapshot already contains the change.
    ///
    /// # Errors
    ///
    /// Returns the reason why the change cannot be applied.
    pub fn apply(&mut self, position: u64, record: &Record<'_>) -> Result<(), String> {
        self.changes += 1;
        catch_panic(|| self.apply_unguarded(position, record))
    }

    /// Inserts the pending items.
    ///
    /// # Errors
    ///
    /// Returns the reason why the items cannot be inserted.
    pub fn finish(&mut self) -> Result<(), String> {
        catch_panic(|| self.insert_pending())
    }

    fn apply_unguarded(&mut self, position: u64, record: &Record<'_>) -> Result<(), String> {
        if !matches!(record, Record::Inserted { .. }) {
            self.insert_pending()?;
        }
        let is_exact = position >= self.snapshot_end;
        if is_exact && !self.applied.is_empty() {
            self.applied = HashMap::new();
        }
        match record {
            Record::Inserted { key, .. } | Record::Value { key, .. }
                if self.is_applied(key, position) =>
            {
                Ok(())
            }
            Record::Inserted { now_millis, key, hashes } => {
                let pending = &self.pending;
                if pending.key != *key || pending.hashes.len() + hashes.len() > MAX_PENDING {
                    self.insert_pending()?;
                }
                let pending = &mut self.pending;
                if pending.hashes.is_empty() {
                    pending.key = key.to_vec();
                    pending.now_millis = *now_millis;
                }
                pending.hashes.extend_from_slice(hashes);
                pending.is_exact |= is_exact;
                Ok(())
            }
            Record::Value { key, expires_millis, serialization } => {
                let value = Value::read_logged_image(serialization)
                    .map_err(|error| format!("a value cannot be read: {error}"))?;
                self.keyspace.shared().put(key, 0, value, *expires_millis);
                Ok(())
            }
            // Before the end of the snapshot, the key of a change may not exist, and an error means
            // that the change has no effect.
            Record::Command { now_millis, argv } => match self.run(position, *now_millis, argv) {
                Err(_) if !is_exact => Ok(()),
                result => result,
            },
        }
    }

    /// Tests whether the snapshot value of a key already contains the change at a position.
    fn is_applied(&self, key: &[u8], position: u64) -> bool {
        self.applied.get(key).is_some_and(|&applied| position < applied)
    }

    fn run(&self, position: u64, now_millis: u64, argv: &[&[u8]]) -> Result<(), String> {
        let command = argv.first().and_then(|name| find(name));
        let command =
            command.ok_or("a command is unknown: a newer version of tamis may have written it")?;
        let name = command.name;
        if !command.takes(argv.len()) {
            return Err(format!("{name} has too few or too many arguments"));
        }
        let env = Env::new(&self.settings, Protocol::Resp2, now_millis);
        let is_applied = |key: &[u8]| self.is_applied(key, position);
        if let Handler::WriteKeys(WriteKeys::Flush) = command.handler {
            // Keep the keys that the snapshot read after this `FLUSHALL`.
            self.keyspace.exclusive().clear_but(is_applied);
            return Ok(());
        }
        if command.keys.of(argv).any(is_applied) {
            return Ok(());
        }
        let reply = match command.handler {
            Handler::Key(handler) if command.may_change() => {
                let keys = self.keyspace.shared();
                let run = |value: &mut Option<Value>| handler.run(value, argv, &env);
                let outcome = keys.change(argv[1], now_millis, run);
                if outcome.has_changed() {
                    return Ok(());
                }
                outcome.reply
            }
            Handler::WriteKeys(handler) => {
                write_keys::write(handler, argv, &env, &self.keyspace.exclusive(), None)
                    .unwrap_or_else(|reply| reply)
            }
            _ => return Err(format!("{name} changed something once and changes nothing now")),
        };
        match reply {
            Reply::Error(error) => Err(format!("{name}: {error}")),
            _ => Ok(()),
        }
    }

    /// Inserts the pending items.
    fn insert_pending(&mut self) -> Result<(), String> {
        let PendingInserts { key, now_millis, hashes, is_exact } = &mut self.pending;
        if hashes.is_empty() {
            return Ok(());
        }
        let is_exact = std::mem::take(is_exact);
        let inserted = self.keyspace.shared().write(key, *now_millis, |value| match value {
            Some(Value::Bloom(filter)) => filter
                .restore_hashes(hashes)
                .map_err(|_| "there is not enough memory for an item".to_owned()),
            _ if is_exact => {
                Err("items were inserted into a filter that does not exist".to_owned())
            }
            // The filter was removed before the snapshot reached the filter, and a later record of
            // the log removes the filter.
            _ => Ok(()),
        });
        hashes.clear();
        inserted
    }
}

/// Returns the result of `run`, or an error if `run` panics.
fn catch_panic(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err("replaying a change failed inside Tamis: please report it".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_the_snapshot_are_freed_behind_its_end() {
        let keyspace = Keyspace::new();
        let mut replay = Replay::new(&keyspace);
        for i in 0..100 {
            replay.take(SnapshotEntry {
                key: vec![i],
                value: Value::Bytes(b"1".to_vec().into()),
                expires_millis: None,
                applied: 50,
            });
        }
        replay.snapshot_end = 60;
        let mut increment = |position| {
            let record = Record::Command { now_millis: 0, argv: vec![b"INCR", &[7]] };
            replay.apply(position, &record).unwrap();
            replay.applied.capacity() > 0
        };
        assert!(increment(49), "the snapshot has it");
        assert!(increment(59), "others may be in the snapshot");
        assert!(!increment(60));
        let reply = keyspace.shared().read(&[7], 0, |value| match value {
            Some(Value::Bytes(bytes)) => bytes.to_vec(0..bytes.len()),
            _ => panic!("the key exists"),
        });
        assert_eq!(reply, b"3");
    }
}
