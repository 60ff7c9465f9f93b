//! Bits that many threads set and read at once.
//!
//! Bits only ever go from 0 to 1. A lookup is a plain read of a block. An insert must not lose the
//! bits that another thread sets in the same block meanwhile; eight `fetch_or` would do and cost
//! eight locked instructions. Instead one byte, chosen by the block, is locked around a vector OR.
//!
//! Invariants: every write of a block happens under that block's stripe; a stripe is held for one
//! block's OR and never while another is taken, so there is no order to deadlock on; a thread that
//! panics cannot hold one, because nothing under it can panic.

use std::fmt;

use super::Bits;
#[cfg(not(loom))]
use super::OutOfMemory;
use crate::sync::{AtomicU8, AtomicU64, Ordering, wait_for_zero};

/// A vector of bits that is set and read through a shared reference.
///
/// # Examples
///
/// ```
/// use tamis::{AtomicBitmap, Bits};
///
/// let bits = AtomicBitmap::zeroed(512)?;
/// std::thread::scope(|threads| {
///     threads.spawn(|| bits.set(0, &[1, 0, 0, 0, 0, 0, 0, 0]));
///     threads.spawn(|| bits.set(0, &[2, 0, 0, 0, 0, 0, 0, 0]));
/// });
/// assert_eq!(bits.count_ones(), 2);
/// # Ok::<(), tamis::OutOfMemory>(())
/// ```
pub struct AtomicBitmap {
    #[cfg(not(loom))]
    words: crate::arch::memory::AtomicLines,
    #[cfg(loom)]
    words: Vec<AtomicU64>,
    stripes: Box<[AtomicU8]>,
}

/// A byte for each block, up to so many: with a few thousand, two threads would take the cache lines of
/// the stripes from each other between asking for them and using them.
const MAX_STRIPES: usize = if cfg!(loom) { 1 } else { 1 << 16 };

impl AtomicBitmap {
    /// Allocates `len_bits` zeroed bits, rounded up to whole words.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the system has no such memory.
    #[cfg(not(loom))]
    pub fn zeroed(len_bits: u64) -> Result<Self, OutOfMemory> {
        let len_words = len_bits.div_ceil(64);
        let words = usize::try_from(len_words)
            .ok()
            .and_then(crate::arch::memory::AtomicLines::zeroed)
            .ok_or(OutOfMemory { bytes: len_words.saturating_mul(8) })?;
        let stripes = stripes(len_bits);
        Ok(Self { words, stripes })
    }

    /// Allocates `len_bits` zeroed bits under the model checker.
    #[cfg(loom)]
    pub fn zeroed(len_bits: u64) -> Result<Self, super::OutOfMemory> {
        let words = (0..len_bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let stripes = stripes(len_bits);
        Ok(Self { words, stripes })
    }

    /// Sets the bits of `mask`, a block that starts at word `first`; true if one was not set.
    ///
    /// Of several threads that set the same missing bit, one is told that it was missing. All
    /// writers of a word must use the same block boundaries.
    ///
    /// # Panics
    ///
    /// If the block is not inside the bitmap.
    #[inline]
    pub fn set(&self, first: usize, mask: &[u64]) -> bool {
        let block = &self.words()[first..first + mask.len()];
        // A repeat needs no lock: bits that are set stay set.
        if missing(block, mask) == 0 {
            return false;
        }
        let _stripe = self.lock(first / mask.len());
        let missing = missing(block, mask);
        for (word, mask) in block.iter().zip(mask) {
            // Relaxed, both: the stripe orders the writers of this block, and readers need only
            // see each bit some time after its insert, which whatever told them of it ensures.
            word.store(word.load(Ordering::Relaxed) | mask, Ordering::Relaxed);
        }
        missing != 0
    }

    /// Holds the stripe of block number `block`, so that nobody else writes that block.
    #[inline]
    pub(crate) fn lock(&self, block: usize) -> Stripe<'_> {
        let stripe = &self.stripes[self.stripe(block)];
        // Acquire: sees what the last holder wrote. Relaxed: a failure reads nothing else.
        while stripe.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            wait_for_zero(stripe);
        }
        Stripe(stripe)
    }

    #[inline]
    fn stripe(&self, block: usize) -> usize {
        // Their number is a power of two.
        block & (self.stripes.len() - 1)
    }

    /// Asks for the stripe of block number `block`, which another thread may have had.
    #[inline]
    pub(crate) fn prefetch_stripe(&self, block: usize) {
        crate::arch::prefetch_write(&self.stripes, self.stripe(block));
    }
}

/// The right to write the blocks of one stripe, until dropped.
pub(crate) struct Stripe<'a>(&'a AtomicU8);

impl Drop for Stripe<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: the next holder of the stripe must see our words.
        self.0.store(0, Ordering::Release);
    }
}

#[inline]
fn missing(block: &[AtomicU64], mask: &[u64]) -> u64 {
    block
        .iter()
        .zip(mask)
        .fold(0, |missing, (word, mask)| missing | (mask & !word.load(Ordering::Relaxed)))
}

fn stripes(len_bits: u64) -> Box<[AtomicU8]> {
    let blocks = len_bits.div_ceil(512).clamp(1, MAX_STRIPES as u64);
    (0..blocks.next_power_of_two()).map(|_| AtomicU8::new(0)).collect()
}

impl Bits for AtomicBitmap {
    type Word = AtomicU64;

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        &self.words
    }
}

impl fmt::Debug for AtomicBitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicBitmap")
            .field("len_bits", &self.len_bits())
            .field("ones", &self.count_ones())
            .finish()
    }
}
