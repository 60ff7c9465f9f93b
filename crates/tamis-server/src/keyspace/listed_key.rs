//! Long reads of many values, one value after the other, such as for a snapshot.

use std::time::Duration;

use tamis_commands::Value;
use triomphe::Arc;

use crate::keyspace::access::{ExclusiveAccess, KeyspaceRef};
use crate::keyspace::cell::{Cell, CellState};
use crate::keyspace::leases::Lease;
use crate::keyspace::shards::Keyspace;

/// A key that existed at the time when the keys of its shard were listed.
pub(crate) struct ListedKey<'k> {
    keyspace: &'k Keyspace,
    cell: Arc<Cell>,
    /// The number of times that all keys were removed together before this key was listed.
    clears: u64,
}

/// A value above this size, in bytes, is read under a lease, because the read takes long.
const LARGE_BYTES: u64 = 256 << 10;

/// The time for which a waiting writer may use the key before the next lease begins.
const TURN: Duration = Duration::from_micros(200);

/// The maximum time of one attempt to lock a small value. If the value has become large and has a
/// lease, an attempt without a time limit would make other commands wait behind this reader.
const SOON: Duration = Duration::from_millis(1);

impl ListedKey<'_> {
    pub fn key(&self) -> &[u8] {
        &self.cell.key
    }

    /// Runs a function on the value under a shared lock. The function gets the expiry time and the
    /// result of `observe`. Returns `None` if the key has no value.
    ///
    /// The expiry time and the result belong to one point in time, at which `may_read` returns true
    /// and no command is changing the value. A large value gets a lease. During the lease, a
    /// command that changes the value waits without blocking other commands, and inserts that only
    /// set bits continue.
    pub fn read<N, R>(
        &self,
        may_read: impl Fn() -> bool,
        observe: impl FnOnce(&Value) -> N,
        run: impl FnOnce(&Value, Option<u64>, N) -> R,
    ) -> Option<R> {
        let is_large = |state: &CellState| match &state.value {
            None | Some(Value::Empty(_)) => false,
            Some(value) => value.memory_bytes() > LARGE_BYTES,
        };
        loop {
            if is_large(&self.cell.state.read()) {
                let (alone, lease) = self.keyspace.begin_lease(self.key());
                let state = self.cell.state.read();
                if self.is_gone(&state) {
                    return None;
                }
                if may_read() {
                    let observed = state.value.as_ref().map(|value| (value, observe(value)));
                    drop(alone);
                    let run = |(value, observed)| run(value, state.expires_millis(), observed);
                    let result = observed.map(run);
                    // Drop the lock before the lease, so that a writer that waits for the lease
                    // finds the lock free.
                    drop(state);
                    drop(lease);
                    return result;
                }
            } else {
                // Take shared access, so that no command removes all keys during the read.
                let _keys = self.keyspace.shared();
                if let Some(state) = self.cell.state.try_write_for(SOON) {
                    if self.is_gone(&state) {
                        return None;
                    }
                    // Take an exclusive lock for this short read, so that no command inserts during
                    // the read.
                    if may_read() && !is_large(&state) {
                        let value = state.value.as_ref()?;
                        let run =
                            |value: &Value| run(value, state.expires_millis(), observe(value));
                        return Some(value.with_built(run));
                    }
                }
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Tests whether the key was removed, alone or together with all keys. The caller has access to
    /// the keys.
    fn is_gone(&self, state: &CellState) -> bool {
        state.is_removed() || self.keyspace.clears() != self.clears
    }
}

impl KeyspaceRef<'_> {
    /// Tests whether the value of a key is so large that a read takes long.
    pub(crate) fn is_large(&self, key: &[u8], now_millis: u64) -> bool {
        self.read(key, now_millis, |value| {
            value.is_some_and(|it| it.memory_bytes().max(it.longest_reply_bytes()) > LARGE_BYTES)
        })
    }
}

impl Keyspace {
    /// Returns all keys, one shard after the other. The caller reads the values one after the
    /// other. A key that is added or removed during the iteration may be missing or included.
    pub(crate) fn listed_keys(&self) -> impl Iterator<Item = ListedKey<'_>> {
        self.shards.iter().flat_map(move |shard| {
            // Read the counter before the cells. With this order, a cell that is added after a
            // clear counts as cleared and may be missing.
            let clears = self.clears();
            let cells = shard.read().cells();
            cells.into_iter().map(move |cell| ListedKey { keyspace: self, cell, clears })
        })
    }

    /// Runs a function on the value of a key under a read lease. During the lease, other commands
    /// have access to the keys. Commands that change the leased value wait for the end of the
    /// lease. Returns the result of the function and the version of the key. Each later change of
    /// the value changes the version of the key. Returns `None` if the key has no value.
    pub(crate) fn lease<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&Value) -> R,
    ) -> Option<(R, u64)> {
        let (alone, lease) = self.begin_lease(key);
        let cell = self.cell(key)?;
        let version = alone.version(key, now_millis);
        let state = cell.state.read();
        drop(alone);
        let result = state.value(now_millis).map(|value| (value.with_built(run), version));
        // Drop the lock before the lease, so that a writer that waits for the lease finds the lock
        // free.
        drop(state);
        drop(lease);
        result
    }

    /// Begins a lease of a key at a time when no writer waits for the key. While the caller holds
    /// the returned exclusive access, no writer holds the lock of the key.
    fn begin_lease(&self, key: &[u8]) -> (ExclusiveAccess<'_>, Lease<'_>) {
        loop {
            while self.leases.is_awaited(key) {
                std::thread::sleep(TURN);
            }
            let alone = self.exclusive();
            // If a writer has begun to wait for the key, this lease begins after the writer.
            if let Some(lease) = self.leases.begin(key) {
                return (alone, lease);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::tests::{get, set};

    fn is_found(entry: &ListedKey<'_>) -> bool {
        entry.read(|| true, |_| (), |_, _, ()| ()).is_some()
    }

    #[test]
    fn a_snapshot_finds_a_key_that_is_renamed_to_itself() {
        let keyspace = Keyspace::new();
        set(&keyspace.shared(), b"me", "1");
        let listed: Vec<_> = keyspace.listed_keys().collect();
        assert!(keyspace.exclusive().rename(b"me", b"me", 0));
        assert!(is_found(&listed[0]));
    }

    #[test]
    fn a_snapshot_finds_no_key_that_was_cleared() {
        let keyspace = Keyspace::new();
        let large = "x".repeat(1 << 20);
        set(&keyspace.shared(), b"small", "one");
        set(&keyspace.shared(), b"large", &large);
        let listed: Vec<_> = keyspace.listed_keys().collect();
        assert_eq!(listed.len(), 2);
        let cleared = keyspace.exclusive().clear();
        assert!(!cleared.is_empty() && !listed.iter().any(is_found));
        set(&keyspace.shared(), b"small", "two");
        drop(cleared);
        assert_eq!(get(&keyspace.shared(), b"small", 0).as_deref(), Some("two"));
        assert!(
            !keyspace.exclusive().clear().is_empty() && keyspace.exclusive().clear().is_empty()
        );
    }
}
