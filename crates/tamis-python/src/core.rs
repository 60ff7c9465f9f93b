//! The class `Core`: a set of any kind, with all operations that are not in [`slots`](crate::raw::slots).

mod objects;
mod report;
pub mod storage;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tamis::{Hasher, Removed};

use crate::arrays::ArrowChunk;
use crate::batch::{self, Call, Operation};
use crate::errors;
use crate::handle::Handle;
use crate::keys::{Encoding, Keys};
use crate::raw::buffer::AnswerBuffer;
use crate::raw::guarded::Guarded;
use crate::raw::slots::hash_fast;
use crate::source::Source;
use crate::source::buffer::BufferSource;
use crate::state::{Refusal, State};

/// A set of items. The Python classes `tamis.Bloom` and so on extend this class.
#[pyclass(frozen, subclass, module = "tamis._tamis")]
pub struct Core {
    /// The hash function, if a lookup only needs the 64-bit hash of its item.
    hot: Option<Hasher>,
    encoding: Option<Encoding>,
    is_shared: bool,
    /// True if the set forgets items by the clock of the system.
    ages: bool,
    state: Guarded<State>,
    /// The number of new items since the set was created or read.
    new_items: AtomicU64,
    /// The number of new items at which the rate is computed next.
    check_at: AtomicU64,
    /// True if a warning about the rate was given.
    is_warned: AtomicBool,
    nulls: AtomicU64,
}

impl Core {
    /// Tests whether an item may be in the set, if the item has a frequent type and the set is free.
    /// Returns `None` otherwise, and for every error.
    #[inline(always)]
    pub fn contains_fast(&self, py: Python<'_>, item: Borrowed<'_, '_, PyAny>) -> Option<bool> {
        let hash = hash_fast(self.hot?, item)?;
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
        let hash = hash_fast(self.hot?, item)?;
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
    /// The exception for an item that the set cannot hold, or the refusal of the set.
    #[inline(never)]
    pub fn one(
        &self,
        py: Python<'_>,
        item: Borrowed<'_, '_, PyAny>,
        operation: Operation,
    ) -> PyResult<bool> {
        let encoding = self.encoding()?;
        let mut keys = encoding.keys();
        encoding.push(item, &mut keys)?;
        Ok(self.run_keys(py, &keys, operation)?.get(0))
    }

    /// Runs an operation on a batch of encoded items.
    fn run_keys(
        &self,
        py: Python<'_>,
        keys: &Keys,
        operation: Operation,
    ) -> PyResult<tamis::Answers> {
        let mut answers = tamis::Answers::new();
        let now = self.now_millis();
        let done = match operation {
            Operation::Contains if !self.ages => {
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
        done.map_err(errors::refused)?;
        if operation == Operation::Insert {
            self.count_new(py, answers.count_ones() as u64)?;
        }
        Ok(answers)
    }

    /// Returns the set.
    pub fn state(&self) -> &Guarded<State> {
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
                "the file does not state the type of its items: open it with funnel=..., for \
                 example funnel='text', charset='utf-8'; tamis.formats() lists the formats",
            )
        })
    }

    /// Tests whether several threads insert at the same time.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Tests whether the set forgets items by the clock of the system.
    pub fn ages(&self) -> bool {
        self.ages
    }

    /// Returns the time of the system, if the set forgets items by this time.
    pub fn now_millis(&self) -> Option<u64> {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.ages.then(|| now().as_millis() as u64)
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
        let (is_over, capacity, rate) = {
            let state = self.state.read(py)?;
            py.detach(|| report::saturation(&state))
        };
        // The rate is computed again after a sixteenth of the capacity.
        self.check_at.store(count + (capacity / 16).max(64), Ordering::Relaxed);
        if !is_over || self.is_warned.swap(true, Ordering::Relaxed) {
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
    fn read<R: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&State) -> R + Send,
    ) -> PyResult<R> {
        let state = self.state.read(py)?;
        Ok(py.detach(|| action(&state)))
    }
}

#[pymethods]
impl Core {
    /// Takes the set of a handle.
    #[new]
    fn new(handle: &Handle) -> PyResult<Self> {
        let (state, ages) = handle.take()?;
        let encoding = state.encoding();
        let hot = match encoding {
            Some(Encoding::Hash64(hasher)) if !ages => Some(hasher),
            _ => None,
        };
        let check_at = report::first_check(&state);
        Ok(Self {
            hot,
            encoding,
            is_shared: state.is_shared(),
            ages,
            state: Guarded::new(state),
            new_items: AtomicU64::new(0),
            check_at: AtomicU64::new(check_at),
            is_warned: AtomicBool::new(false),
            nulls: AtomicU64::new(0),
        })
    }

