//! Creates sets, and plans filters.

use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};
use tamis::{
    AnyFilter, CompressedSet, DigestSet, Hasher, Kind, Plan, PlanError, SharedBloom, Span, Window,
};
use tamis_formats::TamisFile;

use crate::errors;
use crate::handle::Handle;
use crate::state::State;
use crate::state::exact::ExactSet;

/// All kinds of filters, in the order of a plan.
const KINDS: [Kind; 7] = [
    Kind::SplitBlock,
    Kind::Classic,
    Kind::Parquet,
    Kind::Cuckoo,
    Kind::Counting,
    Kind::Growing,
    Kind::Window,
];

fn plan_error(error: PlanError) -> PyErr {
    match error {
        PlanError::Memory(_) => PyMemoryError::new_err(error.to_string()),
        error => errors::new("PlanError", error),
    }
}

/// Reads a number of items.
fn count(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole(value, "items", "an int, for example 1_000_000").map_err(|error| {
        let is_outside = error.is_instance_of::<PyOverflowError>(value.py());
        if is_outside { errors::new("PlanError", error.value(value.py())) } else { error }
    })
}

/// Reads the seed of a hash function.
fn seed(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole(value, "seed", "an int")
}

fn whole(value: &Bound<'_, PyAny>, name: &str, wanted: &str) -> PyResult<u64> {
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            let message = format!("{name} must be from 0 to 2**64 - 1, and not {value}");
            return PyOverflowError::new_err(message);
        }
        let class = value.get_type();
        let class = class.name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("{name} must be {wanted}, and not a {class}: {value}"))
    })
}

/// Returns the hash function for a secret key, or for a seed.
fn hasher(key: Option<PyBackedBytes>, seed: u64) -> PyResult<Hasher> {
    let Some(key) = key else { return Ok(Hasher::mix(seed)) };
    let Ok(key) = <[u8; 16]>::try_from(&*key) else {
        return Err(PyValueError::new_err(format!(
            "a key has 16 bytes, and this one has {}: key=secrets.token_bytes(16)",
            key.len()
        )));
    };
    if seed != 0 {
        return Err(PyValueError::new_err("give a key or a seed, not both"));
    }
    let word = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
    Ok(Hasher::keyed([word(0), word(8)]))
}

fn kind_named(name: &str) -> PyResult<Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<_> = KINDS.iter().map(|kind| kind.name()).collect();
        PyValueError::new_err(format!("{name:?} is not a kind of filter: {}", names.join(", ")))
    })
}

/// Creates an empty filter of a kind.
#[pyfunction]
#[pyo3(signature = (kind, items, rate, *, key=None, seed=0, bucket=2, shared=false))]
#[expect(clippy::too_many_arguments, reason = "Python code names the arguments")]
pub fn create(
    py: Python<'_>,
    kind: &str,
    #[pyo3(from_py_with = count)] items: u64,
    rate: f64,
    key: Option<PyBackedBytes>,
    #[pyo3(from_py_with = seed)] seed: u64,
    bucket: u32,
    shared: bool,
) -> PyResult<Handle> {
    let (kind, hasher) = (kind_named(kind)?, hasher(key, seed)?);
    let plan = match kind {
        Kind::Cuckoo if !matches!(bucket, 2 | 4) => {
            return Err(PyValueError::new_err(format!("bucket must be 2 or 4, and not {bucket}")));
        }
        Kind::Cuckoo => Plan::cuckoo(items, rate, bucket),
        kind => Plan::for_kind(kind, items, rate),
    };
    let plan = plan.map_err(plan_error)?;
    // A large filter takes time, because the system provides its memory.
    let state = py.detach(|| {
        if shared {
            return SharedBloom::from_plan(&plan, hasher).map(|it| State::Shared(Box::new(it)));
        }
        AnyFilter::from_plan(&plan, hasher).map(|it| State::Owned(Box::new(TamisFile::new(it))))
    });
    Ok(Handle::new(state.map_err(plan_error)?, false))
}

