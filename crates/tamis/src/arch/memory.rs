//! Zeroed memory on cache lines and huge pages.

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

/// The size of a cache line, and of a block of the default filter.
pub(crate) const LINE_BYTES: usize = 64;

/// The minimum size for huge pages. In a smaller allocation than this minimum, a huge page wastes
/// more memory than the saved time is worth.
#[cfg(any(all(target_os = "linux", feature = "std", not(miri)), test))]
const HUGE_FROM_BYTES: usize = 4 << 20;

/// The size of huge pages on x86-64 and on most arm64 systems.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The size of the largest base page, which is a multiple of all other base page sizes. On arm64, a
/// base page may have 64 KiB.
const PAGE_BYTES: usize = 64 << 10;

/// The kind of pages to request from the operating system. The kind applies to filters that are
/// large enough for separate pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages, with which a lookup needs no page-table walk.
    Huge,
    /// The smallest pages, so that untouched parts of a filter use no memory.
    Small,
}

/// Zeroed words that start on a cache line. Allocations above a few MiB use huge pages if Linux
/// provides them.
///
/// The operating system provides zeroed memory without touching pages before the first access.
/// Therefore a large filter that is partly used takes memory only for the used part.
pub(crate) struct Lines {
    first: NonNull<u64>,
    len_words: usize,
}

// SAFETY: `Lines` owns its words, like a `Box<[u64]>`.
unsafe impl Send for Lines {}
// SAFETY: a shared reference to `Lines` only reads the words.
unsafe impl Sync for Lines {}

impl Lines {
    /// Creates an empty slice, without an allocation.
    pub(crate) const fn empty() -> Self {
        Self { first: NonNull::dangling(), len_words: 0 }
    }

    /// Allocates `len_words` zeroed words. Returns `None` if the memory cannot be allocated.
    pub(crate) fn zeroed(len_words: usize) -> Option<Self> {
        Self::zeroed_on(len_words, Pages::Huge)
    }

    /// Allocates `len_words` zeroed words on pages of the given kind.
    pub(crate) fn zeroed_on(len_words: usize, pages: Pages) -> Option<Self> {
        if len_words == 0 {
            return Some(Self::empty());
        }
        let layout = Self::layout(len_words)?;
        if is_mapped(layout.size()) {
            let first = map(layout.size(), pages)?;
            return Some(Self { first, len_words });
        }
        // SAFETY: the layout has a size above zero.
        let first = NonNull::new(unsafe { alloc_zeroed(layout) })?.cast();
        Some(Self { first, len_words })
    }

    /// Frees the memory before word `until` if the operating system supports partial freeing. After
    /// the call, each freed word is zero or unchanged.
    pub(crate) fn release(&mut self, until: usize) {
        let len_bytes = until.min(self.len_words) * size_of::<u64>();
        if is_mapped(self.len_words * size_of::<u64>()) {
            unmap_contents(self.first, len_bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES);
        }
    }

    /// Returns the memory of `len_words` words, in bytes: see [`allocation_bytes`].
    pub(crate) fn heap_bytes(len_words: usize) -> u64 {
        let len_bytes = len_words.saturating_mul(size_of::<u64>());
        if is_mapped(len_bytes) {
            return len_bytes.next_multiple_of(PAGE_BYTES) as u64;
        }
        allocation_bytes(len_bytes)
    }

    fn layout(len_words: usize) -> Option<Layout> {
        let len_bytes = len_words.checked_mul(size_of::<u64>())?;
        Layout::from_size_align(len_bytes, LINE_BYTES).ok()
    }
}

