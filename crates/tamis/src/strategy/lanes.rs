//! Estimates from the bits of blocks with eight lanes.

use crate::bits::Word;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::rates::same_pattern_rate;

/// Returns the probability that an absent item finds a set bit in every lane of its block. The
/// result is computed from the share of set bits in each lane of each block. The result includes
/// the probability that the absent item has the same bits as an item of the same block.
pub(crate) fn lanes_rate<W: Word>(words: &[W], words_per_block: usize, lane_bits: u32) -> f64 {
    let blocks = words.len() / words_per_block;
    let lane = if lane_bits == 64 { u64::MAX } else { (1 << lane_bits) - 1 };
    let mut all_ones = 0;
    let mut product = |block: &[W]| -> f64 {
        let mut product = 1.0;
        for word in block {
            let word = word.get();
            all_ones += u64::from(word.count_ones());
            // The code skips the lanes that follow an empty lane, because an empty lane makes the
            // product zero. In a filter with few items, most blocks have an empty lane.
            if product > 0.0 {
                for shift in (0..64).step_by(lane_bits as usize) {
                    let ones = (word >> shift & lane).count_ones();
                    product *= f64::from(ones) / f64::from(lane_bits);
                }
            }
        }
        product
    };
    let of_lanes =
        words.chunks_exact(words_per_block).map(&mut product).sum::<f64>() / blocks as f64;
    // A window filter calls this function for each block. For an empty block, the function does not
    // compute the logarithm, which takes longer than counting the bits.
    if all_ones == 0 {
        return 0.0;
    }
    let items = items_of(all_ones as f64, words.len());
    (of_lanes + same_pattern_rate(items, blocks as f64, lane_bits.into())).min(1.0)
}

/// Estimates the number of items from the share of unset bits. Each item sets one bit in each of
/// the eight lanes, so lane number i of all blocks together is a filter with one probe.
pub(crate) fn lanes_items<W: Word>(words: &[W]) -> f64 {
    let ones: u64 = words.iter().map(|word| u64::from(word.get().count_ones())).sum();
    items_of(ones as f64, words.len())
}

fn items_of(ones: f64, len_words: usize) -> f64 {
    let m = len_words as f64 * 64.0;
    -(m / 8.0) * (-ones / m).ln_1p()
}
