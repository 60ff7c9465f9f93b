//! Bits that several threads set and read at the same time.
//!
//! Bits only change from 0 to 1. A lookup is a plain read of a block. An insert must not lose bits
//! that another thread sets in the same block. Eight `fetch_or` operations would keep the bits of
//! all threads, but cost eight locked instructions. Therefore an insert takes a lock instead of
//! `fetch_or`: the words are divided into up to 256 stripes. A stripe is a run of cache lines with
//! one lock. A thread holds the lock of a stripe while the thread writes one block, or hundreds of
//! blocks of a batch that is sorted by stripe.
//!
//! An item of the classic filter has its bits in several stripes. The thread that inserts the item
//! sets each bit with `fetch_or`, and holds only the lock of the item's first bit. Equal items have
//! the same first bit. Without the lock of the first bit, each of two threads with the same item
//! could set one bit first, and both threads would report a new item.
//!
//! Invariants: a word is written only while its stripe is locked, or with `fetch_or`. In one
//! bitmap, all writers use blocks or all writers use single bits. A thread never holds two stripes,
//! so there is no deadlock. A panic releases the stripe, because the guard is dropped.

use std::fmt;

#[cfg(not(loom))]
use crate::arch::memory::AtomicLines;
use crate::arch::memory::{Pages, allocation_bytes};
use crate::arch::sync::{AtomicU8, AtomicU64, Ordering, wait_for_zero};
#[cfg(not(loom))]
use crate::bits::owned::Bitmap;
use crate::bits::storage::{Bits, NewBits, OutOfMemory, heap_bytes};
use crate::bits::word::{Word as _, get_bit};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// A vector of bits that threads set and read through a shared reference.
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
    /// The binary logarithm of the number of cache lines in a stripe. The last stripe has the
    /// remaining lines.
    shift: u32,
}

/// The locks of all stripes. The few locks of a small filter are stored inline.
enum Locks {
    Few([AtomicU8; FEW_STRIPES]),
    Many(Box<[Lock]>),
}

const FEW_STRIPES: usize = 8;

/// One lock for each stripe. A lock is 1 while a thread holds the lock. Each lock has its own cache
/// line. With all locks on a few cache lines, two threads with single inserts took a tenth more
/// time than with one line for each lock.
#[repr(align(64))]
struct Lock(AtomicU8);

/// The maximum number of stripes. With 256 stripes, even dozens of threads seldom need the same
/// stripe at the same time. With more than 256 stripes, a batch would have too few items for each
/// stripe.
const MAX_STRIPES: u64 = if cfg!(loom) { 2 } else { 256 };

/// The binary logarithm of the minimum number of cache lines in a stripe. With shorter stripes, a
/// batch writes the same line several times in succession, and each load waits for the previous
/// store. With shorter stripes, an insert takes 10 ns an item instead of 6 ns. A lock takes the
/// memory of one line. With one lock for 32 lines, the locks take 3 % of the memory of the bits.
const MIN_SHIFT: u32 = 5;

/// The number of words in a cache line.
const LINE_WORDS: usize = 8;

impl AtomicBitmap {
    /// Allocates `len_bits` zeroed bits, rounded up to whole words.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the memory cannot be allocated.
    pub fn zeroed(len_bits: u64) -> Result<Self, OutOfMemory> {
        Self::zeroed_on(len_bits, Pages::Huge)
    }

    /// Sets the bits of `mask` in the block that starts at word `first`. Returns true if at least
    /// one bit of `mask` was not set before.
    ///
    /// If several threads set the same unset bit at the same time, only one call counts this bit as
    /// new. All writers of a word must use the same block boundaries. Do not set bits of a filter
    /// into which other threads insert: the bits of the other threads could be lost.
    ///
    /// # Panics
    ///
    /// Panics if the block is not inside the bitmap.
    #[inline]
    pub fn set(&self, first: usize, mask: &[u64]) -> bool {
        let block = &self.words()[first..first + mask.len()];
        // If all bits are already set, no lock is needed, because set bits stay set.
        if missing(block, mask) == 0 {
            return false;
        }
        let _stripe = self.lock(self.stripe(first));
        let missing = missing(block, mask);
        for (word, mask) in block.iter().zip(mask) {
            // `Relaxed` is sufficient for the load and the store. The lock of the stripe orders the
            // writers of this block. A reader is guaranteed to see a bit only if another
            // synchronization orders the insert before the read.
            word.store(word.load(Ordering::Relaxed) | mask, Ordering::Relaxed);
        }
        missing != 0
    }

    /// Sets the bits of an item, which may be anywhere in the bitmap. Returns true if at least one
    /// bit of the item was not set before. Equal items must have the same first bit: if several
    /// threads set the bits of the same item at the same time, only one call returns true.
    ///
    /// # Panics
    ///
    /// Panics if a bit is not inside the bitmap.
    #[inline]
    pub(crate) fn set_bits(&self, bits: impl Iterator<Item = u64> + Clone) -> bool {
        let words = self.words();
        // If all bits are already set, no lock is needed, because set bits stay set.
        if bits.clone().all(|bit| get_bit(words, bit)) {
            return false;
        }
        let first = bits.clone().next();
        let _stripe = first.map(|bit| self.lock(self.stripe((bit / 64) as usize)));
        let mut is_new = false;
        for bit in bits {
            let (word, mask) = (&words[(bit / 64) as usize], 1 << (bit % 64));
            // `Relaxed` is sufficient, for the same reason as in `set`.
            if word.load(Ordering::Relaxed) & mask == 0 {
                is_new |= word.fetch_or(mask, Ordering::Relaxed) & mask == 0;
            }
        }
        is_new
    }

