//! The operations that a command can run on the keys, under shared or exclusive access.

use std::collections::{HashMap, hash_map};
use std::ops::Deref;
use std::sync::atomic::Ordering;

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use tamis_commands::{Change, EmptyFilter, Expiry, Outcome, Value};
use triomphe::Arc;

use crate::keyspace::cell::Cell;
use crate::keyspace::freeing::RemovedKeys;
use crate::keyspace::shards::{Keyspace, SHARDS};

/// The keyspace, for a command that holds the gate (the lock of the whole keyspace) in shared or
/// exclusive mode.
#[derive(Debug)]
pub struct KeyspaceRef<'k>(&'k Keyspace);

/// Access to the keyspace. The access holds the gate (the lock of the whole keyspace) through the
/// lock guard `G`.
#[derive(Debug)]
pub struct KeyspaceAccess<'k, G> {
    keys: KeyspaceRef<'k>,
    _gate: G,
}

/// Shared access to the keyspace, for one command or a batch of commands.
pub type SharedAccess<'k> = KeyspaceAccess<'k, RwLockReadGuard<'k, ()>>;

/// Exclusive access to the keyspace. During the exclusive access, no other command can access the
/// keyspace.
pub type ExclusiveAccess<'k> = KeyspaceAccess<'k, RwLockWriteGuard<'k, ()>>;

impl<'k, G> KeyspaceAccess<'k, G> {
    pub(super) fn new(keyspace: &'k Keyspace, gate: G) -> Self {
        Self { keys: KeyspaceRef(keyspace), _gate: gate }
    }
}

impl<'k, G> Deref for KeyspaceAccess<'k, G> {
    type Target = KeyspaceRef<'k>;

    fn deref(&self) -> &KeyspaceRef<'k> {
        &self.keys
    }
}

impl Keyspace {
    /// Returns shared access to the keys. Waits while a command has exclusive access.
    #[must_use]
    pub fn shared(&self) -> SharedAccess<'_> {
        KeyspaceAccess::new(self, self.gate.read())
    }

    /// Returns exclusive access to all keys. Waits until the commands with access to the keys have
    /// finished.
    #[must_use]
    pub fn exclusive(&self) -> ExclusiveAccess<'_> {
        KeyspaceAccess::new(self, self.gate.write())
    }

    /// Returns shared access after all read leases of `key` have ended. Waits while a command has
    /// exclusive access.
    pub(crate) async fn shared_to_change(&self, key: &[u8]) -> SharedAccess<'_> {
        self.unleased(|| self.shared(), |leased| leased == key).await
    }

    /// Returns exclusive access after all read leases of the keys that `is_affected` accepts have
    /// ended. Waits until the commands with access to the keys have finished.
    pub(crate) async fn exclusive_to_change(
        &self,
        is_affected: impl Fn(&[u8]) -> bool,
    ) -> ExclusiveAccess<'_> {
        self.unleased(|| self.exclusive(), is_affected).await
    }

    /// Calls `lock` repeatedly until no key that `is_affected` accepts has a read lease. Returns
    /// the access.
    async fn unleased<A>(&self, lock: impl Fn() -> A, is_affected: impl Fn(&[u8]) -> bool) -> A {
        // The waiter exists until this function returns. While the waiter exists, no new lease of
        // the awaited keys begins.
        let mut waiter = self.leases.waiter();
        loop {
            let keys = lock();
            if !self.leases.is_leased(&is_affected) {
                return keys;
            }
            drop(keys);
            waiter.until_free(&is_affected).await;
        }
    }
}

