//! Passes pyo3's configuration of the Python build to this crate, such as `Py_GIL_DISABLED`.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
