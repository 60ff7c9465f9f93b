//! A set of integers that chooses its data structure automatically.
//!
//! The *window* is the given range, or all of `u32` without a range. Integers inside the window
//! start in a sparse set. When a bitmap takes at most 64 times the memory of the sparse set, the
//! integers move to the bitmap. The bitmap is several times as fast as the sparse set. Integers
//! outside the window stay in a sparse set. Every structure is exact.

use std::ops::RangeInclusive;

use tamis::{Answers, CompressedSet, DenseSet, RangeError};

use crate::commands::ints::memory::Memory;
use crate::commands::ints::store::IntStore;
use crate::exit::Failure;

/// A set of integers of any size.
pub struct IntSet {
    window: RangeInclusive<u64>,
    memory: Memory,
    // The integers inside the window, and the integers outside the window.
    low: IntStore,
    high: IntStore,
    may_be_dense: bool,
    len: u64,
    /// The number of integers at which the set checks its structures again.
    check_at: u64,
}

/// The maximum memory of a bitmap as a multiple of the memory of the sparse set. The factor is
/// large because a bitmap is several times as fast as a sparse set.
const DENSE_FACTOR: u64 = 64;

/// The number of integers below which no change of structure saves time or memory.
const CHECK_FROM: u64 = 1 << 18;

impl IntSet {
    /// Creates an empty set. If a `range` is given, the range must contain all integers that the
    /// caller will insert.
    pub fn new(range: Option<&RangeInclusive<u64>>, memory: Memory) -> Self {
        Self {
            window: window(range),
            memory,
            low: IntStore::new(memory),
            high: IntStore::new(memory),
            may_be_dense: true,
            len: 0,
            check_at: CHECK_FROM,
        }
    }

    /// Forbids the bitmap in this set, because the owner of the set creates a bitmap itself.
    pub fn stay_compressed(mut self) -> Self {
        self.may_be_dense = false;
        self
    }

