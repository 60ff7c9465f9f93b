//! A hash table of integers that lie far apart.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use tamis::{Answers, DigestSet, OutOfMemory};

/// A hash table of integers. The hash is reversible, so the table stores only the hashes and
/// computes the integers from the hashes.
///
/// A table never removes an entry. A removed integer is stored in a second layer. An integer that
/// was inserted again after a removal is stored in a third layer, and the next removal adds a
/// fourth layer. Each layer is a subset of the layer before it. An integer is in the set if an odd
/// number of layers hold the integer. A command removes an integer at most once per file, so there
/// are few layers.
pub struct Scattered {
    layers: Vec<DigestSet<u64>>,
    secret: u64,
    len: u64,
    max_bytes: u64,
}

/// The number of integers that are inserted into a table in one call. The table must have room for
/// all these integers.
const BATCH: usize = 4096;

impl Scattered {
    /// Creates an empty table of at most `max_bytes`.
    pub fn new(max_bytes: u64) -> Self {
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

    /// Inserts values in order, and sets the bits in `new` of the new values.
    ///
    /// # Errors
    ///
    /// Returns an error if the values exceed the memory. After an error, the table may hold some of
    /// the values.
    pub fn insert_each(&mut self, values: &[u64], new: &mut Answers) -> Result<(), OutOfMemory> {
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
            let left_bytes = self.max_bytes.saturating_sub(self.memory_bytes());
            self.layers.push(DigestSet::within(left_bytes));
        }
        self.layers[layer].insert(digest).map(drop)
    }

    /// Tests whether the table holds `value`.
    pub fn contains(&self, value: u64) -> bool {
        !self.depth(self.digest(value)).is_multiple_of(2)
    }

    /// Removes `value`. Returns true if the table held the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory to record the removal cannot be allocated.
    pub fn remove(&mut self, value: u64) -> Result<bool, OutOfMemory> {
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
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let digests = self.layers[0].iter();
        let alive = digests
            .filter(|&digest| self.layers.len() == 1 || !self.depth(digest).is_multiple_of(2));
        alive.map(|digest| unmix(digest) ^ self.secret)
    }

    /// Returns the number of integers.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Sets the memory limit for later insertions.
    pub fn limit(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes;
        let inner_bytes: u64 = self.layers[1..].iter().map(DigestSet::memory_bytes).sum();
        self.layers[0].limit(max_bytes.saturating_sub(inner_bytes));
    }

    /// Returns the memory of all layers in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.layers.iter().map(DigestSet::memory_bytes).sum()
    }

    /// Converts the table to a sorted list of integers. The table releases its memory while the
    /// list grows.
    pub fn into_sorted(mut self) -> Vec<u64> {
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

    /// Estimates how many stretches of 65 536 integers are not empty, from a sample of the
    /// stretches.
    pub fn stretches(&self) -> u64 {
        /// The approximate maximum number of stretches in the sample.
        const COUNTED: u64 = 1 << 15;
        let part = (self.len / COUNTED).next_power_of_two();
        let stretches = self.iter().map(|value| mix(value >> 16)).filter(|mixed| mixed % part == 0);
        stretches.collect::<HashSet<u64>>().len() as u64 * part
    }
}

/// Mixes the bits of an integer, so that each bit affects all other bits. The function is
/// reversible. The function is the finalizer of MurmurHash3 by Appleby.
#[inline]
fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

/// Computes the integer from the result of [`mix`]. The function inverts each step, in reverse
/// order.
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_come_back_from_their_hashes(value: u64) {
            prop_assert_eq!(unmix(mix(value)), value);
        }
    }
}
