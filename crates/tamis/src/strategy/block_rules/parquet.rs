//! The rule of Parquet's split-block Bloom: 256-bit blocks, eight 32-bit lanes.
//!
//! Parquet's blocks and lanes have half the size of the default filter's blocks and lanes. The
//! Parquet format defines the rule of this module. The high 32 bits of the hash select the block.
//! The low 32 bits, multiplied by the lane's salt, select the bit in each lane. Two lanes share a
//! 64-bit word. The even lane is in the low half of the word, which is Parquet's order on disk.
//!
//! Source: Apache Parquet format, `BloomFilter.md`.

/// The number of words in a block.
pub(crate) const WORDS: usize = 4;

/// The salts of Parquet: one odd multiplier for each lane.
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

/// Returns the block of `hash`. The block number is below `blocks`, which is at most 2³².
#[inline(always)]
pub(crate) const fn block(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

/// Returns the mask of the bits of `hash`, with one bit in each lane.
#[inline(always)]
pub(crate) fn mask(hash: u64) -> [u64; 4] {
    let bit = |lane: usize| 1_u64 << ((hash as u32).wrapping_mul(SALTS[lane]) >> 27);
    [0, 2, 4, 6].map(|lane| bit(lane) | bit(lane + 1) << 32)
}

/// Returns the block of `hash`, and the mask with the bit of `hash` in each lane.
#[inline(always)]
pub(crate) fn locate(hash: u64, blocks: usize) -> (usize, [u64; 4]) {
    (block(hash, blocks), mask(hash))
}