impl KeyspaceRef<'_> {
    /// Tests whether the value of a key has a read lease. If a command locked a leased value
    /// exclusively, the command would wait and block all later commands. No lease begins while the
    /// caller has access to the keys.
    #[must_use]
    pub fn is_leased(&self, key: &[u8]) -> bool {
        self.0.leases.is_leased(|leased| leased == key)
    }

    /// Runs a function on the value of a key under a shared lock. The function gets `None` if the
    /// key does not exist.
    pub fn read<R>(&self, key: &[u8], now_millis: u64, run: impl FnOnce(Option<&Value>) -> R) -> R {
        match self.0.cell(key) {
            Some(cell) => cell.state.read().with_value(now_millis, run),
            None => run(None),
        }
    }

    /// Tests whether a key exists.
    #[must_use]
    pub fn exists(&self, key: &[u8], now_millis: u64) -> bool {
        self.read(key, now_millis, |value| value.is_some())
    }

    /// Runs a function on the value of a key under a shared lock. The function also gets the recent
    /// insertion rate of the value, in items per second.
    pub fn read_measured<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(Option<&Value>, Option<f64>) -> R,
    ) -> R {
        match self.0.cell(key) {
            Some(cell) => {
                let state = cell.state.read();
                state.with_value(now_millis, |value| run(value, cell.per_second()))
            }
            None => run(None, None),
        }
    }

    /// Runs a function that sets bits in the value of a key under a shared lock. `run` returns
    /// whether `run` has set any bits. `run` is not called for a small filter without items,
    /// because a small filter without items has no bits yet.
    pub fn insert(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(Option<&Value>) -> bool,
    ) -> bool {
        let Some(cell) = self.0.cell(key) else { return run(None) };
        let has_changed = match cell.state.read().value(now_millis) {
            Some(Value::Empty(_)) => false,
            value => run(value),
        };
        if has_changed {
            self.0.note_change(&cell);
        }
        has_changed
    }

    /// Runs a function on the value of a key under an exclusive lock. Removes the key if `run`
    /// removes the value.
    pub fn write<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>) -> R,
    ) -> R {
        self.0.write_if(key, now_millis, |value, expires| {
            let result = run(value);
            if value.is_none() {
                *expires = None;
            }
            (result, true)
        })
    }

    /// Replaces the value and the expiry time of a key atomically: a reader of the key never sees
    /// only one of the two changes.
    pub fn put(&self, key: &[u8], now_millis: u64, value: Value, expires_millis: Option<u64>) {
        self.0.write(key, now_millis, |slot, at| {
            *slot = Some(value.without_bits());
            *at = expires_millis;
        });
    }

    /// Runs a command on the value of one key, under an exclusive lock.
    pub(crate) fn change<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>) -> Outcome<R>,
    ) -> Outcome<R> {
        self.0.write_if(key, now_millis, |value, expires| {
            let outcome = run(value);
            match outcome.expiry {
                _ if value.is_none() => *expires = None,
                Expiry::Kept => {}
                Expiry::Never => *expires = None,
                Expiry::At(millis) => *expires = Some(millis),
            }
            if outcome.created.is_some() && outcome.change == Change::None {
                *value = value.take().map(Value::without_bits);
            }
            let has_changed = outcome.has_changed();
            (outcome, has_changed)
        })
    }

    /// Runs a function on the expiry time of an existing key, in milliseconds since 1970.
    pub fn expiry<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<u64>) -> R,
    ) -> Option<R> {
        self.0.cell(key)?;
        self.0.write(key, now_millis, |value, expires| value.is_some().then(|| run(expires)))
    }

    /// Returns the expiry time of a key. The outer `None` means that the key does not exist. The
    /// inner `None` means that the key does not expire.
    #[must_use]
    pub fn expires_millis(&self, key: &[u8], now_millis: u64) -> Option<Option<u64>> {
        let cell = self.0.cell(key)?;
        let state = cell.state.read();
        state.value(now_millis).map(|_| state.expires_millis())
    }

    /// Returns the memory of a key, in bytes: the value, the cell and the key's share of the table.
    /// Returns `None` if the key does not exist.
    #[must_use]
    pub fn memory_of(&self, key: &[u8], now_millis: u64) -> Option<u64> {
        let (shard, hash) = self.0.place(key);
        let (cell, share) = {
            let table = shard.read();
            (table.find(hash, key)?.clone(), table.heap_bytes() / table.len() as u64)
        };
        let value = cell.state.read().value(now_millis).map(Value::heap_bytes)?;
        Some(value + cell.heap_bytes() + share)
    }

    /// Returns the version of a key. Each change of the key changes the version. The version of a
    /// key that does not exist is 0.
    #[must_use]
    pub fn version(&self, key: &[u8], now_millis: u64) -> u64 {
        let Some(cell) = self.0.cell(key) else { return 0 };
        let is_there = cell.state.read().value(now_millis).is_some();
        if is_there { cell.version() } else { 0 }
    }

    /// Removes a key and returns whether the key existed.
    pub fn remove(&self, key: &[u8], now_millis: u64) -> bool {
        self.0.cell(key).is_some()
            && self.0.write(key, now_millis, |value, expires| {
                *expires = None;
                value.take().is_some()
            })
    }

    /// Returns the number of keys. The number includes expired keys that are not yet removed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.shards.iter().map(|shard| shard.read().len()).sum()
    }

    /// Tests whether the keyspace has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `each` with every key of one shard and its value in stored form. The stored form is
    /// sufficient to find the type of the value.
    pub fn each_key(&self, shard: usize, now_millis: u64, mut each: impl FnMut(&[u8], &Value)) {
        self.each_cell(shard, now_millis, |cell, value| each(&cell.key, value));
    }

    /// Calls `each` with every value of one shard and the item count from the last measurement.
    pub fn each_measured(
        &self,
        shard: usize,
        now_millis: u64,
        mut each: impl FnMut(&Value, Option<u64>),
    ) {
        self.each_cell(shard, now_millis, |cell, value| {
            value.with_built(|value| each(value, cell.items()));
        });
    }

    fn each_cell(&self, shard: usize, now_millis: u64, mut each: impl FnMut(&Cell, &Value)) {
        let cells = self.0.shards[shard].read().cells();
        for cell in cells {
            if let Some(value) = cell.state.read().value(now_millis) {
                each(&cell, value);
            }
        }
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        SHARDS
    }
}

