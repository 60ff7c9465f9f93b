//! Batches for a filter that several threads fill. The items are sorted by stripe, a part of the
//! filter with its own lock, so that a thread inserts hundreds of items under one lock.
//!
//! Taking a lock for each item takes longer than the insert. If two threads took a lock for each
//! item, a cache line would move between the cores for every one or two items. To avoid a lock for
//! each item, each stripe has a buffer in which items wait. When a buffer is full, the thread
//! inserts the items of the buffer under one lock. While a thread holds the lock of a stripe, no
//! other thread writes the words of the stripe, so the kernel needs no atomic read-modify-write
//! instructions. A waiting item is an entry of 64 bits:
//!
//! ```text
//! | line in stripe | position in batch | low half of the hash |
//! 63           64-shift               32                      0
//! ```
//!
//! The kernel uses an entry as a hash, in a filter that consists only of the stripe of the entry.
//! The high bits of the entry are the line, so the entry selects the same line as the original
//! hash. The low half determines the bit in each lane, so the entry sets the same bits as the
//! original hash. The bits between the line and the low half are not needed for the insert, and
//! contain the position of the answer. Items of one stripe keep their order, so the first of
//! several equal items is reported as new.

use std::slice;

use crate::arch;
use crate::bits::{AtomicBitmap, Bits as _};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::strategy::block_rules::split_block;

/// A batch that is being inserted into a shared filter.
pub(super) struct ByStripe<'a> {
    bits: &'a AtomicBitmap,
    /// An answer bit is 1 if its item is new or still waits in a buffer.
    answers: &'a mut [u64],
    /// The number of items of the batch that were already added.
    position: u64,
    /// The buffers of all stripes. Adjacent buffers start `capacity + GAP` entries apart.
    entries: Vec<u64>,
    /// The number of waiting entries in each buffer.
    lens: Vec<u32>,
    /// The maximum number of entries in a buffer.
    capacity: usize,
}

impl<'a> ByStripe<'a> {
    /// Returns how many items of a batch of `len` items can be sorted at once, a multiple of 64.
    /// Returns `None` if the batch is so small that a lock for each item is cheaper than sorting.
    pub(super) fn part_len(bits: &AtomicBitmap, len: usize) -> Option<usize> {
        let position_bits = 32_u32.saturating_sub(bits.stripe_shift()).min(MAX_POSITION_BITS);
        let part_len = 1 << position_bits;
        (len.min(part_len) >= MIN_ITEMS * bits.stripes()).then_some(part_len)
    }

    /// Starts a batch of `len` items. `len` is at most [`part_len`](Self::part_len).
    pub(super) fn new(bits: &'a AtomicBitmap, len: usize, answers: &'a mut [u64]) -> Self {
        answers.fill(u64::MAX);
        if let Some(last) = answers.last_mut() {
            *last >>= len.next_multiple_of(64) - len;
        }
        let stripes = bits.stripes();
        // The capacity is larger than the mean number of items of a stripe, so that most buffers of
        // a small batch fill only once.
        let capacity = (len / stripes / 4 * 5).clamp(1, MAX_CAPACITY);
        let entries = vec![0; stripes * (capacity + GAP)];
        Self { bits, answers, position: 0, entries, lens: vec![0; stripes], capacity }
    }

    /// Adds the next hashes of the batch.
    pub(super) fn push(&mut self, hashes: &[u64]) {
        let mut hashes = hashes.iter();
        while let Some(full) = self.sort(&mut hashes) {
            self.set(full);
        }
    }

    /// Inserts all items that wait in buffers.
    pub(super) fn finish(mut self) {
        for stripe in 0..self.lens.len() {
            self.set(stripe);
        }
    }