    /// Sets the memory limit for later insertions.
    pub fn limit(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// Returns the number of integers.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Inserts `values` in order, and sets the bits in `new` of the new values.
    ///
    /// # Errors
    ///
    /// Returns an error if the set exceeds the memory limit.
    pub fn insert_each(&mut self, values: &[u64], new: &mut Answers) -> Result<(), Failure> {
        let (low_bytes, high_bytes) = (self.low.memory_bytes(), self.high.memory_bytes());
        let Self { window, low, high, memory, .. } = self;
        high.limit(memory.less(low_bytes));
        low.limit(memory.less(high_bytes));
        let is_low = |value: &u64| window.contains(value);
        let inserted = if values.iter().all(is_low) {
            low.insert_each(values, new)
        } else if !values.iter().any(is_low) {
            high.insert_each(values, new)
        } else {
            new.reset(values.len());
            let (lows, highs): (Vec<_>, Vec<_>) =
                (0..values.len()).partition(|&i| is_low(&values[i]));
            let mut insert = |set: &mut IntStore, places: &[usize]| {
                let (mut of_set, mut new_in_set) = (Vec::new(), Answers::new());
                of_set.extend(places.iter().map(|&i| values[i]));
                set.insert_each(&of_set, &mut new_in_set)?;
                new_in_set.ones().for_each(|i| new.set(places[i], true));
                Ok(())
            };
            insert(low, &lows).and_then(|()| insert(high, &highs))
        };
        inserted.map_err(|_| memory.refusal())?;
        self.len += new.count_ones() as u64;
        if self.len >= self.check_at { self.check() } else { Ok(()) }
    }

    /// Sets the bits in `answers` of the values that the set holds.
    pub fn contains_each(&self, values: &[u64], answers: &mut Answers) {
        match &self.low {
            IntStore::Dense(set) if self.high.is_empty() => {
                set.contains_each(values, answers);
            }
            _ => answers.fill_with(values.len(), |i| self.contains(values[i])),
        }
    }

    /// Tests whether the set holds `value`.
    pub fn contains(&self, value: u64) -> bool {
        let is_low = self.window.contains(&value);
        if is_low { self.low.contains(value) } else { self.high.contains(value) }
    }

    /// Removes `value`. If the set does not hold the value, the call has no effect.
    ///
    /// # Errors
    ///
    /// Returns an error if the set exceeds the memory limit.
    pub fn remove(&mut self, value: u64) -> Result<(), Failure> {
        let is_low = self.window.contains(&value);
        let store = if is_low { &mut self.low } else { &mut self.high };
        let was_in = store.remove(value).map_err(|_| self.memory.refusal())?;
        self.len -= u64::from(was_in);
        Ok(())
    }

    /// Calls `visit` with every integer, ascending, and consumes the set.
    ///
    /// # Errors
    ///
    /// Returns the errors of `visit`.
    pub fn into_sorted(
        self,
        mut visit: impl FnMut(u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut low = Some(self.low);
        self.high.into_sorted(|value| {
            // The integers inside the window come before the first integer above the window.
            if let Some(low) = low.take_if(|_| value > *self.window.end()) {
                low.into_sorted(&mut visit)?;
            }
            visit(value)
        })?;
        low.map_or(Ok(()), |low| low.into_sorted(visit))
    }

    /// Removes the integers inside the window from the set, and returns these integers.
    pub fn take_window(&mut self) -> CompressedSet {
        let empty = IntStore::new(self.memory);
        let window = std::mem::replace(&mut self.low, empty).into_compressed();
        self.len -= window.len();
        window
    }

    /// Returns the approximate memory of the set in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.low.memory_bytes() + self.high.memory_bytes()
    }

    /// Tests whether the sparse set of the window is so large that a bitmap should replace the
    /// sparse set.
    pub fn is_crowded(&self) -> bool {
        let most_bytes = DENSE_FACTOR.saturating_mul(self.low.memory_bytes());
        !self.low.is_dense() && dense_bytes(&self.window) <= most_bytes
    }

    /// Changes structures if a change saves time or memory and the memory limit allows the change.
    fn check(&mut self) -> Result<(), Failure> {
        let more = if self.memory.bytes().is_some() {
            (self.len / 16).max(CHECK_FROM / 8)
        } else {
            (self.len / 4).max(CHECK_FROM)
        };
        self.check_at = self.len + more;
        self.high.count_memory();
        self.low.count_memory();
        let bitmap_bytes = dense_bytes(&self.window);
        if self.may_be_dense
            && self.memory.allows(bitmap_bytes + self.memory_bytes())
            && self.is_crowded()
        {
            self.make_dense()?;
        }
        self.high.compress_if_smaller(self.memory);
        self.low.compress_if_smaller(self.memory);
        self.memory.check(self.memory_bytes())
    }

    fn make_dense(&mut self) -> Result<(), Failure> {
        let mut dense = match DenseSet::new(self.window.clone()) {
            Ok(dense) => dense,
            // If the memory for a bitmap cannot be allocated, the sparse set stays in use.
            Err(RangeError::OutOfMemory(_)) => return Ok(()),
            Err(error) => return Err(Failure::new(error)),
        };
        self.low.for_each(|value| dense.insert(value).map(|_| ())).map_err(Failure::new)?;
        self.low = IntStore::Dense(dense);
        Ok(())
    }
}

/// Returns the window: the range of the integers that may move to a bitmap.
pub fn window(range: Option<&RangeInclusive<u64>>) -> RangeInclusive<u64> {
    range.cloned().unwrap_or(0..=u64::from(u32::MAX))
}

/// Returns the size in bytes of a bitmap over `window`.
pub fn dense_bytes(window: &RangeInclusive<u64>) -> u64 {
    (window.end() - window.start()) / 8 + 1
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
        let mut set = IntSet::new(range, Memory::new(None).unwrap());
        let mut oracle = BTreeSet::new();
        let mut new = Answers::new();
        for values in values.chunks(10_000) {
            set.insert_each(values, &mut new).unwrap();
            for (&value, is_new) in values.iter().zip(new.iter()) {
                assert_eq!(oracle.insert(value), is_new, "{value}");
            }
        }
        assert_eq!(set.len(), oracle.len() as u64);
        let queries: Vec<u64> = values.iter().flat_map(|&value| [value, value ^ 1]).collect();
        set.contains_each(&queries, &mut new);
        for (value, is_in) in queries.iter().zip(new.iter()) {
            assert_eq!(oracle.contains(value), is_in, "{value}");
        }
        for &value in values.iter().step_by(3) {
            oracle.remove(&value);
            set.remove(value).unwrap();
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
        let set = check(None, &mixed(400_000, 32));
        assert!(!set.low.is_dense(), "a few MiB need no bitmap of 512");
        let set = check(Some(&(0..=(1 << 24) - 1)), &mixed(400_000, 40));
        assert!(set.low.is_dense());
        assert!(sorted(set).is_sorted());
    }

    #[test]
    fn integers_around_a_window_are_a_set_in_order() {
        let values = mixed(300_000, 40);
        let set = check(Some(&(1 << 20..=1 << 21)), &values);
        assert!(sorted(set).is_sorted());
    }
}