impl std::ops::Deref for Lines {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        // SAFETY: `first` is valid for `len_words` initialized words, which live as long as `self`.
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
            if is_mapped(layout.size()) {
                return unmap(self.first, layout.size());
            }
            // SAFETY: `zeroed` allocated the memory with this layout.
            unsafe { dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}

/// Returns the memory that an allocation of `len_bytes` takes, in bytes, including headers and
/// rounding.
///
/// By default, the result is the size that glibc allocates on 64-bit systems.
/// [`use_global_allocator`] sets the sizes of another allocator. The sizes of other allocators
/// differ from the sizes of glibc by a few bytes. An allocation of zero bytes takes no memory.
///
/// # Examples
///
/// ```
/// use tamis::allocation_bytes;
///
/// assert_eq!([0, 1, 24, 25, 100].map(allocation_bytes), [0, 32, 32, 48, 112]);
/// ```
#[must_use]
pub fn allocation_bytes(len_bytes: usize) -> u64 {
    global_allocation_bytes(len_bytes).unwrap_or_else(|| allocation_bytes_of_glibc(len_bytes))
}

/// Returns the memory that an allocation of `len_bytes` takes with the allocator of
/// [`use_global_allocator`], in bytes. The caller may use all of the returned bytes. Returns `None`
/// if the program has not called `use_global_allocator`.
pub(crate) fn global_allocation_bytes(len_bytes: usize) -> Option<u64> {
    #[cfg(feature = "std")]
    if let Some(Some(allocation_bytes)) = GLOBAL_ALLOCATOR.get() {
        return Some(allocation_bytes(len_bytes));
    }
    _ = len_bytes;
    None
}

/// Returns the memory that an allocation of `len_bytes` takes with the allocator of glibc, in
/// bytes.
#[must_use]
pub const fn allocation_bytes_of_glibc(len_bytes: usize) -> u64 {
    let bytes = len_bytes as u64;
    match bytes {
        0 => 0,
        1..=24 => 32,
        // glibc maps an allocation of at least `MAPPED_FROM_BYTES` separately, in whole pages.
        MAPPED_FROM_BYTES.. => bytes.saturating_add(16 + 4095) & !4095,
        _ => (bytes + 8 + 15) & !15,
    }
}

/// The function that the program passed to [`use_global_allocator`], or `None` if large filters are
/// mapped. The first large filter sets `GLOBAL_ALLOCATOR` permanently, because memory must be freed
/// by the method of its allocation.
#[cfg(feature = "std")]
static GLOBAL_ALLOCATOR: std::sync::OnceLock<Option<AllocationBytes>> = std::sync::OnceLock::new();

/// A function that returns the memory that an allocation of a given length takes, in bytes.
#[cfg(feature = "std")]
type AllocationBytes = fn(usize) -> u64;

/// Allocates large filters with the global allocator instead of mapping memory of the operating
/// system. Programs whose allocator counts memory, for example a module of Redis, need this
/// function.
///
/// `allocation_bytes` returns the memory that an allocation of a given length takes, in bytes.
///
/// # Panics
///
/// If the program has created a filter of 4 MiB or more, or has called this function before.
#[cfg(feature = "std")]
pub fn use_global_allocator(allocation_bytes: fn(usize) -> u64) {
    let is_first = GLOBAL_ALLOCATOR.set(Some(allocation_bytes)).is_ok();
    assert!(is_first, "the program has allocated memory for filters");
}

/// The size from which glibc maps each allocation separately.
const MAPPED_FROM_BYTES: u64 = 128 << 10;

/// [`Lines`] that several threads may read and write at the same time.
#[cfg(not(loom))]
pub(crate) struct AtomicLines {
    // Only `deref` accesses the words of this field, so that no non-atomic reference to the words
    // exists.
    lines: Lines,
}

#[cfg(not(loom))]
impl AtomicLines {
    /// Allocates `len_words` zeroed words. Returns `None` if the memory cannot be allocated.
    pub(crate) fn zeroed_on(len_words: usize, pages: Pages) -> Option<Self> {
        Lines::zeroed_on(len_words, pages).map(|lines| Self { lines })
    }

    /// Converts the memory to words with a single owner.
    pub(crate) fn into_lines(self) -> Lines {
        self.lines
    }
}

#[cfg(not(loom))]
impl From<Lines> for AtomicLines {
    fn from(lines: Lines) -> Self {
        Self { lines }
    }
}

#[cfg(not(loom))]
impl std::ops::Deref for AtomicLines {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: as in `Lines`, the words are valid. An `AtomicU64` has the layout of a `u64`, the
        // words are aligned, and no non-atomic reference to the words exists.
        unsafe {
            std::slice::from_raw_parts(self.lines.first.as_ptr().cast(), self.lines.len_words)
        }
    }
}

/// An integer type for which every bit pattern is valid.
pub(crate) trait Integer: Copy + Default + Send + Sync + sealed::Sealed {}
impl Integer for u32 {}
impl Integer for u64 {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// The words of [`Lines`] as integers of type `T`.
pub(crate) struct Integers<T> {
    lines: Lines,
    of: PhantomData<T>,
}

impl<T: Integer> Integers<T> {
    /// Allocates at least `len` zeroed integers, in whole cache lines. Returns `None` if the memory
    /// cannot be allocated.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let len_lines = len.div_ceil(LINE_BYTES / size_of::<T>());
        let lines = Lines::zeroed(len_lines.checked_mul(LINE_BYTES / size_of::<u64>())?)?;
        Some(Self { lines, of: PhantomData })
    }
}

impl<T: Integer> std::ops::Deref for Integers<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let len = self.lines.len_words * (size_of::<u64>() / size_of::<T>());
        // SAFETY: the words are initialized, and their alignment is at least the alignment of any
        // integer. Every bit pattern is a valid integer.
        unsafe { std::slice::from_raw_parts(self.lines.first.as_ptr().cast(), len) }
    }
}

impl<T: Integer> std::ops::DerefMut for Integers<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let len = self.lines.len_words * (size_of::<u64>() / size_of::<T>());
        // SAFETY: as in `deref`, and `self` is borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.lines.first.as_ptr().cast(), len) }
    }
}

