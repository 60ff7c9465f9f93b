//! Sets on their way into an object of Python.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::state::State;

/// A new set. A Python class takes the set when it creates its object.
#[pyclass(frozen, module = "tamis._tamis")]
pub struct Handle {
    set: Mutex<Option<State>>,
    uses_clock: bool,
    #[pyo3(get)]
    class_name: &'static str,
}

impl Handle {
    /// Creates a handle. `uses_clock` is true if the set forgets items by the clock of the system.
    pub fn new(set: State, uses_clock: bool) -> Self {
        let class_name = class_name(&set);
        Self { set: Mutex::new(Some(set)), uses_clock, class_name }
    }

    /// Lets the program set the time of the set if `clock` is false.
    pub fn with_clock(self, clock: bool) -> Self {
        Self { uses_clock: self.uses_clock && clock, ..self }
    }

    /// Takes the set out of the handle.
    ///
    /// # Errors
    ///
    /// `ValueError` if the set was taken before.
    pub fn take(&self) -> PyResult<(State, bool)> {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner).take();
        let set = set.ok_or_else(|| PyValueError::new_err("the handle is empty"))?;
        Ok((set, self.uses_clock))
    }
}

/// Returns the name of the Python class of a set.
fn class_name(set: &State) -> &'static str {
    use tamis::Kind;
    match set {
        State::Shared(_) => "SharedBloom",
        State::Exact64(set) if set.has_file() => "DigestFile",
        State::Exact128(set) if set.has_file() => "DigestFile",
        State::Exact64(_) | State::Exact128(_) => "DigestSet",
        State::Integers(_) => "IntSet",
        State::Foreign(_) | State::Closed => "ForeignFilter",
        State::Owned(_) | State::Mapped(_) => match set.kind() {
            Some(Kind::Counting) => "Counting",
            Some(Kind::Cuckoo) => "Cuckoo",
            Some(Kind::Growing) => "Growing",
            Some(Kind::Window) => "Window",
            _ => "Bloom",
        },
    }
}