impl ExclusiveAccess<'_> {
    /// Removes all keys and returns the removed keys. The memory of the keys is freed when the
    /// caller drops the result. The drop may take long, but needs no lock.
    ///
    /// The removal takes constant time, independent of the number of keys.
    #[must_use = "dropping it may take long: see `free_in_background`"]
    pub fn clear(&self) -> RemovedKeys {
        let tables = self.keys.0.shards.iter().map(|shard| std::mem::take(&mut *shard.write()));
        let tables = tables.filter(|table| table.len() > 0).collect();
        // A value stays in its cell, and a reader of the cell compares the number of clears. The
        // counter grows after the tables are emptied, with `Release`: a reader of the new number
        // finds no old cell. If the counter grew before the tables are emptied, a snapshot could
        // keep a key that `FLUSHALL` removed.
        self.keys.0.clears.fetch_add(1, Ordering::Release);
        self.keys.0.expiring.store(0, Ordering::Relaxed);
        let bytes = self.keys.0.memory_bytes.swap(0, Ordering::Relaxed).max(0) as u64;
        RemovedKeys { tables, bytes }
    }

    /// Frees the memory of removed keys on a background thread. Until the memory is freed, the
    /// memory counts as [being freed](Keyspace::freeing_bytes).
    pub fn free_in_background(&self, cleared: RemovedKeys) {
        self.keys.0.freeing.free(cleared);
    }

    /// Runs a function on the value of a key under an exclusive lock, and on the values of `others`
    /// under shared locks. `others` must not contain `key`. `others` may contain the same key
    /// several times.
    ///
    /// A filter that is stored only as its parameters is built in memory for the call, once per set
    /// of parameters. If the built filters take more than `max_bytes` bytes, returns `None` and
    /// does not call `run`.
    pub fn write_by<R>(
        &self,
        key: &[u8],
        others: &[&[u8]],
        now_millis: u64,
        max_bytes: u64,
        run: impl FnOnce(&mut Option<Value>, &[Option<&Value>]) -> R,
    ) -> Option<R> {
        debug_assert!(!others.contains(&key), "a value is not locked twice");
        let cells: Vec<Option<Arc<Cell>>> =
            others.iter().map(|key| self.keys.0.cell(key)).collect();
        // Several cells may be locked in any order, because the exclusive access prevents other
        // threads from locking a cell.
        let states: Vec<_> = cells
            .iter()
            .map(|cell| cell.as_ref().map(|cell| cell.state.read_recursive()))
            .collect();
        let kept = || states.iter().map(|state| state.as_ref()?.value(now_millis));
        let mut built: HashMap<&EmptyFilter, Value> = HashMap::new();
        let mut left_bytes = max_bytes;
        for empty in kept().filter_map(|value| value?.as_empty()) {
            if let hash_map::Entry::Vacant(place) = built.entry(empty) {
                let value = place.insert(empty.build());
                left_bytes = left_bytes.checked_sub(value.heap_bytes())?;
            }
        }
        let values: Vec<Option<&Value>> = kept()
            .map(|value| value.and_then(Value::as_empty).map(|empty| &built[empty]).or(value))
            .collect();
        Some(self.write(key, now_millis, |value| run(value, &values)))
    }

    /// Moves the value of the key `from` to the key `to`. Replaces the old value of the key `to`.
    /// Returns false if `from` does not exist.
    pub fn rename(&self, from: &[u8], to: &[u8], now_millis: u64) -> bool {
        if from == to {
            // The value stays in its cell, and nothing is logged. If the value moved to a new cell,
            // a snapshot that has listed the old cell would treat the key as removed.
            return self.read(from, now_millis, |value| value.is_some());
        }
        let taken = self.keys.0.cell(from).is_some().then(|| {
            self.keys.0.write(from, now_millis, |value, expires| (value.take(), expires.take()))
        });
        let Some((Some(value), expires)) = taken else { return false };
        self.keys.0.write(to, now_millis, |slot, at| {
            *slot = Some(value);
            *at = expires;
        });
        true
    }

    /// Removes all keys for which `is_kept` returns false.
    pub(crate) fn clear_but(&self, is_kept: impl Fn(&[u8]) -> bool) {
        for shard in &self.keys.0.shards {
            let cells = shard.read().cells();
            for cell in cells.iter().filter(|cell| !is_kept(&cell.key)) {
                self.remove(&cell.key, 0);
            }
        }
    }
}
