//! Copies, merges and files of a set.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tamis::{Answers, AnyFilter, Bits, CompressedSet, Digest, DigestSet, Hasher, MergeError};
use tamis_formats::{Contents, Format, TamisFile};

use crate::core::Core;
use crate::errors;
use crate::files::{self, DecodeArgs};
use crate::state::{Foreign, Refusal, State};

/// Returns an independent copy in memory.
///
/// # Errors
///
/// [`Refusal::Closed`].
pub fn copy(state: &State) -> Result<State, Refusal> {
    Ok(match state {
        State::Owned(file) => State::Owned(file.clone()),
        State::Mapped(file) => State::Owned(Box::new(owned(file)?)),
        State::Shared(filter) => State::Shared(filter.clone()),
        State::Digests64(set, hasher) => State::Digests64(set.clone(), *hasher),
        State::Digests128(set, hasher) => State::Digests128(set.clone(), *hasher),
        State::Durable64(set) => State::Digests64(set.set().clone(), set.hasher()),
        State::Durable128(set) => State::Digests128(set.set().clone(), set.hasher()),
        State::Integers(set) => State::Integers(set.clone()),
        State::Foreign(foreign) => State::Foreign(foreign.clone()),
        State::Closed => return Err(Refusal::Closed),
    })
}

/// Copies a filter into memory.
fn owned<B: Bits<Word = u64>>(file: &TamisFile<B>) -> Result<TamisFile, Refusal> {
    let mut bytes = Vec::new();
    file.write_to(&mut bytes).map_err(|_| Refusal::Memory)?;
    TamisFile::decode(&bytes).map_err(|_| Refusal::Memory)
}

/// Merges all items of `other` into `slf`.
///
/// # Errors
///
/// `MergeError` if the sets differ in their layout or there is no space.
pub fn merge(slf: &Bound<'_, Core>, other: &Bound<'_, Core>) -> PyResult<()> {
    let py = slf.py();
    if slf.is(other) {
        // A merge reads the other set while it writes this one.
        let mut state = slf.get().state().write(py)?;
        return py.detach(|| {
            let same = copy(&state).map_err(errors::refused)?;
            merge_into(&mut state, &same)
        });
    }
    // Two threads may merge the same two sets into each other. Both take the sets in one order.
    let is_first = slf.as_ptr() < other.as_ptr();
    let early = if is_first { None } else { Some(other.get().state().read(py)?) };
    let mut state = slf.get().state().write(py)?;
    let other = match early {
        Some(other) => other,
        None => other.get().state().read(py)?,
    };
    py.detach(|| merge_into(&mut state, &other))?;
    drop((state, other));
    slf.get().check_after_merge(py)
}

fn merge_into(state: &mut State, other: &State) -> PyResult<()> {
    fn filters<B: Bits<Word = u64>>(
        into: &mut TamisFile,
        from: &AnyFilter<B>,
        added: u64,
    ) -> Result<(), MergeError> {
        into.filter.merge(from)?;
        into.added = into.added.saturating_add(added);
        Ok(())
    }
    let merged = match (state, other) {
        (State::Owned(into), State::Owned(from)) => filters(into, &from.filter, from.added),
        (State::Owned(into), State::Mapped(from)) => filters(into, &from.filter, from.added),
        (State::Owned(into), State::Shared(from)) => {
            let from = AnyFilter::from((**from).clone().into_owned());
            filters(into, &from, 0)
        }
        (State::Shared(into), State::Shared(from)) => into.merge(&**from),
        (State::Shared(into), State::Owned(from)) => merge_shared(into, &from.filter)?,
        (State::Shared(into), State::Mapped(from)) => merge_shared(into, &from.filter)?,
        (State::Digests64(into, hasher), from)
            if digests64(from).is_some_and(|it| it.1 == *hasher) =>
        {
            let (from, _) = digests64(from).expect("checked above");
            return each_batch(from, |digests, new| Ok(into.insert_each(digests, new)?));
        }
        (State::Digests128(into, hasher), from)
            if digests128(from).is_some_and(|it| it.1 == *hasher) =>
        {
            let (from, _) = digests128(from).expect("checked above");
            return each_batch(from, |digests, new| Ok(into.insert_each(digests, new)?));
        }
        (State::Durable64(into), from)
            if digests64(from).is_some_and(|it| it.1 == into.hasher()) =>
        {
            let (from, _) = digests64(from).expect("checked above");
            return each_batch(from, |digests, new| into.insert(digests, new));
        }
        (State::Durable128(into), from)
            if digests128(from).is_some_and(|it| it.1 == into.hasher()) =>
        {
            let (from, _) = digests128(from).expect("checked above");
            return each_batch(from, |digests, new| into.insert(digests, new));
        }
        (State::Integers(into), State::Integers(from)) => {
            into.or(from);
            Ok(())
        }
        (State::Foreign(into), State::Foreign(from)) => {
            let merged = into.contents.merge(&from.contents);
            return merged.map_err(|error| errors::new("MergeError", error));
        }
        (State::Mapped(_), _) => return Err(errors::refused(Refusal::ReadOnly)),
        (State::Closed, _) | (_, State::Closed) => return Err(errors::refused(Refusal::Closed)),
        _ => {
            return Err(errors::new(
                "MergeError",
                "only sets of one kind with the same hash function merge",
            ));
        }
    };
    merged.map_err(|error| errors::new("MergeError", error))
}

