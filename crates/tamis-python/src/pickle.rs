//! Sets as bytes for `pickle` and `copy`. The bytes hold all that the object holds, unlike a file.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamis::{Answers, DigestSet, Hasher, SharedBloom};
use tamis_formats::{FORMATS, TamisFile};
use tamis_state::StoredDigest;

use crate::decode_args::DecodeArgs;
use crate::errors;
use crate::files::{self, Check};
use crate::handle::Handle;
use crate::set::LockedSet;
use crate::set_error::SetError;
use crate::state::State;
use crate::state::exact::ExactSet;
use crate::storage;

/// The number of bytes before the digests: the hash function, and its seed or key.
const HEADER_BYTES: usize = 17;

#[pymethods]
impl Handle {
    /// Restores a set from the class and the values that `Core._pickle` returned.
    #[staticmethod]
    fn _unpickle(
        py: Python<'_>,
        class_name: &str,
        data: &[u8],
        extras: &Bound<'_, PyDict>,
    ) -> PyResult<Handle> {
        let get = |name| extras.get_item(name);
        let uses_clock =
            get("uses_clock")?.is_some_and(|uses_clock| uses_clock.is_truthy().unwrap_or(false));
        if let Some(bits) = get("bits")? {
            let bits: u32 = bits.extract()?;
            let state = py.detach(|| digests(bits, data))?;
            return Ok(Handle::new(state, false));
        }
        if let Some(options) = get("options")? {
            let args = DecodeArgs::new(&options.cast_into()?)?;
            let format: Option<String> = get("format")?.map(|it| it.extract()).transpose()?;
            let format = format.as_deref().map(files::format_named).transpose()?;
            return py.detach(|| files::decode(data, format, None, &args, Check::None));
        }
        let file = py.detach(|| TamisFile::decode(data));
        let file = file.map_err(|error| files::undecoded(&error, &FORMATS[0]))?;
        if class_name == "SharedBloom" {
            let filter = SharedBloom::try_from(file.filter);
            let filter = filter.map_err(|error| errors::new("FormatError", error))?;
            return Ok(Handle::new(State::Shared(Box::new(filter)), false));
        }
        Ok(Handle::new(State::Owned(Box::new(file)), uses_clock))
    }

    /// Converts a Bloom filter of the file `path` into a filter that threads share. Copies no bits.
    fn _to_shared(&self, path: &str) -> PyResult<Handle> {
        let filter = match self.take()?.0 {
            State::Owned(file) => SharedBloom::try_from(file.filter).ok(),
            _ => None,
        };
        let filter = filter.ok_or_else(|| {
            let why = "only a Bloom filter of the kind split-block can be shared";
            errors::new("FormatError", format!("{path}: {why}"))
        })?;
        Ok(Handle::new(State::Shared(Box::new(filter)), false))
    }
}

/// Returns the bytes and the other values from which `Handle._unpickle` restores a set.
///
/// # Errors
///
/// The exception for a closed file.
pub fn pickle<'py>(
    shared: &LockedSet,
    py: Python<'py>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyDict>)> {
    let extras = PyDict::new(py);
    let state = shared.state().read(py)?;
    let bytes = match &*state {
        State::Exact64(set) => {
            extras.set_item("bits", 64)?;
            py.detach(|| digest_bytes(set))?
        }
        State::Exact128(set) => {
            extras.set_item("bits", 128)?;
            py.detach(|| digest_bytes(set))?
        }
        State::Foreign(foreign) => {
            extras.set_item("format", foreign.format.name)?;
            extras.set_item("options", foreign.args.to_dict(py)?)?;
            py.detach(|| storage::to_bytes(&state, None, &foreign.args))?
        }
        State::Integers(_) => {
            extras.set_item("format", "roaring")?;
            extras.set_item("options", PyDict::new(py))?;
            py.detach(|| storage::to_bytes(&state, None, &DecodeArgs::default()))?
        }
        _ => {
            extras.set_item("uses_clock", shared.uses_clock())?;
            py.detach(|| storage::to_bytes(&state, None, &DecodeArgs::default()))?
        }
    };
    Ok((python_bytes(py, &bytes)?, extras))
}

fn digest_bytes<D: StoredDigest>(set: &ExactSet<D>) -> Result<Vec<u8>, SetError> {
    let (number, seed) = set.hasher().to_parts();
    let mut bytes = Vec::new();
    let len = HEADER_BYTES + set.digests().len() as usize * size_of::<D>();
    bytes.try_reserve_exact(len).map_err(|_| SetError::Memory)?;
    bytes.push(number);
    bytes.extend(seed);
    set.digests().iter().for_each(|digest| bytes.extend_from_slice(digest.to_bytes().as_ref()));
    Ok(bytes)
}

fn digests(bits: u32, bytes: &[u8]) -> PyResult<State> {
    let damaged = || PyValueError::new_err("the bytes are not a pickled DigestSet");
    let (header, digests) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(damaged)?;
    let seed = header[1..].try_into().expect("16 bytes");
    let hasher = Hasher::from_parts(header[0], seed).ok_or_else(damaged)?;
    if !digests.len().is_multiple_of(bits as usize / 8) {
        return Err(damaged());
    }
    match bits {
        64 => exact(digests, hasher).map(|set| State::Exact64(Box::new(set))),
        128 => exact(digests, hasher).map(|set| State::Exact128(Box::new(set))),
        _ => Err(damaged()),
    }
}

fn exact<D: StoredDigest>(bytes: &[u8], hasher: Hasher) -> PyResult<ExactSet<D>> {
    let (mut set, mut new) = (DigestSet::new(), Answers::new());
    let no_memory = |_| PyErr::from(SetError::Memory);
    set.reserve((bytes.len() / size_of::<D>()) as u64).map_err(no_memory)?;
    let mut batch = Vec::with_capacity(1024);
    for chunk in bytes.chunks(1024 * size_of::<D>()) {
        batch.clear();
        D::read_each(chunk, &mut batch);
        set.insert_each(&batch, &mut new).map_err(no_memory)?;
    }
    Ok(ExactSet::new(set, hasher))
}

/// Copies bytes into an object of Python.
///
/// # Errors
///
/// `MemoryError`.
pub fn python_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |target| {
        target.copy_from_slice(bytes);
        Ok(())
    })
}
