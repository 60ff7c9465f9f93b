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
use crate::sync::{AtomicU8, AtomicU64, Ordering, spin};

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

/// Enough that two threads rarely meet, few enough to stay in the first cache.
const STRIPES: usize = if cfg!(loom) { 1 } else { 4096 };

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
        Ok(Self { words, stripes: stripes() })
    }

    /// Allocates `len_bits` zeroed bits under the model checker.
    #[cfg(loom)]
    pub fn zeroed(len_bits: u64) -> Result<Self, super::OutOfMemory> {
        let words = (0..len_bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { words, stripes: stripes() })
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
        let stripe = self.lock(first, mask.len());
        let missing = missing(block, mask);
        for (word, mask) in block.iter().zip(mask) {
            // Relaxed, both: the stripe orders the writers of this block, and readers need only
            // see each bit some time after its insert, which whatever told them of it ensures.
            word.store(word.load(Ordering::Relaxed) | mask, Ordering::Relaxed);
        }
        // Release: the next holder of the stripe must see these words.
        stripe.store(0, Ordering::Release);
        missing != 0
    }

    /// Takes the stripe of the block of `len` words at word `first`.
    #[inline]
    pub(crate) fn lock(&self, first: usize, len: usize) -> &AtomicU8 {
        let stripe = &self.stripes[first / len % STRIPES];
        // Acquire: sees what the last holder wrote.
        while stripe.swap(1, Ordering::Acquire) != 0 {
            while stripe.load(Ordering::Relaxed) != 0 {
                spin();
            }
        }
        stripe
    }
}

#[inline]
fn missing(block: &[AtomicU64], mask: &[u64]) -> u64 {
    block
        .iter()
        .zip(mask)
        .fold(0, |missing, (word, mask)| missing | (mask & !word.load(Ordering::Relaxed)))
}

fn stripes() -> Box<[AtomicU8]> {
    (0..STRIPES).map(|_| AtomicU8::new(0)).collect()
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