/// Creates an empty window: of `seconds`, or of the last `items` new items.
#[pyfunction]
#[pyo3(signature = (items, rate, *, seconds, slices, refresh, key=None, seed=0, clock=true))]
#[expect(clippy::too_many_arguments, reason = "Python code names the arguments")]
pub fn create_window(
    #[pyo3(from_py_with = count)] items: u64,
    rate: f64,
    seconds: Option<f64>,
    slices: Option<u32>,
    refresh: bool,
    key: Option<PyBackedBytes>,
    #[pyo3(from_py_with = seed)] seed: u64,
    clock: bool,
) -> PyResult<Handle> {
    let hasher = hasher(key, seed)?;
    let span = match seconds {
        None => Span::Items(items),
        Some(seconds) if seconds.is_finite() && seconds > 0.0 && seconds < 1e15 => {
            Span::Millis((seconds * 1000.0).ceil() as u64)
        }
        Some(seconds) => {
            return Err(PyValueError::new_err(format!(
                "seconds must be above 0 and below 1e15, and not {seconds}"
            )));
        }
    };
    let plan = match (slices, seconds) {
        (Some(slices), _) => Plan::window(items, rate, slices),
        // One slice keeps the rate even if all items arrive at once.
        (None, Some(_)) => Plan::window(items, rate, 1),
        (None, None) => Plan::for_kind(Kind::Window, items, rate),
    };
    let window =
        plan.and_then(|plan| Window::from_plan(&plan, hasher, span)).map_err(plan_error)?;
    let window = if refresh { window.refreshing() } else { window };
    let uses_clock = clock && seconds.is_some();
    Ok(Handle::new(State::Owned(Box::new(TamisFile::new(window.into()))), uses_clock))
}

/// Creates an empty exact set of hashes.
#[pyfunction]
#[pyo3(signature = (bits, items, *, key=None, seed=0))]
pub fn create_digests(
    bits: u32,
    #[pyo3(from_py_with = count)] items: u64,
    key: Option<PyBackedBytes>,
    #[pyo3(from_py_with = seed)] seed: u64,
) -> PyResult<Handle> {
    let hasher = hasher(key, seed)?;
    let state = match bits {
        64 => {
            let mut set = DigestSet::new();
            set.set_expected(items);
            State::Exact64(Box::new(ExactSet::new(set, hasher)))
        }
        128 => {
            let mut set = DigestSet::new();
            set.set_expected(items);
            State::Exact128(Box::new(ExactSet::new(set, hasher)))
        }
        _ => return Err(PyValueError::new_err(format!("bits must be 64 or 128, and not {bits}"))),
    };
    Ok(Handle::new(state, false))
}

/// Opens or creates the file of an exact set of hashes.
#[pyfunction]
#[pyo3(signature = (path, bits, description, key))]
pub fn open_digests(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    bits: u32,
    description: &str,
    key: PyBackedBytes,
) -> PyResult<Handle> {
    let (hasher, path) = (hasher(Some(key), 0)?, path.extract::<std::path::PathBuf>()?);
    let state = py.detach(|| match bits {
        64 => ExactSet::open(&path, description, hasher)
            .map(|set| Some(State::Exact64(Box::new(set)))),
        128 => ExactSet::open(&path, description, hasher)
            .map(|set| Some(State::Exact128(Box::new(set)))),
        _ => Ok(None),
    });
    let Some(state) = state? else {
        return Err(PyValueError::new_err(format!("bits must be 64 or 128, and not {bits}")));
    };
    Ok(Handle::new(state, false))
}

/// Creates an empty exact set of integers.
#[pyfunction]
pub fn create_integers() -> Handle {
    Handle::new(State::Integers(CompressedSet::new()), false)
}

/// Returns a plan for each kind, as a dictionary. The first one is the kind that
/// `tamis.plan` recommends.
#[pyfunction]
pub fn plans(
    py: Python<'_>,
    #[pyo3(from_py_with = count)] items: u64,
    rate: f64,
) -> PyResult<Bound<'_, PyList>> {
    let best = Plan::new(items, rate).map_err(plan_error)?;
    let others = KINDS.into_iter().filter(|kind| *kind != best.kind());
    let list = PyList::empty(py);
    for kind in std::iter::once(best.kind()).chain(others) {
        let plan = match kind {
            kind if kind == best.kind() => Ok(best),
            kind => Plan::for_kind(kind, items, rate),
        };
        // A kind may not be able to keep the rate, as a window with a very low rate.
        let Ok(plan) = plan else { continue };
        let dict = PyDict::new(py);
        dict.set_item("kind", kind.name())?;
        dict.set_item("items", plan.items())?;
        dict.set_item("rate", plan.rate_at(plan.items()))?;
        dict.set_item("size_bytes", plan.bytes())?;
        dict.set_item("bits_per_item", plan.bits_per_item())?;
        dict.set_item("cache_lines", plan.cache_lines())?;
        dict.set_item("summary", kind.summary())?;
        if kind == best.kind() {
            dict.set_item("why", plan.why())?;
        }
        list.append(dict)?;
    }
    Ok(list)
}
