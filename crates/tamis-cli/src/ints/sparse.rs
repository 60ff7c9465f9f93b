//! A set for few integers of any size: hashed first, compressed if they lie close together.
//!
//! Scattered integers in any order are quickest in a hash set and would each move megabytes of a
//! compressed set's index; close ones take a fraction of the memory compressed.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

use tamis::CompressedSet;

/// Few integers, or close ones.
pub enum SparseSet {
    /// Scattered integers.
    Hashed(HashSet<u64, Mixed>),
    /// Close ones.
    Compressed(CompressedSet),
}

impl Default for SparseSet {
    fn default() -> Self {
        SparseSet::Hashed(HashSet::default())
    }
}

impl SparseSet {
    /// Inserts `value`; true if it is new.
    #[inline]
    pub fn insert(&mut self, value: u64) -> bool {
        match self {
            SparseSet::Hashed(set) => set.insert(value),
            SparseSet::Compressed(set) => set.insert(value),
        }
    }

    /// Removes `value`; true if it was in.
    pub fn remove(&mut self, value: u64) -> bool {
        match self {
            SparseSet::Hashed(set) => set.remove(&value),
            SparseSet::Compressed(set) => set.remove(value),
        }
    }

    /// Tells whether `value` is in.
    #[inline]
    pub fn contains(&self, value: u64) -> bool {
        match self {
            SparseSet::Hashed(set) => set.contains(&value),
            SparseSet::Compressed(set) => set.contains(value),
        }
    }

    /// Calls `visit` with every integer, in any order.
    pub fn for_each<E>(&self, visit: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        match self {
            SparseSet::Hashed(set) => set.iter().copied().try_for_each(visit),
            SparseSet::Compressed(set) => set.iter().try_for_each(visit),
        }
    }

    /// Returns the integers, ascending.
    pub fn into_sorted(self) -> Box<dyn Iterator<Item = u64>> {
        match self {
            SparseSet::Hashed(set) => {
                let mut values: Vec<u64> = set.into_iter().collect();
                values.sort_unstable();
                Box::new(values.into_iter())
            }
            SparseSet::Compressed(set) => Box::new(set.into_iter()),
        }
    }

    /// Returns the same integers compressed.
    pub fn into_compressed(self) -> CompressedSet {
        match self {
            SparseSet::Compressed(set) => set,
            hashed => hashed.into_sorted().collect(),
        }
    }

    /// Tells whether no integer is in.
    pub fn is_empty(&self) -> bool {
        match self {
            SparseSet::Hashed(set) => set.is_empty(),
            SparseSet::Compressed(set) => set.is_empty(),
        }
    }

    /// Returns about how many bytes the set takes.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            // One control byte a slot beside the value, and an eighth of the slots stay free.
            SparseSet::Hashed(set) => set.capacity() as u64 * 9 * 8 / 7,
            SparseSet::Compressed(set) => set.memory_bytes(),
        }
    }

    /// Compresses a hash set whose integers lie so close that it saves half of the memory.
    pub fn compress_if_smaller(&mut self) {
        let SparseSet::Hashed(set) = self else { return };
        let stretches: HashSet<u64, Mixed> = set.iter().map(|value| value >> 16).collect();
        // 2 bytes a value, some hundred for each stretch of 65 536 that holds one.
        let compressed_bytes = set.len() as u64 * 2 + stretches.len() as u64 * 100;
        drop(stretches);
        if compressed_bytes * 2 <= self.memory_bytes() {
            *self = SparseSet::Compressed(std::mem::take(self).into_compressed());
        }
    }
}

/// Hashes integers by one multiplication with a secret of this process, which is several times as
/// fast as the default and does not let input pile up in one place.
#[derive(Clone)]
pub struct Mixed {
    secret: u64,
}

impl Default for Mixed {
    fn default() -> Self {
        Self { secret: RandomState::new().hash_one(0_u64) }
    }
}

impl BuildHasher for Mixed {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer { state: self.secret }
    }
}

pub struct Mixer {
    state: u64,
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        // Both halves of the full product, so that every bit of the value reaches every bit.
        let product = u128::from(value ^ self.state) * 0x9e37_79b9_7f4a_7c15;
        self.state = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: impl Iterator<Item = u64>) -> SparseSet {
        let mut set = SparseSet::default();
        for value in values {
            assert!(set.insert(value), "{value}");
        }
        set.compress_if_smaller();
        set
    }

    #[test]
    fn close_integers_are_compressed_and_scattered_ones_hashed() {
        let close = set((0..300_000).map(|i| 1_800_000_000_000_000_000 + i * 3));
        assert!(matches!(close, SparseSet::Compressed(_)));
        let scattered = set((1..300_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert!(matches!(scattered, SparseSet::Hashed(_)));
        for set in [close, scattered] {
            let mut values = Vec::new();
            let collected: Result<(), ()> = set.for_each(|value| {
                values.push(value);
                Ok(())
            });
            collected.unwrap();
            values.sort_unstable();
            assert!(values.iter().all(|&value| set.contains(value)));
            assert!(set.into_sorted().eq(values));
        }
    }
}