fn merge_shared<B: Bits<Word = u64>>(
    into: &mut tamis::SharedBloom,
    from: &AnyFilter<B>,
) -> PyResult<Result<(), MergeError>> {
    match from {
        AnyFilter::SplitBlock(from) => Ok(into.merge(from)),
        _ => Err(errors::new("MergeError", "a SharedBloom merges with a SharedBloom or a Bloom")),
    }
}

/// Returns the 64-bit digests of an exact set, and their hash function.
fn digests64(state: &State) -> Option<(&DigestSet<u64>, Hasher)> {
    match state {
        State::Digests64(set, hasher) => Some((set, *hasher)),
        State::Durable64(set) => Some((set.set(), set.hasher())),
        _ => None,
    }
}

/// Returns the 128-bit digests of an exact set, and their hash function.
fn digests128(state: &State) -> Option<(&DigestSet<u128>, Hasher)> {
    match state {
        State::Digests128(set, hasher) => Some((set, *hasher)),
        State::Durable128(set) => Some((set.set(), set.hasher())),
        _ => None,
    }
}

/// Calls `each` with all digests of a set, in batches.
fn each_batch<D: Digest>(
    from: &DigestSet<D>,
    mut each: impl FnMut(&[D], &mut Answers) -> Result<(), Refusal>,
) -> PyResult<()> {
    let (mut digests, mut new) = (Vec::with_capacity(1024), Answers::new());
    let mut from = from.iter();
    loop {
        digests.clear();
        digests.extend(from.by_ref().take(1024));
        if digests.is_empty() {
            return Ok(());
        }
        each(&digests, &mut new).map_err(errors::refused)?;
    }
}

/// Tests whether two sets have the same parameters and the same items or bits.
///
/// # Errors
///
/// The exception of a signal handler.
pub fn equals(slf: &Bound<'_, Core>, other: &Bound<'_, Core>) -> PyResult<bool> {
    if slf.is(other) {
        return Ok(true);
    }
    let py = slf.py();
    // A reader waits behind a waiting writer. All threads take two sets in one order, so that no
    // two threads wait for each other.
    let (one, two) = if slf.as_ptr() < other.as_ptr() { (slf, other) } else { (other, slf) };
    let (one, two) = (one.get().state().read(py)?, two.get().state().read(py)?);
    Ok(py.detach(|| match (&*one, &*two) {
        (State::Owned(one), State::Owned(two)) => one.filter == two.filter,
        (State::Mapped(one), State::Mapped(two)) => one.filter == two.filter,
        (State::Mapped(one), State::Owned(two)) | (State::Owned(two), State::Mapped(one)) => {
            owned(one).is_ok_and(|one| one.filter == two.filter)
        }
        (State::Shared(one), State::Shared(two)) => one == two,
        (State::Digests64(one, a), State::Digests64(two, b)) => a == b && one == two,
        (State::Digests128(one, a), State::Digests128(two, b)) => a == b && one == two,
        (State::Integers(one), State::Integers(two)) => one == two,
        (State::Foreign(one), State::Foreign(two)) => {
            one.format.name == two.format.name && one.contents == two.contents
        }
        _ => false,
    }))
}

