//! A set for few integers of any size: a hash table at first, compressed if the integers lie close
//! together.
//!
//! A hash table is fastest for scattered integers in any order. Inserting one of them into a
//! compressed set would move megabytes of its index. Close integers take a fraction of the memory
//! when they are compressed.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use tamis::{Answers, CompressedSet, DigestSet, OutOfMemory};

use crate::commands::ints::memory::Memory;

/// A set of few integers, or of integers that lie close together.
pub enum SparseSet {
    /// Scattered integers.
    Scattered(Scattered),
    /// Close integers, and their memory in bytes at the last count. Counting the memory takes long.
    Compressed(CompressedSet, u64),
}

/// A hash table of integers. The hash is reversible, so it stores only the hashes and computes the
/// integers from them.
///
/// A table never removes an entry. Removed integers are in a second layer, integers that were
/// inserted again after a removal are in a third layer, and so on. Each layer is a subset of the
/// one before. An integer is in the set if an odd number of layers hold it. A command removes an
/// integer at most once per file, so there are few layers.
pub struct Scattered {
    layers: Vec<DigestSet<u64>>,
    secret: u64,
    len: u64,
    max_bytes: u64,
}

/// The number of integers that are inserted into a table in one call. The table must have room for
/// all of them.
const BATCH: usize = 4096;

impl Scattered {
    fn new(memory: Memory) -> Self {
        let max_bytes = memory.bytes().unwrap_or(u64::MAX);
        let secret = RandomState::new().hash_one(0_u64);
        Self { layers: vec![DigestSet::within(max_bytes)], secret, len: 0, max_bytes }
    }

    fn digest(&self, value: u64) -> u64 {
        mix(value ^ self.secret)
    }

    /// Returns the number of layers that hold a digest.
    fn depth(&self, digest: u64) -> usize {
        self.layers.iter().take_while(|layer| layer.contains(digest)).count()
    }

    fn insert_each(&mut self, values: &[u64], new: &mut Answers) -> Result<(), OutOfMemory> {
        if self.layers.len() > 1 {
            new.reset(values.len());
            for (i, &value) in values.iter().enumerate() {
                let digest = self.digest(value);
                let depth = self.depth(digest);
                if depth.is_multiple_of(2) {
                    self.insert_into(depth, digest)?;
                    self.len += 1;
                    new.set(i, true);
                }
            }
            return Ok(());
        }
        let (mut digests, mut of_batch) = (Vec::with_capacity(BATCH), Answers::new());
        let words = new.reset(values.len());
        for (values, words) in values.chunks(BATCH).zip(words.chunks_mut(BATCH / 64)) {
            digests.clear();
            digests.extend(values.iter().map(|&value| self.digest(value)));
            self.layers[0].insert_each(&digests, &mut of_batch)?;
            words.copy_from_slice(of_batch.words());
            self.len += of_batch.count_ones() as u64;
        }
        Ok(())
    }

    fn insert_into(&mut self, layer: usize, digest: u64) -> Result<(), OutOfMemory> {
        if layer == self.layers.len() {
            let held: u64 = self.layers.iter().map(DigestSet::memory_bytes).sum();
            self.layers.push(DigestSet::within(self.max_bytes.saturating_sub(held)));
        }
        self.layers[layer].insert(digest).map(drop)
    }

    fn contains(&self, value: u64) -> bool {
        !self.depth(self.digest(value)).is_multiple_of(2)
    }

    fn remove(&mut self, value: u64) -> Result<bool, OutOfMemory> {
        let digest = self.digest(value);
        let depth = self.depth(digest);
        if depth.is_multiple_of(2) {
            return Ok(false);
        }
        self.insert_into(depth, digest)?;
        self.len -= 1;
        Ok(true)
    }

    /// Returns an iterator over the integers, in no particular order.
    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let digests = self.layers[0].iter();
        let alive = digests
            .filter(|&digest| self.layers.len() == 1 || !self.depth(digest).is_multiple_of(2));
        alive.map(|digest| unmix(digest) ^ self.secret)
    }

    fn memory_bytes(&self) -> u64 {
        self.layers.iter().map(DigestSet::memory_bytes).sum()
    }

    /// Converts the table to sorted integers. It frees the memory of the table while the list
    /// grows.
    fn into_sorted(mut self) -> Vec<u64> {
        let mut values = Vec::with_capacity(self.len as usize);
        let inner = self.layers.split_off(1);
        let first = self.layers.pop().expect("there is one");
        first.drain_each(|digests| {
            let depth = |digest| 1 + inner.iter().take_while(|it| it.contains(digest)).count();
            let alive = digests.iter().filter(|&&digest| depth(digest) % 2 == 1);
            values.extend(alive.map(|&digest| unmix(digest) ^ self.secret));
        });
        values.sort_unstable();
        values
    }
}

impl SparseSet {
    /// Creates an empty set within the memory limit.
    pub fn new(memory: Memory) -> Self {
        SparseSet::Scattered(Scattered::new(memory))
    }

    /// Inserts values in order, and sets the bits in `new` of the new ones.
    ///
    /// # Errors
    ///
    /// If the values exceed the memory. The set may hold some of them in this case.
    pub fn insert_each(&mut self, values: &[u64], new: &mut Answers) -> Result<(), OutOfMemory> {
        match self {
            SparseSet::Scattered(set) => set.insert_each(values, new),
            SparseSet::Compressed(set, _) => {
                new.fill_with(values.len(), |i| set.insert(values[i]));
                Ok(())
            }
        }
    }

