//! A set with what Python threads need to share the set: the lock, the hash function of a fast lookup,
//! and the count of new items.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tamis::Hasher;

use crate::keys::{Encoding, Keys};
use crate::raw::gil_rw_lock::GilRwLock;
use crate::raw::hash::hash_fast;
use crate::saturation::{self, Saturation};
use crate::state::{Operation, State};

/// A set that threads share.
pub struct LockedSet {
    /// The hash function, if a lookup only needs the 64-bit hash of its item.
    fast_hasher: Option<Hasher>,
    encoding: Option<Encoding>,
    is_shared: bool,
    /// True if the set forgets items by the clock of the system.
    uses_clock: bool,
    state: GilRwLock<State>,
    /// The number of new items since the set was created or read.
    new_items: AtomicU64,
    /// The number of new items at which the rate is computed next.
    check_at: AtomicU64,
    /// True if a warning about the rate was given.
    is_warned: AtomicBool,
    nulls: AtomicU64,
}

impl LockedSet {
    /// Creates a set that threads share. `uses_clock` is true if the set forgets items by the clock of
    /// the system.
    pub fn new(state: State, uses_clock: bool) -> Self {
        let encoding = state.encoding();
        let fast_hasher = match encoding {
            Some(Encoding::Hash64(hasher)) if !uses_clock => Some(hasher),
            _ => None,
        };
        let check_at = saturation::first_check(&state);
        Self {
            fast_hasher,
            encoding,
            is_shared: state.is_shared(),
            uses_clock,
            state: GilRwLock::new(state),
            new_items: AtomicU64::new(0),
            check_at: AtomicU64::new(check_at),
            is_warned: AtomicBool::new(false),
            nulls: AtomicU64::new(0),
        }
    }

    /// Tests whether an item may be in the set, if the item has a frequent type and the set is free.
    /// Returns `None` otherwise, and for every error.
    #[inline(always)]
    pub fn contains_fast(&self, py: Python<'_>, item: Borrowed<'_, '_, PyAny>) -> Option<bool> {
        let hash = hash_fast(self.fast_hasher?, item)?;
        self.state.try_read_now(py, |state| state.contains_hash(hash))?
    }

    /// Inserts an item, if the item has a frequent type and the set is free. Returns true if the item
    /// is new, and `None` if nothing was inserted.
    ///
    /// # Errors
    ///
    /// As [`count_new`](Self::count_new).
    #[inline(always)]
    pub fn add_fast(
        &self,
        py: Python<'_>,
        item: Borrowed<'_, '_, PyAny>,
    ) -> Option<PyResult<bool>> {
        let hash = hash_fast(self.fast_hasher?, item)?;
        let is_new = if self.is_shared {
            self.state.try_read_now(py, |state| state.insert_hash_shared(hash))?
        } else {
            self.state.try_write_now(py, |state| state.insert_hash(hash))?
        };
        let is_new = is_new?;
        Some(if is_new { self.count_new(py, 1).map(|()| true) } else { Ok(false) })
    }

    /// Runs an operation on one item.
    ///
    /// # Errors
    ///
    /// The exception for an item that the set cannot hold, or the error of the set.
    #[inline(never)]
    pub fn one(
        &self,
        py: Python<'_>,
        item: Borrowed<'_, '_, PyAny>,
        operation: Operation,
    ) -> PyResult<bool> {
        Ok(self.run_keys(py, &self.encode(item)?, operation)?.get(0))
    }

    /// Runs an operation on a batch of encoded items.
    ///
    /// # Errors
    ///
    /// The error of the set.
    pub fn run_keys(
        &self,
        py: Python<'_>,
        keys: &Keys,
        operation: Operation,
    ) -> PyResult<tamis::Answers> {
        let mut answers = tamis::Answers::new();
        let now = self.now_millis();
        let done = match operation {
            Operation::Contains if !self.uses_clock => {
                self.state.read_now(py, |state| state.contains(keys, &mut answers))?
            }
            Operation::Insert if self.is_shared => {
                self.state.read_now(py, |state| state.insert_shared(keys, &mut answers))?
            }
            _ => self.state.write_now(py, |state| {
                if let Some(now) = now {
                    state.advance(now);
                }
                match operation {
                    Operation::Contains => state.contains(keys, &mut answers),
                    Operation::Insert => state.insert(keys, &mut answers),
                }
            })?,
        };
        done?;
        if operation == Operation::Insert {
            self.count_new(py, answers.count_ones() as u64)?;
        }
        Ok(answers)
    }

