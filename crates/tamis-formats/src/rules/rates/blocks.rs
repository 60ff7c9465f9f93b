//! Computes the rate of rules that set all bits of an item in one block.

use crate::rules::probe_rule::fill;
use crate::rules::rates::{EstimatedRate, chance};

/// Returns the mean rate over all blocks, for independent probes. The mean is necessary because blocks fill unevenly
/// and an absent item reads only one block.
pub(crate) fn blocks_rate(words: &[u64], block_words: usize, probes: u32) -> EstimatedRate {
    let (blocks, bits) = (words.chunks(block_words), words.len() as u64 * 64);
    let count = blocks.len() as f64;
    let rates = blocks.map(|block| fill(block, block_words as u64 * 64).powf(probes.into()));
    let std_error = chance(fill(words, bits), bits, probes);
    EstimatedRate { rate: rates.sum::<f64>() / count, std_error }
}
