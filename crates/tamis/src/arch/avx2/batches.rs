//! The loop over batches of hashes, which computes the blocks of a batch before the loop accesses
//! the blocks.

use crate::arch::batch::{BATCH, Located};
use crate::arch::prefetch::prefetch_address;
use crate::bits::Word;

/// The minimum size of a filter for prefetches. A filter that fits in the L2 cache needs no
/// prefetches, because the CPU hides the latency of the L2 cache.
pub(super) const PREFETCH_FROM_BYTES: usize = 1 << 18;

/// Calls `answer` with the [`Located`] values of each batch of hashes, the length of the batch, and
/// the next batch.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn each_batch<W: Word>(
    words: *const [W],
    hashes: &[u64],
    answers: &mut [u64],
    locate: impl Fn(&[u64], &mut Located),
    mut answer: impl FnMut(&Located, usize, Coming<'_>) -> u64,
) {
    let is_large = words.len() * size_of::<W>() > PREFETCH_FROM_BYTES;
    let words = words.cast::<u8>();
    let mut ring = [Located::NONE; 2];
    let mut batches = hashes.chunks(BATCH).zip(answers).enumerate().peekable();
    if let Some((_, (first, _))) = batches.peek() {
        locate(first, &mut ring[0]);
        let coming = Coming { words, batch: is_large.then_some(&ring[0]) };
        (0..BATCH).step_by(8).for_each(|i| coming.prefetch_8(i));
    }
    while let Some((i, (batch, word))) = batches.next() {
        let next = batches.peek().map(|(_, (next, _))| *next);
        if let Some(next) = next {
            locate(next, &mut ring[(i + 1) % 2]);
        }
        let batch_to_come = (is_large && next.is_some()).then_some(&ring[(i + 1) % 2]);
        let coming = Coming { words, batch: batch_to_come };
        *word = answer(&ring[i % 2], batch.len(), coming);
    }
}

/// The next batch. The cache lines of the next batch are prefetched while the current batch is
/// tested. Only a few lines are prefetched at a time, because a CPU cannot load 64 lines at the
/// same time.
#[derive(Clone, Copy)]
pub(super) struct Coming<'a> {
    words: *const u8,
    /// `None` if there is no next batch, or if the filter is small.
    batch: Option<&'a Located>,
}

impl Coming<'_> {
    /// Prefetches the cache lines of eight items, starting at item number `i`.
    #[inline(always)]
    pub(super) fn prefetch_8(self, i: usize) {
        if let Some(batch) = self.batch {
            for &start in &batch.starts[i..i + 8] {
                prefetch_address(self.words.wrapping_add(start as usize));
            }
        }
    }
}
