//! Lookups and inserts of the items of Python iterables.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList};

use crate::keys::{Encoding, Keys};
use crate::raw::hash::hash_list;
use crate::set::LockedSet;
use crate::state::Operation;

/// The number of items that are hashed before the set tests these items.
const CHUNK: usize = 1024;

/// Runs an operation on each item, and returns one answer for each item. `range` limits the items of a
/// list.
///
/// # Errors
///
/// The exception for an item that the set cannot hold, the error of the set, or the exception of
/// the iterable. The items of earlier chunks have been inserted.
pub fn answers<'py>(
    set: &LockedSet,
    items: &Bound<'py, PyAny>,
    range: Range<usize>,
    operation: Operation,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(items.py());
    each_chunk(set, items, range, operation, |found| {
        for answer in found.iter() {
            list.append(PyBool::new(items.py(), answer))?;
        }
        Ok(())
    })?;
    Ok(list)
}

/// Inserts each item. `range` limits the items of a list.
///
/// # Errors
///
/// As [`answers`].
pub fn update(set: &LockedSet, items: &Bound<'_, PyAny>, range: Range<usize>) -> PyResult<()> {
    each_chunk(set, items, range, Operation::Insert, |_| Ok(()))
}

fn each_chunk(
    set: &LockedSet,
    items: &Bound<'_, PyAny>,
    range: Range<usize>,
    operation: Operation,
    mut each: impl FnMut(&tamis::Answers) -> PyResult<()>,
) -> PyResult<()> {
    let (py, encoding) = (items.py(), set.encoding()?);
    let mut keys = encoding.keys();
    let mut run = |keys: &mut Keys| {
        each(&set.run_keys(py, keys, operation)?)?;
        keys.clear();
        py.check_signals()
    };
    if let Ok(list) = items.cast_exact::<PyList>() {
        let mut index = range.start;
        // Another thread may change the list.
        while index < list.len().min(range.end) {
            if let (Encoding::Hash64(hasher), Keys::Hash64(hashes)) = (encoding, &mut keys) {
                index = hash_list(hasher, list, index..range.end, hashes, CHUNK);
            }
            if keys.len() < CHUNK
                && index < range.end
                && let Ok(item) = list.get_item(index)
            {
                encoding.push(item.as_borrowed(), &mut keys)?;
                index += 1;
            }
            if keys.len() >= CHUNK {
                run(&mut keys)?;
            }
        }
    } else {
        for item in items.try_iter()? {
            encoding.push(item?.as_borrowed(), &mut keys)?;
            if keys.len() == CHUNK {
                run(&mut keys)?;
            }
        }
    }
    // An empty iterable raises the same errors as other iterables, for example for a closed file.
    run(&mut keys)
}
