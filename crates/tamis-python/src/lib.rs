//! The extension `tamis._tamis` of the Python package `tamis`. The public classes and functions are
//! Python code, in `python/tamis`.
//!
//! ```text
//! item in f, f.add(item) → raw/slots → core ─┐
//! lists → objects ───────────────────────────┼→ keys → state → tamis, tamis-formats
//! arrays → source/ → batch → output ─────────┘
//! ```
//!
//! `item` converts a Python object to the stable bytes of an item, `keys` holds a batch of items in
//! the form in which a set tests them, and `state` is the set. `raw/gil_rw_lock` lets Python threads
//! share a set.

mod arrays;
mod batch;
mod core;
mod create;
mod decode_args;
mod errors;
mod exit;
mod files;
mod handle;
mod item;
mod keys;
mod merge;
mod objects;
mod output;
mod pickle;
mod raw;
mod report;
mod saturation;
mod set;
mod set_error;
mod source;
mod state;
mod storage;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The extension module.
#[pymodule(gil_used = false)]
fn _tamis(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // pyo3 attaches a thread to the main interpreter: a thread of another interpreter would wait for
    // itself.
    if !raw::interpreter::is_main(module.py()) {
        return Err(PyImportError::new_err(
            "tamis runs only in the main interpreter of a process: for mod_wsgi, set \
             'WSGIApplicationGroup %{GLOBAL}'",
        ));
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<core::Core>()?;
    raw::slots::add_type(module)?;
    module.add_class::<handle::Handle>()?;
    module.add_class::<arrays::ArrowChunk>()?;
    module.add_class::<arrays::ArrowChunks>()?;
    module.add_class::<output::Booleans>()?;
    module.add_function(wrap_pyfunction!(create::create, module)?)?;
    module.add_function(wrap_pyfunction!(create::create_window, module)?)?;
    module.add_function(wrap_pyfunction!(create::create_digests, module)?)?;
    module.add_function(wrap_pyfunction!(create::create_integers, module)?)?;
    module.add_function(wrap_pyfunction!(create::open_digests, module)?)?;
    module.add_function(wrap_pyfunction!(create::plans, module)?)?;
    module.add_function(wrap_pyfunction!(files::formats, module)?)?;
    module.add_function(wrap_pyfunction!(files::open_file, module)?)?;
    module.add_function(wrap_pyfunction!(files::open_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(files::create_foreign, module)?)?;
    let end_batches = wrap_pyfunction!(exit::end_batches, module)?;
    module.py().import("atexit")?.call_method1("register", (end_batches,))?;
    Ok(())
}
