//! The two hottest operations, `item in filter` and `filter.add(item)`, as slots of a type.
//!
//! The call layer of pyo3 reads the arguments of a call from an array and counts the borrows of the
//! object. With the call layer, `add` of an integer took 51 ns in a loop; with the functions of this
//! file, 37 ns (Xeon, family 6 model 207). The type `Slots` has the two functions and extends the
//! class [`Core`], which has all other methods.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::PySystemError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::core::Core;
use crate::state::Operation;

/// Adds the type `Slots` to the module.
///
/// # Errors
///
/// The exception of Python, for example if there is no memory.
pub fn add_type(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = ffi::PyMethodDef::zeroed();
    let add = ffi::PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: add },
        ml_flags: ffi::METH_O,
        ml_doc: ADD_DOC.as_ptr(),
    };
    // The type keeps a pointer to its methods until the process ends.
    let methods = Box::leak(Box::new([add, end]));
    let mut slots = [
        ffi::PyType_Slot { slot: ffi::Py_sq_contains, pfunc: contains as *mut _ },
        ffi::PyType_Slot { slot: ffi::Py_tp_methods, pfunc: methods.as_mut_ptr().cast() },
        ffi::PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
    ];
    let mut spec = ffi::PyType_Spec {
        // Errors about arguments show this name, as of `Filter.add`.
        name: c"tamis.Filter".as_ptr(),
        // Zero inherits the size of the base class.
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as _,
        slots: slots.as_mut_ptr(),
    };
    let core = module.py().get_type::<Core>();
    // SAFETY: `spec` and `slots` are valid for the call, and the functions have the signatures of
    // their slots. The type has no fields besides the fields of `Core`.
    let slots = unsafe {
        let object = ffi::PyType_FromModuleAndSpec(module.as_ptr(), &raw mut spec, core.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), object)?
    };
    module.add("Slots", slots)
}

const ADD_DOC: &std::ffi::CStr = c"add($self, item, /)
--

Inserts an item. Returns True if the item is new.

A result of True is always correct. For a new item, the result is False with
the probability of the filter's present rate. Takes about 20 ns.

>>> import tamis
>>> seen = tamis.Bloom(1_000, 0.01)
>>> seen.add(\"https://example.org/\"), seen.add(\"https://example.org/\")
(True, False)
";

/// `item in filter`.
unsafe extern "C" fn contains(filter: *mut ffi::PyObject, item: *mut ffi::PyObject) -> c_int {
    // SAFETY: Python calls slots of the type with an instance of the type, and an object.
    let (py, core, item) = unsafe { arguments(filter, item) };
    let answer = core.0.contains_fast(py, item);
    answer.or_else(|| slow(py, core, item, Operation::Contains)).map_or(-1, c_int::from)
}

/// `filter.add(item)`.
unsafe extern "C" fn add(
    filter: *mut ffi::PyObject,
    item: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls methods of the type with an instance of the type, and an object.
    let (py, core, item) = unsafe { arguments(filter, item) };
    let is_new = match core.0.add_fast(py, item) {
        Some(Ok(is_new)) => Some(is_new),
        Some(Err(error)) => {
            error.restore(py);
            None
        }
        None => slow(py, core, item, Operation::Insert),
    };
    let Some(is_new) = is_new else { return ptr::null_mut() };
    // SAFETY: the thread is attached. `True` and `False` live forever.
    unsafe { ffi::Py_NewRef(if is_new { ffi::Py_True() } else { ffi::Py_False() }) }
}

/// Returns the arguments of a call.
///
/// # Safety
///
/// The thread is attached to Python until the end of the lifetime. `filter` is an instance of
/// `Slots`, `item` is an object, and the caller keeps both alive.
#[inline(always)]
unsafe fn arguments<'a>(
    filter: *mut ffi::PyObject,
    item: *mut ffi::PyObject,
) -> (Python<'a>, &'a Core, Borrowed<'a, 'a, PyAny>) {
    // SAFETY: the caller's promises. The class `Core` is frozen, so references to its value are
    // valid for as long as the object lives.
    unsafe {
        let py = Python::assume_attached();
        let core: *const Core = Borrowed::from_ptr(py, filter).cast_unchecked::<Core>().get();
        (py, &*core, Borrowed::from_ptr(py, item))
    }
}

/// Runs an operation on an item of any type. Returns `None` after setting Python's exception.
#[cold]
fn slow(
    py: Python<'_>,
    core: &Core,
    item: Borrowed<'_, '_, PyAny>,
    operation: Operation,
) -> Option<bool> {
    // A panic must not unwind into Python.
    match catch_unwind(AssertUnwindSafe(|| core.0.one(py, item, operation))) {
        Ok(Ok(answer)) => return Some(answer),
        // pyo3 does not count the thread of a slot as attached, and would free the parts of an
        // exception only in a later call of another function.
        Ok(Err(error)) => Python::attach(|py| error.restore(py)),
        Err(_) => {
            PySystemError::new_err("tamis panicked: this is a bug, please report it").restore(py);
        }
    }
    None
}
