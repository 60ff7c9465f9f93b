//! Hashes items of the frequent types without calls of pyo3.

use std::ops::Range;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tamis::Hasher;

/// Hashes an item whose type is exactly `str`, `int` or `bytes`, which are the most frequent types. Returns
/// `None` for all other items, and for an item that cannot be hashed.
///
/// Comparing the type first is faster than trying one conversion after the other: a failed
/// conversion creates an exception.
#[inline(always)]
pub fn hash_fast(hasher: Hasher, item: Borrowed<'_, '_, PyAny>) -> Option<u64> {
    let object = item.as_ptr();
    // SAFETY: `item` is an object, and the thread is attached, because `item` has its lifetime.
    unsafe {
        let class = ffi::Py_TYPE(object);
        if class == &raw mut ffi::PyUnicode_Type {
            let mut len = 0;
            let text = ffi::PyUnicode_AsUTF8AndSize(object, &raw mut len);
            if text.is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            // The object keeps the bytes for as long as it lives.
            return Some(hasher.hash(std::slice::from_raw_parts(text.cast(), len as usize)));
        }
        if class == &raw mut ffi::PyLong_Type {
            let mut overflow = 0;
            let value = ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow);
            return (overflow == 0).then(|| hasher.hash_item(&value));
        }
        if class == &raw mut ffi::PyBytes_Type {
            let (bytes, len) = (ffi::PyBytes_AsString(object), ffi::PyBytes_Size(object));
            return Some(hasher.hash(std::slice::from_raw_parts(bytes.cast(), len as usize)));
        }
    }
    None
}

/// Appends the hashes of the items `items` of a list, until `hashes` has `len` hashes. Stops before an
/// item that [`hash_fast`] does not hash. Returns the number of the next item.
///
/// The items are borrowed from the list, so that their references need not be counted. The memory of
/// each group of items is loaded before the items are hashed, because the objects of a long list are
/// not in the cache.
pub fn hash_list(
    hasher: Hasher,
    list: &Bound<'_, PyList>,
    items: Range<usize>,
    hashes: &mut Vec<u64>,
    len: usize,
) -> usize {
    const GROUP: usize = 32;
    let mut index = items.start;
    // In a free-threaded Python, another thread could remove the items meanwhile.
    while cfg!(not(Py_GIL_DISABLED)) && hashes.len() < len && index < list.len().min(items.end) {
        let group = GROUP.min(list.len().min(items.end) - index).min(len - hashes.len());
        let mut items = [ptr::null_mut(); GROUP];
        for (i, item) in items[..group].iter_mut().enumerate() {
            // SAFETY: the index is inside the list.
            *item = unsafe { ffi::PyList_GetItem(list.as_ptr(), (index + i) as isize) };
            prefetch_object(*item);
        }
        for item in &items[..group] {
            // SAFETY: the list keeps the item: this thread holds the GIL, and `hash_fast` runs no
            // Python code.
            let item = unsafe { Borrowed::from_ptr(list.py(), *item) };
            let Some(hash) = hash_fast(hasher, item) else { return index };
            hashes.push(hash);
            index += 1;
        }
    }
    index
}

/// Asks the CPU to load an object. A short string has its text in the second cache line.
#[inline(always)]
fn prefetch_object(object: *const ffi::PyObject) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(object.cast());
            _mm_prefetch::<_MM_HINT_T0>(object.cast::<i8>().wrapping_add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}
