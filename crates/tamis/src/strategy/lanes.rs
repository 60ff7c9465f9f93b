//! Estimates from the bits of blocks with eight lanes.

use crate::bits::Word;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// Returns the probability that an absent item finds a set bit in every lane of its block. The
/// result is computed from the share of set bits in each lane of each block.
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

/// Estimates the number of items from the share of bits that are not set. Each item sets one bit in
/// each of the eight lanes. So lane number i of all blocks together is a filter with one probe.
pub(crate) fn lanes_items<W: Word>(words: &[W]) -> f64 {
    let ones: u64 = words.iter().map(|word| u64::from(word.get().count_ones())).sum();
    let m = words.len() as f64 * 64.0;
    -(m / 8.0) * (-(ones as f64) / m).ln_1p()
}
