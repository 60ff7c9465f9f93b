//! The structures that hold integers. A store starts as a hash table, and becomes a compressed set
//! if the integers lie close together. If there are many integers in a range, the store becomes a
//! bitmap.
//!
//! A hash table is fastest for scattered integers in any order. In a compressed set, inserting a
//! scattered integer would move megabytes of the index. In a compressed set, close integers need
//! only a fraction of the memory. A bitmap is several times as fast as the other structures.

use tamis::{Answers, CompressedSet, DenseSet, OutOfMemory};

use crate::commands::ints::memory::Memory;
use crate::commands::ints::scattered::Scattered;

/// A set of integers in one of three structures.
pub enum IntStore {
    /// A hash table for integers that lie far apart.
    Scattered(Scattered),
    /// A compressed set for close integers, and its memory in bytes at the last count. Counting the
    /// memory takes a long time.
    Compressed(CompressedSet, u64),
    /// A bitmap for any integers of a range.
    Dense(DenseSet),
}

impl IntStore {
    /// Creates an empty hash table within the memory limit.
    pub fn new(memory: Memory) -> Self {
        IntStore::Scattered(Scattered::new(memory.bytes().unwrap_or(u64::MAX)))
    }

    /// Inserts values in order, and sets the bits in `new` of the new values. If the store is a
    /// bitmap, its range must contain the values.
    ///
    /// # Errors
    ///
    /// Returns an error if the values exceed the memory. After an error, the store may hold some of
    /// the values.
    pub fn insert_each(&mut self, values: &[u64], new: &mut Answers) -> Result<(), OutOfMemory> {
        match self {
            IntStore::Scattered(set) => set.insert_each(values, new)?,
            IntStore::Compressed(set, _) => {
                new.fill_with(values.len(), |i| set.insert(values[i]));
            }
            IntStore::Dense(set) => {
                set.insert_each(values, new).expect("the caller passes integers of the range");
            }
        }
        Ok(())
    }

    /// Removes `value`. Returns true if the store held the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory to record the removal cannot be allocated.
    pub fn remove(&mut self, value: u64) -> Result<bool, OutOfMemory> {
        match self {
            IntStore::Scattered(set) => set.remove(value),
            IntStore::Compressed(set, _) => Ok(set.remove(value)),
            IntStore::Dense(set) => Ok(set.remove(value)),
        }
    }

    /// Tests whether the set holds `value`.
    #[inline]
    pub fn contains(&self, value: u64) -> bool {
        match self {
            IntStore::Scattered(set) => set.contains(value),
            IntStore::Compressed(set, _) => set.contains(value),
            IntStore::Dense(set) => set.contains(value),
        }
    }

    /// Calls `visit` with every integer, in any order.
    ///
    /// # Errors
    ///
    /// Returns the errors of `visit`.
    pub fn for_each<E>(&self, visit: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        match self {
            IntStore::Scattered(set) => set.iter().try_for_each(visit),
            IntStore::Compressed(set, _) => set.iter().try_for_each(visit),
            IntStore::Dense(set) => set.iter().try_for_each(visit),
        }
    }

    /// Calls `visit` with every integer, ascending, and consumes the set.
    ///
    /// # Errors
    ///
    /// Returns the errors of `visit`.
    pub fn into_sorted<E>(self, visit: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        match self {
            IntStore::Scattered(set) => set.into_sorted().into_iter().try_for_each(visit),
            IntStore::Compressed(set, _) => set.into_iter().try_for_each(visit),
            IntStore::Dense(set) => set.iter().try_for_each(visit),
        }
    }

    /// Converts the set to a compressed set.
    pub fn into_compressed(self) -> CompressedSet {
        match self {
            IntStore::Scattered(set) => set.into_sorted().into_iter().collect(),
            IntStore::Compressed(set, _) => set,
            IntStore::Dense(set) => set.to_compressed(),
        }
    }