/// Returns the contents of a file in another format, and the format.
fn contents(state: &State) -> PyResult<Contents> {
    Ok(match state {
        State::Owned(file) => Contents::new((**file).clone()),
        State::Mapped(file) => Contents::new(owned(file).map_err(errors::refused)?),
        State::Shared(filter) => {
            Contents::new(TamisFile::new((**filter).clone().into_owned().into()))
        }
        State::Integers(set) => Contents::new(files::integers(set)),
        State::Foreign(foreign) => foreign.contents.clone(),
        State::Digests64(..)
        | State::Digests128(..)
        | State::Durable64(_)
        | State::Durable128(_) => {
            return Err(errors::new(
                "FormatError",
                "a DigestSet has no file format: pickle it, or save a filter of another kind",
            ));
        }
        State::Closed => return Err(errors::refused(Refusal::Closed)),
    })
}

/// Encodes the file of a set.
///
/// # Errors
///
/// `FormatError` if the format cannot store the set.
pub fn to_bytes(state: &State, format: Option<&str>, args: &DecodeArgs) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let own = |error: std::io::Error| PyValueError::new_err(error.to_string());
    match (state, format.unwrap_or_default()) {
        (State::Owned(file), "" | "tamis") => file.write_to(&mut bytes).map_err(own)?,
        (State::Mapped(file), "" | "tamis") => file.write_to(&mut bytes).map_err(own)?,
        _ => {
            let format = format_of(state, format)?;
            files::encode(&contents(state)?, format, &args_of(state, format, args), &mut bytes)?;
        }
    }
    Ok(bytes)
}

/// Writes the file of a set, and replaces a previous file atomically.
///
/// # Errors
///
/// `FileError` if the file cannot be written, `FormatError` if the format cannot store the set.
pub fn save(state: &State, path: &Path, format: Option<&str>, args: &DecodeArgs) -> PyResult<()> {
    use tamis_formats::Save as _;
    let failed = |error: tamis_formats::FileError| errors::new("FileError", error);
    match (state, format.unwrap_or_default()) {
        (State::Owned(file), "" | "tamis") => file.save(path).map_err(failed),
        (State::Mapped(file), "" | "tamis") => file.save(path).map_err(failed),
        (State::Shared(filter), "" | "tamis") => filter.save(path).map_err(failed),
        _ => {
            let format = format_of(state, format)?;
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
    let encoded = (foreign.format.encode)(&foreign.contents, foreign.args.options(), &mut bytes);
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
    /// [`Refusal`] if the set cannot change.
    pub fn clear(&mut self) -> Result<(), Refusal> {
        match self {
            State::Owned(file) => {
                file.filter.clear();
                file.added = 0;
            }
            State::Shared(filter) => filter.clear(),
            State::Digests64(set, _) => *set = tamis::DigestSet::new(),
            State::Digests128(set, _) => *set = tamis::DigestSet::new(),
            State::Integers(set) => *set = CompressedSet::new(),
            State::Durable64(_) | State::Durable128(_) => {
                return Err(Refusal::Unsupported(
                    "a DigestFile cannot be cleared: remove the file",
                ));
            }
            State::Foreign(_) => {
                return Err(Refusal::Unsupported("a filter of another system cannot be cleared"));
            }
            State::Mapped(_) => return Err(Refusal::ReadOnly),
            State::Closed => return Err(Refusal::Closed),
        }
        Ok(())
    }

    /// Returns true if no item was inserted.
    ///
    /// # Errors
    ///
    /// [`Refusal::Closed`].
    pub fn is_empty(&self) -> Result<bool, Refusal> {
        Ok(match self {
            State::Owned(file) => file.filter.is_empty(),
            State::Mapped(file) => file.filter.is_empty(),
            State::Shared(filter) => filter.is_empty(),
            State::Digests64(set, _) => set.is_empty(),
            State::Digests128(set, _) => set.is_empty(),
            State::Durable64(set) => set.set().is_empty(),
            State::Durable128(set) => set.set().is_empty(),
            State::Integers(set) => set.is_empty(),
            State::Foreign(foreign) => foreign.contents.info().items == 0.0,
            State::Closed => return Err(Refusal::Closed),
        })
    }

    /// Returns the number of items of an exact set, or `None` for a filter.
    ///
    /// # Errors
    ///
    /// [`Refusal::Closed`].
    pub fn exact_len(&self) -> Result<Option<u64>, Refusal> {
        Ok(match self {
            State::Digests64(set, _) => Some(set.len()),
            State::Digests128(set, _) => Some(set.len()),
            State::Durable64(set) => Some(set.set().len()),
            State::Durable128(set) => Some(set.set().len()),
            State::Integers(set) => Some(set.len()),
            State::Closed => return Err(Refusal::Closed),
            _ => None,
        })
    }
}
