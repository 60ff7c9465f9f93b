//! A set of integers that picks its own structure.
//!
//! Integers of the *window*, all of `u32` unless a range is stated, start in a compressed set and move
//! to a bitmap when there are so many that it pays. Integers above start in a hash set and move to a
//! compressed set if they turn out to lie close together. Every structure is exact.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::RangeInclusive;

use tamis::{Answers, CompressedSet, DenseSet, RangeError};

use super::memory::Memory;
use crate::exit::Failure;

/// A set of any integers.
pub struct IntSet {
    window: RangeInclusive<u64>,
    memory: Memory,
    low: Low,
    high: High,
    may_be_dense: bool,
    len: u64,
    /// How many integers to hold before the structures are looked at again.
    check_at: u64,
}

/// The integers of the window.
enum Low {
    Compressed(CompressedSet),
    Dense(DenseSet),
}

/// The integers outside it.
enum High {
    Hashed(HashSet<u64, Mixed>),
    Compressed(CompressedSet),
}

/// How many times the memory of the compressed set a bitmap may take: it is several times as fast.
const DENSE_FACTOR: u64 = 64;

/// Below this many integers nothing is worth changing.
const CHECK_FROM: u64 = 1 << 18;

impl IntSet {
    /// Makes an empty set. `range`, if stated, holds all integers that will come.
    pub fn new(range: Option<&RangeInclusive<u64>>, memory: Memory) -> Self {
        Self {
            window: window(range),
            memory,
            low: Low::Compressed(CompressedSet::new()),
            high: High::Hashed(HashSet::default()),
            may_be_dense: true,
            len: 0,
            check_at: CHECK_FROM,
        }
    }

    /// Never makes a bitmap: the owner has one of its own in mind.
    pub fn stay_compressed(mut self) -> Self {
        self.may_be_dense = false;
        self
    }

    /// Returns how many integers are in.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Inserts `values` in order and tells which were new.
    ///
    /// # Errors
    ///
    /// More memory needed than allowed.
    pub fn insert_each(&mut self, values: &[u64], new: &mut Answers) -> Result<(), Failure> {
        let Self { window, low, high, .. } = self;
        if values.iter().all(|value| window.contains(value)) {
            match low {
                Low::Dense(set) => set.insert_each(values, new).map_err(Failure::new)?,
                Low::Compressed(set) => set.insert_each(values, new),
            }
        } else {
            let masks = new.reset(values.len());
            for (i, &value) in values.iter().enumerate() {
                let is_new = match low {
                    _ if !window.contains(&value) => high.insert(value),
                    Low::Dense(set) => set.insert(value).map_err(Failure::new)?,
                    Low::Compressed(set) => set.insert(value),
                };
                masks[i / 64] |= u64::from(is_new) << (i % 64);
            }
        }
        self.len += new.count_ones() as u64;
        if self.len >= self.check_at { self.check() } else { Ok(()) }
    }

    /// Tells of `values` which are in.
    pub fn contains_each(&self, values: &[u64], answers: &mut Answers) {
        match (&self.low, &self.high) {
            (Low::Dense(set), High::Hashed(high)) if high.is_empty() => {
                set.contains_each(values, answers);
            }
            _ => {
                let masks = answers.reset(values.len());
                for (i, &value) in values.iter().enumerate() {
                    masks[i / 64] |= u64::from(self.contains(value)) << (i % 64);
                }
            }
        }
    }

    /// Tells whether `value` is in.
    pub fn contains(&self, value: u64) -> bool {
        match &self.low {
            _ if !self.window.contains(&value) => self.high.contains(value),
            Low::Dense(set) => set.contains(value),
            Low::Compressed(set) => set.contains(value),
        }
    }

    /// Removes `value`, if it is in.
    pub fn remove(&mut self, value: u64) {
        let was_in = match &mut self.low {
            _ if !self.window.contains(&value) => self.high.remove(value),
            Low::Dense(set) => set.remove(value),
            Low::Compressed(set) => set.remove(value),
        };
        self.len -= u64::from(was_in);
    }

