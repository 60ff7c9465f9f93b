//! Sets on their way into an object of Python.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::state::State;

/// A new set. A Python class takes the set when it creates its object.
#[pyclass(frozen, module = "tamis._tamis")]
pub struct Handle {
    set: Mutex<Option<State>>,
    ages: bool,
    #[pyo3(get)]
    class_name: &'static str,
}

impl Handle {
    /// Creates a handle. `ages` is true if the set forgets items by the clock of the system.
    pub fn new(set: State, ages: bool) -> Self {
        let class_name = class_name(&set);
        Self { set: Mutex::new(Some(set)), ages, class_name }
    }

    /// Lets the program set the time of the set if `clock` is false.
    pub fn with_clock(self, clock: bool) -> Self {
        Self { ages: self.ages && clock, ..self }
    }

    /// Takes the set out of the handle.
    ///
    /// # Errors
    ///
    /// `ValueError` if the set was taken before.
    pub fn take(&self) -> PyResult<(State, bool)> {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner).take();
        let set = set.ok_or_else(|| PyValueError::new_err("the handle is empty"))?;
        Ok((set, self.ages))
    }
}

/// Returns the name of the Python class of a set.
fn class_name(set: &State) -> &'static str {
    use tamis::Kind;
    match set {
        State::Shared(_) => "SharedBloom",
        State::Digests64(..) | State::Digests128(..) => "DigestSet",
        State::Durable64(_) | State::Durable128(_) => "DigestFile",
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
