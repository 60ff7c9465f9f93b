//! Values that are read for long, such as by a snapshot, one after the other.

use std::sync::Arc;
use std::time::Duration;

use tamis_commands::Value;

use super::{Cell, Keyspace, Shared, State};

/// A key that was there when the keys of its part were read.
pub(crate) struct Entry<'k> {
    pub(super) keyspace: &'k Keyspace,
    pub key: Box<[u8]>,
    pub(super) cell: Arc<Cell>,
}

/// Values above this are lent for long: reading them takes more than a moment.
const LARGE_BYTES: u64 = 256 << 10;

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
        let is_large =
            |state: &State| state.value.as_ref().is_some_and(|it| it.memory_bytes() > LARGE_BYTES);
        loop {
            if is_large(&self.cell.state.read()) {
                // Nobody has a value while this is told, so the lock is free.
                let alone = self.keyspace.exclusive();
                let lent = Lent::new(self.keyspace, &self.key);
                let state = self.cell.state.read();
                if is_settled() {
                    let noted = state.value.as_ref().map(|value| (value, note(value)));
                    drop(alone);
                    let run = |(value, noted)| run(value, state.expires_millis, noted);
                    let result = noted.map(run);
                    // Whoever waits for the key finds its lock free.
                    drop(state);
                    drop(lent);
                    return result;
                }
            } else if let Some(state) = self.cell.state.try_write_for(SOON) {
                // Exclusively, for the moment that it takes, so that nobody inserts.
                if is_settled() && !is_large(&state) {
                    let value = state.value.as_ref();
                    return value.map(|value| run(value, state.expires_millis, note(value)));
                }
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// A key is lent for long, until this is gone.
struct Lent<'k> {
    keyspace: &'k Keyspace,
    key: Box<[u8]>,
}

impl<'k> Lent<'k> {
    fn new(keyspace: &'k Keyspace, key: &[u8]) -> Self {
        keyspace.lent.send_modify(|lent| lent.push(key.into()));
        Self { keyspace, key: key.into() }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.keyspace.lent.send_modify(|lent| {
            let at = lent.iter().position(|key| *key == self.key);
            lent.swap_remove(at.expect("it was told"));
        });
    }
}

impl Shared<'_> {
    /// Tells whether reading the value of a key takes more than a moment.
    pub(crate) fn is_large(&self, key: &[u8], now_millis: u64) -> bool {
        self.read(key, now_millis, |value| value.is_some_and(|it| it.memory_bytes() > LARGE_BYTES))
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
        // Nobody has a value while this is told, so the lock is free.
        let alone = self.exclusive();
        let cell = self.cell(key)?;
        let version = alone.version(key, now_millis);
        let lent = Lent::new(self, key);
        let state = cell.state.read();
        drop(alone);
        let result = state.value(now_millis).map(|value| (run(value), version));
        // Whoever waits for the key finds its lock free.
        drop(state);
        drop(lent);
        result
    }
}