    /// Calls `visit` with every integer, ascending, and gives up the set.
    ///
    /// # Errors
    ///
    /// Those of `visit`.
    pub fn into_sorted(
        self,
        mut visit: impl FnMut(u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let window = self.window;
        let high = self.high.into_sorted();
        let (before, after): (Vec<u64>, Vec<u64>) =
            high.into_iter().partition(|value| value < window.start());
        before.into_iter().try_for_each(&mut visit)?;
        match self.low {
            Low::Dense(set) => set.iter().try_for_each(&mut visit)?,
            Low::Compressed(set) => set.iter().try_for_each(&mut visit)?,
        }
        after.into_iter().try_for_each(visit)
    }

    /// Moves the integers of the window out.
    pub fn take_window(&mut self) -> CompressedSet {
        let empty = Low::Compressed(CompressedSet::new());
        let window = match std::mem::replace(&mut self.low, empty) {
            Low::Dense(set) => set.to_compressed(),
            Low::Compressed(set) => set,
        };
        self.len -= window.count();
        window
    }

    /// Returns about how many bytes the set takes.
    pub fn memory_bytes(&self) -> u64 {
        let low = match &self.low {
            Low::Dense(set) => set.memory_bytes(),
            Low::Compressed(set) => set.memory_bytes(),
        };
        low + self.high.memory_bytes()
    }

    /// Tells whether the integers of the window are so many that a bitmap over it pays.
    pub fn is_crowded(&self) -> bool {
        match &self.low {
            Low::Dense(_) => false,
            Low::Compressed(set) => {
                dense_bytes(&self.window) <= DENSE_FACTOR.saturating_mul(set.memory_bytes())
            }
        }
    }

    /// Changes structures where that pays and the memory allows.
    fn check(&mut self) -> Result<(), Failure> {
        self.check_at = self.len + (self.len / 4).max(CHECK_FROM);
        self.high.compress_if_smaller();
        let bitmap_bytes = dense_bytes(&self.window);
        if self.may_be_dense && self.memory.allows(bitmap_bytes) && self.is_crowded() {
            self.make_dense()?;
        }
        self.memory.check(self.memory_bytes())
    }

    fn make_dense(&mut self) -> Result<(), Failure> {
        if let Low::Compressed(set) = &self.low {
            match set.to_dense(self.window.clone()) {
                Ok(dense) => self.low = Low::Dense(dense),
                // No memory for a bitmap: the compressed set goes on.
                Err(RangeError::OutOfMemory(_)) => {}
                Err(error) => return Err(Failure::new(error)),
            }
        }
        Ok(())
    }
}

/// Returns the integers that may move to a bitmap.
pub fn window(range: Option<&RangeInclusive<u64>>) -> RangeInclusive<u64> {
    range.cloned().unwrap_or(0..=u64::from(u32::MAX))
}

/// Returns the bytes of a bitmap over `window`.
pub fn dense_bytes(window: &RangeInclusive<u64>) -> u64 {
    (window.end() - window.start()) / 8 + 1
}

impl High {
    fn insert(&mut self, value: u64) -> bool {
        match self {
            High::Hashed(set) => set.insert(value),
            High::Compressed(set) => set.insert(value),
        }
    }

    fn remove(&mut self, value: u64) -> bool {
        match self {
            High::Hashed(set) => set.remove(&value),
            High::Compressed(set) => set.remove(value),
        }
    }

    fn contains(&self, value: u64) -> bool {
        match self {
            High::Hashed(set) => set.contains(&value),
            High::Compressed(set) => set.contains(value),
        }
    }

    fn into_sorted(self) -> Vec<u64> {
        match self {
            High::Hashed(set) => {
                let mut values: Vec<u64> = set.into_iter().collect();
                values.sort_unstable();
                values
            }
            High::Compressed(set) => set.iter().collect(),
        }
    }

