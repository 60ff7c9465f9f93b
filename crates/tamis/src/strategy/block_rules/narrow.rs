//! The narrow block: 128 bits, eight lanes of 16 bits. Several narrow blocks fit in a cache line.
//!
//! ```text
//! low 32 bits of the hash: four from bit 0  4  8  12 16 20 24 28
//!                                        │  │  │  │  │  │  │  │   a number below 16 each
//!                                 lane   0  1  2  3  4  5  6  7   ▼ one bit in each
//!                                      |16|16|16|16|16|16|16|16|
//! ```
//!
//! The default filter stores one bit for each position of a block. Counting filters and window
//! filters store several bits for each position, so these filters use several narrow blocks side by
//! side. The caller computes the block from the top bits of the hash. The low 32 bits of the hash
//! contain the eight bit numbers. Narrow blocks fill less evenly than the blocks of the default
//! filter: at 1 %, a filter with narrow blocks takes an eighth more bits.

/// Blocks of 128 bits.
pub(crate) struct Narrow;

impl Narrow {
    /// The number of words in a block.
    pub(crate) const WORDS: usize = 2;

    /// The number of bits in a lane.
    pub(crate) const LANE_BITS: u32 = 16;

    /// Returns the mask of the bits of `hash`, with one bit in each lane.
    #[inline(always)]
    pub(crate) fn mask(hash: u64) -> [u64; Self::WORDS] {
        let bit = |lane: u64| 1_u64 << (hash >> (4 * lane) & 15) << (lane % 4 * 16);
        [0, 4].map(|first| (first..first + 4).fold(0, |mask, lane| mask | bit(lane)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hex_digit_is_the_bit_number_of_a_lane() {
        let lane = |digit: u64| 1_u64 << digit;
        let of = |digits: [u64; 4]| (0..4).fold(0, |mask, i| mask | lane(digits[i]) << (16 * i));
        let hash = 0xffff_ffff_fedc_3210;
        assert_eq!(Narrow::mask(hash), [of([0, 1, 2, 3]), of([12, 13, 14, 15])]);
    }
}
