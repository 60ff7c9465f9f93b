//! The allocator of the module. The module allocates with the server's functions, so `maxmemory`,
//! `INFO memory` and `MEMORY USAGE` count all filters.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE};

use crate::api::{api, has_api};

/// Allocates with the functions of the server.
///
/// The server aligns memory to 16 bytes. jemalloc aligns an allocation to 64 bytes if its size is a multiple of 64
/// bytes. For an alignment that the server does not guarantee, this allocator requests a longer allocation, and stores
/// the start of the allocation in the word before the aligned address.
pub struct ServerAllocator;

/// The alignment of the server's memory, in bytes.
const ALIGN: usize = 16;

// SAFETY: the functions of the server return memory of at least the requested length. No other
// allocation overlaps this memory. `start_of` reverses the change that `aligned` makes to an
// address.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_in_server() {
            // SAFETY: the caller meets the contract of `GlobalAlloc`.
            return unsafe { System.alloc(layout) };
        }
        // SAFETY: any length may be requested. If there is no memory, `TryAlloc` returns null, but
        // `Alloc` would end the server.
        let start = unsafe { api!(RedisModule_TryAlloc(whole_bytes(layout))) };
        // SAFETY: the allocation has the whole length.
        unsafe { aligned(start, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_in_server() {
            // SAFETY: the caller meets the contract of `GlobalAlloc`.
            return unsafe { System.alloc_zeroed(layout) };
        }
        let bytes = whole_bytes(layout);
        if bytes > LARGE_BYTES {
            // If there is no memory, `Calloc` ends the server. `TryAlloc` returns memory that is not zeroed. Before the
            // call of `Calloc`, this function therefore tests with `mmap` whether there is enough memory. SAFETY: the
            // code creates a new mapping and removes the mapping, and affects no other memory.
            unsafe {
                let (access, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
                let probe = libc::mmap(null_mut(), bytes, access, flags, -1, 0);
                if probe == MAP_FAILED {
                    return null_mut();
                }
                libc::munmap(probe, bytes);
            }
        }
        // SAFETY: the allocation has the whole length.
        unsafe { aligned(api!(RedisModule_Calloc(1, bytes)), layout) }
    }

    unsafe fn dealloc(&self, first: *mut u8, layout: Layout) {
        if !is_in_server() {
            // SAFETY: the caller meets the contract of `GlobalAlloc`.
            return unsafe { System.dealloc(first, layout) };
        }
        // SAFETY: `first` is the result of an allocation with this layout.
        unsafe { api!(RedisModule_Free(start_of(first, layout))) };
    }

    unsafe fn realloc(&self, first: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        if layout.align() <= ALIGN && new_bytes <= LARGE_BYTES && is_in_server() {
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

/// Tests whether a server has loaded the module. The server sets the pointers of its functions
/// before the first allocation. Unit tests run without a server.
fn is_in_server() -> bool {
    // SAFETY: nothing writes the pointers after the module has started.
    unsafe { has_api!(RedisModule_Free) }
}

/// The size in bytes above which the allocator tests for enough memory before `Calloc`, and calls `TryAlloc` instead of
/// `Realloc`. Without enough memory, `Calloc` and `Realloc` end the server.
const LARGE_BYTES: usize = 1 << 20;

/// True if the server allocates with jemalloc. [`register`] sets this flag once, before the first filter exists, so
/// that an allocation and its release use the same value of the flag.
static IS_JEMALLOC: AtomicBool = AtomicBool::new(false);

/// The alignment of a jemalloc allocation whose size is a multiple of this constant, in bytes.
const LINE: usize = 64;

/// Tests whether the server's allocator aligns memory of this layout.
fn is_aligned_by_server(layout: Layout) -> bool {
    let (size, align) = (layout.size(), layout.align());
    let is_lines = align == LINE && size % LINE == 0;
    align <= ALIGN || is_lines && IS_JEMALLOC.load(Ordering::Relaxed)
}

/// Returns how many bytes to request from the server for a layout.
fn whole_bytes(layout: Layout) -> usize {
    if is_aligned_by_server(layout) { layout.size() } else { layout.size() + layout.align() }
}

/// Returns the aligned address in an allocation. Returns null if `start` is null.
///
/// # Safety
///
/// `start` is null or the start of an allocation of [`whole_bytes`] bytes.
unsafe fn aligned(start: *mut c_void, layout: Layout) -> *mut u8 {
    let start: *mut u8 = start.cast();
    if start.is_null() {
        return start;
    }
    if is_aligned_by_server(layout) {
        if start.addr().is_multiple_of(layout.align()) {
            return start;
        }
        // The address has the wrong alignment, so the allocator is not jemalloc.
        // SAFETY: no other code uses the memory.
        unsafe { api!(RedisModule_Free(start.cast())) };
        return null_mut();
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

/// Returns the start of the allocation with the given aligned address.
///
/// # Safety
///
/// [`aligned`] returned `first` for this layout.
unsafe fn start_of(first: *mut u8, layout: Layout) -> *mut c_void {
    if is_aligned_by_server(layout) {
        return first.cast();
    }
    // SAFETY: `aligned` wrote the start into the word before `first`.
    unsafe { first.cast::<*mut u8>().sub(1).read().cast() }
}

/// Returns how many bytes the server counts for an allocation of `len_bytes` bytes.
///
/// Most servers are built with jemalloc, which has four allocation sizes per power of two.
fn allocation_bytes(len_bytes: usize) -> u64 {
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

/// Detects the allocator of the server, and sets the function that counts memory. Only the start of
/// the module calls this function, before the first filter exists.
pub fn register() {
    // An allocation of 33 KiB takes 40 KiB with jemalloc.
    // SAFETY: the code frees the memory before any other use.
    let is_jemalloc = unsafe {
        let probe = api!(RedisModule_TryAlloc(33 << 10));
        let bytes = api!(RedisModule_MallocSize(probe));
        api!(RedisModule_Free(probe));
        bytes == 40 << 10
    };
    IS_JEMALLOC.store(is_jemalloc, Ordering::Relaxed);
    tamis::use_global_allocator(if is_jemalloc {
        allocation_bytes
    } else {
        tamis::allocation_bytes_of_glibc
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_jemalloc() {
        for (len, bytes) in [
            (0, 0),
            (8, 8),
            (9, 16),
            (128, 128),
            (129, 160),
            (192, 192),
            (500, 512),
            (513, 640),
            (33 << 10, 40 << 10),
            (13_213_568, 14 << 20),
        ] {
            assert_eq!(allocation_bytes(len), bytes, "{len}");
        }
    }

    #[test]
    fn an_aligned_address_leads_back_to_its_start() {
        for align in [16, 32, 64, 4096] {
            let layout = Layout::from_size_align(100, align).unwrap();
            let whole = Layout::from_size_align(whole_bytes(layout), ALIGN).unwrap();
            // SAFETY: the allocation has the whole length, and is freed with its layout.
            unsafe {
                let start = System.alloc(whole);
                let first = aligned(start.cast(), layout);
                assert!(first.addr().is_multiple_of(align));
                assert!(first.addr() + 100 <= start.addr() + whole.size());
                assert_eq!(start_of(first, layout).cast(), start);
                System.dealloc(start, whole);
            }
        }
    }
}
