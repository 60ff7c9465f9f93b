//! Sorting items into bins by their high bits, without reading what is written over.
//!
//! An item goes to its bin's buffer of one cache line; a full buffer goes to memory by streaming
//! stores, which neither fetch the line first nor push the buffers out of the caches. Thousands of bins
//! fill at once at the price of one stream.

use super::memory::ItemLine;

/// Items in a line, and so in a bin's buffer.
pub(crate) const LINE_ITEMS: usize = 16;

/// Appends each item to the bin `item >> shift`.
///
/// `heads[bin]` is where the bin's next item belongs in `pool`, counted in items. The last few items
/// of a bin, those since the last multiple of [`LINE_ITEMS`], stand in `buffers[bin]` only. Whenever
/// `chunk_items` items from a multiple of it are full, `next_chunk` is told which chunk that is and
/// names the one in which the bin goes on.
///
/// # Panics
///
/// If a bin is not below `heads.len()` and `buffers.len()`, or a head not inside `pool`.
pub(crate) fn partition(
    items: &[u32],
    shift: u32,
    chunk_items: usize,
    heads: &mut [u32],
    buffers: &mut [ItemLine],
    pool: &mut [ItemLine],
    next_chunk: impl FnMut(u32) -> u32,
) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let _fence = Fence;
        partition_by(stream, items, shift, chunk_items, heads, buffers, pool, next_chunk);
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    partition_by(copy, items, shift, chunk_items, heads, buffers, pool, next_chunk);
}

#[expect(clippy::too_many_arguments, reason = "the seven of `partition`, and how a line is stored")]
#[inline(always)]
fn partition_by(
    store: impl Fn(&mut ItemLine, &ItemLine),
    items: &[u32],
    shift: u32,
    chunk_items: usize,
    heads: &mut [u32],
    buffers: &mut [ItemLine],
    pool: &mut [ItemLine],
    mut next_chunk: impl FnMut(u32) -> u32,
) {
    assert!(chunk_items.is_power_of_two() && chunk_items >= LINE_ITEMS);
    let buffers = &mut buffers[..heads.len()];
    for &item in items {
        let bin = (item >> shift) as usize;
        let head = heads[bin];
        heads[bin] = head + 1;
        let at = head as usize % LINE_ITEMS;
        buffers[bin].0[at] = item;
        if at == LINE_ITEMS - 1 {
            store(&mut pool[head as usize / LINE_ITEMS], &buffers[bin]);
            let full = head as usize + 1;
            if full.is_multiple_of(chunk_items) {
                let next = next_chunk((full / chunk_items - 1) as u32);
                heads[bin] = next * chunk_items as u32;
            }
        }
    }
}

/// Orders the streaming stores before whatever follows, when dropped.
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

/// Writes a line past the caches. Four stores of 16 bytes, which every x86-64 has, fill the write
/// buffer of one line as well as one of 64 does: wider ones measured no faster.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn stream(to: &mut ItemLine, from: &ItemLine) {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_stream_si128};
    let to = std::ptr::from_mut(to).cast::<__m128i>();
    let from = std::ptr::from_ref(from).cast::<__m128i>();
    for quarter in 0..4 {
        // SAFETY: both lines are 64 bytes on a line's boundary. The only caller holds a `Fence` and
        // reads nothing of `to` before it falls.
        unsafe { _mm_stream_si128(to.add(quarter), _mm_load_si128(from.add(quarter))) };
    }
}

/// The scalar twin of [`stream`].
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[inline(always)]
fn copy(to: &mut ItemLine, from: &ItemLine) {
    *to = *from;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::memory::ItemLines;

    const CHUNK: usize = 32;
    const BINS: usize = 8;

    /// Everything a partition writes: heads, buffers, pool, and which chunk followed which.
    type Written = (Vec<u32>, Vec<ItemLine>, Vec<ItemLine>, Vec<u32>);

    fn run(items: &[u32], streamed: bool) -> Written {
        let chunks = BINS + items.len() / CHUNK;
        let mut heads: Vec<u32> = (0..BINS).map(|bin| (bin * CHUNK) as u32).collect();
        let mut buffers = vec![ItemLine::default(); BINS];
        let mut pool = ItemLines::zeroed(chunks * CHUNK / LINE_ITEMS).unwrap();
        let mut filled = Vec::new();
        let next = |full| {
            filled.push(full);
            (BINS + filled.len() - 1) as u32
        };
        if streamed {
            partition(items, 29, CHUNK, &mut heads, &mut buffers, &mut pool, next);
        } else {
            partition_by(copy, items, 29, CHUNK, &mut heads, &mut buffers, &mut pool, next);
        }
        (heads, buffers, pool.to_vec(), filled)
    }

    proptest! {
        #[test]
        fn streamed_and_copied_lines_are_the_same(
            items in prop::collection::vec(any::<u32>(), 0..3000),
            skew in 0_u32..32,
        ) {
            let items: Vec<u32> = items.iter().map(|item| item >> skew).collect();
            prop_assert_eq!(run(&items, true), run(&items, false));
        }
    }
}