    /// Returns the set.
    pub fn state(&self) -> &GilRwLock<State> {
        &self.state
    }

    /// Returns the form in which the set tests its items.
    ///
    /// # Errors
    ///
    /// `ValueError` if neither the file nor the caller states the type of the items.
    pub fn encoding(&self) -> PyResult<Encoding> {
        self.encoding.ok_or_else(|| {
            PyValueError::new_err(
                "the format does not state the type of its items: give funnel=... to tamis.open or \
                 tamis.create, for example funnel='text', charset='utf-8'",
            )
        })
    }

    /// Tests whether several threads insert at the same time.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Tests whether the set forgets items by the clock of the system.
    pub fn uses_clock(&self) -> bool {
        self.uses_clock
    }

    /// Returns the time of the system, if the set forgets items by this time.
    pub fn now_millis(&self) -> Option<u64> {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.uses_clock.then(|| now().as_millis() as u64)
    }

    /// Encodes one item.
    ///
    /// # Errors
    ///
    /// The exception for an item that the set cannot hold.
    pub fn encode(&self, item: Borrowed<'_, '_, PyAny>) -> PyResult<Keys> {
        let encoding = self.encoding()?;
        let mut keys = encoding.keys();
        encoding.push(item, &mut keys)?;
        Ok(keys)
    }

    /// Removes all items.
    ///
    /// # Errors
    ///
    /// The error of the set.
    pub fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.write(py)?;
        py.detach(|| state.clear())?;
        self.new_items.store(0, Ordering::Relaxed);
        self.is_warned.store(false, Ordering::Relaxed);
        self.check_at.store(saturation::first_check(&state), Ordering::Relaxed);
        Ok(())
    }

    /// Returns how many nulls the batches skipped.
    pub fn nulls(&self) -> u64 {
        self.nulls.load(Ordering::Relaxed)
    }

    /// Counts nulls that a batch skipped.
    pub fn count_nulls(&self, nulls: u64) {
        self.nulls.fetch_add(nulls, Ordering::Relaxed);
    }

    /// Counts new items, and warns once if the filter has passed its rate.
    ///
    /// # Errors
    ///
    /// `SaturatedWarning`, if the program turns warnings into errors. The items have been inserted.
    #[inline(always)]
    pub fn count_new(&self, py: Python<'_>, items: u64) -> PyResult<()> {
        let count = if self.is_shared || cfg!(Py_GIL_DISABLED) {
            self.new_items.fetch_add(items, Ordering::Relaxed) + items
        } else {
            // The thread holds the GIL, so no locked instruction is needed.
            let count = self.new_items.load(Ordering::Relaxed) + items;
            self.new_items.store(count, Ordering::Relaxed);
            count
        };
        if count >= self.check_at.load(Ordering::Relaxed) {
            self.check_rate(py, count)
        } else {
            Ok(())
        }
    }

    /// Warns once if the filter has passed its rate by a merge.
    ///
    /// # Errors
    ///
    /// As [`count_new`](Self::count_new).
    pub fn check_after_merge(&self, py: Python<'_>) -> PyResult<()> {
        // The filter has no rate, or a warning was given.
        if self.check_at.load(Ordering::Relaxed) == u64::MAX {
            return Ok(());
        }
        self.check_rate(py, self.new_items.load(Ordering::Relaxed))
    }

    #[cold]
    fn check_rate(&self, py: Python<'_>, count: u64) -> PyResult<()> {
        let found = {
            let state = self.state.read(py)?;
            py.detach(|| Saturation::of(&state))
        };
        let Some(Saturation { is_over_rate, capacity, rate }) = found else { return Ok(()) };
        // The rate is computed again after a sixteenth of the capacity.
        self.check_at.store(count + (capacity / 16).max(64), Ordering::Relaxed);
        if !is_over_rate || self.is_warned.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.check_at.store(u64::MAX, Ordering::Relaxed);
        let module = py.import("tamis._errors")?;
        let message = format!(
            "the filter was planned for {capacity} items and has passed its rate of {rate}: more \
             and more new items will look like present ones; plan a filter for more items, or use \
             tamis.Growing"
        );
        module.call_method1("warn_saturated", (message,)).map(drop)
    }

    /// Waits for the set, and calls `action` without the GIL.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler.
    pub fn read<R: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&State) -> R + Send,
    ) -> PyResult<R> {
        let state = self.state.read(py)?;
        Ok(py.detach(|| action(&state)))
    }
}