    /// Runs an operation on an array. Returns the numbers of true answers and of nulls.
    #[expect(clippy::too_many_arguments, reason = "Python code names the arguments")]
    #[pyo3(signature = (array, is_insert, threads, out, answer_of_null, progress))]
    fn _run(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        is_insert: bool,
        threads: usize,
        out: Option<&Bound<'_, PyAny>>,
        answer_of_null: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(u64, u64)> {
        let operation = if is_insert { Operation::Insert } else { Operation::Contains };
        let out = out.map(AnswerBuffer::new).transpose()?;
        let out = out.as_ref();
        let buffer;
        let source: &dyn Source = match array.cast::<ArrowChunk>() {
            Ok(chunk) => chunk.get().source(),
            Err(_) => {
                buffer = BufferSource::new(array)?;
                &buffer
            }
        };
        let rows = out.map_or_else(|| source.len(), AnswerBuffer::len);
        if rows != source.len() {
            return Err(PyValueError::new_err("the answers have another length than the array"));
        }
        let call = Call { operation, threads, out, answer_of_null, progress };
        let counts = batch::run(py, self, source, &call)?;
        Ok((counts.yes, counts.nulls))
    }

    /// Removes one copy of an item. Returns False if the item is absent.
    fn _remove(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let encoding = self.encoding()?;
        let mut keys = encoding.keys();
        encoding.push(item.as_borrowed(), &mut keys)?;
        let removed = self.state.write_now(py, |state| state.remove(&keys))?;
        match removed.map_err(errors::refused)? {
            Removed::Yes => Ok(true),
            Removed::Absent => Ok(false),
            Removed::Saturated => Err(errors::new(
                "FullError",
                "the item was inserted more often than the filter can count, so it cannot be \
                 removed",
            )),
        }
    }

    /// Inserts one more copy of an item.
    fn _add_copy(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let encoding = self.encoding()?;
        let mut keys = encoding.keys();
        encoding.push(item.as_borrowed(), &mut keys)?;
        let is_new = self.state.write_now(py, |state| state.insert_copy(&keys))?;
        let is_new = is_new.map_err(errors::refused)?;
        self.count_new(py, u64::from(is_new))?;
        Ok(is_new)
    }

    /// Returns an upper bound of how often an item was inserted.
    fn _count(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<u64> {
        let encoding = self.encoding()?;
        let mut keys = encoding.keys();
        encoding.push(item.as_borrowed(), &mut keys)?;
        let count = self.state.read_now(py, |state| state.count(&keys))?;
        count.map_err(errors::refused)
    }

    /// Merges all items of another set.
    fn _merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        storage::merge(slf, other)
    }

    /// Removes all items.
    fn _clear(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.write(py)?;
        py.detach(|| state.clear()).map_err(errors::refused)?;
        self.new_items.store(0, Ordering::Relaxed);
        self.is_warned.store(false, Ordering::Relaxed);
        self.check_at.store(report::first_check(&state), Ordering::Relaxed);
        Ok(())
    }

    /// Sets the time of a window, in milliseconds since 1970.
    fn _advance(&self, py: Python<'_>, now_millis: u64) -> PyResult<()> {
        let done = self.state.write_now(py, |state| {
            state.advance(now_millis);
            if matches!(state, State::Closed) { Err(Refusal::Closed) } else { Ok(()) }
        })?;
        done.map_err(errors::refused)
    }

    /// Closes the file of a mapped filter, or syncs and closes the file of a `DigestFile`. Later operations raise `ClosedError`.
    fn _close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.write(py)?;
        state.sync().map_err(errors::refused)?;
        if matches!(*state, State::Mapped(_) | State::Durable64(_) | State::Durable128(_)) {
            *state = State::Closed;
        }
        Ok(())
    }

    /// Waits until all items of a `DigestFile` are on the disk.
    fn _sync(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.write(py)?;
        py.detach(|| state.sync()).map_err(errors::refused)
    }

    /// Returns how many nulls the batches of this object skipped.
    #[getter]
    fn _nulls(&self) -> u64 {
        self.nulls.load(Ordering::Relaxed)
    }

    /// Returns True if no item was inserted.
    fn _is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, State::is_empty)?.map_err(errors::refused)
    }

    /// Returns the number of items of an exact set.
    fn _len(&self, py: Python<'_>) -> PyResult<u64> {
        let len = self.state.read_now(py, State::exact_len)?;
        len.map_err(errors::refused)?
            .ok_or_else(|| PyTypeError::new_err("only exact sets have a length"))
    }

    /// Returns True if both sets have the same parameters and the same bits.
    fn _equals(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        storage::equals(slf, other)
    }

    /// Returns the report about the set, as pairs of name and value.
    fn _report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let report = self.read(py, report::Report::new)?.map_err(errors::refused)?;
        report.to_dict(py)
    }

    /// Returns an independent copy in memory, which can change.
    fn _copy(&self, py: Python<'_>) -> PyResult<Handle> {
        let copy = self.read(py, storage::copy)?.map_err(errors::refused)?;
        Ok(Handle::new(copy, self.ages))
    }

    /// Returns the bytes of the set's file, in the format `format`.
    #[pyo3(signature = (format, options))]
    fn _to_bytes<'py>(
        &self,
        py: Python<'py>,
        format: Option<&str>,
        options: &Bound<'_, pyo3::types::PyDict>,
    ) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        let options = crate::files::DecodeArgs::new(options)?;
        let bytes = self.read(py, |state| storage::to_bytes(state, format, &options))??;
        Ok(pyo3::types::PyBytes::new(py, &bytes))
    }

    /// Writes the set's file, and replaces a previous file atomically.
    #[pyo3(signature = (path, format, options))]
    fn _save(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        format: Option<&str>,
        options: &Bound<'_, pyo3::types::PyDict>,
    ) -> PyResult<()> {
        let options = crate::files::DecodeArgs::new(options)?;
        let path: std::path::PathBuf = path.extract()?;
        self.read(py, |state| storage::save(state, &path, format, &options))?
    }

    /// Tests or inserts the items of an iterable. Returns a list of answers.
    fn _list<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        is_insert: bool,
    ) -> PyResult<Bound<'py, pyo3::types::PyList>> {
        let operation = if is_insert { Operation::Insert } else { Operation::Contains };
        objects::answers(self, items, operation)
    }

    /// Returns the bytes and the other values from which `Handle._unpickle` restores the set.
    fn _pickle<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, pyo3::types::PyBytes>, Bound<'py, pyo3::types::PyDict>)> {
        crate::pickle::pickle(self, py)
    }

    /// Inserts the items of an iterable.
    fn _update(&self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        objects::update(self, items)
    }
}
