//! Parquet's split-block Bloom: 256-bit blocks, eight 32-bit lanes.
//!
//! The geometry is that of the default filter with half the lane. The rule is Parquet's own: the block comes from the
//! high 32 bits of the hash, each lane's bit from the low 32 bits times a salt. Two lanes share a 64-bit word, the even
//! one in the low half, which is Parquet's order on disk.
//!
//! Source: Apache Parquet format, `BloomFilter.md`.

use super::sealed::{Construct, Token};
use super::{Strategy, lanes_items, lanes_rate, split_block};
use crate::arch;
use crate::bits::{AtomicBitmap, Word};
use crate::kind::Kind;
use crate::plan::{BlockSizing, Blocks, Plan};

/// Split-block Bloom as Parquet defines it. With [`Hasher::xxh64`](crate::Hasher::xxh64)`(0)` it has the bytes of a
/// Parquet column's filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parquet(());

impl Parquet {
    /// Words in a block.
    pub(crate) const WORDS: usize = 4;

    /// One odd multiplier for each lane.
    pub(crate) const SALTS: [u32; 8] = [
        0x47b6_137b,
        0x4497_4d91,
        0x8824_ad5b,
        0xa2b7_289d,
        0x7054_95c7,
        0x2df1_424b,
        0x9efc_4947,
        0x5c6b_fb31,
    ];

    /// Returns the block of `hash`, below `blocks`. There are at most 2³² blocks.
    #[inline(always)]
    pub(crate) const fn block(hash: u64, blocks: usize) -> usize {
        (((hash >> 32) * blocks as u64) >> 32) as usize
    }

    /// Returns the bit of `hash` in each lane.
    #[inline(always)]
    pub(crate) fn mask(hash: u64) -> [u64; 4] {
        let bit = |lane: usize| 1_u64 << ((hash as u32).wrapping_mul(Self::SALTS[lane]) >> 27);
        [0, 2, 4, 6].map(|lane| bit(lane) | bit(lane + 1) << 32)
    }

    /// Returns the block of `hash` and its bit in each lane.
    #[inline(always)]
    pub(crate) fn locate(hash: u64, blocks: usize) -> (usize, [u64; 4]) {
        (Self::block(hash, blocks), Self::mask(hash))
    }
}

/// The formulas for the sizes of this kind.
pub(crate) const SIZING: BlockSizing = BlockSizing {
    // The rule takes the block from 32 bits of the hash. The file format stores at most 2³¹ − 1 bytes.
    blocks: |_| Blocks { lane_bits: 32, max_places: (1 << 31) / 32 - 1, ..Blocks::PLAIN },
    ..split_block::SIZING
};

impl Construct for Parquet {
    fn for_plan(_: &Plan, _: Token) -> Self {
        Parquet(())
    }
}

impl Strategy for Parquet {
    const KIND: Kind = Kind::Parquet;

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: u64) -> bool {
        arch::contains_one_256(words, hash)
    }

    fn contains_each<W: Word>(&self, words: &[W], hashes: &[u64], answers: &mut [u64]) {
        (arch::level().readers::<W>().contains_256)(words, hashes, answers);
    }

    #[inline]
    fn insert(&self, words: &mut [u64], hash: u64) -> bool {
        arch::scalar::insert_one_256(words, hash)
    }

    fn insert_each(&self, words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        (arch::kernels().insert_256)(words, hashes, answers);
    }

    #[inline]
    fn insert_shared(&self, bits: &AtomicBitmap, hash: u64) -> bool {
        use crate::bits::Bits as _;
        let (block, mask) = Self::locate(hash, bits.words().len() / Self::WORDS);
        bits.set(block * Self::WORDS, &mask)
    }

    #[inline]
    fn prefetch<W: Word>(&self, words: &[W], hash: u64) {
        arch::prefetch_index(words, Self::block(hash, words.len() / Self::WORDS) * Self::WORDS);
    }

    fn estimate_items<W: Word>(&self, words: &[W]) -> f64 {
        lanes_items(words)
    }

    fn estimate_rate<W: Word>(&self, words: &[W]) -> f64 {
        lanes_rate(words, Self::WORDS, 32)
    }
}
