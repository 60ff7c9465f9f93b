//! Batches into a filter that other threads fill too: sorted by stripe, hundreds of items a lock.
//!
//! A lock an item costs more than the insert itself, and between two threads each line of the filter
//! would move for every item or two. So items wait in a buffer for each stripe; a full one is set under
//! one lock, by the kernel that sets bits nobody else writes. What waits is an entry of 64 bits:
//!
//! ```text
//! | line in stripe | position in batch | low half of the hash |
//! 63           64-shift               32                      0
//! ```
//!
//! An entry is a hash itself: in a filter that is the stripe alone, it has the line of the hash it was
//! made of, and the same lanes, which the low half decides. The bits between are free and tell where
//! the answer belongs. Items of one stripe keep their order, so of equal ones the first is new.

use std::slice;

use super::SplitBlock;
use crate::arch;
use crate::bits::{AtomicBitmap, Bits as _};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// A batch on its way into the filter.
pub(super) struct ByStripe<'a> {
    bits: &'a AtomicBitmap,
    /// 1 for each item that is new or waits.
    answers: &'a mut [u64],
    /// Items taken so far.
    position: u64,
    /// The buffers of all stripes, `capacity + GAP` apart.
    entries: Vec<u64>,
    /// How many entries wait in each buffer.
    lens: Vec<u32>,
    /// Entries that fit a buffer.
    capacity: usize,
}

impl<'a> ByStripe<'a> {
    /// Returns how many items of a batch of `len` can be sorted at once, a multiple of 64; `None` if
    /// these are so few that a lock an item is cheaper.
    pub(super) fn part_len(bits: &AtomicBitmap, len: usize) -> Option<usize> {
        let position_bits = 32_u32.saturating_sub(bits.stripe_shift()).min(MAX_POSITION_BITS);
        let part_len = 1 << position_bits;
        (len.min(part_len) >= MIN_ITEMS * bits.stripes()).then_some(part_len)
    }

    /// Starts a batch of `len` items, as many as [`part_len`](Self::part_len) says at most.
    pub(super) fn new(bits: &'a AtomicBitmap, len: usize, answers: &'a mut [u64]) -> Self {
        answers.fill(u64::MAX);
        if let Some(last) = answers.last_mut() {
            *last >>= len.next_multiple_of(64) - len;
        }
        let stripes = bits.stripes();
        // More than the mean, so that most buffers of a small batch fill but once.
        let capacity = (len / stripes / 4 * 5).clamp(1, MAX_CAPACITY);
        let entries = vec![0; stripes * (capacity + GAP)];
        Self { bits, answers, position: 0, entries, lens: vec![0; stripes], capacity }
    }

    /// Takes the next hashes of the batch.
    pub(super) fn push(&mut self, hashes: &[u64]) {
        let mut hashes = hashes.iter();
        while let Some(full) = self.sort(&mut hashes) {
            self.set(full);
        }
    }

    /// Sets all that waits.
    pub(super) fn finish(mut self) {
        for stripe in 0..self.lens.len() {
            self.set(stripe);
        }
    }

    /// Takes hashes until a buffer is full, and returns its stripe.
    // Out of line, so that the loop has all registers.
    #[inline(never)]
    fn sort(&mut self, hashes: &mut slice::Iter<'_, u64>) -> Option<usize> {
        let (shift, line, blocks) = (self.bits.stripe_shift(), self.line(), self.blocks());
        let (capacity, mut position) = (self.capacity, self.position);
        let (entries, lens) = (&mut self.entries[..], &mut self.lens[..]);
        let full = hashes.find_map(|&hash| {
            let block = SplitBlock::block(hash, blocks);
            let stripe = block >> shift;
            let len = lens[stripe] as usize;
            let end = stripe * (capacity + GAP) + len;
            // The product loses the number of the stripe, above its 64 bits.
            entries[end] = (block as u64).wrapping_mul(line) | position << 32 | hash & LOW_HALF;
            // 5 % less time: the buffers of all stripes are more than the second cache holds.
            arch::prefetch_write(entries, end + AHEAD);
            lens[stripe] = len as u32 + 1;
            position += 1;
            (len + 1 == capacity).then_some(stripe)
        });
        self.position = position;
        full
    }

    /// Sets what waits for a stripe.
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
            // The last stripe is cut off: seen as a whole one, it begins in the one before.
            let moved = end - blocks;
            (first, end) = (first - moved, blocks);
            for entry in &mut *entries {
                *entry = entry.wrapping_add(line.wrapping_mul(moved as u64));
            }
        }
        let words = &self.bits.words()[first * SplitBlock::WORDS..end * SplitBlock::WORDS];
        // Asked for together and before the lock: 5 to 10 % less time with two threads, whose lines come
        // from each other. Of stripes larger than a buffer the kernel asks for what it needs.
        if words.len() / SplitBlock::WORDS <= len {
            for line in (0..words.len()).step_by(SplitBlock::WORDS) {
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

    /// What counts one line in an entry: nothing if a stripe is no more than one.
    fn line(&self) -> u64 {
        1_u64.checked_shl(64 - self.bits.stripe_shift()).unwrap_or(0)
    }

    fn blocks(&self) -> usize {
        self.bits.words().len() / SplitBlock::WORDS
    }
}

/// Entries in a buffer: with 256 of them at most, 1.5 MB. Larger ones take longer to be written, and
/// smaller ones move a line between two threads more often than every fifth item.
const MAX_CAPACITY: usize = 768;

/// Buffers a power of two apart would all lie in the same few sets of the caches.
const GAP: usize = 8;

/// A buffer's next line is asked for so many entries before it is written.
const AHEAD: usize = 6;

/// With fewer items for each stripe, sorting them would cost more than their locks. The model checker
/// has no time for more than one.
const MIN_ITEMS: usize = if cfg!(loom) { 1 } else { 8 };

/// Stripes of one line leave all 32 bits between, more than any part needs.
const MAX_POSITION_BITS: u32 = 24;

const LOW_HALF: u64 = 0xffff_ffff;
