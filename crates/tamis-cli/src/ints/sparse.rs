//! A set for few integers of any size: by hash first, compressed if they lie close together.
//!
//! Scattered integers in any order are quickest in a hash table and would each move megabytes of a
//! compressed set's index; close ones take a fraction of the memory compressed.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use tamis::{Answers, CompressedSet, DigestSet, OutOfMemory};

use super::memory::Memory;

/// Few integers, or close ones.
pub enum SparseSet {
    /// Scattered integers.
    Scattered(Scattered),
    /// Close ones, and the memory that they took when it was counted last: that takes long.
    Compressed(CompressedSet, u64),
}

/// Integers by their hashes, from which they can be computed back.
///
/// The table never removes. Integers that were removed are in a second layer, those that were inserted again after that
/// in a third, and so on: each layer is a part of the one before, and an integer is in the set if it is in an odd number
/// of them. Integers are removed once for each file at most, so that there are few layers.
pub struct Scattered {
    layers: Vec<DigestSet<u64>>,
    secret: u64,
    len: u64,
    max_bytes: u64,
}

/// How many integers go into a table at once: it must have room for all of them.
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

    /// Returns in how many layers an integer is.
    fn depth(&self, digest: u64) -> usize {
        self.layers.iter().take_while(|layer| layer.contains(digest)).count()
    }

    fn insert_each(&mut self, values: &[u64], new: &mut [u64]) -> Result<(), OutOfMemory> {
        let (mut digests, mut of_batch) = (Vec::with_capacity(BATCH), Answers::new());
        for (batch, values) in values.chunks(BATCH).enumerate() {
            let words = &mut new[batch * BATCH / 64..];
            if self.layers.len() == 1 {
                digests.clear();
                digests.extend(values.iter().map(|&value| self.digest(value)));
                self.layers[0].insert_each(&digests, &mut of_batch)?;
                words[..of_batch.words().len()].copy_from_slice(of_batch.words());
                self.len += of_batch.count_ones() as u64;
                continue;
            }
            for (i, &value) in values.iter().enumerate() {
                let digest = self.digest(value);
                let depth = self.depth(digest);
                if depth.is_multiple_of(2) {
                    self.insert_into(depth, digest)?;
                    self.len += 1;
                    words[i / 64] |= 1 << (i % 64);
                }
            }
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

    /// Iterates over the integers, in no order.
    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let digests = self.layers[0].iter();
        let alive = digests
            .filter(|&digest| self.layers.len() == 1 || !self.depth(digest).is_multiple_of(2));
        alive.map(|digest| unmix(digest) ^ self.secret)
    }

    fn memory_bytes(&self) -> u64 {
        self.layers.iter().map(DigestSet::memory_bytes).sum()
    }

    /// Takes the table apart into sorted integers, in its memory.
    fn into_sorted(mut self) -> Vec<u64> {
        let mut values = Vec::with_capacity(self.len as usize);
        if self.layers.len() == 1 {
            let secret = self.secret;
            let layer = self.layers.pop().expect("there is one");
            layer.drain_each(|digests| {
                values.extend(digests.iter().map(|&digest| unmix(digest) ^ secret));
            });
        } else {
            let inner = self.layers.split_off(1);
            let first = self.layers.pop().expect("there is one");
            first.drain_each(|digests| {
                let depth = |digest| 1 + inner.iter().take_while(|it| it.contains(digest)).count();
                let alive = digests.iter().filter(|&&digest| depth(digest) % 2 == 1);
                values.extend(alive.map(|&digest| unmix(digest) ^ self.secret));
            });
        }
        values.sort_unstable();
        values
    }
}

impl SparseSet {
    /// Makes an empty set that takes no more memory than allowed.
    pub fn new(memory: Memory) -> Self {
        SparseSet::Scattered(Scattered::new(memory))
    }

    /// Inserts values in order; sets the bits of `new`, all zero, that stand for new ones.
    ///
    /// # Errors
    ///
    /// If they do not fit; some may be in then.
    pub fn insert_each(&mut self, values: &[u64], new: &mut [u64]) -> Result<(), OutOfMemory> {
        match self {
            SparseSet::Scattered(set) => set.insert_each(values, new),
            SparseSet::Compressed(set, _) => {
                for (i, &value) in values.iter().enumerate() {
                    new[i / 64] |= u64::from(set.insert(value)) << (i % 64);
                }
                Ok(())
            }
        }
    }