/// Returns true if memory of `len_bytes` bytes is mapped directly from the operating system. If the
/// allocator provided memory with the alignment of a huge page, the allocator would clear the
/// memory itself. Clearing would touch all the memory in small pages, before Linux is asked for
/// huge pages.
#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
fn is_mapped(len_bytes: usize) -> bool {
    len_bytes >= HUGE_FROM_BYTES && GLOBAL_ALLOCATOR.get_or_init(|| None).is_none()
}

#[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
const fn is_mapped(_: usize) -> bool {
    false
}

/// Returns the length of a mapping for `len_bytes` bytes. The length is a whole number of pages, so
/// that the whole mapping can be unmapped.
#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
const fn kept_bytes(len_bytes: usize) -> usize {
    len_bytes.next_multiple_of(PAGE_BYTES)
}

#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
fn map(len_bytes: usize, pages: Pages) -> Option<NonNull<u64>> {
    use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
    // Neither addition overflows, because a length from a `Layout` is at most half of the maximum.
    let kept_bytes = kept_bytes(len_bytes);
    let whole_bytes = kept_bytes.checked_add(HUGE_PAGE_BYTES)?;
    // SAFETY: `mmap` creates a new private mapping at an address that the operating system chooses,
    // and affects no other memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            whole_bytes,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == MAP_FAILED {
        return None;
    }
    let before_bytes = start.addr().next_multiple_of(HUGE_PAGE_BYTES) - start.addr();
    let first = start.wrapping_byte_add(before_bytes);
    // `after_bytes` is above zero, because `before_bytes` is smaller than a huge page.
    let after_bytes = HUGE_PAGE_BYTES - before_bytes;
    let advice = match pages {
        Pages::Huge => libc::MADV_HUGEPAGE,
        Pages::Small => libc::MADV_NOHUGEPAGE,
    };
    // SAFETY: both ranges are whole pages inside the new mapping and outside the part that is kept.
    // If `munmap` fails, only address space is lost. If Linux refuses the advice, the pages stay
    // small.
    unsafe {
        if before_bytes > 0 {
            libc::munmap(start, before_bytes);
        }
        libc::munmap(first.wrapping_byte_add(kept_bytes), after_bytes);
        libc::madvise(first, len_bytes, advice);
    }
    NonNull::new(first.cast())
}

#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
fn unmap(first: NonNull<u64>, len_bytes: usize) {
    // SAFETY: `map` returned the range that starts at `first`, for the length `len_bytes`. The
    // owner of the range is being dropped.
    unsafe { libc::munmap(first.as_ptr().cast(), kept_bytes(len_bytes)) };
}

#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
fn unmap_contents(first: NonNull<u64>, len_bytes: usize) {
    // SAFETY: the range is whole pages of a private mapping with one owner. After `madvise`, the
    // pages of the range read as zero.
    unsafe { libc::madvise(first.as_ptr().cast(), len_bytes, libc::MADV_DONTNEED) };
}

#[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
fn map(_: usize, _: Pages) -> Option<NonNull<u64>> {
    None
}

#[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
fn unmap(_: NonNull<u64>, _: usize) {}

#[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
fn unmap_contents(_: NonNull<u64>, _: usize) {}

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
    fn released_memory_is_zero_or_unchanged() {
        for len_words in [100, 4 * HUGE_FROM_BYTES / 8] {
            let mut lines = Lines::zeroed(len_words).unwrap();
            lines.fill(7);
            lines.release(len_words / 2 + 1);
            assert!(lines[..=len_words / 2].iter().all(|&word| word == 7 || word == 0));
            assert!(lines[len_words / 2 + 1..].iter().all(|&word| word == 7));
            lines.release(usize::MAX);
        }
    }

    /// Tests that a process that creates and drops a filter for each request does not run out of
    /// mappings.
    #[cfg(all(target_os = "linux", feature = "std", not(miri)))]
    #[test]
    fn dropping_a_mapping_unmaps_its_last_page() {
        let is_left = |address: usize| {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().any(|line| {
                let (first, rest) = line.split_once('-').unwrap();
                let end = rest.split(' ').next().unwrap();
                let number = |hex| usize::from_str_radix(hex, 16).unwrap();
                (number(first)..number(end)).contains(&address)
            })
        };
        // Another thread may immediately map the unmapped address again, but not in every
        // iteration.
        let left = (0..20).filter(|_| {
            let lines = Lines::zeroed(HUGE_FROM_BYTES / 8 + 1).unwrap();
            let last_page = lines.as_ptr().addr() + kept_bytes(lines.len() * 8) - 1;
            assert!(is_left(last_page), "mapped while in use");
            drop(lines);
            is_left(last_page)
        });
        assert!(left.count() < 20);
    }

    #[test]
    fn absurd_sizes_are_refused_not_fatal() {
        assert!(Lines::zeroed(usize::MAX).is_none());
        assert!(Lines::zeroed(usize::MAX / 8).is_none());
    }
}
