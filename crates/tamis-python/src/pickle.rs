//! Sets as bytes for `pickle` and `copy`. The bytes hold all that the object holds, unlike a file.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamis::{Answers, Digest, DigestSet, Hasher, SharedBloom};
use tamis_formats::{FORMATS, TamisFile};

use crate::decode_args::DecodeArgs;
use crate::errors;
use crate::files::{self, Check};
use crate::handle::Handle;
use crate::set::SharedSet;
use crate::state::State;
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
        let ages = get("ages")?.is_some_and(|ages| ages.is_truthy().unwrap_or(false));
        if let Some(bits) = get("bits")? {
            let bits: u32 = bits.extract()?;
            let state = py.detach(|| digests(bits, data)).map_err(PyValueError::new_err)?;
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
        Ok(Handle::new(State::Owned(Box::new(file)), ages))
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
    shared: &SharedSet,
    py: Python<'py>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyDict>)> {
    let extras = PyDict::new(py);
    let state = shared.state().read(py)?;
    let bytes = match &*state {
        State::Digests64(set, hasher) => {
            extras.set_item("bits", 64)?;
            py.detach(|| digest_bytes(set, *hasher, u64::to_le_bytes))
        }
        State::Digests128(set, hasher) => {
            extras.set_item("bits", 128)?;
            py.detach(|| digest_bytes(set, *hasher, u128::to_le_bytes))
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
            extras.set_item("ages", shared.ages())?;
            py.detach(|| storage::to_bytes(&state, None, &DecodeArgs::default()))?
        }
    };
    Ok((python_bytes(py, &bytes)?, extras))
}

fn digest_bytes<D: Digest, const N: usize>(
    set: &DigestSet<D>,
    hasher: Hasher,
    to_bytes: impl Fn(D) -> [u8; N],
) -> Vec<u8> {
    let (number, seed) = hasher.to_parts();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + set.len() as usize * N);
    bytes.push(number);
    bytes.extend(seed);
    set.iter().for_each(|digest| bytes.extend(to_bytes(digest)));
    bytes
}

fn digests(bits: u32, bytes: &[u8]) -> Result<State, String> {
    let damaged = || "the bytes are not a pickled DigestSet".to_owned();
    let (header, digests) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(damaged)?;
    let seed = header[1..].try_into().expect("16 bytes");
    let hasher = Hasher::from_parts(header[0], seed).ok_or_else(damaged)?;
    if !digests.len().is_multiple_of(bits as usize / 8) {
        return Err(damaged());
    }
    match bits {
        64 => insert(digests, u64::from_le_bytes).map(|set| State::Digests64(set, hasher)),
        128 => insert(digests, u128::from_le_bytes).map(|set| State::Digests128(set, hasher)),
        _ => Err(damaged()),
    }
}

fn insert<D: Digest, const N: usize>(
    bytes: &[u8],
    of_bytes: impl Fn([u8; N]) -> D,
) -> Result<DigestSet<D>, String> {
    let (mut set, mut new) = (DigestSet::new(), Answers::new());
    set.reserve((bytes.len() / N) as u64).map_err(|error| error.to_string())?;
    let mut batch = Vec::with_capacity(1024);
    for chunk in bytes.chunks(1024 * N) {
        batch.clear();
        batch.extend(chunk.chunks_exact(N).map(|it| of_bytes(it.try_into().expect("N bytes"))));
        set.insert_each(&batch, &mut new).map_err(|error| error.to_string())?;
    }
    Ok(set)
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