    /// Removes `value`; true if it was in.
    ///
    /// # Errors
    ///
    /// If there is no memory to note it.
    pub fn remove(&mut self, value: u64) -> Result<bool, OutOfMemory> {
        match self {
            SparseSet::Scattered(set) => set.remove(value),
            SparseSet::Compressed(set, _) => Ok(set.remove(value)),
        }
    }

    /// Returns whether the set holds `value`.
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

    /// Returns the integers, ascending.
    pub fn into_sorted(self) -> Box<dyn Iterator<Item = u64>> {
        match self {
            SparseSet::Scattered(set) => Box::new(set.into_sorted().into_iter()),
            SparseSet::Compressed(set, _) => Box::new(set.into_iter()),
        }
    }

    /// Returns the same integers compressed.
    pub fn into_compressed(self) -> CompressedSet {
        match self {
            SparseSet::Compressed(set, _) => set,
            scattered => scattered.into_sorted().collect(),
        }
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            SparseSet::Scattered(set) => set.len == 0,
            SparseSet::Compressed(set, _) => set.is_empty(),
        }
    }

    /// Returns about how many bytes the set takes, or took when they were [counted](Self::count_memory) last.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            SparseSet::Scattered(set) => set.memory_bytes(),
            SparseSet::Compressed(_, bytes) => *bytes,
        }
    }

    /// Recomputes the memory of the set.
    pub fn count_memory(&mut self) {
        if let SparseSet::Compressed(set, bytes) = self {
            // Lists that grow leave gaps between them, about as large as they are.
            *bytes = set.memory_bytes() * 2;
        }
    }

    /// Lets the set take so much memory from now on, where it is its own to limit.
    pub fn limit(&mut self, memory: Memory) {
        if let SparseSet::Scattered(set) = self {
            set.max_bytes = memory.bytes().unwrap_or(u64::MAX);
            let inner_bytes: u64 = set.layers[1..].iter().map(DigestSet::memory_bytes).sum();
            set.layers[0].limit(set.max_bytes.saturating_sub(inner_bytes));
        }
    }

    /// Compresses a set of scattered integers that lie so close that it saves half of the memory, if there is memory to
    /// do so.
    pub fn compress_if_smaller(&mut self, memory: Memory) {
        let SparseSet::Scattered(set) = self else { return };
        // 2 bytes a value, some hundred for each stretch of 65 536 that holds one, and the gaps between them.
        let compressed_bytes = set.len * 4 + set.stretches() * 200;
        let is_smaller = compressed_bytes * 2 <= set.memory_bytes();
        // On the way the integers are in a sorted list.
        if is_smaller && memory.allows(set.len * 8 + compressed_bytes) {
            let empty = SparseSet::new(memory);
            let set = std::mem::replace(self, empty).into_compressed();
            *self = SparseSet::Compressed(set, 0);
            self.count_memory();
        }
    }
}

impl Scattered {
    /// Returns about how many stretches of 65 536 integers hold one, from a part of the stretches.
    fn stretches(&self) -> u64 {
        /// About the most stretches that are counted.
        const COUNTED: u64 = 1 << 15;
        let part = (self.len / COUNTED).next_power_of_two();
        let stretches = self.iter().map(|value| mix(value >> 16)).filter(|mixed| mixed % part == 0);
        stretches.collect::<HashSet<u64>>().len() as u64 * part
    }
}

/// Mixes the bits of an integer, each into all others, so that none is lost: the end of MurmurHash3 by Appleby.
#[inline]
fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

/// Computes the integer from what [`mix`] makes of it: each step turned round, in the other order.
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
        let mut new = vec![0; values.len().div_ceil(64)];
        set.insert_each(&values, &mut new).unwrap();
        assert_eq!(new.iter().map(|word| word.count_ones() as usize).sum::<usize>(), values.len());
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
                    let mut new = vec![0; values.len().div_ceil(64)];
                    set.insert_each(&values, &mut new).unwrap();
                    for (i, &value) in values.iter().enumerate() {
                        prop_assert_eq!(new[i / 64] >> (i % 64) & 1 == 1, model.insert(value));
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
