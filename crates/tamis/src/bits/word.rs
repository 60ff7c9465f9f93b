//! Words of bits, plain or shared between threads, and functions for single bits.

use crate::arch::sync::{AtomicU64, Ordering};

/// A readable word of bits: a plain word, or a word that other threads may change at the same time.
pub trait Word: sealed::Sealed + Send + Sync + 'static {
    /// Returns the current bits.
    fn get(&self) -> u64;

    /// Passes the current bits of `words` to `each`, in one or more parts.
    #[doc(hidden)]
    fn each_slice<E>(words: &[Self], each: impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E>
    where
        Self: Sized;
}

impl Word for u64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        *self
    }

    fn each_slice<E>(
        words: &[u64],
        mut each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        each(words)
    }
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        // `Relaxed` is sufficient: bits only change from 0 to 1, and bits do not publish other
        // data.
        self.load(Ordering::Relaxed)
    }

    fn each_slice<E>(
        words: &[AtomicU64],
        mut each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut copy = [0; 512];
        for words in words.chunks(copy.len()) {
            let copy = &mut copy[..words.len()];
            for (to, from) in copy.iter_mut().zip(words) {
                *to = from.get();
            }
            each(copy)?;
        }
        Ok(())
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for crate::arch::sync::AtomicU64 {}
}

/// Returns true if bit `bit` of `words` is set.
#[inline(always)]
pub(crate) fn get_bit<W: Word>(words: &[W], bit: u64) -> bool {
    words[(bit / 64) as usize].get() >> (bit % 64) & 1 == 1
}

/// Sets bit `bit` of `words`. Returns true if the bit was not set before.
#[inline(always)]
pub(crate) fn set_bit(words: &mut [u64], bit: u64) -> bool {
    let word = &mut words[(bit / 64) as usize];
    let was_unset = *word >> (bit % 64) & 1 == 0;
    *word |= 1 << (bit % 64);
    was_unset
}
