//! Keys and their values, shared between threads.
//!
//! ```text
//! gate ──▶ shard of the key ──▶ cell ──▶ value
//! shared    map, locked for      locked shared by readers and by inserts that only set bits,
//!           a lookup             exclusively by everything else
//! ```
//!
//! Every thread takes the locks in this order and holds none of them across an await. A command
//! that must see several keys at once (a transaction, `RENAME`, `FLUSHALL`) takes the
//! [gate](Keyspace::exclusive) exclusively, so no other command runs meanwhile.

mod access;
mod cell;
mod entry;
mod freeing;
mod leases;
mod table;
mod writing;

use std::hash::BuildHasher as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use tamis_commands::Value;
use triomphe::Arc;

pub use access::{ExclusiveAccess, KeyspaceRef, SharedAccess};
use cell::{Cell, State};
pub(crate) use entry::Entry;
pub use freeing::Cleared;
use freeing::Freeing;
use leases::Leases;
use table::Table;
use writing::Writing;

/// All keys of a server.
#[derive(Debug)]
pub struct Keyspace {
    gate: RwLock<()>,
    shards: Box<[Shard]>,
    hasher: RandomState,
    /// Memory of the keys and their values, in bytes, as the allocator counts it.
    memory_bytes: AtomicI64,
    /// The number of keys with an expiry time.
    expiring: AtomicI64,
    /// Counts changes. `WATCH` compares it to find keys that have changed.
    changes: AtomicU64,
    /// Counts how often all keys were removed at once. It changes only under exclusive access.
    clears: AtomicU64,
    freeing: Freeing,
    leases: Leases,
    expired: OnceLock<Expired>,
}

/// Called with each key that is removed because it has expired, under the lock of the key. The
/// callback logs the removal, so that a replay removes the key at the same place among the changes.
struct Expired(Box<OnExpired>);

type OnExpired = dyn Fn(&[u8]) + Send + Sync;

impl std::fmt::Debug for Expired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Expired")
    }
}

type Shard = RwLock<Table>;

/// The number of shards. Each has its own lock, so a lookup rarely waits for another one. `SCAN`
/// answers with whole shards.
const SHARDS: usize = 1024;

/// The maximum table memory for one key, in bytes. A place takes a pointer and a control byte, and
/// a table has up to twice as many places as keys.
const PLACE_BYTES: usize = 2 * (size_of::<usize>() + 1);

/// Returns the number of the shard for a key hash.
fn shard_of(hash: u64) -> usize {
    // The middle bits: the table uses the low bits for the place and the highest bits to
    // distinguish keys.
    (hash >> 40) as usize % SHARDS
}

impl Keyspace {
    /// Creates an empty keyspace.
    #[must_use]
    pub fn new() -> Self {
        let hasher = RandomState::default();
        let shards = (0..SHARDS).map(|_| RwLock::new(Table::default()));
        Self {
            gate: RwLock::new(()),
            shards: shards.collect(),
            hasher,
            memory_bytes: AtomicI64::new(0),
            expiring: AtomicI64::new(0),
            changes: AtomicU64::new(1),
            clears: AtomicU64::new(0),
            freeing: Freeing::default(),
            leases: Leases::new(),
            expired: OnceLock::new(),
        }
    }

    /// Sets the callback for each key that is removed because it has expired. The callback runs
    /// under the lock of the key. Only the first call has an effect.
    pub(crate) fn on_expired(&self, run: impl Fn(&[u8]) + Send + Sync + 'static) {
        _ = self.expired.set(Expired(Box::new(run)));
    }

