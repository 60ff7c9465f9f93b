//! The hash table of one shard.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tamis_commands::allocation_bytes;
use triomphe::Arc;

use crate::keyspace::cell::Cell;

/// A hash table of cells, indexed by their keys. Each place of the table takes a pointer and a
/// control byte.
#[derive(Debug, Default)]
pub(super) struct Table(HashTable<Arc<Cell>>);

/// A table with at most this number of places does not shrink until the table is empty.
const SMALL_PLACES: usize = 8;

impl Table {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Cell>> {
        self.0.iter()
    }

    /// Returns all cells. The caller can read the returned cells without the lock of the table.
    pub fn cells(&self) -> Vec<Arc<Cell>> {
        self.0.iter().cloned().collect()
    }

    /// Returns the memory of the places of the table, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        allocation_bytes(self.0.allocation_size())
    }

    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<&Arc<Cell>> {
        self.0.find(hash, |cell| *cell.key == *key)
    }

    /// Returns the cell of a key, and the number of bytes by which the cells and the table have
    /// grown. Creates the cell if the key has no cell.
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        key: &[u8],
        hasher: &RandomState,
    ) -> (Arc<Cell>, i64) {
        let rehash = |cell: &Arc<Cell>| hasher.hash_one(&cell.key[..]);
        let before = self.heap_bytes();
        match self.0.entry(hash, |cell| *cell.key == *key, rehash) {
            Entry::Occupied(found) => (found.get().clone(), 0),
            Entry::Vacant(place) => {
                let cell = Arc::new(Cell::new(key));
                place.insert(cell.clone());
                let bytes = cell.heap_bytes() as i64;
                (cell, self.grown_since(before) + bytes)
            }
        }
    }

    /// Reserves places for `keys` additional keys. Returns the number of bytes by which the table
    /// has grown.
    pub fn reserve(&mut self, keys: usize, hasher: &RandomState) -> i64 {
        let before = self.heap_bytes();
        self.0.reserve(keys, |cell| hasher.hash_one(&cell.key[..]));
        self.grown_since(before)
    }

    /// Removes a cell. Returns the number of bytes by which the table has grown, which is 0 or
    /// negative. Returns `None` if the table does not contain the cell.
    pub fn remove(&mut self, hash: u64, cell: &Arc<Cell>, hasher: &RandomState) -> Option<i64> {
        self.0.find_entry(hash, |found| Arc::ptr_eq(found, cell)).ok()?.remove();
        Some(self.shrink(hasher))
    }

    /// Frees places if most places are free. Returns the number of bytes by which the table has
    /// grown, which is 0 or negative.
    pub fn shrink(&mut self, hasher: &RandomState) -> i64 {
        let before = self.heap_bytes();
        let (len, places) = (self.0.len(), self.0.capacity());
        if len == 0 || places > SMALL_PLACES && len < places / 8 {
            self.0.shrink_to(len * 2, |cell| hasher.hash_one(&cell.key[..]));
        }
        self.grown_since(before)
    }

    fn grown_since(&self, before: u64) -> i64 {
        self.heap_bytes() as i64 - before as i64
    }
}
