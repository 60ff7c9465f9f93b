//! From a hash to bits: the rules that decide which bits an item sets. Pure, without storage.

mod by_stripe;
pub(crate) mod classic;
mod narrow;
pub(crate) mod parquet;
pub(crate) mod redis;
pub(crate) mod split_block;

use std::fmt;
use std::ops::Range;

pub use classic::Classic;
pub(crate) use narrow::Narrow;
pub use parquet::Parquet;
pub use redis::RedisHash;
pub use split_block::SplitBlock;

use crate::bits::{AtomicBitmap, Bits as _, Word};
use crate::kind::Kind;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::Plan;

/// A rule from hashes to bits, over words that the caller holds.
///
/// Batches write their answers as bit masks, one word for each 64 hashes.
///
/// Only this crate can create a value, with a private constructor: kernels that do not check indices rely on words
/// of a filter with the plan of the strategy.
///
/// ```compile_fail,E0451
/// // Would allow writing past the end, if it compiled.
/// let rule = tamis::SplitBlock { level: todo!() };
/// ```
///
/// ```compile_fail,E0277
/// fn create<S: tamis::Strategy>(plan: &tamis::Plan) -> S {
///     S::for_plan(plan, Default::default())
/// }
/// ```
pub trait Strategy: Copy + fmt::Debug + Eq + Send + Sync + sealed::Construct + 'static {
    /// The family, as files name it.
    const KIND: Kind;

    /// Tells whether all bits of `hash` are set.
    fn contains<W: Word>(&self, words: &[W], hash: u64) -> bool;

    /// Tells so of each hash.
    fn contains_each<W: Word>(&self, words: &[W], hashes: &[u64], answers: &mut [u64]);

    /// Sets the bits of `hash`; true if one was not set.
    fn insert(&self, words: &mut [u64], hash: u64) -> bool;

    /// Sets the bits of each hash, in order.
    fn insert_each(&self, words: &mut [u64], hashes: &[u64], answers: &mut [u64]);

    /// Sets the bits of `hash` while other threads do the same; true if one was not set.
    fn insert_shared(&self, bits: &AtomicBitmap, hash: u64) -> bool;

    /// Sets the bits of `len` hashes, as if in order, while other threads do the same. `hash` writes the
    /// hashes of a range of the items to a slice of its length.
    fn insert_each_shared(
        &self,
        bits: &AtomicBitmap,
        len: usize,
        hash: impl FnMut(Range<usize>, &mut [u64]),
        answers: &mut [u64],
    ) {
        insert_one_by_one(self, bits, len, hash, answers);
    }

    /// Asks for the memory that `hash` will touch.
    fn prefetch<W: Word>(&self, words: &[W], hash: u64);

    /// Asks for the memory that an insert of `hash` by one of many threads will touch.
    #[inline]
    fn prefetch_shared(&self, bits: &AtomicBitmap, hash: u64) {
        self.prefetch(bits.words(), hash);
    }

    /// Estimates how many distinct items set these bits; infinite if all are set.
    fn estimate_items<W: Word>(&self, words: &[W]) -> f64;

    /// Returns the chance that an absent item finds all its bits set, from the bits themselves.
    fn estimate_rate<W: Word>(&self, words: &[W]) -> f64;
}

/// Creates the strategy of filters with this plan, whose kind is [`S::KIND`](Strategy::KIND).
pub(crate) fn for_plan<S: Strategy>(plan: &Plan) -> S {
    S::for_plan(plan, sealed::Token)
}

mod sealed {
    /// The constructor of strategies. Other crates cannot name this trait, nor create a [`Token`].
    pub trait Construct {
        fn for_plan(plan: &super::Plan, _: Token) -> Self;
    }

    /// Proves that this crate is the caller. It must not implement `Default`.
    #[derive(Debug)]
    pub struct Token;
}

/// How many items have their memory asked for before the first of them is set.
const BATCH: usize = 32;

/// Smaller filters lie in the second cache: asking ahead would cost a third more than it saves.
const PREFETCH_FROM_BYTES: u64 = 2 << 20;

/// Sets the bits of `len` hashes in shared words, each under its own lock.
fn insert_one_by_one<S: Strategy>(
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
        // In a register until all 64 are in: a lock waits for every store before it.
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

/// The high 64 bits of a product: `hash` as a fraction of 2⁶⁴, scaled to `0..range`.
#[inline(always)]
pub(crate) const fn scale(hash: u64, range: u64) -> u64 {
    ((hash as u128 * range as u128) >> 64) as u64
}

/// The chance that an absent item finds a bit in each lane, from how full each block's lanes are.
pub(crate) fn lanes_rate<W: Word>(words: &[W], words_per_block: usize, lane_bits: u32) -> f64 {
    let blocks = words.len() / words_per_block;
    let lane = if lane_bits == 64 { u64::MAX } else { (1 << lane_bits) - 1 };
    let product = |block: &[W]| -> f64 {
        let mut product = 1.0;
        for word in block {
            for shift in (0..64).step_by(lane_bits as usize) {
                let ones = (word.get() >> shift & lane).count_ones();
                product *= f64::from(ones) / f64::from(lane_bits);
            }
        }
        product
    };
    words.chunks_exact(words_per_block).map(product).sum::<f64>() / blocks as f64
}

/// The number of items that leaves this share of bits unset: each item sets one bit in eight lanes,
/// so a lane's bits, taken over all blocks, are a filter of one probe.
pub(crate) fn lanes_items<W: Word>(words: &[W]) -> f64 {
    let ones: u64 = words.iter().map(|word| u64::from(word.get().count_ones())).sum();
    let m = words.len() as f64 * 64.0;
    -(m / 8.0) * (-(ones as f64) / m).ln_1p()
}
