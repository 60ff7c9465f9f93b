//! A set of integers that chooses its data structure itself.
//!
//! The *window* is the given range, or all of `u32` without a range. Integers of the window start
//! in a sparse set. They move to a bitmap when the bitmap takes at most 64 times the memory of the
//! sparse set. The bitmap is several times as fast. Integers outside the window stay in a sparse
//! set. Every structure is exact.

use std::ops::RangeInclusive;

use tamis::{Answers, CompressedSet, DenseSet, RangeError};

use crate::commands::ints::memory::Memory;
use crate::commands::ints::sparse::SparseSet;
use crate::exit::Failure;

/// A set of any integers.
pub struct IntSet {
    window: RangeInclusive<u64>,
    memory: Memory,
    low: Low,
    high: SparseSet,
    may_be_dense: bool,
    len: u64,
    /// The number of integers at which the structures are checked again.
    check_at: u64,
}

/// The integers of the window.
enum Low {
    Sparse(SparseSet),
    Dense(DenseSet),
}

/// A bitmap may take this many times the memory of the sparse set, because it is several times as
/// fast.
const DENSE_FACTOR: u64 = 64;

/// With fewer integers than this, no change of structure pays off.
const CHECK_FROM: u64 = 1 << 18;

impl Low {
    fn memory_bytes(&self) -> u64 {
        match self {
            Low::Dense(set) => set.memory_bytes(),
            Low::Sparse(set) => set.memory_bytes(),
        }
    }

    fn insert_each(
        &mut self,
        values: &[u64],
        new: &mut Answers,
        memory: Memory,
    ) -> Result<(), Failure> {
        match self {
            Low::Sparse(set) => set.insert_each(values, new).map_err(|_| memory.refusal()),
            Low::Dense(set) => set.insert_each(values, new).map_err(Failure::new),
        }
    }
}

impl IntSet {
    /// Creates an empty set. A given `range` holds all integers that the caller will insert.
    pub fn new(range: Option<&RangeInclusive<u64>>, memory: Memory) -> Self {
        Self {
            window: window(range),
            memory,
            low: Low::Sparse(SparseSet::new(memory)),
            high: SparseSet::new(memory),
            may_be_dense: true,
            len: 0,
            check_at: CHECK_FROM,
        }
    }

    /// Forbids the bitmap, because the owner creates a bitmap itself.
    pub fn stay_compressed(mut self) -> Self {
        self.may_be_dense = false;
        self
    }

