//! A cell: a key with its value.

use std::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceBox;
use parking_lot::RwLock;
use tamis_commands::{SmallBytes, Value, allocation_bytes_of_glibc};

use crate::stats::measurement::Measurement;

/// A key and its value. A thread may still use a cell after the cell was removed from the table.
///
/// A server may hold tens of millions of keys. To save memory, a cell and its reference count share
/// one allocation of 88 bytes. The allocator takes 96 bytes for an allocation of 88 bytes. A key of
/// more than 22 bytes has its own allocation. The cell of a filter has a separate allocation for
/// the last measurement of the filter.
#[derive(Debug)]
pub(super) struct Cell {
    pub key: SmallBytes,
    pub state: RwLock<CellState>,
    /// The number of the key's last change. The two highest bits of the number store the result of
    /// a measurement if the result needs no allocation.
    version: AtomicU64,
    measurement: OnceBox<Measurement>,
}

/// The value is not a filter.
const NO_FILTER: u64 = 1 << 63;
/// The value is a filter without items.
const EMPTY: u64 = 1 << 62;

impl Cell {
    pub fn new(key: &[u8]) -> Self {
        Self {
            key: key.into(),
            state: RwLock::default(),
            version: AtomicU64::new(0),
            measurement: OnceBox::new(),
        }
    }

    /// Returns the memory of the cell without the value, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        let measurement = self.measurement.get().map_or(0, |_| MEASUREMENT_BYTES);
        CELL_BYTES + self.key.heap_bytes() + measurement
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed) & !(NO_FILTER | EMPTY)
    }

    /// Sets the version after a change and clears the measurement bits, because the type of the
    /// value may have changed.
    pub fn set_version(&self, version: u64) {
        self.version.store(version, Ordering::Relaxed);
    }

    /// Measures the filter. Returns the number of bytes that the measurement allocated.
    pub fn measure(&self, now_millis: u64) -> i64 {
        // If another thread has locked the key, the next pass over all keys measures the key.
        let Some(state) = self.state.try_read() else { return 0 };
        if state.is_removed() {
            return 0;
        }
        let Some(value) = state.value(now_millis) else { return 0 };
        let utilization = value.utilization(now_millis);
        if self.measurement.get().is_none() {
            let known = match &utilization {
                None => NO_FILTER,
                Some(utilization) if utilization.items == 0.0 => EMPTY,
                Some(_) => 0,
            };
            if known != 0 {
                self.version.fetch_or(known, Ordering::Relaxed);
                return 0;
            }
        }
        let is_new =
            self.measurement.get().is_none() && self.measurement.set(Box::default()).is_ok();
        self.measurement.get().expect("just made").note(utilization, now_millis);
        if is_new { MEASUREMENT_BYTES as i64 } else { 0 }
    }

    /// Tests whether the last measurement found that the value is not a filter. Every change of the
    /// value clears this result. Returns false if the cell has ever stored a measurement, because the
    /// cell must then update the measurement.
    pub fn is_known_non_filter(&self) -> bool {
        self.measurement.get().is_none() && self.version.load(Ordering::Relaxed) & NO_FILTER != 0
    }

    /// Returns the used share of the capacity of a filter. Returns `None` before the first
    /// measurement. The share is negative if the value is not a filter.
    pub fn used(&self) -> Option<f32> {
        match self.measurement.get() {
            Some(measurement) => measurement.used(),
            None => match self.version.load(Ordering::Relaxed) {
                version if version & NO_FILTER != 0 => Some(-1.0),
                version if version & EMPTY != 0 => Some(0.0),
                _ => None,
            },
        }
    }

    /// Returns the number of items at the last measurement. Returns `None` before the first
    /// measurement, or if the value is not a filter.
    pub fn items(&self) -> Option<u64> {
        match self.measurement.get() {
            Some(measurement) => measurement.items(),
            None => (self.version.load(Ordering::Relaxed) & EMPTY != 0).then_some(0),
        }
    }

    /// Returns the recent insertion rate in items per second. Returns `None` before the second
    /// measurement.
    pub fn per_second(&self) -> Option<f64> {
        self.measurement.get()?.per_second()
    }
}

/// The size of a cell's allocation, which includes the reference count before the cell.
const CELL_BYTES: u64 = allocation_bytes_of_glibc(size_of::<usize>() + size_of::<Cell>());
const MEASUREMENT_BYTES: u64 = allocation_bytes_of_glibc(size_of::<Measurement>());

#[derive(Debug)]
pub(super) struct CellState {
    /// The value in stored form: a small filter without items is [empty](Value::Empty).
    pub value: Option<Value>,
    /// The expiry time in milliseconds since 1970, or `NEVER`, or `REMOVED`.
    time: u64,
}

/// The key does not expire.
const NEVER: u64 = u64::MAX;
/// The key was removed from the table. A command that finds a cell with the time `REMOVED` must
/// look up the key again.
const REMOVED: u64 = u64::MAX - 1;

impl Default for CellState {
    fn default() -> Self {
        Self { value: None, time: NEVER }
    }
}

impl CellState {
    pub fn mark_removed(&mut self) {
        self.time = REMOVED;
    }

    pub fn is_removed(&self) -> bool {
        self.time == REMOVED
    }

    /// Returns the expiry time of the key, in milliseconds since 1970.
    pub fn expires_millis(&self) -> Option<u64> {
        (self.time < REMOVED).then_some(self.time)
    }

    pub fn set_expires_millis(&mut self, at: Option<u64>) {
        self.time = at.map_or(NEVER, |at| at.min(REMOVED - 1));
    }

    pub fn is_expired(&self, now_millis: u64) -> bool {
        self.expires_millis().is_some_and(|at| at <= now_millis)
    }

    pub fn has_time(&self) -> bool {
        self.value.is_some() && self.expires_millis().is_some()
    }

    /// Returns the stored value unless the value has expired. The value may be
    /// [empty](Value::Empty).
    pub fn value(&self, now_millis: u64) -> Option<&Value> {
        if self.is_expired(now_millis) { None } else { self.value.as_ref() }
    }

    /// Runs `run` with the value in the form that commands need. Runs `run` with `None` if the
    /// value has expired.
    #[inline]
    pub fn with_value<R>(&self, now_millis: u64, run: impl FnOnce(Option<&Value>) -> R) -> R {
        match self.value(now_millis) {
            Some(empty @ Value::Empty(_)) => empty.with_built(|value| run(Some(value))),
            value => run(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_its_count_fits_96_bytes() {
        assert_eq!((size_of::<Cell>(), CELL_BYTES), (80, 96));
    }

    #[test]
    fn an_expiry_time_is_stored_or_limited() {
        let mut state = CellState::default();
        for at in [0, 1, u64::MAX - 2, u64::MAX - 1, u64::MAX] {
            state.set_expires_millis(Some(at));
            assert_eq!(state.expires_millis(), Some(at.min(u64::MAX - 2)));
            assert!(!state.is_removed());
        }
        state.set_expires_millis(None);
        assert_eq!((state.expires_millis(), state.is_expired(u64::MAX)), (None, false));
        state.mark_removed();
        assert!(state.is_removed() && !state.is_expired(u64::MAX));
    }
}
