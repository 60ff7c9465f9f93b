//! Arrow arrays of Python programs, through the Arrow PyCapsule interface.

use std::sync::{Mutex, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::ArrayStreamReader;
use arrow_array::{Array as _, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::raw::arrow;
use crate::source::arrow::ArrowSource;

/// A chunk of an Arrow array.
#[pyclass(frozen, module = "tamis._tamis")]
pub struct ArrowChunk(ArrowSource);

impl ArrowChunk {
    /// Returns the items of the chunk.
    pub fn source(&self) -> &ArrowSource {
        &self.0
    }
}

#[pymethods]
impl ArrowChunk {
    fn __len__(&self) -> usize {
        crate::source::Source::len(&self.0)
    }
}

/// The chunks of an array or of a stream, read one after the other.
#[pyclass(frozen, module = "tamis._tamis")]
pub struct ArrowChunks(Mutex<Chunks>);

enum Chunks {
    One(Option<ArrayRef>),
    Stream(Box<ArrayStreamReader>),
}

#[pymethods]
impl ArrowChunks {
    /// Starts to read an object that has `__arrow_c_array__` or `__arrow_c_stream__`.
    #[new]
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let chunks = if object.hasattr("__arrow_c_array__")? {
            let array = arrow::array(object)?;
            ArrowSource::new(array.clone())?;
            Chunks::One(Some(array))
        } else {
            Chunks::Stream(Box::new(arrow::stream(object)?))
        };
        Ok(Self(Mutex::new(chunks)))
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowChunk>> {
        // The stream may run Python code in another thread, which needs the GIL.
        let next = py.detach(|| match &mut *self.lock() {
            Chunks::One(array) => Ok(array.take()),
            Chunks::Stream(stream) => stream.next().transpose(),
        });
        match next.map_err(|error: ArrowError| PyValueError::new_err(error.to_string()))? {
            Some(array) => ArrowSource::new(array).map(|source| Some(ArrowChunk(source))),
            None => Ok(None),
        }
    }
}

impl ArrowChunks {
    fn lock(&self) -> std::sync::MutexGuard<'_, Chunks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers as an Arrow array of booleans, which Arrow libraries read without a copy.
#[pyclass(frozen, module = "tamis._tamis")]
pub struct Booleans(BooleanArray);

#[pymethods]
impl Booleans {
    /// Creates the array from one byte for each answer.
    #[new]
    fn new(answers: &Bound<'_, PyAny>) -> PyResult<Self> {
        let answers = PyBuffer::<u8>::get(answers)?.to_vec(answers.py())?;
        let bits = BooleanBuffer::collect_bool(answers.len(), |i| answers[i] != 0);
        Ok(Self(BooleanArray::new(bits, None)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface allows a producer to ignore the requested schema.
        _ = requested_schema;
        let failed = |error: ArrowError| PyTypeError::new_err(error.to_string());
        let (array, schema): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&self.0.to_data()).map_err(failed)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}
