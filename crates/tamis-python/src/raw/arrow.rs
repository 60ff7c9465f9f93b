//! Takes arrays and streams out of the capsules of the Arrow PyCapsule interface.

use arrow_array::ArrayRef;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

/// Takes the stream out of the capsule that `object.__arrow_c_stream__()` returns.
///
/// # Errors
///
/// The exception of the object, or `ValueError` if the object returns something else.
pub fn stream(object: &Bound<'_, PyAny>) -> PyResult<ArrayStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: the name of the capsule states that the pointer is to an ArrowArrayStream.
    // `from_raw` moves the stream out, and marks the stream in the capsule as released.
    let reader =
        unsafe { ArrayStreamReader::from_raw(pointer.as_ptr().cast::<FFI_ArrowArrayStream>()) };
    reader.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Takes the array out of the capsules that `object.__arrow_c_array__()` returns.
///
/// # Errors
///
/// The exception of the object, or `ValueError` if the object returns something else.
pub fn array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = object.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        capsules.cast::<PyTuple>()?.extract()?;
    let (schema, array) = (schema.cast::<PyCapsule>()?, array.cast::<PyCapsule>()?);
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: the names of the capsules state the types of the pointers.
    let is_released = unsafe { array.as_ref() }.is_released();
    if is_released {
        return Err(PyValueError::new_err("the Arrow array of the capsule was already taken"));
    }
    // SAFETY: the names of the capsules state the types of the pointers. `from_raw` moves the array
    // out, and marks the array in the capsule as released.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    let data = data.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(arrow_array::make_array(data))
}
