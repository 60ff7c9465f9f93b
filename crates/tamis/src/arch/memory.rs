//! Zeroed memory on cache lines and huge pages, and prefetch.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

/// A cache line, and the block of the default filter.
pub(crate) const LINE_BYTES: usize = 64;

/// Below this a huge page would waste more memory than it saves time.
const HUGE_FROM_BYTES: usize = 4 << 20;

/// The page size that `madvise` hands out on x86-64 and most of arm64.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Words that start zeroed, on a cache line, and above a few MiB on huge pages where Linux has them.
///
/// Memory comes from the system zeroed and untouched, so planning a large filter and using a part of
/// it costs only that part.
pub(crate) struct Lines {
    first: NonNull<u64>,
    len_words: usize,
}

// SAFETY: `Lines` owns its words as a `Box<[u64]>` would.
unsafe impl Send for Lines {}
// SAFETY: shared access only reads.
unsafe impl Sync for Lines {}

impl Lines {
    /// Allocates `len_words` zeroed words, or `None` if there is no such memory.
    pub(crate) fn zeroed(len_words: usize) -> Option<Self> {
        if len_words == 0 {
            return Some(Self { first: NonNull::dangling(), len_words });
        }
        let layout = Self::layout(len_words)?;
        // SAFETY: the layout has a size above zero.
        let first = NonNull::new(unsafe { alloc_zeroed(layout) })?.cast();
        advise_huge(first, layout.size());
        Some(Self { first, len_words })
    }

    fn layout(len_words: usize) -> Option<Layout> {
        let len_bytes = len_words.checked_mul(size_of::<u64>())?;
        let align = if len_bytes >= HUGE_FROM_BYTES { HUGE_PAGE_BYTES } else { LINE_BYTES };
        Layout::from_size_align(len_bytes, align).ok()
    }
}

impl std::ops::Deref for Lines {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        // SAFETY: `first` is valid for `len_words` initialised words, which live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len_words) }
    }
}

impl std::ops::DerefMut for Lines {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `deref`, and `self` is borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len_words) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if self.len_words > 0 {
            let layout = Self::layout(self.len_words).expect("the layout it was allocated with");
            // SAFETY: allocated in `zeroed` with this very layout.
            unsafe { dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}

/// [`Lines`] that many threads read and write at once.
#[cfg(not(loom))]
pub(crate) struct AtomicLines {
    // Touched only through `deref`: no plain reference to the words ever exists.
    lines: Lines,
}

#[cfg(not(loom))]
impl AtomicLines {
    /// Allocates `len_words` zeroed words, or `None` if there is no such memory.
    pub(crate) fn zeroed(len_words: usize) -> Option<Self> {
        Lines::zeroed(len_words).map(|lines| Self { lines })
    }
}

#[cfg(not(loom))]
impl std::ops::Deref for AtomicLines {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: as in `Lines`; an `AtomicU64` has the layout of a `u64`, the words are aligned,
        // and they are reached in no other way.
        unsafe {
            std::slice::from_raw_parts(self.lines.first.as_ptr().cast(), self.lines.len_words)
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge(first: NonNull<u64>, len_bytes: usize) {
    if len_bytes >= HUGE_FROM_BYTES {
        // A refusal is no error: pages are then small, and answers the same.
        // SAFETY: the range is one whole allocation; advice changes no contents.
        unsafe { libc::madvise(first.as_ptr().cast(), len_bytes, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge(_: NonNull<u64>, _: usize) {}

/// Asks the CPU to fetch the cache line of `slice[index]`, to be read soon.
///
/// A hint: it never fails, and an index past the end does nothing. Lookups in a large table that
/// are prefetched a few dozen ahead wait for memory once, not once each.
///
/// # Examples
///
/// ```
/// let table = vec![0_u64; 1 << 20];
/// tamis::prefetch(&table, 77_777);
/// ```
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    if index < slice.len() {
        prefetch_index(slice, index);
    }
}

/// As [`prefetch`], for an index known to be in range (out of range it is a wasted hint).
#[inline(always)]
pub(crate) fn prefetch_index<T>(slice: &[T], index: usize) {
    prefetch_address(slice.as_ptr().wrapping_add(index));
}

/// As [`prefetch`], for any address.
#[inline(always)]
pub(crate) fn prefetch_address<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is allowed; it cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch of any address is allowed; it cannot fault.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_zeroed_and_aligned() {
        for len_words in [0, 1, 8, 1000, (HUGE_FROM_BYTES / 8) + 1] {
            let mut lines = Lines::zeroed(len_words).unwrap();
            assert_eq!(lines.len(), len_words);
            assert!(lines.iter().all(|&word| word == 0));
            let on_line = (lines.as_ptr() as usize).is_multiple_of(LINE_BYTES);
            assert!(on_line || len_words == 0, "{len_words} words");
            if let Some(last) = lines.last_mut() {
                *last = 7;
            }
        }
    }

    #[test]
    fn absurd_sizes_are_refused_not_fatal() {
        assert!(Lines::zeroed(usize::MAX).is_none());
        assert!(Lines::zeroed(usize::MAX / 8).is_none());
    }

    #[test]
    fn prefetch_past_the_end_does_nothing() {
        prefetch(&[0_u8; 4], usize::MAX);
    }
}
