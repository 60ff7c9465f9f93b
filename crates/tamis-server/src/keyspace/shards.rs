//! The shards of a keyspace: tables of keys, each with its own lock.

use std::hash::BuildHasher as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use triomphe::Arc;

use crate::keyspace::cell::Cell;
use crate::keyspace::freeing::BackgroundFreeing;
use crate::keyspace::leases::Leases;
use crate::keyspace::table::Table;

/// All keys of a server.
#[derive(Debug)]
pub struct Keyspace {
    pub(super) gate: RwLock<()>,
    pub(super) shards: Box<[Shard]>,
    pub(super) hasher: RandomState,
    /// The memory that the allocator uses for the keys and their values, in bytes.
    pub(super) memory_bytes: AtomicI64,
    /// The number of keys with an expiry time.
    pub(super) expiring: AtomicI64,
    /// Counts the changes. `WATCH` uses the counter to find keys that have changed.
    pub(super) changes: AtomicU64,
    /// Counts how often all keys were removed together. The counter changes only under exclusive
    /// access.
    pub(super) clears: AtomicU64,
    pub(super) freeing: BackgroundFreeing,
    pub(super) leases: Leases,
    pub(super) expired: OnceLock<ExpiryCallback>,
}

/// The function that the keyspace calls for each key that is removed because the key has expired.
/// The call holds the lock of the key. The callback logs the removal, so that a replay of the log
/// removes the key at the same position among the changes.
pub(super) struct ExpiryCallback(pub(super) Box<OnExpired>);

pub(super) type OnExpired = dyn Fn(&[u8]) + Send + Sync;

impl std::fmt::Debug for ExpiryCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExpiryCallback")
    }
}

pub(super) type Shard = RwLock<Table>;

/// The number of shards. Each shard has its own lock, so two lookups rarely wait for the same lock.
/// `SCAN` returns whole shards. Tests use fewer shards than a server, because the model tests
/// create a keyspace for each of about 100,000 crashes.
pub(super) const SHARDS: usize = if cfg!(test) { 16 } else { 1024 };

/// The maximum table memory for one key, in bytes. A place in a hash table takes a pointer and a
/// control byte. A table has at most twice as many places as keys.
const PLACE_BYTES: usize = 2 * (size_of::<usize>() + 1);

/// Returns the index of the shard for the hash of a key.
fn shard_of(hash: u64) -> usize {
    // Use the middle bits of the hash. The hash table uses the low bits of the hash for the place
    // and the highest bits to distinguish keys.
    (hash >> 40) as usize % SHARDS
}

impl Keyspace {
    /// Creates an empty keyspace.
    #[must_use]
    pub fn new() -> Self {
        Self {
            gate: RwLock::new(()),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            hasher: RandomState::default(),
            memory_bytes: AtomicI64::new(0),
            expiring: AtomicI64::new(0),
            changes: AtomicU64::new(1),
            clears: AtomicU64::new(0),
            freeing: BackgroundFreeing::default(),
            leases: Leases::default(),
            expired: OnceLock::new(),
        }
    }

    /// Sets the callback for each key that is removed because the key has expired. The callback
    /// runs under the lock of the key. Only the first call of this method has an effect.
    pub(crate) fn on_expired(&self, run: impl Fn(&[u8]) + Send + Sync + 'static) {
        _ = self.expired.set(ExpiryCallback(Box::new(run)));
    }

    /// Tests whether a writer waits for the lease of a key.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self, key: &[u8]) -> bool {
        self.leases.is_awaited(key)
    }

    /// Returns the memory of all keys and their values, in bytes. The number is the size that the
    /// allocator uses, including headers, rounding and the tables of keys.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the memory of removed keys that a background thread must still free, in bytes.
    #[must_use]
    pub fn freeing_bytes(&self) -> u64 {
        self.freeing.bytes()
    }

    /// Returns the counter of changes to all keys. Each change increments the counter by one.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Returns the number of keys with an expiry time. The number includes expired keys that are
    /// not yet removed.
    #[must_use]
    pub fn expiring(&self) -> u64 {
        self.expiring.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the shard and the hash of a key.
    pub(super) fn place(&self, key: &[u8]) -> (&Shard, u64) {
        let hash = self.hasher.hash_one(key);
        (&self.shards[shard_of(hash)], hash)
    }

    pub(super) fn cell(&self, key: &[u8]) -> Option<Arc<Cell>> {
        let (shard, hash) = self.place(key);
        shard.read().find(hash, key).cloned()
    }

    pub(super) fn cell_or_new(&self, key: &[u8]) -> Arc<Cell> {
        let (shard, hash) = self.place(key);
        if let Some(cell) = shard.read().find(hash, key) {
            return cell.clone();
        }
        let (cell, grown) = shard.write().find_or_insert(hash, key, &self.hasher);
        self.count_bytes(grown);
        cell
    }

    /// Returns the hash of a key that does not exist, for [`reserve`](Self::reserve). Returns
    /// `None` if the key exists.
    pub(crate) fn hash_of_new(&self, key: &[u8]) -> Option<u64> {
        let (shard, hash) = self.place(key);
        shard.read().find(hash, key).is_none().then_some(hash)
    }

    /// Reserves places in the tables for keys with these hashes. With reserved places, a
    /// transaction that inserts all these keys does not rehash other keys while all clients wait.
    /// Does nothing if the places take more than `max_bytes` bytes. [`shrink`](Self::shrink) frees
    /// the places that remain unused.
    pub(crate) fn reserve(&self, mut hashes: Vec<u64>, max_bytes: u64) {
        // The list may contain the same key several times.
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

    /// Shrinks the tables that are mostly empty.
    pub(crate) fn shrink(&self) {
        for shard in &self.shards {
            let _keys = self.shared();
            let grown = shard.write().shrink(&self.hasher);
            self.count_bytes(grown);
        }
    }

    /// Removes a cell that no longer has a value.
    pub(super) fn remove_cell(&self, cell: &Arc<Cell>) {
        let (shard, hash) = self.place(&cell.key);
        let mut table = shard.write();
        if let Some(grown) = table.remove(hash, cell, &self.hasher) {
            self.count_bytes(grown - cell.heap_bytes() as i64);
        }
    }

    pub(super) fn count_bytes(&self, more: i64) {
        if more != 0 {
            self.memory_bytes.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(super) fn note_change(&self, cell: &Cell) {
        cell.set_version(self.changes.fetch_add(1, Ordering::Relaxed));
    }

    /// Returns the number of shards.
    pub(crate) fn shard_count(&self) -> usize {
        SHARDS
    }

    pub(super) fn clears(&self) -> u64 {
        // `Acquire` pairs with the `Release` in `ExclusiveAccess::clear`.
        self.clears.load(Ordering::Acquire)
    }
}

impl Default for Keyspace {
    fn default() -> Self {
        Self::new()
    }
}
