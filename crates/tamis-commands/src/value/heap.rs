//! Computes the heap memory of parts of values.

use tamis::allocation_bytes;
use tamis_formats::TamisFile;

/// Returns the memory of a box around a value, in bytes.
pub(crate) fn boxed_bytes<T>(_: &T) -> u64 {
    allocation_bytes(size_of::<T>())
}

/// Returns the heap memory of a file in bytes: the filter and the metadata.
pub(crate) fn file_heap_bytes(file: &TamisFile) -> u64 {
    // An entry consists of two strings in a tree node. On average, a tree node is half full.
    let metadata = file.metadata.iter().map(|(key, value)| {
        allocation_bytes(key.len()) + allocation_bytes(value.len()) + 4 * size_of::<String>() as u64
    });
    file.filter.heap_bytes() + metadata.sum::<u64>()
}
