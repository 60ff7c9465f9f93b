//! Arrow arrays of Python programs, through the Arrow PyCapsule interface.

use std::sync::{Mutex, PoisonError};

use arrow_array::ArrayRef;
use arrow_array::ffi_stream::ArrayStreamReader;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