    fn memory_bytes(&self) -> u64 {
        match self {
            // One control byte a slot beside the value, and an eighth of the slots stay free.
            High::Hashed(set) => set.capacity() as u64 * 9 * 8 / 7,
            High::Compressed(set) => set.memory_bytes(),
        }
    }

    /// Compresses a hash set whose integers lie so close that it saves half of the memory.
    fn compress_if_smaller(&mut self) {
        let High::Hashed(set) = self else { return };
        let stretches: HashSet<u64, Mixed> = set.iter().map(|value| value >> 16).collect();
        // 2 bytes a value, some hundred for each stretch of 65 536 that holds one.
        let compressed_bytes = set.len() as u64 * 2 + stretches.len() as u64 * 100;
        drop(stretches);
        if compressed_bytes * 2 <= self.memory_bytes() {
            let High::Hashed(set) = std::mem::replace(self, High::Hashed(HashSet::default()))
            else {
                return;
            };
            let mut values: Vec<u64> = set.into_iter().collect();
            values.sort_unstable();
            *self = High::Compressed(values.into_iter().collect());
        }
    }
}

/// Hashes integers by one multiplication with a secret of this process, which is several times as
/// fast as the default and does not let input pile up in one place.
#[derive(Clone)]
struct Mixed {
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

struct Mixer {
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
    use std::collections::BTreeSet;

    use super::*;

    fn sorted(set: IntSet) -> Vec<u64> {
        let mut values = Vec::new();
        set.into_sorted(|value| {
            values.push(value);
            Ok(())
        })
        .unwrap();
        values
    }

    fn check(range: Option<&RangeInclusive<u64>>, values: &[u64]) -> IntSet {
        let mut set = IntSet::new(range, Memory::unlimited());
        let mut oracle = BTreeSet::new();
        let mut new = Answers::new();
        for values in values.chunks(10_000) {
            set.insert_each(values, &mut new).unwrap();
            for (&value, is_new) in values.iter().zip(new.iter()) {
                assert_eq!(oracle.insert(value), is_new, "{value}");
            }
        }
        assert_eq!(set.len(), oracle.len() as u64);
        let asked: Vec<u64> = values.iter().flat_map(|&value| [value, value ^ 1]).collect();
        set.contains_each(&asked, &mut new);
        for (value, is_in) in asked.iter().zip(new.iter()) {
            assert_eq!(oracle.contains(value), is_in, "{value}");
        }
        for &value in values.iter().step_by(3) {
            oracle.remove(&value);
            set.remove(value);
        }
        assert_eq!(set.len(), oracle.len() as u64);
        set
    }

    fn mixed(count: u64, shift: u32) -> Vec<u64> {
        (1..=count).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift).collect()
    }

    #[test]
    fn few_integers_of_any_size_are_a_set() {
        let values = [0, 5, u64::MAX, u64::from(u32::MAX), u64::from(u32::MAX) + 1, 5, 0];
        let set = check(None, &values);
        assert_eq!(sorted(set), [5, 1 << 32, u64::MAX]);
    }

    #[test]
    fn many_integers_of_32_bits_become_a_bitmap() {
        let set = check(None, &mixed(400_000, 40));
        assert!(matches!(set.low, Low::Compressed(_)), "a few MiB need no bitmap of 512");
        let set = check(Some(&(0..=(1 << 24) - 1)), &mixed(400_000, 40));
        assert!(matches!(set.low, Low::Dense(_)));
        assert!(sorted(set).is_sorted());
    }

    #[test]
    fn close_integers_of_64_bits_become_a_compressed_set() {
        let base = 1_800_000_000_000_000_000;
        let values: Vec<u64> = (0..300_000).map(|i| base + i * 3).collect();
        let set = check(None, &values);
        assert!(matches!(set.high, High::Compressed(_)));
        let set = check(None, &mixed(300_000, 0));
        assert!(matches!(set.high, High::Hashed(_)));
        assert!(sorted(set).is_sorted());
    }
}