    /// Replaces each word by `update(index, word)`. The caller has exclusive access, so no lock is
    /// needed.
    pub(crate) fn update_each(&mut self, update: impl Fn(usize, u64) -> u64) {
        for (i, word) in self.words.iter().enumerate() {
            // `Relaxed` is sufficient: `&mut self` guarantees that no other thread uses the words.
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

    /// Returns the memory of the bits and their locks, in bytes, as
    /// [`allocation_bytes`](crate::allocation_bytes) counts memory. Constant time.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let locks = match &self.locks {
            Locks::Few(_) => 0,
            Locks::Many(locks) => allocation_bytes(size_of_val(&**locks)),
        };
        heap_bytes(self.len_bits()) + locks
    }

    /// Returns the binary logarithm of the number of cache lines in a stripe. The last stripe has
    /// the remaining lines.
    pub(crate) fn stripe_shift(&self) -> u32 {
        self.shift
    }

    /// Locks a stripe, so that only this thread writes the words of the stripe.
    #[inline]
    pub(crate) fn lock(&self, stripe: usize) -> Stripe<'_> {
        let lock = match &self.locks {
            Locks::Few(locks) => &locks[stripe],
            Locks::Many(locks) => &locks[stripe].0,
        };
        // With `Acquire`, this thread sees the writes of the previous holder of the lock. `Relaxed`
        // is sufficient for a failed exchange, because the thread reads no other data after the
        // failure. The loop does not use `swap`, because with `swap` the model checker could let a
        // waiting thread swap forever without seeing the release.
        while lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            wait_for_zero(lock);
        }
        Stripe(lock)
    }
}

/// The right to write the words of one stripe. Dropping the value releases the lock.
pub(crate) struct Stripe<'a>(&'a AtomicU8);

impl Drop for Stripe<'_> {
    #[inline]
    fn drop(&mut self) {
        // With `Release`, the next holder of the stripe sees the words that this thread wrote.
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

/// Returns the number of stripes for a number of bits, and the binary logarithm of the number of
/// cache lines in a stripe.
fn stripes(len_bits: u64) -> (u32, u32) {
    let lines = len_bits.div_ceil(64 * LINE_WORDS as u64).max(1);
    // A small filter may have fewer lines than the minimum for a stripe.
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
    /// Converts owned bits to shared bits. Copies no bits, but allocates the locks.
    fn from(bits: Bitmap) -> Self {
        let (stripes, shift) = stripes(bits.len_bits());
        let words = AtomicLines::from(bits.into_lines());
        Self { words, locks: Locks::new(stripes), stripes, shift }
    }
}

#[cfg(not(loom))]
impl From<AtomicBitmap> for Bitmap {
    /// Converts shared bits to a bitmap with one owner. Copies no bits.
    fn from(bits: AtomicBitmap) -> Self {
        Bitmap::from_lines(bits.words.into_lines())
    }
}

impl NewBits for AtomicBitmap {
    #[cfg(not(loom))]
    fn zeroed_on(len_bits: u64, pages: Pages) -> Result<Self, OutOfMemory> {
        let len_words = len_bits.div_ceil(64);
        let words = usize::try_from(len_words)
            .ok()
            .and_then(|len_words| AtomicLines::zeroed_on(len_words, pages))
            .ok_or(OutOfMemory { bytes: len_words.saturating_mul(8) })?;
        let (stripes, shift) = stripes(len_bits);
        Ok(Self { words, locks: Locks::new(stripes), stripes, shift })
    }

    /// Allocates the bits under the model checker.
    #[cfg(loom)]
    fn zeroed_on(len_bits: u64, _: Pages) -> Result<Self, OutOfMemory> {
        let words = (0..len_bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (stripes, shift) = stripes(len_bits);
        Ok(Self { words, locks: Locks::new(stripes), stripes, shift })
    }
}

impl Clone for AtomicBitmap {
    /// Copies all bits. Other threads may set bits meanwhile. The copy contains every bit that was
    /// set before the call of `clone`.
    ///
    /// # Panics
    ///
    /// Panics if there is no memory for the copy.
    fn clone(&self) -> Self {
        let copy = Self::zeroed(self.len_bits()).expect("memory for a copy");
        for (to, from) in copy.words.iter().zip(self.words()) {
            // `Relaxed` is sufficient, for the same reason as in `set`.
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        copy
    }
}

impl PartialEq for AtomicBitmap {
    fn eq(&self, other: &Self) -> bool {
        self.words().len() == other.words().len()
            && self.words().iter().zip(other.words()).all(|(one, two)| one.get() == two.get())
    }
}

impl Eq for AtomicBitmap {}

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
