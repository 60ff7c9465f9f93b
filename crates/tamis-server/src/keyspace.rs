//! Keys and their values, shared between threads.
//!
//! ```text
//! gate ──▶ shard of the key ──▶ cell ──▶ value
//! shared    map, locked for      locked shared by readers and by inserts that only set bits,
//!           a lookup             exclusively by everything else
//! ```
//!
//! Locks are always taken in this order, and none is held across an await. Whoever must see several keys at once
//! (a transaction, `RENAME`, `FLUSHALL`) takes the [gate](Keyspace::exclusive) exclusively, so no other command
//! runs meanwhile.

mod access;
mod entry;
mod lending;

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use tamis_commands::Value;

use crate::gauge::Gauge;
pub use access::{Cleared, Exclusive, Shared};
pub(crate) use entry::Entry;
use lending::Lending;

/// All keys of a server.
#[derive(Debug)]
pub struct Keyspace {
    gate: RwLock<()>,
    shards: Box<[Shard]>,
    hasher: RandomState,
    /// Memory of the values, in bytes.
    memory_bytes: AtomicI64,
    /// Keys with a time.
    expiring: AtomicI64,
    /// Counts changes, so that watched keys are told apart from changed ones.
    changes: AtomicU64,
    lending: Lending,
    expired: OnceLock<Expired>,
}

/// Told of each key that is taken out because its time has come, while its lock is held: whoever does changes again must
/// take it out at the same place among them.
struct Expired(Box<ToldOfKey>);

type ToldOfKey = dyn Fn(&[u8]) + Send + Sync;

impl std::fmt::Debug for Expired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Expired")
    }
}

type Shard = RwLock<HashMap<Box<[u8]>, Arc<Cell>, RandomState>>;

/// A key's value, which outlives its place in the map while somebody still holds it.
#[derive(Debug, Default)]
struct Cell {
    state: RwLock<State>,
    /// The number of the last change.
    version: AtomicU64,
    gauge: Gauge,
}

impl Cell {
    fn measure(&self, now_millis: u64) {
        // One that somebody has alone can wait for the next round.
        let Some(state) = self.state.try_read() else { return };
        let Some(value) = state.value(now_millis) else { return };
        self.gauge.note(value.strain(now_millis), now_millis);
    }
}

#[derive(Debug, Default)]
struct State {
    value: Option<Value>,
    /// Milliseconds since 1970.
    expires_millis: Option<u64>,
    /// Taken out of the map: whoever finds it so looks the key up again.
    is_removed: bool,
}

impl State {
    fn is_expired(&self, now_millis: u64) -> bool {
        self.expires_millis.is_some_and(|at| at <= now_millis)
    }

    fn has_time(&self) -> bool {
        self.value.is_some() && self.expires_millis.is_some()
    }

    /// The value, unless its time has come.
    fn value(&self, now_millis: u64) -> Option<&Value> {
        if self.is_expired(now_millis) { None } else { self.value.as_ref() }
    }
}

/// How many parts the keys are in, each locked by itself: a lookup rarely waits for another, and `SCAN` answers
/// with whole parts.
const SHARDS: usize = 1024;