    /// Tests whether the set is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            IntStore::Scattered(set) => set.len() == 0,
            IntStore::Compressed(set, _) => set.is_empty(),
            IntStore::Dense(set) => set.is_empty(),
        }
    }

    /// Tests whether the set is a bitmap.
    pub fn is_dense(&self) -> bool {
        matches!(self, IntStore::Dense(_))
    }

    /// Returns the approximate memory of the set in bytes. For a compressed set, returns the result
    /// of the last [`count_memory`](Self::count_memory).
    pub fn memory_bytes(&self) -> u64 {
        match self {
            IntStore::Scattered(set) => set.memory_bytes(),
            IntStore::Compressed(_, bytes) => *bytes,
            IntStore::Dense(set) => set.memory_bytes(),
        }
    }

    /// Recomputes the memory of the set.
    pub fn count_memory(&mut self) {
        if let IntStore::Compressed(set, bytes) = self {
            // Growing lists leave gaps in the memory. The gaps are about as large as the lists.
            *bytes = set.memory_bytes() * 2;
        }
    }

    /// Sets the memory limit for later insertions. The limit affects only a hash table.
    pub fn limit(&mut self, memory: Memory) {
        if let IntStore::Scattered(set) = self {
            set.limit(memory.bytes().unwrap_or(u64::MAX));
        }
    }

    /// Compresses a set of scattered integers if the compression saves half of the memory, and if
    /// the memory limit allows the conversion.
    pub fn compress_if_smaller(&mut self, memory: Memory) {
        let IntStore::Scattered(set) = self else { return };
        // A compressed set takes 2 bytes per value, and about a hundred bytes per non-empty stretch
        // of 65 536 integers. The factors in the code are twice these numbers of bytes, because
        // lists that grow leave gaps in the memory.
        let compressed_bytes = set.len() * 4 + set.stretches() * 200;
        let is_smaller = compressed_bytes * 2 <= set.memory_bytes();
        // During the conversion, a sorted list holds the integers.
        if is_smaller && memory.allows(set.len() * 8 + compressed_bytes) {
            let empty = IntStore::new(memory);
            let set = std::mem::replace(self, empty).into_compressed();
            *self = IntStore::Compressed(set, 0);
            self.count_memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(values: impl Iterator<Item = u64>) -> IntStore {
        let mut set = IntStore::new(Memory::new(None).unwrap());
        let values: Vec<u64> = values.collect();
        let mut new = Answers::new();
        set.insert_each(&values, &mut new).unwrap();
        assert_eq!(new.count_ones(), values.len());
        set.compress_if_smaller(Memory::new(None).unwrap());
        set
    }

    /// Returns the integers that `visit_all` passes to its argument.
    fn collected(
        visit_all: impl FnOnce(&mut dyn FnMut(u64) -> Result<(), ()>) -> Result<(), ()>,
    ) -> Vec<u64> {
        let mut values = Vec::new();
        visit_all(&mut |value| {
            values.push(value);
            Ok(())
        })
        .unwrap();
        values
    }

    #[test]
    fn close_integers_are_compressed_and_scattered_ones_hashed() {
        let close = set((0..300_000).map(|i| 1_800_000_000_000_000_000 + i * 3));
        assert!(matches!(close, IntStore::Compressed(..)));
        let scattered = set((1..300_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert!(matches!(scattered, IntStore::Scattered(_)));
        for set in [close, scattered] {
            let mut values = collected(|visit| set.for_each(visit));
            values.sort_unstable();
            assert!(values.iter().all(|&value| set.contains(value)));
            assert!(collected(|visit| set.into_sorted(visit)) == values);
        }
    }

    proptest! {
        #[test]
        fn integers_come_and_go_as_in_a_slow_set(
            steps in prop::collection::vec((any::<bool>(), prop::collection::vec(0_u64..50, 0..30)), 0..20),
        ) {
            let mut set = IntStore::new(Memory::new(None).unwrap());
            let mut model = BTreeSet::new();
            for (inserts, values) in steps {
                if inserts {
                    let mut new = Answers::new();
                    set.insert_each(&values, &mut new).unwrap();
                    for (&value, is_new) in values.iter().zip(new.iter()) {
                        prop_assert_eq!(is_new, model.insert(value));
                    }
                } else {
                    for value in values {
                        prop_assert_eq!(set.remove(value).unwrap(), model.remove(&value));
                    }
                }
                prop_assert!((0..50).all(|value| set.contains(value) == model.contains(&value)));
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
            prop_assert!(collected(|visit| set.into_sorted(visit)).into_iter().eq(model));
        }
    }
}
