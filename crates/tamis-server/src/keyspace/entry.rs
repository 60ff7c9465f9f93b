//! Values that are read for long, such as by a snapshot, one after the other.

use std::time::Duration;

use tamis_commands::Value;
use triomphe::Arc;

use super::cell::{Cell, State};
use super::leases::Lease;
use super::{ExclusiveAccess, Keyspace, KeyspaceRef};

/// A key that was there when the keys of its part were read.
pub(crate) struct Entry<'k> {
    pub(super) keyspace: &'k Keyspace,
    pub key: Box<[u8]>,
    pub(super) cell: Arc<Cell>,
    /// How often all keys had been taken out before.
    pub(super) clears: u64,
}

/// Values above this are read under a lease: reading them takes more than a moment.
const LARGE_BYTES: u64 = 256 << 10;

/// How long writers that wait for a key have it before the next lease begins.
const TURN: Duration = Duration::from_micros(200);

/// How long a reader waits for a small value at a time. If the value has become large and has a lease, no command should wait
/// behind this reader.
const SOON: Duration = Duration::from_millis(1);

impl Entry<'_> {
    /// Runs a function on the value under a shared lock, with its time and what `note` returned. Both were read at a moment that
    /// `is_settled` agrees to, at which no command was changing the value. `None` if there is no value. A large value gets a
    /// lease: a command that is about to change it waits without holding up others, and inserts that only set bits go on.
    pub fn read<N, R>(
        &self,
        is_settled: impl Fn() -> bool,
        note: impl FnOnce(&Value) -> N,
        run: impl FnOnce(&Value, Option<u64>, N) -> R,
    ) -> Option<R> {
        let is_large = |state: &State| match &state.value {
            None | Some(Value::Empty(_)) => false,
            Some(value) => value.memory_bytes() > LARGE_BYTES,
        };
        loop {
            if is_large(&self.cell.state.read()) {
                let (alone, lease) = self.keyspace.begin_lease(&self.key);
                let state = self.cell.state.read();
                if self.is_gone(&state) {
                    return None;
                }
                if is_settled() {
                    let noted = state.value.as_ref().map(|value| (value, note(value)));
                    drop(alone);
                    let run = |(value, noted)| run(value, state.expires_millis(), noted);
                    let result = noted.map(run);
                    // A writer that waits for the lease finds the lock free.
                    drop(state);
                    drop(lease);
                    return result;
                }
            } else {
                // So that no command takes all keys out meanwhile.
                let _keys = self.keyspace.shared();
                if let Some(state) = self.cell.state.try_write_for(SOON) {
                    if self.is_gone(&state) {
                        return None;
                    }
                    // Exclusively, for the moment that it takes, so that no command inserts.
                    if is_settled() && !is_large(&state) {
                        let value = state.value.as_ref()?;
                        let run = |value: &Value| run(value, state.expires_millis(), note(value));
                        return Some(value.with_built(run));
                    }
                }
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl Entry<'_> {
    /// Returns whether the key was taken out, alone or with all others. The caller has the keys.
    fn is_gone(&self, state: &State) -> bool {
        state.is_removed() || self.keyspace.clears() != self.clears
    }
}

impl KeyspaceRef<'_> {
    /// Returns whether reading the value of a key takes more than a moment.
    pub(crate) fn is_large(&self, key: &[u8], now_millis: u64) -> bool {
        self.read(key, now_millis, |value| {
            value.is_some_and(|it| it.memory_bytes().max(it.longest_reply_bytes()) > LARGE_BYTES)
        })
    }
}

impl Keyspace {
    /// Runs a function on the value of a key under a read lease. Other commands have the keys meanwhile, and commands that are
    /// about to change this value wait for the lease. Returns the key's version too, which differs if the value has changed
    /// meanwhile; `None` if there is no value.
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
        // A writer that waits for the lease finds the lock free.
        drop(state);
        drop(lease);
        result
    }

    /// Begins a lease of a key at a moment when no writer waits for it. Under the exclusive access that this returns, the lock of
    /// the key is free of writers.
    fn begin_lease(&self, key: &[u8]) -> (ExclusiveAccess<'_>, Lease<'_>) {
        loop {
            while self.leases.is_awaited(key) {
                std::thread::sleep(TURN);
            }
            let alone = self.exclusive();
            // A writer that has come since then goes first.
            if let Some(lease) = self.leases.begin(key) {
                return (alone, lease);
            }
        }
    }
}
