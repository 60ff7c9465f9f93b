//! The class `Core`: a set of any kind, with all operations that are not in
//! [`slots`](crate::raw::slots).

use std::path::PathBuf;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tamis::Removed;

use crate::arrays::ArrowChunk;
use crate::batch::{self, Call};
use crate::decode_args::DecodeArgs;
use crate::handle::Handle;
use crate::output::Output;
use crate::report::Report;
use crate::set::LockedSet;
use crate::set_error::SetError;
use crate::source::Source;
use crate::source::buffer::BufferSource;
use crate::state::{Operation, State};
use crate::{errors, merge, objects, pickle, storage};

/// A set of items. The Python classes `tamis.Bloom` and so on extend this class.
#[pyclass(frozen, subclass, module = "tamis._tamis")]
pub struct Core(pub LockedSet);

#[pymethods]
impl Core {
    /// Takes the set of a handle.
    #[new]
    fn new(handle: &Handle) -> PyResult<Self> {
        let (state, uses_clock) = handle.take()?;
        Ok(Self(LockedSet::new(state, uses_clock)))
    }

    /// Runs an operation on an array.
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
    ) -> PyResult<()> {
        let operation = if is_insert { Operation::Insert } else { Operation::Contains };
        let out = out.map(Output::new).transpose()?;
        let out = out.as_ref();
        let buffer;
        let source: &dyn Source = match array.cast::<ArrowChunk>() {
            Ok(chunk) => chunk.get().source(),
            Err(_) => {
                buffer = BufferSource::new(array)?;
                &buffer
            }
        };
        let rows = out.map_or_else(|| source.len(), Output::len);
        if rows != source.len() {
            return Err(PyValueError::new_err("the answers have another length than the array"));
        }
        let call = Call { operation, threads, out, answer_of_null, progress };
        batch::run(py, &self.0, source, &call)
    }

    /// Removes one copy of an item. Returns False if the item is absent.
    fn _remove(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let keys = self.0.encode(item.as_borrowed())?;
        let removed = self.0.state().write_now(py, |state| state.remove(&keys))?;
        match removed? {
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
        let keys = self.0.encode(item.as_borrowed())?;
        let is_new = self.0.state().write_now(py, |state| state.insert_copy(&keys))?;
        let is_new = is_new?;
        self.0.count_new(py, u64::from(is_new))?;
        Ok(is_new)
    }

    /// Returns an upper bound of how often an item was inserted.
    fn _count(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<u64> {
        let keys = self.0.encode(item.as_borrowed())?;
        let count = self.0.state().read_now(py, |state| state.count(&keys))?;
        count.map_err(PyErr::from)
    }

    /// Merges all items of another set.
    fn _merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        merge::merge(slf.py(), &slf.get().0, &other.get().0)
    }

    /// Removes all items.
    fn _clear(&self, py: Python<'_>) -> PyResult<()> {
        self.0.clear(py)
    }

    /// Counts nulls that Python code skipped.
    fn _count_nulls(&self, nulls: u64) {
        self.0.count_nulls(nulls);
    }

    /// Sets the time of a window, in milliseconds since the epoch that the program chose.
    fn _advance(&self, py: Python<'_>, now_millis: u64) -> PyResult<()> {
        let is_closed = self.0.state().read_now(py, |state| matches!(state, State::Closed))?;
        if self.0.uses_clock() && !is_closed {
            return Err(PyValueError::new_err(
                "the window has the clock of the system: create and open it with clock=False to \
                 set its time",
            ));
        }
        let done = self.0.state().write_now(py, |state| {
            state.advance(now_millis);
            if matches!(state, State::Closed) { Err(SetError::Closed) } else { Ok(()) }
        })?;
        done.map_err(PyErr::from)
    }

    /// Closes the file of a mapped filter, or syncs and closes the file of a `DigestFile`. Later
    /// operations raise `ClosedError`. If the sync fails, the file is closed, and later changes and
    /// closes raise the error again.
    fn _close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.0.state().write(py)?;
        py.detach(|| state.close()).map_err(PyErr::from)
    }

    /// Waits until all items of a `DigestFile` are on the disk.
    fn _sync(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.0.state().write(py)?;
        py.detach(|| state.sync()).map_err(PyErr::from)
    }

    /// Returns how many nulls the batches of this object skipped.
    #[getter]
    fn _nulls(&self) -> u64 {
        self.0.nulls()
    }

    /// Returns True if no item was inserted.
    fn _is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.read(py, State::is_empty)?.map_err(PyErr::from)
    }

    /// Returns the number of items of an exact set.
    fn _len(&self, py: Python<'_>) -> PyResult<u64> {
        let len = self.0.state().read_now(py, State::exact_len)?;
        len?.ok_or_else(|| PyTypeError::new_err("only exact sets have a length"))
    }

    /// Returns True if both sets have the same parameters and the same bits.
    fn _equals(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        merge::equals(slf.py(), &slf.get().0, &other.get().0)
    }

    /// Returns the report about the set, as pairs of name and value.
    fn _report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.0.read(py, Report::new)??;
        report.to_dict(py)
    }

    /// Returns the capacity, the planned rate and the size in bytes.
    fn _plan(&self, py: Python<'_>) -> PyResult<(Option<u64>, Option<f64>, u64)> {
        let report = self.0.read(py, Report::of_plan)??;
        Ok(report.plan())
    }

    /// Returns an independent copy in memory, which can change.
    fn _copy(&self, py: Python<'_>) -> PyResult<Handle> {
        let copy = self.0.read(py, storage::copy)??;
        Ok(Handle::new(copy, self.0.uses_clock()))
    }

    /// Returns the bytes of the set's file, in the format `format`.
    #[pyo3(signature = (format, options))]
    fn _to_bytes<'py>(
        &self,
        py: Python<'py>,
        format: Option<&str>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = DecodeArgs::new(options)?;
        let bytes = self.0.read(py, |state| storage::to_bytes(state, format, &options))??;
        pickle::python_bytes(py, &bytes)
    }

    /// Writes the set's file, and replaces a previous file atomically.
    #[pyo3(signature = (path, format, options))]
    fn _save(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        format: Option<&str>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let options = DecodeArgs::new(options)?;
        let path: PathBuf = path.extract()?;
        self.0.read(py, |state| storage::save(state, &path, format, &options))?
    }

    /// Tests or inserts the items of an iterable, or the items `start..stop` of a list. Returns a list
    /// of answers.
    #[pyo3(signature = (items, is_insert, start=0, stop=usize::MAX))]
    fn _list<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        is_insert: bool,
        start: usize,
        stop: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let operation = if is_insert { Operation::Insert } else { Operation::Contains };
        objects::answers(&self.0, items, start..stop, operation)
    }

    /// Returns the bytes and the other values from which `Handle._unpickle` restores the set.
    fn _pickle<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyDict>)> {
        pickle::pickle(&self.0, py)
    }

    /// Inserts the items of an iterable, or the items `start..stop` of a list.
    #[pyo3(signature = (items, start=0, stop=usize::MAX))]
    fn _update(&self, items: &Bound<'_, PyAny>, start: usize, stop: usize) -> PyResult<()> {
        objects::update(&self.0, items, start..stop)
    }
}
