//! Sorts items into bins, without loading the memory that the items overwrite.
//!
//! An item is first written to the buffer of its bin. A buffer has a few cache lines. A full buffer
//! is written to memory with streaming stores. Streaming stores do not load a cache line before
//! they write the line, and do not evict the buffers from the caches. Therefore filling thousands
//! of bins at the same time costs as much as filling one bin.

use crate::arch::memory::{Integer, LINE_BYTES};

/// Appends each item to its bin.
///
/// `heads[bin]` is the position of the bin's next item in `pool`, counted in items. The items of a
/// bin after the last multiple of `BUFFER` are only in `buffers[bin]`. When a chunk of
/// `chunk_items` items is full, `next_chunk` is called with the number of this chunk. `next_chunk`
/// returns the number of the bin's next chunk.
///
/// # Panics
///
/// If a bin is not below `heads.len()` and `buffers.len()`, a head is outside `pool`, or `pool`
/// does not start on a cache line.
pub(crate) fn partition<T: Integer, const BUFFER: usize>(
    items: impl Iterator<Item = (usize, T)>,
    chunk_items: usize,
    heads: &mut [u32],
    buffers: &mut [[T; BUFFER]],
    pool: &mut [T],
    next_chunk: impl FnMut(u32) -> u32,
) {
    assert!(pool.as_ptr().addr().is_multiple_of(LINE_BYTES), "a pool on a cache line");
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let _fence = Fence;
        partition_by(stream, items, chunk_items, heads, buffers, pool, next_chunk);
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    partition_by(copy, items, chunk_items, heads, buffers, pool, next_chunk);
}

#[inline(always)]
fn partition_by<T: Integer, const BUFFER: usize>(
    store: impl Fn(&mut [T], &[T]),
    items: impl Iterator<Item = (usize, T)>,
    chunk_items: usize,
    heads: &mut [u32],
    buffers: &mut [[T; BUFFER]],
    pool: &mut [T],
    mut next_chunk: impl FnMut(u32) -> u32,
) {
    const { assert!((BUFFER * size_of::<T>()).is_multiple_of(LINE_BYTES), "whole lines") };
    assert!(chunk_items.is_power_of_two() && chunk_items >= BUFFER);
    let buffers = &mut buffers[..heads.len()];
    for (bin, item) in items {
        let head = heads[bin] as usize;
        heads[bin] = head as u32 + 1;
        let at = head % BUFFER;
        buffers[bin][at] = item;
        if at == BUFFER - 1 {
            store(&mut pool[head - at..][..BUFFER], &buffers[bin]);
            let full = head + 1;
            if full.is_multiple_of(chunk_items) {
                let next = next_chunk((full / chunk_items - 1) as u32);
                heads[bin] = next * chunk_items as u32;
            }
        }
    }
}

/// Dropping a `Fence` orders the streaming stores before all later memory accesses.
#[cfg(all(target_arch = "x86_64", not(miri)))]
struct Fence;

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Drop for Fence {
    fn drop(&mut self) {
        use std::arch::x86_64::_mm_sfence;
        // SAFETY: every x86-64 has SSE.
        unsafe { _mm_sfence() };
    }
}

/// Writes whole lines without loading them into the caches. Each line is written with four stores
/// of 16 bytes, which every x86-64 CPU supports. Four stores fill the write buffer of a line as
/// fast as one store of 64 bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn stream<T: Integer>(to: &mut [T], from: &[T]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    assert_eq!(to.len(), from.len());
    let quarters = size_of_val(to) / size_of::<__m128i>();
    let to = to.as_mut_ptr().cast::<__m128i>();
    let from = from.as_ptr().cast::<__m128i>();
    for quarter in 0..quarters {
        // SAFETY: `to` and `from` have the same number of bytes. `to` starts on a cache line,
        // because the pool starts on a cache line and whole buffers lie between the two starts. The
        // only caller holds a `Fence`. The caller does not read `to` before the `Fence` is dropped.
        unsafe { _mm_stream_si128(to.add(quarter), _mm_loadu_si128(from.add(quarter))) };
    }
}

/// The scalar version of [`stream`].
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[inline(always)]
fn copy<T: Integer>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::memory::Integers;

    const CHUNK: usize = 32;
    const BINS: usize = 8;
    /// The size of a buffer in items: one cache line of 32-bit items, or two cache lines of 64-bit
    /// items.
    const BUFFER: usize = 16;

    /// All outputs of a partition: heads, buffers, the pool, and the order of the chunks.
    type Written<T> = (Vec<u32>, Vec<[T; BUFFER]>, Vec<T>, Vec<u32>);

    fn run<T: Integer>(items: &[(usize, T)], streamed: bool) -> Written<T> {
        let chunks = BINS + items.len() / CHUNK;
        let mut heads: Vec<u32> = (0..BINS).map(|bin| (bin * CHUNK) as u32).collect();
        let mut buffers = vec![[T::default(); BUFFER]; BINS];
        let mut pool = Integers::zeroed(chunks * CHUNK).unwrap();
        let mut filled = Vec::new();
        let next = |full| {
            filled.push(full);
            (BINS + filled.len() - 1) as u32
        };
        let items = items.iter().copied();
        if streamed {
            partition(items, CHUNK, &mut heads, &mut buffers, &mut pool, next);
        } else {
            partition_by(copy, items, CHUNK, &mut heads, &mut buffers, &mut pool, next);
        }
        (heads, buffers, pool.to_vec(), filled)
    }

    proptest! {
        #[test]
        fn streamed_and_copied_lines_are_the_same(
            items in prop::collection::vec(any::<u64>(), 0..3000),
            skew in 0_u32..32,
        ) {
            let wide: Vec<_> =
                items.iter().map(|&item| ((item >> 61 >> (skew % 4)) as usize, item)).collect();
            let narrow: Vec<_> = wide.iter().map(|&(bin, item)| (bin, item as u32)).collect();
            prop_assert_eq!(run(&wide, true), run(&wide, false));
            prop_assert_eq!(run(&narrow, true), run(&narrow, false));
        }
    }
}
