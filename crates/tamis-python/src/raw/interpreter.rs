//! Tests which interpreter of the process runs.

use pyo3::ffi;
use pyo3::prelude::*;

/// Tests whether the thread runs in the main interpreter, which is the last one to end.
pub fn is_main(_py: Python<'_>) -> bool {
    // SAFETY: the thread is attached to an interpreter. The main interpreter has the number 0.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}
