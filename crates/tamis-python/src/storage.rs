//! Copies a set, and writes the file of a set.

use std::path::Path;

use pyo3::prelude::*;
use tamis::{Bits, CompressedSet, Filter as _, PlanError};
use tamis_formats::{Contents, DecodeErrorKind, Format, TamisFile, roaring};

use crate::decode_args::DecodeArgs;
use crate::errors;
use crate::files;
use crate::set_error::SetError;
use crate::state::{Foreign, State};

/// Returns an independent copy in memory.
///
/// # Errors
///
/// [`SetError::Closed`].
pub fn copy(state: &State) -> Result<State, SetError> {
    reserve_copy(state)?;
    Ok(match state {
        State::Owned(file) => State::Owned(file.clone()),
        State::Mapped(file) => State::Owned(Box::new(owned(file)?)),
        State::Shared(filter) => State::Shared(filter.clone()),
        State::Exact64(set) => State::Exact64(Box::new(set.copy())),
        State::Exact128(set) => State::Exact128(Box::new(set.copy())),
        State::Integers(set) => State::Integers(set.clone()),
        State::Foreign(foreign) => State::Foreign(foreign.clone()),
        State::Closed => return Err(SetError::Closed),
    })
}

/// Tests whether there is memory for a copy: a clone of a filter panics without memory.
pub fn reserve_copy(state: &State) -> Result<(), SetError> {
    reserve(match state {
        State::Owned(file) => file.len_bytes(),
        State::Shared(filter) => filter.plan().bytes(),
        State::Exact64(set) => set.digests().memory_bytes(),
        State::Exact128(set) => set.digests().memory_bytes(),
        State::Integers(set) => set.memory_bytes(),
        // The encoder allocates as much as the filter.
        State::Foreign(foreign) => foreign.contents.info().bits / 4,
        State::Mapped(_) | State::Closed => 0,
    })
    .map(drop)
}

/// Allocates memory for bytes.
fn reserve(len_bytes: u64) -> Result<Vec<u8>, SetError> {
    let mut bytes = Vec::new();
    let len = usize::try_from(len_bytes).map_err(|_| SetError::Memory)?;
    bytes.try_reserve_exact(len).map_err(|_| SetError::Memory)?;
    Ok(bytes)
}

/// Copies a filter into memory.
///
/// # Errors
///
/// [`SetError::Memory`], or [`SetError::Damaged`] if the bytes of a mapped file were never verified and
/// are damaged.
pub fn owned<B: Bits<Word = u64>>(file: &TamisFile<B>) -> Result<TamisFile, SetError> {
    let bytes = own_bytes(file)?;
    TamisFile::decode(&bytes).map_err(|error| match error.kind {
        DecodeErrorKind::Memory(_) | DecodeErrorKind::Plan(PlanError::Memory(_)) => {
            SetError::Memory
        }
        _ => SetError::Damaged(error.to_string()),
    })
}

/// Returns the set as the contents of a file.
fn contents(state: &State) -> PyResult<Contents> {
    reserve_copy(state)?;
    Ok(match state {
        State::Owned(file) => Contents::new((**file).clone()),
        State::Mapped(file) => Contents::new(owned(file)?),
        State::Shared(filter) => {
            Contents::new(TamisFile::new((**filter).clone().into_owned().into()))
        }
        State::Integers(set) => Contents::new(roaring::Roaring::new(set.clone())),
        State::Foreign(foreign) => foreign.contents.clone(),
        State::Exact64(_) | State::Exact128(_) => {
            return Err(errors::new(
                "FormatError",
                "a DigestSet has no file format: pickle it, or save a filter of another kind",
            ));
        }
        State::Closed => return Err(PyErr::from(SetError::Closed)),
    })
}

/// Encodes the file of a set.
///
/// # Errors
///
/// `FormatError` if the format cannot store the set, `MemoryError`.
pub fn to_bytes(state: &State, format: Option<&str>, args: &DecodeArgs) -> PyResult<Vec<u8>> {
    let format = format_of(state, format)?;
    match state {
        State::Owned(file) if format.is_own() => own_bytes(file).map_err(PyErr::from),
        State::Mapped(file) if format.is_own() => own_bytes(file).map_err(PyErr::from),
        _ => {
            let mut bytes = Vec::new();
            files::encode(&contents(state)?, format, &args_of(state, format, args), &mut bytes)?;
            Ok(bytes)
        }
    }
}

