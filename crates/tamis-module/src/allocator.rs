//! The allocator of the module: the server's own, so that `maxmemory`, `INFO memory` and
//! `MEMORY USAGE` count all filters.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr::null_mut;

use crate::api::{api, has_api};

/// Allocates with the functions of the server.
///
/// The server aligns memory to 16 bytes. For a larger alignment, the allocation is longer, and the
/// word before the aligned address holds the start of the allocation.
pub struct ServerAllocator;

/// The alignment of the server's memory, in bytes.
const ALIGN: usize = 16;

// SAFETY: the functions of the server return memory of at least the requested length that no other
// allocation overlaps. `aligned` and `start_of` move the address consistently.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any length may be requested. `TryAlloc` returns null where `Alloc` would end the
        // server.
        let start = unsafe { api!(RedisModule_TryAlloc(whole_bytes(layout))) };
        // SAFETY: the allocation has the whole length.
        unsafe { aligned(start, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let bytes = whole_bytes(layout);
        if bytes > LARGE_BYTES {
            // `Calloc` ends the server if there is no memory. `TryAlloc` does not, but it would
            // have to be cleared. So this only tests whether there is memory.
            // SAFETY: any length may be requested, and the memory is freed at once.
            unsafe {
                let probe = api!(RedisModule_TryAlloc(bytes));
                if probe.is_null() {
                    return null_mut();
                }
                api!(RedisModule_Free(probe));
            }
        }
        // SAFETY: as in `alloc`.
        unsafe { aligned(api!(RedisModule_Calloc(1, bytes)), layout) }
    }

    unsafe fn dealloc(&self, first: *mut u8, layout: Layout) {
        // SAFETY: `first` is the result of an allocation with this layout.
        unsafe { api!(RedisModule_Free(start_of(first, layout))) };
    }

    unsafe fn realloc(&self, first: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        if layout.align() <= ALIGN && new_bytes <= LARGE_BYTES {
            // SAFETY: the memory is an allocation of the server without an offset.
            return unsafe { api!(RedisModule_Realloc(first.cast(), new_bytes)).cast() };
        }
        // SAFETY: the caller guarantees that the new length is valid for this alignment.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_bytes, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(first, layout.size().min(new_bytes));
                self.dealloc(first, layout);
            }
            new
        }
    }
}

/// From this size on, the allocator tests whether there is memory before it calls a function that
/// would end the server.
const LARGE_BYTES: usize = 1 << 20;

/// Returns the length to request for a layout, in bytes.
fn whole_bytes(layout: Layout) -> usize {
    if layout.align() <= ALIGN { layout.size() } else { layout.size() + layout.align() }
}

/// Returns the aligned address in an allocation; null if there was no memory.
///
/// # Safety
///
/// `start` is null or an allocation of [`whole_bytes`].
unsafe fn aligned(start: *mut c_void, layout: Layout) -> *mut u8 {
    let start: *mut u8 = start.cast();
    if layout.align() <= ALIGN || start.is_null() {
        return start;
    }
    // At least 16 bytes are before the result, because `start` is a multiple of 16.
    let offset = layout.align() - start.addr() % layout.align();
    // SAFETY: the offset is at most the alignment, so the result has the length of the layout.
    unsafe {
        let first = start.add(offset);
        first.cast::<*mut u8>().sub(1).write(start);
        first
    }
}

/// Returns the start of the allocation with this aligned address.
///
/// # Safety
///
/// `first` is a result of [`aligned`] for this layout.
unsafe fn start_of(first: *mut u8, layout: Layout) -> *mut c_void {
    if layout.align() <= ALIGN {
        return first.cast();
    }
    // SAFETY: `aligned` wrote the start there.
    unsafe { first.cast::<*mut u8>().sub(1).read().cast() }
}

/// Returns the memory that the server counts for an allocation of `len_bytes` bytes.
///
/// jemalloc, with which servers are usually built, has four sizes between two powers of two.
pub fn allocation_bytes(len_bytes: usize) -> u64 {
    match len_bytes {
        0 => 0,
        1..=8 => 8,
        // The sizes up to 128 are the multiples of 16.
        9..=128 => len_bytes.next_multiple_of(16) as u64,
        _ => {
            let step = len_bytes.next_power_of_two() / 8;
            len_bytes.checked_next_multiple_of(step).unwrap_or(len_bytes) as u64
        }
    }
}

/// Tests whether the server allocates with jemalloc: an allocation of 33 KiB then takes 40 KiB.
pub fn is_jemalloc() -> bool {
    // SAFETY: the memory is freed at once.
    unsafe {
        if !has_api!(RedisModule_MallocSize) {
            return false;
        }
        let probe = api!(RedisModule_TryAlloc(33 << 10));
        let bytes = api!(RedisModule_MallocSize(probe));
        api!(RedisModule_Free(probe));
        bytes == 40 << 10
    }
}
