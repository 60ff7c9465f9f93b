//! Merges and compares two sets.

use std::borrow::Cow;
use std::ptr;

use pyo3::prelude::*;
use tamis::{Answers, AnyFilter, Bits, MergeError};
use tamis_formats::TamisFile;
use tamis_state::StoredDigest;

use crate::errors;
use crate::raw::gil_rw_lock::GilRwLock;
use crate::set::LockedSet;
use crate::set_error::SetError;
use crate::state::State;
use crate::state::exact::ExactSet;
use crate::storage::{copy, owned, reserve_copy};

/// Merges all items of `other` into `slf`.
///
/// # Errors
///
/// `MergeError` if the sets differ in their layout or there is no space.
pub fn merge(py: Python<'_>, slf: &LockedSet, other: &LockedSet) -> PyResult<()> {
    if ptr::eq(slf, other) {
        // A merge reads the other set while it writes this one.
        let mut state = slf.state().write(py)?;
        return py.detach(|| {
            let same = copy(&state)?;
            merge_into(&mut state, &same)
        });
    }
    let (mut state, other) = GilRwLock::write_and_read(py, slf.state(), other.state())?;
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
            let from = filter_of(from)?.expect("a filter");
            filters(into, &from, 0)
        }
        (State::Shared(into), State::Shared(from)) => into.merge(&**from),
        (State::Shared(into), State::Owned(from)) => merge_shared(into, &from.filter)?,
        (State::Shared(into), State::Mapped(from)) => merge_shared(into, &from.filter)?,
        (State::Exact64(into), State::Exact64(from)) => return merge_exact(into, from),
        (State::Exact128(into), State::Exact128(from)) => return merge_exact(into, from),
        (State::Integers(into), State::Integers(from)) => {
            into.or(from);
            Ok(())
        }
        (State::Foreign(into), State::Foreign(from)) => {
            let merged = into.contents.merge(&from.contents);
            return merged.map_err(|error| errors::new("MergeError", error));
        }
        (State::Mapped(_), _) => return Err(PyErr::from(SetError::ReadOnly)),
        (State::Closed, _) | (_, State::Closed) => return Err(PyErr::from(SetError::Closed)),
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

fn merge_exact<D: StoredDigest>(into: &mut ExactSet<D>, from: &ExactSet<D>) -> PyResult<()> {
    if into.hasher() != from.hasher() {
        return Err(errors::new(
            "MergeError",
            "the sets have different keys or seeds: create both with the same key",
        ));
    }
    /// The number of digests that are inserted at once.
    const BATCH: usize = 1024;
    let len = from.digests().len() as usize;
    let mut digests = Vec::new();
    digests.try_reserve_exact(len).map_err(|_| SetError::Memory)?;
    digests.extend(from.digests().iter());
    into.reserve(len as u64)?;
    // The digests are in ascending order. In a smaller table, and in the table of a later reader of the
    // file, the first digests would all be in one part, and a lookup would pass all of them. Each batch
    // therefore has digests of all parts. An empty batch gets the errors of other batches.
    let stride = len.div_ceil(BATCH).max(1);
    let (mut batch, mut new) = (Vec::with_capacity(BATCH), Answers::new());
    for start in 0..stride {
        batch.clear();
        batch.extend(digests.iter().copied().skip(start).step_by(stride));
        into.insert_each(&batch, &mut new)?;
    }
    Ok(())
}

/// Tests whether two sets have the same parameters and the same items or bits.
///
/// # Errors
///
/// The exception of a signal handler.
pub fn equals(py: Python<'_>, slf: &LockedSet, other: &LockedSet) -> PyResult<bool> {
    if ptr::eq(slf, other) {
        return Ok(true);
    }
    let (one, two) = GilRwLock::read_both(py, slf.state(), other.state())?;
    py.detach(|| {
        Ok(match (&*one, &*two) {
            (State::Mapped(one), State::Mapped(two)) => one.filter == two.filter,
            (State::Shared(one), State::Shared(two)) => one == two,
            (State::Exact64(one), State::Exact64(two)) => one == two,
            (State::Exact128(one), State::Exact128(two)) => one == two,
            (State::Integers(one), State::Integers(two)) => one == two,
            (State::Foreign(one), State::Foreign(two)) => {
                one.format.name == two.format.name && one.contents == two.contents
            }
            (one, two) => match (filter_of(one)?, filter_of(two)?) {
                (Some(one), Some(two)) => one == two,
                _ => false,
            },
        })
    })
}

/// Returns the filter of a set in memory: a copy, if the set is mapped or threads share the set.
/// Returns `None` if a set is no filter of Tamis, or if its unverified file is damaged.
fn filter_of(state: &State) -> Result<Option<Cow<'_, AnyFilter>>, SetError> {
    Ok(match state {
        State::Owned(file) => Some(Cow::Borrowed(&file.filter)),
        State::Mapped(file) => match owned(file) {
            Ok(file) => Some(Cow::Owned(file.filter)),
            Err(SetError::Damaged(_)) => None,
            Err(error) => return Err(error),
        },
        State::Shared(filter) => {
            reserve_copy(state)?;
            Some(Cow::Owned((**filter).clone().into_owned().into()))
        }
        _ => None,
    })
}