/// Encodes a file of Tamis.
fn own_bytes<B: Bits<Word = u64>>(file: &TamisFile<B>) -> Result<Vec<u8>, SetError> {
    let mut bytes = reserve(file.len_bytes())?;
    file.write_to(&mut bytes).map_err(|_| SetError::Memory)?;
    Ok(bytes)
}

/// Writes the file of a set, and replaces a previous file atomically.
///
/// # Errors
///
/// `FileError` if the file cannot be written, `FormatError` if the format cannot store the set.
pub fn save(state: &State, path: &Path, format: Option<&str>, args: &DecodeArgs) -> PyResult<()> {
    use tamis_formats::Save as _;
    let failed = |error: tamis_formats::FileError| errors::unsaved(&error);
    let format = format_of(state, format)?;
    match state {
        State::Owned(file) if format.is_own() => file.save(path).map_err(failed),
        State::Mapped(file) if format.is_own() => file.save(path).map_err(failed),
        State::Shared(filter) if format.is_own() => filter.save(path).map_err(failed),
        _ => {
            let mut bytes = Vec::new();
            let args = args_of(state, format, args).with_version_of(format, path);
            files::encode(&contents(state)?, format, &args, &mut bytes)?;
            files::replace(path, &bytes)
        }
    }
}

/// Returns the options of a call. A filter that is written in the format from which the filter was
/// read has the options of the caller who read the filter.
fn args_of(state: &State, format: &Format, args: &DecodeArgs) -> DecodeArgs {
    match state {
        State::Foreign(foreign) if foreign.format.name == format.name => args.or(&foreign.args),
        _ => args.clone(),
    }
}

/// Returns the size of the bits of a filter of another system, or the size of the filter's file if
/// the filter reports no bits.
pub fn foreign_bytes(foreign: &Foreign, bits: u64) -> u64 {
    if bits > 0 {
        return bits.div_ceil(8);
    }
    let mut bytes = Vec::new();
    let encoded = (foreign.format.encode)(&foreign.contents, &foreign.args.options, &mut bytes);
    if encoded.is_ok() { bytes.len() as u64 } else { 0 }
}

fn format_of(state: &State, name: Option<&str>) -> PyResult<&'static Format> {
    match (name, state) {
        (Some(name), _) => files::format_named(name),
        (None, State::Foreign(foreign)) => Ok(foreign.format),
        (None, State::Integers(_)) => files::format_named("roaring"),
        (None, _) => files::format_named("tamis"),
    }
}

impl State {
    /// Removes all items.
    ///
    /// # Errors
    ///
    /// [`SetError`] if the set cannot change.
    pub fn clear(&mut self) -> Result<(), SetError> {
        match self {
            State::Owned(file) => {
                file.filter.clear();
                file.added = 0;
            }
            State::Shared(filter) => filter.clear(),
            State::Exact64(set) => set.clear()?,
            State::Exact128(set) => set.clear()?,
            State::Integers(set) => *set = CompressedSet::new(),
            State::Foreign(_) => {
                return Err(SetError::Unsupported("a filter of another system cannot be cleared"));
            }
            State::Mapped(_) => return Err(SetError::ReadOnly),
            State::Closed => return Err(SetError::Closed),
        }
        Ok(())
    }

    /// Returns true if no item was inserted.
    ///
    /// # Errors
    ///
    /// [`SetError::Closed`].
    pub fn is_empty(&self) -> Result<bool, SetError> {
        Ok(match self {
            State::Owned(file) => file.filter.is_empty(),
            State::Mapped(file) => file.filter.is_empty(),
            State::Shared(filter) => filter.is_empty(),
            State::Exact64(set) => set.digests().is_empty(),
            State::Exact128(set) => set.digests().is_empty(),
            State::Integers(set) => set.is_empty(),
            State::Foreign(foreign) => foreign.contents.info().items == 0.0,
            State::Closed => return Err(SetError::Closed),
        })
    }

    /// Returns the number of items of an exact set, or `None` for a filter.
    ///
    /// # Errors
    ///
    /// [`SetError::Closed`].
    pub fn exact_len(&self) -> Result<Option<u64>, SetError> {
        Ok(match self {
            State::Exact64(set) => Some(set.digests().len()),
            State::Exact128(set) => Some(set.digests().len()),
            State::Integers(set) => Some(set.len()),
            State::Closed => return Err(SetError::Closed),
            _ => None,
        })
    }
}
