//! Reads integers of 64 bits without exceptions.
//!
//! A conversion of pyo3 creates an exception for an integer that does not fit. pyo3 frees a dropped
//! exception later if the caller is a slot of [`slots`](super::slots), so a loop over large integers
//! would collect exceptions.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// Returns the 64 bits of an integer and whether the integer is negative, or `None` if the integer
/// is below −2⁶³ or above 2⁶⁴ − 1.
pub fn bits_of(integer: &Bound<'_, PyInt>) -> Option<(u64, bool)> {
    let mut overflow = 0;
    // SAFETY: the object is an integer, and the thread is attached. A conversion that fails sets an
    // exception, which `PyErr_Clear` removes.
    unsafe {
        let value = ffi::PyLong_AsLongLongAndOverflow(integer.as_ptr(), &raw mut overflow);
        match overflow {
            0 => return Some((value as u64, value < 0)),
            1 => {}
            _ => return None,
        }
        let value = ffi::PyLong_AsUnsignedLongLong(integer.as_ptr());
        if value == u64::MAX && !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some((value, false))
    }
}