    /// Returns shared access to the keys. Waits while a command has exclusive access.
    #[must_use]
    pub fn shared(&self) -> SharedAccess<'_> {
        SharedAccess::new(self, self.gate.read())
    }

    /// Returns exclusive access to all keys. Waits until no other command has access.
    #[must_use]
    pub fn exclusive(&self) -> ExclusiveAccess<'_> {
        ExclusiveAccess::new(self, self.gate.write())
    }

    /// Returns shared access once `key` has no read lease. Waits while a command has exclusive
    /// access.
    pub(crate) async fn shared_to_change(&self, key: &[u8]) -> SharedAccess<'_> {
        // The waiter lives until this function returns, so no new lease of the key begins before
        // that.
        let mut waiter = self.leases.waiter();
        loop {
            let keys = self.shared();
            if !keys.is_leased(key) {
                return keys;
            }
            drop(keys);
            waiter.until_free(|leased| leased == key).await;
        }
    }

    /// Returns exclusive access once no key that `is_meant` accepts has a read lease. Waits until
    /// no other command has access.
    pub(crate) async fn exclusive_to_change(
        &self,
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> ExclusiveAccess<'_> {
        let mut waiter = self.leases.waiter();
        loop {
            let keys = self.exclusive();
            if !self.leases.is_leased(&is_meant) {
                return keys;
            }
            drop(keys);
            waiter.until_free(&is_meant).await;
        }
    }

    /// Tests whether a writer waits for the lease of a key.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self, key: &[u8]) -> bool {
        self.leases.is_awaited(key)
    }

    /// Returns the memory of all keys and their values, in bytes. This is the size that the
    /// allocator provides, including headers, rounding and the tables of keys.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the memory of removed keys that a background thread still frees, in bytes.
    #[must_use]
    pub fn freeing_bytes(&self) -> u64 {
        self.freeing.bytes()
    }

    /// Returns the change counter, which grows by one with each change.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Returns the number of keys with an expiry time, including expired keys that are not swept
    /// yet.
    #[must_use]
    pub fn expiring(&self) -> u64 {
        self.expiring.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the memory of a key, in bytes: its value, its cell and its share of the table.
    /// `None` if the key does not exist.
    #[must_use]
    pub fn memory_of(&self, key: &[u8], now_millis: u64) -> Option<u64> {
        let (shard, hash) = self.place(key);
        let (cell, share) = {
            let table = shard.read();
            (table.find(hash, key)?.clone(), table.heap_bytes() / table.len() as u64)
        };
        let value = cell.state.read().value(now_millis).map(Value::heap_bytes)?;
        Some(value + cell.heap_bytes() + share)
    }

    /// Returns the shard and the hash of a key.
    fn place(&self, key: &[u8]) -> (&Shard, u64) {
        let hash = self.hasher.hash_one(key);
        (&self.shards[shard_of(hash)], hash)
    }

    fn cell(&self, key: &[u8]) -> Option<Arc<Cell>> {
        let (shard, hash) = self.place(key);
        shard.read().find(hash, key).cloned()
    }

    fn cell_or_new(&self, key: &[u8]) -> Arc<Cell> {
        let (shard, hash) = self.place(key);
        if let Some(cell) = shard.read().find(hash, key) {
            return cell.clone();
        }
        let (cell, grown) = shard.write().find_or_insert(hash, key, &self.hasher);
        self.count_bytes(grown);
        cell
    }

    /// Returns the hash of a key that does not exist, for [`reserve`](Self::reserve); `None` if it
    /// exists.
    pub(crate) fn hash_of_new(&self, key: &[u8]) -> Option<u64> {
        let (shard, hash) = self.place(key);
        shard.read().find(hash, key).is_none().then_some(hash)
    }

    /// Reserves places in the tables for keys with these hashes. A transaction that inserts all of
    /// them then does not rehash other keys while all clients wait. Does nothing if the places take
    /// more than `max_bytes`. [`shrink`](Self::shrink) frees unused places.
    pub(crate) fn reserve(&self, mut hashes: Vec<u64>, max_bytes: u64) {
        // The same key may occur several times.
        hashes.sort_unstable();
        hashes.dedup();
        if (hashes.len() * PLACE_BYTES) as u64 > max_bytes {
            return;
        }
        let mut new_keys = vec![0; SHARDS];
        hashes.iter().for_each(|hash| new_keys[shard_of(*hash)] += 1);
        for (shard, keys) in self.shards.iter().zip(new_keys).filter(|(_, keys)| *keys > 0) {
            let _keys = self.shared();
            let grown = shard.write().reserve(keys, &self.hasher);
            self.count_bytes(grown);
        }
    }

    /// Frees places of tables that are mostly empty.
    pub(crate) fn shrink(&self) {
        for shard in &self.shards {
            let _keys = self.shared();
            let grown = shard.write().shrink(&self.hasher);
            self.count_bytes(grown);
        }
    }

    /// Removes a cell that no longer has a value.
    fn remove_cell(&self, cell: &Arc<Cell>) {
        let (shard, hash) = self.place(&cell.key);
        let mut table = shard.write();
        if let Some(grown) = table.remove(hash, cell, &self.hasher) {
            self.count_bytes(grown - cell.heap_bytes() as i64);
        }
    }

    fn count_bytes(&self, more: i64) {
        if more != 0 {
            self.memory_bytes.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn note_change(&self, cell: &Cell) {
        cell.set_version(self.changes.fetch_add(1, Ordering::Relaxed));
    }

    /// Runs a function on the value of a key under a shared lock.
    fn read<R>(&self, key: &[u8], now_millis: u64, run: impl FnOnce(Option<&Value>) -> R) -> R {
        match self.cell(key) {
            Some(cell) => cell.state.read().with_value(now_millis, run),
            None => run(None),
        }
    }

    /// Runs a function on the stored value of a key and its expiry time under an exclusive lock, to
    /// replace, move or remove it. Removes the key if no value is left.
    fn write<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> R,
    ) -> R {
        self.write_kept(key, now_millis, |value, expires| (run(value, expires), true))
    }

    /// Runs a function on the value of a key and its expiry time under an exclusive lock. An empty
    /// filter is built first. `run` also returns whether it has changed anything. Removes the key
    /// if no value is left.
    fn write_if<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> (R, bool),
    ) -> R {
        self.write_kept(key, now_millis, |value, expires| {
            let empty = value.as_mut().and_then(Value::build);
            let (result, has_changed) = run(value, expires);
            if empty.is_some() && !has_changed {
                *value = empty;
            }
            (result, has_changed)
        })
    }

    /// Runs a function on the stored value of a key and its expiry time under an exclusive lock.
    /// `run` also returns whether it has changed anything.
    fn write_kept<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> (R, bool),
    ) -> R {
        loop {
            let cell = self.cell_or_new(key);
            let Some(mut writing) = Writing::begin(self, &cell) else { continue };
            if writing.state().is_expired(now_millis) {
                *writing.state() = State::default();
                if let Some(expired) = self.expired.get() {
                    (expired.0)(key);
                }
            }
            let state = writing.state();
            let mut expires_millis = state.expires_millis();
            let (result, has_changed) = run(&mut state.value, &mut expires_millis);
            state.set_expires_millis(expires_millis);
            if has_changed {
                self.note_change(&cell);
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
    /// Returns the number of shards.
    pub(crate) fn parts(&self) -> usize {
        SHARDS
    }

    /// Returns the keys of one shard, to read their values one after the other. A key that is added
    /// or removed meanwhile may be missing or included.
    pub(crate) fn entries(&self, part: usize) -> impl Iterator<Item = Entry<'_>> {
        // Read before the cells: a cell added after a clear then counts as cleared and may be
        // missing.
        let clears = self.clears();
        let cells = self.shards[part].read().cells();
        cells.into_iter().map(move |cell| {
            let key = (*cell.key).into();
            Entry { keyspace: self, key, cell, clears }
        })
    }

    fn clears(&self) -> u64 {
        // `Acquire` pairs with the `Release` in `ExclusiveAccess::clear`.
        self.clears.load(Ordering::Acquire)
    }

    /// Measures the filters of one shard. A writer of one of them waits for tens of microseconds at
    /// most.
    pub(crate) fn measure(&self, part: usize, now_millis: u64) {
        let clears = self.clears();
        let cells = self.shards[part % SHARDS].read().cells();
        cells.iter().for_each(|cell| self.measure_cell(cell, clears, now_millis));
    }

    /// Measures a filter. Does nothing if all keys were removed since the caller read `clears`: the
    /// memory of the filter is no longer counted then.
    fn measure_cell(&self, cell: &Cell, clears: u64, now_millis: u64) {
        // Recursive: the caller may have shared access already while another thread waits for
        // exclusive access.
        let _keys = SharedAccess::new(self, self.gate.read_recursive());
        if self.clears() == clears {
            self.count_bytes(cell.measure(now_millis));
        }
    }

    /// Calls `each` with the key and the used share of the capacity of every filter in one shard.
    /// Measures the filters that have no measurement yet.
    pub(crate) fn each_gauge(
        &self,
        part: usize,
        now_millis: u64,
        mut each: impl FnMut(&[u8], f32),
    ) {
        let mut new: Vec<Arc<Cell>> = Vec::new();
        let clears = self.clears();
        for cell in self.shards[part].read().iter() {
            match cell.used() {
                Some(used) if used >= 0.0 => each(&cell.key, used),
                Some(_) => {}
                None => new.push(cell.clone()),
            }
        }
        for cell in new {
            self.measure_cell(&cell, clears, now_millis);
            if let Some(used) = cell.used().filter(|used| *used >= 0.0) {
                each(&cell.key, used);
            }
        }
    }

    /// Removes the expired keys of one shard and returns how many there were.
    pub fn sweep(&self, part: usize, now_millis: u64) -> usize {
        let keys = self.shared();
        let expired: Vec<Arc<Cell>> = {
            let shard = self.shards[part % SHARDS].read();
            // A key that another thread has locked waits for the next sweep.
            let is_expired =
                |cell: &Cell| cell.state.try_read().is_some_and(|it| it.is_expired(now_millis));
            shard.iter().filter(|cell| is_expired(cell)).cloned().collect()
        };
        // A key with a read lease waits too.
        let free = expired.iter().filter(|cell| !keys.is_leased(&cell.key));
        // The write finds the key expired and removes it.
        free.map(|cell| keys.write(&cell.key, now_millis, |_| ())).count()
    }
}

#[cfg(test)]
mod tests;
