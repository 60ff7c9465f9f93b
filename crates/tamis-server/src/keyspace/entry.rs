//! Values that are read for long, such as by a snapshot, one after the other.

use std::time::Duration;

use tamis_commands::Value;
use triomphe::Arc;

use super::cell::{Cell, State};
use super::lending::Lent;
use super::{Exclusive, Keyspace, Shared};

/// A key that was there when the keys of its part were read.
pub(crate) struct Entry<'k> {
    pub(super) keyspace: &'k Keyspace,
    pub key: Box<[u8]>,
    pub(super) cell: Arc<Cell>,
    /// How often all keys had been taken out before.
    pub(super) clears: u64,
}

/// Values above this are lent for long: reading them takes more than a moment.
const LARGE_BYTES: u64 = 256 << 10;

/// How long those who wait for a lent key have it to themselves, at a time.
const TURN: Duration = Duration::from_micros(200);

/// How long a small value is waited for at a time. If it has become a large one that is lent, nobody should wait behind.
const SOON: Duration = Duration::from_millis(1);

impl Entry<'_> {
    /// Lends the value shared, with its time and what was noted at a moment that `is_settled` agrees to, at which
    /// nobody was changing it; `None` if there is none. If it is large, those who are about to change it are told so,
    /// and need not stand in the way of others; inserts that only set bits go on.
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
                let (alone, lent) = self.keyspace.begin_to_lend(&self.key);
                let state = self.cell.state.read();
                if self.is_gone(&state) {
                    return None;
                }
                if is_settled() {
                    let noted = state.value.as_ref().map(|value| (value, note(value)));
                    drop(alone);
                    let run = |(value, noted)| run(value, state.expires_millis(), noted);
                    let result = noted.map(run);
                    // Whoever waits for the key finds its lock free.
                    drop(state);
                    drop(lent);
                    return result;
                }
            } else {
                // So that nobody takes all keys out meanwhile.
                let _keys = self.keyspace.shared();
                if let Some(state) = self.cell.state.try_write_for(SOON) {
                    if self.is_gone(&state) {
                        return None;
                    }
                    // Exclusively, for the moment that it takes, so that nobody inserts.
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
    /// Tells whether the key was taken out, alone or with all others. The caller has the keys.
    fn is_gone(&self, state: &State) -> bool {
        state.is_removed() || self.keyspace.clears() != self.clears
    }
}

impl Shared<'_> {
    /// Tells whether reading the value of a key takes more than a moment.
    pub(crate) fn is_large(&self, key: &[u8], now_millis: u64) -> bool {
        self.read(key, now_millis, |value| {
            value.is_some_and(|it| it.memory_bytes().max(it.longest_reply_bytes()) > LARGE_BYTES)
        })
    }
}

impl Keyspace {
    /// Lends the value of a key shared, for long: others have the keys meanwhile, and those who are about to change this
    /// value are told so. Returns the key's version too, which is another one if its value has changed meanwhile; `None` if
    /// there is no value.
    pub(crate) fn lend<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&Value) -> R,
    ) -> Option<(R, u64)> {
        let (alone, lent) = self.begin_to_lend(key);
        let cell = self.cell(key)?;
        let version = alone.version(key, now_millis);
        let state = cell.state.read();
        drop(alone);
        let result = state.value(now_millis).map(|value| (value.with_built(run), version));
        // Whoever waits for the key finds its lock free.
        drop(state);
        drop(lent);
        result
    }

    /// Tells that a key is lent, at a moment when nobody waits for it. Whoever has the keys alone then finds its lock free of
    /// writers.
    fn begin_to_lend(&self, key: &[u8]) -> (Exclusive<'_>, Lent<'_>) {
        loop {
            while self.lending.is_awaited(key) {
                std::thread::sleep(TURN);
            }
            let alone = self.exclusive();
            // Whoever has come since then is before this one.
            if let Some(lent) = self.lending.begin(key) {
                return (alone, lent);
            }
        }
    }
}
