//! The rule of the default strategy: split-block Bloom with 512-bit blocks.
//!
//! ```text
//! hash ──┬─ high half of hash × blocks ─────────────▶ block, one 64-byte line
//!        └─ low 32 bits × γ = spread: from bit 8 14 20 26 32 38 44 50
//!                                               │  │  │  │  │  │  │  │   six bits each
//!                                        lane   0  1  2  3  4  5  6  7   ▼ one bit in each
//!                                             |64|64|64|64|64|64|64|64|
//! ```
//!
//! An item sets one bit in each of the eight lanes of one block, so a lookup is one memory access
//! and one vector instruction. The disadvantage of blocks is that some blocks receive more items
//! than other blocks. The rate of a filter with blocks is the mean over the binomially distributed
//! number of items in a block, and does not follow the formula of the classic filter
//! (`plan/rates.rs`).
//!
//! The top bits of the hash select the block, so the lanes must use other bits of the hash. An odd
//! multiplier γ spreads the low 32 bits, which the block does not use, over 64 bits. The bit
//! numbers are taken from the middle of the product, where every bit is uniform. The rule uses a
//! 32-bit multiplication, because a vector unit does eight 32-bit multiplications at once. A 64-bit
//! multiplication takes three times as long as a 32-bit multiplication.
//!
//! Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007), §3.
//! The lanes follow the split-block filter of the Parquet format.

use crate::strategy::block_rules::scale::scale;

/// The number of words in a block.
pub(crate) const WORDS: usize = 8;

/// The multiplier γ is 2³² minus 2³² divided by the golden ratio. The multiplier is odd, and small
/// enough for an immediate operand of an instruction.
pub(crate) const GAMMA: u64 = 0x61c8_8647;

/// The position in the spread hash at which the bit number of lane `i` starts.
pub(crate) const SHIFTS: [u64; 8] = [8, 14, 20, 26, 32, 38, 44, 50];

/// Returns the block of `hash`. The block number is below `blocks`.
#[inline(always)]
pub(crate) const fn block(hash: u64, blocks: usize) -> usize {
    scale(hash, blocks as u64) as usize
}

/// Returns the first word of the block of `hash` in `len_words` words.
///
/// Returns eight times the result of [`block`], without a multiplication of the result. The
/// function scales the hash to the number of words and rounds the result down to a whole block.
#[inline(always)]
pub(crate) const fn first_word(hash: u64, len_words: usize) -> usize {
    const BLOCK: usize = !(WORDS - 1);
    scale(hash, (len_words & BLOCK) as u64) as usize & BLOCK
}

/// Returns the hash to use in a filter that consists of one part of 2^`part_log` blocks.
///
/// `hash` belongs to block `block` of the whole filter. The returned hash selects the same block in
/// the part, and the same bits in the block.
///
/// The highest bits of the result are the block number in the part, and the low 32 bits determine
/// the bits in the lanes. `part_log` is 1 to 32.
#[inline(always)]
pub(crate) const fn hash_in_part(hash: u64, block: usize, part_log: u32) -> u64 {
    (block as u64) << (64 - part_log) | hash as u32 as u64
}

/// Returns the bits from which the lanes take their bit numbers.
#[inline(always)]
pub(crate) const fn spread(hash: u64) -> u64 {
    (hash as u32 as u64) * GAMMA
}

/// Returns the block of `hash`, and the mask with the bit of `hash` in each lane.
#[inline(always)]
pub(crate) fn locate(hash: u64, blocks: usize) -> (usize, [u64; 8]) {
    let spread = spread(hash);
    (block(hash, blocks), SHIFTS.map(|shift| 1 << (spread >> shift & 63)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_the_scaled_hash() {
        assert_eq!(block(0, 7), 0);
        assert_eq!(block(u64::MAX, 7), 6);
        assert_eq!(block(1 << 63, 10), 5);
    }

    #[test]
    fn the_first_word_is_that_of_the_block() {
        for hash in [0, 1, 1 << 63, u64::MAX / 3, u64::MAX] {
            for blocks in [1, 2, 7, 1000, 12_345_678] {
                for spare in [0, 5] {
                    let first = first_word(hash, blocks * 8 + spare);
                    assert_eq!(first, block(hash, blocks) * 8);
                }
            }
        }
    }

    #[test]
    fn a_hash_in_a_part_sets_the_same_bits_there() {
        for part_log in [1, 12, 32] {
            for hash in [0, 77, 1 << 63, u64::MAX / 3, u64::MAX] {
                let (block, mask) = locate(hash, 1_234_567);
                let in_part = hash_in_part(hash, block, part_log);
                let expected = (block % (1 << part_log), mask);
                assert_eq!(locate(in_part, 1 << part_log), expected);
            }
        }
    }

    #[test]
    fn lanes_use_every_bit_number_in_a_block() {
        // In a large filter, the hashes of one block share their top bits. The bit in each lane
        // must vary even among hashes with the same top bits.
        let blocks = 1 << 21;
        let mut used = [0_u64; 8];
        for i in 0..4096_u64 {
            let hash = (77 << 43) | crate::Hasher::default().hash_item(&i) >> 21;
            let (block, mask) = locate(hash, blocks);
            assert_eq!(block, 77);
            for (used, mask) in used.iter_mut().zip(mask) {
                *used |= mask;
            }
        }
        assert_eq!(used, [u64::MAX; 8]);
    }
}