    /// Removes `value`. Returns true if the set held it.
    ///
    /// # Errors
    ///
    /// If the memory to record the removal cannot be allocated.
    pub fn remove(&mut self, value: u64) -> Result<bool, OutOfMemory> {
        match self {
            SparseSet::Scattered(set) => set.remove(value),
            SparseSet::Compressed(set, _) => Ok(set.remove(value)),
        }
    }

    /// Tests whether the set holds `value`.
    #[inline]
    pub fn contains(&self, value: u64) -> bool {
        match self {
            SparseSet::Scattered(set) => set.contains(value),
            SparseSet::Compressed(set, _) => set.contains(value),
        }
    }

    /// Calls `visit` with every integer, in any order.
    pub fn for_each<E>(&self, visit: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        match self {
            SparseSet::Scattered(set) => set.iter().try_for_each(visit),
            SparseSet::Compressed(set, _) => set.iter().try_for_each(visit),
        }
    }

    /// Returns an iterator over the integers, ascending.
    pub fn into_sorted(self) -> Box<dyn Iterator<Item = u64>> {
        match self {
            SparseSet::Scattered(set) => Box::new(set.into_sorted().into_iter()),
            SparseSet::Compressed(set, _) => Box::new(set.into_iter()),
        }
    }

    /// Converts the set to a compressed set.
    pub fn into_compressed(self) -> CompressedSet {
        match self {
            SparseSet::Compressed(set, _) => set,
            scattered => scattered.into_sorted().collect(),
        }
    }

    /// Tests whether the set is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            SparseSet::Scattered(set) => set.len == 0,
            SparseSet::Compressed(set, _) => set.is_empty(),
        }
    }

    /// Returns the approximate memory of the set in bytes. For a compressed set, this is the result
    /// of the last [`count_memory`](Self::count_memory).
    pub fn memory_bytes(&self) -> u64 {
        match self {
            SparseSet::Scattered(set) => set.memory_bytes(),
            SparseSet::Compressed(_, bytes) => *bytes,
        }
    }

    /// Recomputes the memory of the set.
    pub fn count_memory(&mut self) {
        if let SparseSet::Compressed(set, bytes) = self {
            // Growing lists leave gaps between them that are about as large as the lists.
            *bytes = set.memory_bytes() * 2;
        }
    }

    /// Sets the memory limit from now on. No effect on a compressed set.
    pub fn limit(&mut self, memory: Memory) {
        if let SparseSet::Scattered(set) = self {
            set.max_bytes = memory.bytes().unwrap_or(u64::MAX);
            let inner_bytes: u64 = set.layers[1..].iter().map(DigestSet::memory_bytes).sum();
            set.layers[0].limit(set.max_bytes.saturating_sub(inner_bytes));
        }
    }

    /// Compresses a set of scattered integers if this saves half of the memory, and if there is
    /// enough memory for the conversion.
    pub fn compress_if_smaller(&mut self, memory: Memory) {
        let SparseSet::Scattered(set) = self else { return };
        // A compressed set takes 2 bytes per value, some hundred bytes per non-empty stretch of 65
        // 536 integers, and the gaps between them.
        let compressed_bytes = set.len * 4 + set.stretches() * 200;
        let is_smaller = compressed_bytes * 2 <= set.memory_bytes();
        // During the conversion, the integers are in a sorted list.
        if is_smaller && memory.allows(set.len * 8 + compressed_bytes) {
            let empty = SparseSet::new(memory);
            let set = std::mem::replace(self, empty).into_compressed();
            *self = SparseSet::Compressed(set, 0);
            self.count_memory();
        }
    }
}

impl Scattered {
    /// Estimates the number of non-empty stretches of 65 536 integers, from a sample of the
    /// stretches.
    fn stretches(&self) -> u64 {
        /// The approximate maximum number of stretches in the sample.
        const COUNTED: u64 = 1 << 15;
        let part = (self.len / COUNTED).next_power_of_two();
        let stretches = self.iter().map(|value| mix(value >> 16)).filter(|mixed| mixed % part == 0);
        stretches.collect::<HashSet<u64>>().len() as u64 * part
    }
}

/// Mixes the bits of an integer, so that each bit affects all others. The function is reversible.
/// It is the finalizer of MurmurHash3 by Appleby.
#[inline]
fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

/// Computes the integer from the result of [`mix`]. It inverts each step, in reverse order.
#[inline]
fn unmix(mut mixed: u64) -> u64 {
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0x9cb4_b2f8_1293_37db);
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0x4f74_430c_22a5_4005);
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(values: impl Iterator<Item = u64>) -> SparseSet {
        let mut set = SparseSet::new(Memory::unlimited());
        let values: Vec<u64> = values.collect();
        let mut new = Answers::new();
        set.insert_each(&values, &mut new).unwrap();
        assert_eq!(new.count_ones(), values.len());
        set.compress_if_smaller(Memory::unlimited());
        set
    }

    #[test]
    fn close_integers_are_compressed_and_scattered_ones_hashed() {
        let close = set((0..300_000).map(|i| 1_800_000_000_000_000_000 + i * 3));
        assert!(matches!(close, SparseSet::Compressed(..)));
        let scattered = set((1..300_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert!(matches!(scattered, SparseSet::Scattered(_)));
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

    proptest! {
        #[test]
        fn integers_come_back_from_their_hashes(value: u64) {
            prop_assert_eq!(unmix(mix(value)), value);
        }

        #[test]
        fn integers_come_and_go_as_in_a_slow_set(
            steps in prop::collection::vec((any::<bool>(), prop::collection::vec(0_u64..50, 0..30)), 0..20),
        ) {
            let mut set = SparseSet::new(Memory::unlimited());
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
            prop_assert!(set.into_sorted().eq(model));
        }
    }
}
