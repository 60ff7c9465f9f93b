//! [`TryInsert`] of the filters that accept every item.

use crate::bits::{AtomicBitmap, BitsMut};
use crate::filter::bloom::{BloomFilter, Counting};
use crate::filter::window::Window;
use crate::filter::{Insert, InsertError, TryInsert};
use crate::strategy::Strategy;

/// Implements [`TryInsert`] by [`Insert`], for a filter that accepts every item.
macro_rules! accepts_every_item {
    ($([$($generics:tt)*] $filter:ty),* $(,)?) => { $(
        impl<$($generics)*> TryInsert for $filter {
            #[inline]
            fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
                Ok(self.insert_hash(hash))
            }

            fn try_insert_hashes(
                &mut self,
                hashes: &[u64],
                answers: &mut [u64],
            ) -> Result<(), InsertError> {
                self.insert_hashes(hashes, answers);
                Ok(())
            }
        }
    )* };
}

accepts_every_item! {
    [S: Strategy, B: BitsMut] BloomFilter<S, B>,
    [S: Strategy] BloomFilter<S, AtomicBitmap>,
    [S: Strategy] &BloomFilter<S, AtomicBitmap>,
    [B: BitsMut] Counting<B>,
    [B: BitsMut] Window<B>,
}