impl Keyspace {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        let hasher = RandomState::default();
        let shards = (0..SHARDS).map(|_| RwLock::new(HashMap::with_hasher(hasher.clone())));
        Self {
            gate: RwLock::new(()),
            shards: shards.collect(),
            hasher: hasher.clone(),
            memory_bytes: AtomicI64::new(0),
            expiring: AtomicI64::new(0),
            changes: AtomicU64::new(1),
            lending: Lending::new(),
            expired: OnceLock::new(),
        }
    }

    /// Says who is told of each key that is taken out because its time has come, under its lock. Once.
    pub(crate) fn on_expired(&self, told: impl Fn(&[u8]) + Send + Sync + 'static) {
        _ = self.expired.set(Expired(Box::new(told)));
    }

    /// Waits until no one is alone with the keys.
    #[must_use]
    pub fn shared(&self) -> Shared<'_> {
        Shared(self, self.gate.read())
    }

    /// Waits until all others are done.
    #[must_use]
    pub fn exclusive(&self) -> Exclusive<'_> {
        Exclusive(self, self.gate.write())
    }

    /// Waits until no one is alone with the keys, nor reads the value of this one for long.
    pub(crate) async fn shared_to_change(&self, key: &[u8]) -> Shared<'_> {
        // Until it has the keys.
        let mut waiter = self.lending.waiter();
        loop {
            let keys = self.shared();
            if !keys.is_lent(key) {
                return keys;
            }
            drop(keys);
            waiter.until_free(|lent| lent == key).await;
        }
    }

    /// Waits until all others are done, and no one reads the value of one of these keys for long.
    pub(crate) async fn exclusive_to_change(
        &self,
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> Exclusive<'_> {
        let mut waiter = self.lending.waiter();
        loop {
            let keys = self.exclusive();
            if !self.lending.is_lent(&is_meant) {
                return keys;
            }
            drop(keys);
            waiter.until_free(&is_meant).await;
        }
    }

    /// Returns the memory of all values, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns how many changes there were.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Returns how many keys have a time, expired ones included until they are swept.
    #[must_use]
    pub fn expiring(&self) -> u64 {
        self.expiring.load(Ordering::Relaxed).max(0) as u64
    }

    fn shard(&self, key: &[u8]) -> &Shard {
        // The high bits: the map takes the low ones.
        &self.shards[(self.hasher.hash_one(key) >> 54) as usize % SHARDS]
    }

    fn cell(&self, key: &[u8]) -> Option<Arc<Cell>> {
        self.shard(key).read().get(key).cloned()
    }

    fn cell_or_new(&self, key: &[u8]) -> Arc<Cell> {
        if let Some(cell) = self.cell(key) {
            return cell;
        }
        let mut shard = self.shard(key).write();
        let make = || Arc::new(Cell::default());
        shard.entry(key.into()).or_insert_with(make).clone()
    }

    fn note_change(&self, cell: &Cell) {
        cell.version.store(self.changes.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Lends the value of a key shared.
    fn read<R>(&self, key: &[u8], now_millis: u64, run: impl FnOnce(Option<&Value>) -> R) -> R {
        match self.cell(key) {
            Some(cell) => run(cell.state.read().value(now_millis)),
            None => run(None),
        }
    }

    /// Lends the value of a key, and its time, exclusively; the key is taken out if no value is left.
    fn write<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> R,
    ) -> R {
        self.write_if(key, now_millis, |value, expires| (run(value, expires), true))
    }

    /// Does so for what tells whether it has changed anything.
    fn write_if<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> (R, bool),
    ) -> R {
        loop {
            let cell = self.cell_or_new(key);
            let mut state = cell.state.write();
            if state.is_removed {
                continue;
            }
            let memory =
                |value: &Option<Value>| value.as_ref().map_or(0, Value::memory_bytes) as i64;
            let before = memory(&state.value);
            let had_time = state.has_time();
            if state.is_expired(now_millis) {
                *state = State::default();
                if let Some(expired) = self.expired.get() {
                    (expired.0)(key);
                }
            }
            let State { value, expires_millis, .. } = &mut *state;
            let (result, has_changed) = run(value, expires_millis);
            self.memory_bytes.fetch_add(memory(value) - before, Ordering::Relaxed);
            match (had_time, state.has_time()) {
                (false, true) => _ = self.expiring.fetch_add(1, Ordering::Relaxed),
                (true, false) => _ = self.expiring.fetch_sub(1, Ordering::Relaxed),
                _ => {}
            }
            if has_changed {
                self.note_change(&cell);
            }
            if state.value.is_none() {
                state.is_removed = true;
                // The order of the locks: shard before cell.
                drop(state);
                let mut shard = self.shard(key).write();
                if shard.get(key).is_some_and(|found| Arc::ptr_eq(found, &cell)) {
                    shard.remove(key);
                }
            }
            return result;
        }
    }
}

impl Default for Keyspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Keyspace {
    /// Returns how many parts there are.
    pub(crate) fn parts(&self) -> usize {
        SHARDS
    }

    /// Returns the keys of one part, to read their values one after the other. Keys that come or go meanwhile may be
    /// among them or not.
    pub(crate) fn entries(&self, part: usize) -> impl Iterator<Item = Entry<'_>> {
        let cells: Vec<(Box<[u8]>, Arc<Cell>)> = self.shards[part]
            .read()
            .iter()
            .map(|(key, cell)| (key.clone(), cell.clone()))
            .collect();
        cells.into_iter().map(|(key, cell)| Entry { keyspace: self, key, cell })
    }

    /// Measures the filters of one part. Whoever changes one waits for tens of microseconds at most.
    pub(crate) fn measure(&self, part: usize, now_millis: u64) {
        let cells: Vec<Arc<Cell>> = self.shards[part % SHARDS].read().values().cloned().collect();
        cells.iter().for_each(|cell| cell.measure(now_millis));
    }

    /// Hands out the keys of the filters of one part, with what of their room is used. Those that have not been
    /// measured are now.
    pub(crate) fn each_gauge(
        &self,
        part: usize,
        now_millis: u64,
        mut each: impl FnMut(&[u8], f32),
    ) {
        let mut new: Vec<(Box<[u8]>, Arc<Cell>)> = Vec::new();
        for (key, cell) in self.shards[part].read().iter() {
            match cell.gauge.used() {
                Some(used) if used >= 0.0 => each(key, used),
                Some(_) => {}
                None => new.push((key.clone(), cell.clone())),
            }
        }
        for (key, cell) in new {
            cell.measure(now_millis);
            if let Some(used) = cell.gauge.used().filter(|used| *used >= 0.0) {
                each(&key, used);
            }
        }
    }

    /// Takes out what has expired, in one part; returns how many keys.
    pub fn sweep(&self, part: usize, now_millis: u64) -> usize {
        let keys = self.shared();
        let expired: Vec<Box<[u8]>> = {
            let shard = self.shards[part % SHARDS].read();
            // One that somebody has alone can wait for the next round.
            let is_expired =
                |cell: &Cell| cell.state.try_read().is_some_and(|it| it.is_expired(now_millis));
            shard.iter().filter(|(_, cell)| is_expired(cell)).map(|(key, _)| key.clone()).collect()
        };
        // So can one that is lent.
        let free = expired.iter().filter(|key| !keys.is_lent(key));
        // Writing finds it expired.
        free.map(|key| keys.write(key, now_millis, |_| ())).count()
    }
}

#[cfg(test)]
mod tests;
