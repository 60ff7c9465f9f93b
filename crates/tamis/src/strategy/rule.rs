//! The trait of strategies. Only this crate can create a strategy.

use std::fmt;
use std::ops::Range;

use crate::bits::{AtomicBitmap, Bits as _, Word};
use crate::plan::{Kind, Plan};

/// A rule that maps hashes to bits, over words that the caller passes.
///
/// Batches write their answers as bit masks, one word for each 64 hashes.
///
/// Only this crate can create a strategy, because the constructor is private. Kernels without
/// bounds checks rely on the fact that the words always belong to a filter whose plan created the
/// strategy.
///
/// ```compile_fail,E0451
/// // If this line compiled, it would allow writes past the end of the words.
/// let rule = tamis::SplitBlock { level: todo!() };
/// ```
///
/// ```compile_fail,E0277
/// fn create<S: tamis::Strategy>(plan: &tamis::Plan) -> S {
///     S::for_plan(plan, Default::default())
/// }
/// ```
pub trait Strategy: Copy + fmt::Debug + Eq + Send + Sync + Construct + 'static {
    /// The kind of filters with this strategy.
    const KIND: Kind;

    /// Tests whether all bits of `hash` are set.
    fn contains<W: Word>(&self, words: &[W], hash: u64) -> bool;

    /// Tests a batch of hashes and writes the answers to a bit mask.
    fn contains_each<W: Word>(&self, words: &[W], hashes: &[u64], answers: &mut [u64]);

    /// Sets the bits of `hash`. Returns true if at least one bit was not set.
    fn insert(&self, words: &mut [u64], hash: u64) -> bool;

    /// Sets the bits of each hash, in order. Answer `i` is true if a bit of hash `i` was not set.
    fn insert_each(&self, words: &mut [u64], hashes: &[u64], answers: &mut [u64]);

    /// Sets the bits of `hash` while other threads may also set bits. Returns true if at least one
    /// bit was not set.
    fn insert_shared(&self, bits: &AtomicBitmap, hash: u64) -> bool;

    /// Sets the bits of `len` hashes while other threads may also set bits. The answers are the
    /// same as for inserts of the hashes in order. `hash` writes the hashes of a range of the items
    /// to a slice of the same length.
    fn insert_each_shared(
        &self,
        bits: &AtomicBitmap,
        len: usize,
        hash: impl FnMut(Range<usize>, &mut [u64]),
        answers: &mut [u64],
    ) {
        insert_one_by_one(self, bits, len, hash, answers);
    }

    /// Prefetches the memory that a lookup of `hash` reads.
    fn prefetch<W: Word>(&self, words: &[W], hash: u64);

    /// Prefetches the memory that a shared insert of `hash` writes.
    #[inline]
    fn prefetch_shared(&self, bits: &AtomicBitmap, hash: u64) {
        self.prefetch(bits.words(), hash);
    }

    /// Estimates how many distinct items set the bits of `words`. The estimate is infinite if all
    /// bits are set.
    fn estimate_items<W: Word>(&self, words: &[W]) -> f64;

    /// Returns the probability that all bits of an absent item are set, computed from the bits.
    fn estimate_rate<W: Word>(&self, words: &[W]) -> f64;
}

/// Creates the strategy for filters with this plan, whose kind is [`S::KIND`](Strategy::KIND).
pub(crate) fn for_plan<S: Strategy>(plan: &Plan) -> S {
    S::for_plan(plan, Token(()))
}

/// The constructor of strategies. The module is private, so other crates can neither name this
/// trait nor create a [`Token`].
pub trait Construct {
    /// Creates the strategy for filters with this plan.
    fn for_plan(plan: &Plan, _: Token) -> Self;
}

/// A proof that the caller is in this crate. Only this crate can create a token, so `Token` must
/// not implement `Default`.
#[derive(Debug)]
pub struct Token(());

/// The number of items that are prefetched before the first of these items is inserted.
const BATCH: usize = 32;

/// The minimum size of a filter for prefetches. A filter below `PREFETCH_FROM_BYTES` fits in the L2
/// cache, where prefetches cost a third more time than they save.
const PREFETCH_FROM_BYTES: u64 = 2 << 20;

/// Sets the bits of `len` hashes in shared words. Takes a lock for each hash.
pub(super) fn insert_one_by_one<S: Strategy>(
    strategy: &S,
    bits: &AtomicBitmap,
    len: usize,
    mut hash: impl FnMut(Range<usize>, &mut [u64]),
    answers: &mut [u64],
) {
    let is_large = bits.len_bits() / 8 >= PREFETCH_FROM_BYTES;
    let mut hashes = [0; 64];
    for (first, word) in (0..len).step_by(64).zip(answers) {
        let hashes = &mut hashes[..64.min(len - first)];
        hash(first..first + hashes.len(), hashes);
        // The mask stays in a register until all 64 items are inserted. Taking a lock waits for
        // every earlier store, so a store for each item would delay the lock.
        let mut mask = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            if is_large && i % BATCH == 0 {
                for &hash in hashes[i..].iter().take(BATCH) {
                    strategy.prefetch_shared(bits, hash);
                }
            }
            mask |= u64::from(strategy.insert_shared(bits, hash)) << i;
        }
        *word = mask;
    }
}
