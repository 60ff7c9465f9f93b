//! Merges and compares two sets.

use std::borrow::Cow;
use std::ptr;

use pyo3::prelude::*;
use tamis::{Answers, AnyFilter, Bits, Digest, DigestSet, Hasher, MergeError};
use tamis_formats::TamisFile;

use crate::errors;
use crate::raw::guarded::Guarded;
use crate::refusal::Refusal;
use crate::set::SharedSet;
use crate::state::State;
use crate::storage::{copy, owned};

/// Merges all items of `other` into `slf`.
///
/// # Errors
///
/// `MergeError` if the sets differ in their layout or there is no space.
pub fn merge(py: Python<'_>, slf: &SharedSet, other: &SharedSet) -> PyResult<()> {
    if ptr::eq(slf, other) {
        // A merge reads the other set while it writes this one.
        let mut state = slf.state().write(py)?;
        return py.detach(|| {
            let same = copy(&state).map_err(errors::refused)?;
            merge_into(&mut state, &same)
        });
    }
    let (mut state, other) = Guarded::write_and_read(py, slf.state(), other.state())?;
    py.detach(|| merge_into(&mut state, &other))?;
    drop((state, other));
    slf.check_after_merge(py)
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
        (State::Owned(into), from @ State::Shared(_)) => {
            let from = filter_of(from).expect("a filter");
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

/// Calls `each` with all digests of a set, in batches. Calls `each` also for an empty set, so that
/// the merge of an empty set has the errors of other merges.
fn each_batch<D: Digest>(
    from: &DigestSet<D>,
    mut each: impl FnMut(&[D], &mut Answers) -> Result<(), Refusal>,
) -> PyResult<()> {
    const BATCH: usize = 1024;
    let (mut digests, mut new) = (Vec::with_capacity(BATCH), Answers::new());
    let mut from = from.iter();
    loop {
        digests.clear();
        digests.extend(from.by_ref().take(BATCH));
        each(&digests, &mut new).map_err(errors::refused)?;
        if digests.len() < BATCH {
            return Ok(());
        }
    }
}

/// Tests whether two sets have the same parameters and the same items or bits.
///
/// # Errors
///
/// The exception of a signal handler.
pub fn equals(py: Python<'_>, slf: &SharedSet, other: &SharedSet) -> PyResult<bool> {
    if ptr::eq(slf, other) {
        return Ok(true);
    }
    let (one, two) = Guarded::read_both(py, slf.state(), other.state())?;
    Ok(py.detach(|| match (&*one, &*two) {
        (State::Mapped(one), State::Mapped(two)) => one.filter == two.filter,
        (State::Shared(one), State::Shared(two)) => one == two,
        (State::Digests64(one, a), State::Digests64(two, b)) => a == b && one == two,
        (State::Digests128(one, a), State::Digests128(two, b)) => a == b && one == two,
        (State::Integers(one), State::Integers(two)) => one == two,
        (State::Foreign(one), State::Foreign(two)) => {
            one.format.name == two.format.name && one.contents == two.contents
        }
        (one, two) => match (filter_of(one), filter_of(two)) {
            (Some(one), Some(two)) => one == two,
            _ => false,
        },
    }))
}

/// Returns the filter of a set in memory: a copy, if the set is mapped or threads share the set.
fn filter_of(state: &State) -> Option<Cow<'_, AnyFilter>> {
    match state {
        State::Owned(file) => Some(Cow::Borrowed(&file.filter)),
        State::Mapped(file) => owned(file).ok().map(|file| Cow::Owned(file.filter)),
        State::Shared(filter) => Some(Cow::Owned((**filter).clone().into_owned().into())),
        _ => None,
    }
}