    /// Adds hashes until a buffer is full. Returns the stripe of the full buffer.
    // The function is not inlined, so that the loop can use all registers.
    #[inline(never)]
    fn sort(&mut self, hashes: &mut slice::Iter<'_, u64>) -> Option<usize> {
        let (shift, line, blocks) = (self.bits.stripe_shift(), self.line(), self.blocks());
        let (capacity, mut position) = (self.capacity, self.position);
        let (entries, lens) = (&mut self.entries[..], &mut self.lens[..]);
        let full = hashes.find_map(|&hash| {
            let block = split_block::block(hash, blocks);
            let stripe = block >> shift;
            let len = lens[stripe] as usize;
            let end = stripe * (capacity + GAP) + len;
            // In the product, the number of the stripe would be above bit 63, so the wrapping
            // multiplication drops the number of the stripe.
            entries[end] = (block as u64).wrapping_mul(line) | position << 32 | hash & LOW_HALF;
            // The prefetch of a later entry saves 5 % of the time, because the buffers of all
            // stripes do not fit in the L2 cache.
            arch::prefetch_write(entries, end + AHEAD);
            lens[stripe] = len as u32 + 1;
            position += 1;
            (len + 1 == capacity).then_some(stripe)
        });
        self.position = position;
        full
    }

    /// Inserts the waiting items of a stripe.
    fn set(&mut self, stripe: usize) {
        let (shift, line, blocks) = (self.bits.stripe_shift(), self.line(), self.blocks());
        let start = stripe * (self.capacity + GAP);
        let len = std::mem::take(&mut self.lens[stripe]) as usize;
        if len == 0 {
            return;
        }
        let entries = &mut self.entries[start..start + len];
        let mut first = stripe << shift;
        let mut end = first + (1 << shift);
        if end > blocks {
            // If the last stripe is shorter than the other stripes, its range of blocks starts
            // inside the previous stripe, so that the range has the full length.
            let moved = end - blocks;
            (first, end) = (first - moved, blocks);
            for entry in &mut *entries {
                *entry = entry.wrapping_add(line.wrapping_mul(moved as u64));
            }
        }
        let words = &self.bits.words()[first * split_block::WORDS..end * split_block::WORDS];
        // With two threads, the lines of the stripe come from the cache of the other core.
        // Prefetching all lines before taking the lock saves 5 to 10 % of the time. For stripes
        // with more lines than the buffer has entries, the kernel prefetches only the lines of the
        // entries.
        if words.len() / split_block::WORDS <= len {
            for line in (0..words.len()).step_by(split_block::WORDS) {
                arch::prefetch_write(words, line);
            }
        }
        let mut new = [0; MAX_CAPACITY.div_ceil(64)];
        let lock = self.bits.lock(stripe);
        arch::insert_512_shared(words, entries, &mut new);
        drop(lock);
        let position_mask = u64::from(u32::MAX >> shift);
        for (entries, new) in entries.chunks(64).zip(new) {
            let mut old = !new & u64::MAX >> (64 - entries.len());
            while old != 0 {
                let entry = entries[old.trailing_zeros() as usize];
                let position = (entry >> 32 & position_mask) as usize;
                self.answers[position / 64] &= !(1 << (position % 64));
                old &= old - 1;
            }
        }
    }

    /// Returns the distance between the entries of two adjacent lines. Returns zero if a stripe has
    /// only one line.
    fn line(&self) -> u64 {
        1_u64.checked_shl(64 - self.bits.stripe_shift()).unwrap_or(0)
    }

    fn blocks(&self) -> usize {
        self.bits.words().len() / split_block::WORDS
    }
}

/// The maximum number of entries in a buffer. With `MAX_CAPACITY` entries in each buffer, the
/// maximum of 256 buffers takes 1.5 MB. Buffers with more than `MAX_CAPACITY` entries take longer
/// to write. With fewer entries in each buffer, a cache line moves between two cores more often
/// than for every fifth item.
const MAX_CAPACITY: usize = 768;

/// The gap between buffers, in entries. If the distance between buffers were a power of two, the
/// buffers would use only a few sets of the caches.
const GAP: usize = 8;

/// The prefetch distance in a buffer, in entries.
const AHEAD: usize = 6;

/// The minimum number of items for each stripe. With fewer items for each stripe, sorting takes
/// longer than taking a lock for each item. For the model checker loom, the minimum is one item,
/// because the run time of loom grows too fast with the number of items.
const MIN_ITEMS: usize = if cfg!(loom) { 1 } else { 8 };

/// The maximum number of bits for the position. If stripes have one line, 32 bits of an entry are
/// free for the position. No part of a batch needs more than 24 bits for the position.
const MAX_POSITION_BITS: u32 = 24;

const LOW_HALF: u64 = 0xffff_ffff;
