//! The keys of one shard.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tamis_commands::allocation_bytes;
use triomphe::Arc;

use super::cell::Cell;

/// Cells by their keys: a pointer and a byte for each place.
#[derive(Debug, Default)]
pub(super) struct Table(HashTable<Arc<Cell>>);

/// A table of fewer places stays as it is when keys go.
const SMALL_PLACES: usize = 8;

impl Table {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Cell>> {
        self.0.iter()
    }

    /// Returns all cells, to look at them without the table.
    pub fn cells(&self) -> Vec<Arc<Cell>> {
        self.0.iter().cloned().collect()
    }

    /// Returns the memory of the places, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        allocation_bytes(self.0.allocation_size())
    }

    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<&Arc<Cell>> {
        self.0.find(hash, |cell| *cell.key == *key)
    }

    /// Inserts the cell of a key that is not there; returns by how many bytes the table has grown.
    pub fn insert(&mut self, hash: u64, cell: Arc<Cell>, hasher: &RandomState) -> i64 {
        let before = self.heap_bytes();
        self.0.insert_unique(hash, cell, |cell| hasher.hash_one(&cell.key[..]));
        self.heap_bytes() as i64 - before as i64
    }

    /// Removes a cell; returns by how many bytes the table has grown, which is no more than 0. `None` if it is not there.
    pub fn remove(&mut self, hash: u64, cell: &Arc<Cell>, hasher: &RandomState) -> Option<i64> {
        let before = self.heap_bytes();
        self.0.find_entry(hash, |found| Arc::ptr_eq(found, cell)).ok()?.remove();
        let len = self.0.len();
        if len == 0 || self.0.capacity() > SMALL_PLACES && len < self.0.capacity() / 8 {
            self.0.shrink_to(len * 2, |cell| hasher.hash_one(&cell.key[..]));
        }
        Some(self.heap_bytes() as i64 - before as i64)
    }
}
