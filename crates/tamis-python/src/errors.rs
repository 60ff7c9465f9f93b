//! The exceptions of the package. The classes are Python code, in `tamis/_errors.py`.

use std::fmt::Display;

use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::refusal::Refusal;

/// Creates an exception of a class of `tamis/_errors.py`.
pub fn new(class: &str, message: impl Display) -> PyErr {
    Python::attach(|py| {
        let found = py.import("tamis._errors").and_then(|module| module.getattr(class));
        match found.and_then(|class| class.cast_into::<PyType>().map_err(PyErr::from)) {
            Ok(class) => PyErr::from_type(class, message.to_string()),
            Err(error) => error,
        }
    })
}

/// Returns the exception for the refusal of a set.
pub fn refused(refusal: Refusal) -> PyErr {
    match refusal {
        Refusal::Closed => new("ClosedError", "the file of this filter is closed"),
        Refusal::ReadOnly => new(
            "ReadOnlyError",
            "this filter is in a mapped file, which cannot change: change f.copy(), or open the \
             file with tamis.open(path, writable=True)",
        ),
        Refusal::Full { why, inserted: 0 } => new("FullError", why),
        Refusal::Full { why, .. } => {
            new("FullError", format!("{why}; all items before this item were inserted"))
        }
        Refusal::File(why) => new("FileError", why),
        Refusal::Damaged(why) | Refusal::Rejected(why) => new("FormatError", why),
        Refusal::Memory => PyMemoryError::new_err("no memory for more items"),
        Refusal::Unsupported(why) => PyTypeError::new_err(why),
    }
}
