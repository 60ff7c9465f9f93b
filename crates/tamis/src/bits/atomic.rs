//! Bits that many threads set and read at once.
//!
//! Bits only ever go from 0 to 1. A lookup is a plain read of a block. An insert must not lose the
//! bits that another thread sets in the same block meanwhile; eight `fetch_or` would do and cost
//! eight locked instructions. Instead the words are cut into a few hundred stripes, runs of lines with
//! a lock each, which is held around a vector OR; or around hundreds of them, by a batch that was
//! sorted by stripe.
//!
//! Invariants: every write of a word happens under its stripe; a stripe is held for the writes
//! alone and never while another is taken, so there is no order to deadlock on; a thread that
//! panics cannot hold one, because it is released by a drop.

use std::fmt;

#[cfg(not(loom))]
use super::Bitmap;
use super::{Bits, OutOfMemory};
#[cfg(not(loom))]
use crate::arch::memory::AtomicLines;
use crate::arch::memory::Pages;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
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
    words: AtomicLines,
    #[cfg(loom)]
    words: Vec<AtomicU64>,
    locks: Locks,
    stripes: u32,
    /// A stripe has two to the power of this many lines, the last one what is left.
    shift: u32,
}

/// The locks of all stripes. Those of a small filter lie in it, beside each other.
enum Locks {
    Few([AtomicU8; FEW_STRIPES]),
    Many(Box<[Lock]>),
}

const FEW_STRIPES: usize = 8;

/// One for each stripe: 1 while it is held. On a line of its own: two threads that insert one by one
/// take a tenth less time than with all locks on a few lines.
#[repr(align(64))]
struct Lock(AtomicU8);

/// So many that dozens of threads seldom meet in one, and so few that a batch has many items for each.
const MAX_STRIPES: u64 = if cfg!(loom) { 1 } else { 256 };

/// A batch that sets one line over and over waits for each store before the next load: 10 ns an item
/// instead of 6. A lock takes as much memory as a line: with 32 lines each that is 3 % of the bits.
const MIN_SHIFT: u32 = 5;

/// Words in a cache line.
const LINE_WORDS: usize = 8;

impl AtomicBitmap {
    /// Allocates `len_bits` zeroed bits, rounded up to whole words.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the system has no such memory.
    pub fn zeroed(len_bits: u64) -> Result<Self, OutOfMemory> {
        Self::zeroed_on(len_bits, Pages::Huge)
    }

    /// Does so on pages of a kind.
    #[cfg(not(loom))]
    pub(crate) fn zeroed_on(len_bits: u64, pages: Pages) -> Result<Self, OutOfMemory> {
        let len_words = len_bits.div_ceil(64);
        let words = usize::try_from(len_words)
            .ok()
            .and_then(|len_words| AtomicLines::zeroed_on(len_words, pages))
            .ok_or(OutOfMemory { bytes: len_words.saturating_mul(8) })?;
        let (stripes, shift) = stripes(len_bits);
        Ok(Self { words, locks: Locks::new(stripes), stripes, shift })
    }

    /// Allocates `len_bits` zeroed bits under the model checker.
    #[cfg(loom)]
    pub(crate) fn zeroed_on(len_bits: u64, _: Pages) -> Result<Self, OutOfMemory> {
        let words = (0..len_bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (stripes, shift) = stripes(len_bits);
        Ok(Self { words, locks: Locks::new(stripes), stripes, shift })
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
        let _stripe = self.lock(self.stripe(first));
        let missing = missing(block, mask);
        for (word, mask) in block.iter().zip(mask) {
            // Relaxed, both: the stripe orders the writers of this block, and readers need only
            // see each bit some time after its insert, which whatever told them of it ensures.
            word.store(word.load(Ordering::Relaxed) | mask, Ordering::Relaxed);
        }
        missing != 0
    }

    /// Replaces each word by `update` of its index and the word. The caller has the bitmap alone, so that
    /// no lock is needed.
    pub(crate) fn update_each(&mut self, update: impl Fn(usize, u64) -> u64) {
        for (i, word) in self.words.iter().enumerate() {
            // Relaxed: `&mut self` says that no other thread has the words.
            word.store(update(i, word.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
    }

    /// Returns the stripe of word number `word`.
    #[inline]
    pub(crate) fn stripe(&self, word: usize) -> usize {
        (word / LINE_WORDS) >> self.shift
    }

    /// Returns the number of stripes.
    pub(crate) fn stripes(&self) -> usize {
        self.stripes as usize
    }

    /// Returns the memory of the bits and their locks, in bytes, as [`allocation_bytes`](crate::allocation_bytes) counts it.
    /// Constant time.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let locks = match &self.locks {
            Locks::Few(_) => 0,
            Locks::Many(locks) => crate::allocation_bytes(size_of_val(&**locks)),
        };
        super::heap_bytes(self.len_bits()) + locks
    }

    /// Returns how many lines a stripe has, as a power of two; the last one has those that are left.
    pub(crate) fn stripe_shift(&self) -> u32 {
        self.shift
    }

    /// Holds a stripe, so that nobody else writes its words.
    #[inline]
    pub(crate) fn lock(&self, stripe: usize) -> Stripe<'_> {
        let lock = match &self.locks {
            Locks::Few(locks) => &locks[stripe],
            Locks::Many(locks) => &locks[stripe].0,
        };
        // Acquire: sees what the last holder wrote. Relaxed: a failure reads nothing else. Not `swap`: the
        // model checker would let a waiting thread's swaps follow the release of the lock for ever.
        while lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            wait_for_zero(lock);
        }
        Stripe(lock)
    }
}

/// The right to write the words of one stripe, until dropped.
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

/// Returns how many stripes so many bits have, and how many lines a stripe has, as a power of two.
fn stripes(len_bits: u64) -> (u32, u32) {
    let lines = len_bits.div_ceil(64 * LINE_WORDS as u64).max(1);
    // No stripe has more lines than there are.
    let least = MIN_SHIFT.min(lines.ilog2());
    let shift = lines.div_ceil(MAX_STRIPES).next_power_of_two().ilog2().max(least);
    (lines.div_ceil(1 << shift) as u32, shift)
}

impl Locks {
    fn new(stripes: u32) -> Self {
        if stripes as usize <= FEW_STRIPES {
            return Locks::Few(std::array::from_fn(|_| AtomicU8::new(0)));
        }
        Locks::Many((0..stripes).map(|_| Lock(AtomicU8::new(0))).collect())
    }
}

#[cfg(not(loom))]
impl From<Bitmap> for AtomicBitmap {
    /// Shares bits that had one owner. Copies none; allocates the locks.
    fn from(bits: Bitmap) -> Self {
        let (stripes, shift) = stripes(bits.len_bits());
        let words = AtomicLines::from(bits.into_lines());
        Self { words, locks: Locks::new(stripes), stripes, shift }
    }
}

#[cfg(not(loom))]
impl From<AtomicBitmap> for Bitmap {
    /// Gives bits that were shared to one owner. Copies none.
    fn from(bits: AtomicBitmap) -> Self {
        Bitmap::from_lines(bits.words.into_lines())
    }
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
