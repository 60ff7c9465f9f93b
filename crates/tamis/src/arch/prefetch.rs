//! Prefetches: hints to load a cache line before it is read or written.

use std::ops::Range;

use crate::arch::memory::LINE_BYTES;

/// Asks the CPU to load the cache line of `slice[index]`, for a read that follows soon.
///
/// The prefetch is a hint that never fails. An index past the end has no effect. Prefetch a few
/// dozen lookups ahead, so that lookups in a large table overlap their memory accesses.
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

/// Like [`prefetch`], without a check of the index. If the index is out of range, the prefetch is
/// useless but harmless.
#[inline(always)]
pub(crate) fn prefetch_index<T>(slice: &[T], index: usize) {
    prefetch_address(slice.as_ptr().wrapping_add(index));
}

/// Prefetches every cache line of a range of `words`. `words` starts on a cache line.
#[inline(always)]
pub(crate) fn prefetch_lines(words: *const [u64], range: Range<usize>) {
    const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();
    for first in (range.start & !(LINE_WORDS - 1)..range.end).step_by(LINE_WORDS) {
        prefetch_address(words.cast::<u64>().wrapping_add(first));
    }
}

/// Prefetches the cache line of `slice[index]` for a write that follows soon. The prefetch takes
/// the cache line from other cores before the write. If the index is out of range, the prefetch is
/// useless but harmless.
#[inline(always)]
pub(crate) fn prefetch_write<T>(slice: &[T], index: usize) {
    let address = slice.as_ptr().wrapping_add(index);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address is allowed and cannot fault. CPUs without `prefetchw`
    // ignore the instruction, or treat the instruction as a prefetch for a read.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    prefetch_address(address);
}

/// Like [`prefetch`], for any address.
#[inline(always)]
pub(crate) fn prefetch_address<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is allowed and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch of any address is allowed and cannot fault.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_index_past_the_end_has_no_effect() {
        super::prefetch(&[0_u8; 4], usize::MAX);
    }
}