    /// Sets the memory limit from now on.
    pub fn limit(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// Returns the number of integers.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Inserts `values` in order, and sets the bits in `new` of the new ones.
    ///
    /// # Errors
    ///
    /// If the set exceeds the memory limit.
    pub fn insert_each(&mut self, values: &[u64], new: &mut Answers) -> Result<(), Failure> {
        let (low_bytes, high_bytes) = (self.low.memory_bytes(), self.high.memory_bytes());
        let Self { window, low, high, memory, .. } = self;
        high.limit(memory.less(low_bytes));
        if let Low::Sparse(low) = low {
            low.limit(memory.less(high_bytes));
        }
        let is_low = |value: &u64| window.contains(value);
        if values.iter().all(is_low) {
            low.insert_each(values, new, *memory)?;
        } else if !values.iter().any(is_low) {
            high.insert_each(values, new).map_err(|_| memory.refusal())?;
        } else {
            let (lows, highs): (Vec<_>, Vec<_>) =
                values.iter().copied().enumerate().partition(|(_, value)| is_low(value));
            let (low_places, lows): (Vec<_>, Vec<_>) = lows.into_iter().unzip();
            let (high_places, highs): (Vec<_>, Vec<_>) = highs.into_iter().unzip();
            let (mut new_low, mut new_high) = (Answers::new(), Answers::new());
            low.insert_each(&lows, &mut new_low, *memory)?;
            high.insert_each(&highs, &mut new_high).map_err(|_| memory.refusal())?;
            new.reset(values.len());
            new_low.ones().for_each(|i| new.set(low_places[i], true));
            new_high.ones().for_each(|i| new.set(high_places[i], true));
        }
        self.len += new.count_ones() as u64;
        if self.len >= self.check_at { self.check() } else { Ok(()) }
    }

    /// Sets the bits in `answers` of the values that the set holds.
    pub fn contains_each(&self, values: &[u64], answers: &mut Answers) {
        match &self.low {
            Low::Dense(set) if self.high.is_empty() => {
                set.contains_each(values, answers);
            }
            _ => answers.fill_with(values.len(), |i| self.contains(values[i])),
        }
    }

    /// Tests whether the set holds `value`.
    pub fn contains(&self, value: u64) -> bool {
        match &self.low {
            _ if !self.window.contains(&value) => self.high.contains(value),
            Low::Dense(set) => set.contains(value),
            Low::Sparse(set) => set.contains(value),
        }
    }

    /// Removes `value`. No effect if the set does not hold it.
    ///
    /// # Errors
    ///
    /// If the set exceeds the memory limit.
    pub fn remove(&mut self, value: u64) -> Result<(), Failure> {
        let was_in = match &mut self.low {
            _ if !self.window.contains(&value) => self.high.remove(value),
            Low::Dense(set) => Ok(set.remove(value)),
            Low::Sparse(set) => set.remove(value),
        };
        self.len -= u64::from(was_in.map_err(|_| self.memory.refusal())?);
        Ok(())
    }

    /// Calls `visit` with every integer, ascending, and consumes the set.
    ///
    /// # Errors
    ///
    /// Errors of `visit`.
    pub fn into_sorted(
        self,
        mut visit: impl FnMut(u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut high = self.high.into_sorted().peekable();
        while let Some(value) = high.next_if(|value| value < self.window.start()) {
            visit(value)?;
        }
        match self.low {
            Low::Dense(set) => set.iter().try_for_each(&mut visit)?,
            Low::Sparse(set) => set.into_sorted().try_for_each(&mut visit)?,
        }
        high.try_for_each(visit)
    }

    /// Removes the integers of the window from the set, and returns them.
    pub fn take_window(&mut self) -> CompressedSet {
        let empty = Low::Sparse(SparseSet::new(self.memory));
        let window = match std::mem::replace(&mut self.low, empty) {
            Low::Dense(set) => set.to_compressed(),
            Low::Sparse(set) => set.into_compressed(),
        };
        self.len -= window.len();
        window
    }

    /// Returns the approximate memory of the set in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.low.memory_bytes() + self.high.memory_bytes()
    }

    /// Tests whether the sparse set of the window is so large that a bitmap is better.
    pub fn is_crowded(&self) -> bool {
        match &self.low {
            Low::Dense(_) => false,
            Low::Sparse(set) => {
                dense_bytes(&self.window) <= DENSE_FACTOR.saturating_mul(set.memory_bytes())
            }
        }
    }

    /// Changes structures if the change pays off and the memory allows it.
    fn check(&mut self) -> Result<(), Failure> {
        let more = if self.memory.bytes().is_some() {
            (self.len / 16).max(CHECK_FROM / 8)
        } else {
            (self.len / 4).max(CHECK_FROM)
        };
        self.check_at = self.len + more;
        self.high.count_memory();
        if let Low::Sparse(set) = &mut self.low {
            set.count_memory();
        }
        let bitmap_bytes = dense_bytes(&self.window);
        if self.may_be_dense
            && self.memory.allows(bitmap_bytes + self.memory_bytes())
            && self.is_crowded()
        {
            self.make_dense()?;
        }
        self.high.compress_if_smaller(self.memory);
        if let Low::Sparse(set) = &mut self.low {
            set.compress_if_smaller(self.memory);
        }
        self.memory.check(self.memory_bytes())
    }

    fn make_dense(&mut self) -> Result<(), Failure> {
        let Low::Sparse(set) = &self.low else { return Ok(()) };
        let mut dense = match DenseSet::new(self.window.clone()) {
            Ok(dense) => dense,
            // If the memory for a bitmap cannot be allocated, the sparse set stays in use.
            Err(RangeError::OutOfMemory(_)) => return Ok(()),
            Err(error) => return Err(Failure::new(error)),
        };
        set.for_each(|value| dense.insert(value).map(|_| ())).map_err(Failure::new)?;
        self.low = Low::Dense(dense);
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
        assert!(matches!(set.low, Low::Sparse(_)), "a few MiB need no bitmap of 512");
        let set = check(Some(&(0..=(1 << 24) - 1)), &mixed(400_000, 40));
        assert!(matches!(set.low, Low::Dense(_)));
        assert!(sorted(set).is_sorted());
    }

    #[test]
    fn integers_around_a_window_are_a_set_in_order() {
        let values = mixed(300_000, 40);
        let set = check(Some(&(1 << 20..=1 << 21)), &values);
        assert!(sorted(set).is_sorted());
    }
}
