//! The exceptions of the package. The classes are Python code, in `tamis/_errors.py`.

use std::fmt::Display;
use std::io;
use std::path::Path;

use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use tamis_formats::FileErrorKind;

use crate::set_error::SetError;

/// Creates an exception of a class of `tamis/_errors.py`.
pub fn new(class: &str, message: impl Display) -> PyErr {
    with_args(class, message.to_string())
}

/// Creates the exception for an operation of the operating system on a file that failed. `message`
/// says more than the error.
pub fn file(path: &Path, error: &io::Error, message: &str) -> PyErr {
    let Some(number) = error.raw_os_error() else {
        return new("FileError", format!("{}: {message}", path.display()));
    };
    let class = match error.kind() {
        io::ErrorKind::NotFound => "FileNotFoundError",
        io::ErrorKind::PermissionDenied => "PermissionError",
        _ => "FileError",
    };
    // Python prints the number itself.
    let message = message.replace(&format!(" (os error {number})"), "");
    with_args(class, (number, message, path.as_os_str().to_owned()))
}

/// Creates the exception for a file that cannot be saved.
pub fn unsaved(error: &tamis_formats::FileError) -> PyErr {
    let whole = error.to_string();
    let name = format!("{}: ", error.path.display());
    let message = whole.strip_prefix(&name).unwrap_or(&whole);
    match &error.kind {
        FileErrorKind::Read(reason)
        | FileErrorKind::Write(reason)
        | FileErrorKind::SyncFolder(reason) => file(&error.path, reason, message),
        _ => new("FileError", whole),
    }
}

fn with_args<A>(class: &str, args: A) -> PyErr
where
    A: pyo3::PyErrArguments + Send + Sync + 'static,
{
    Python::attach(|py| {
        let found = py.import("tamis._errors").and_then(|module| module.getattr(class));
        match found.and_then(|class| class.cast_into::<PyType>().map_err(PyErr::from)) {
            Ok(class) => PyErr::from_type(class, args),
            Err(error) => error,
        }
    })
}

impl From<SetError> for PyErr {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Closed => new("ClosedError", "the file of this filter is closed"),
            SetError::ReadOnly => new(
                "ReadOnlyError",
                "this filter is in a mapped file, which cannot change: change f.copy(), and write it \
                 with save(path)",
            ),
            SetError::Full { why, inserted: 0 } => new("FullError", why),
            SetError::Full { why, .. } => {
                new("FullError", format!("{why}; all items before this item were inserted"))
            }
            SetError::File(why) => new("FileError", why),
            SetError::System { path, number } => {
                let error = io::Error::from_raw_os_error(number);
                file(&path, &error, &error.to_string())
            }
            SetError::Damaged(why) | SetError::Rejected(why) => new("FormatError", why),
            SetError::Memory => PyMemoryError::new_err("no memory for more items"),
            SetError::Unsupported(why) => PyTypeError::new_err(why),
        }
    }
}
