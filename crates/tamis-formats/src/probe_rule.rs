//! How another system computes the bit numbers of an item.

use std::fmt;

use crate::filter_info::FilterInfo;

/// Computes bit numbers from the bytes of an item. Pure: a rule holds sizes and seeds, but no bits.
pub(crate) trait ProbeRule: Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The part of the computation that all probes of an item share. It is the item itself if each
    /// probe has its own hash.
    type Hash<'k>: Copy + Default;

    /// Whether every filter of this rule fits into the CPU caches, so that prefetching is useless.
    const IS_SMALL: bool = false;

    /// The length of every item, if the rule takes no items of another length.
    const ITEM_BYTES: Option<usize> = None;

    /// Returns the number of bits, and the number of probes of an item. Every probe is below the
    /// number of bits. Without bits, an item has no probes.
    fn sizes(&self) -> (u64, u32);

    /// Names the hash and its parameters, without the sizes.
    fn name(&self) -> String;

    /// Hashes the bytes of an item.
    fn hash<'k>(&self, key: &'k [u8]) -> Self::Hash<'k>;

    /// Returns the bit numbers of an item, in the order in which the original tests them.
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64>;

    /// Estimates the false positive rate from the bits. The default assumes independent uniform
    /// probes.
    fn estimate_rate(&self, words: &[u64]) -> f64 {
        let (bits, probes) = self.sizes();
        fill(words, bits).powf(probes.into())
    }

    /// Estimates the number of distinct items from the bits. Returns infinity if all bits are set
    /// or items set no bits.
    fn estimate_items(&self, words: &[u64]) -> f64 {
        let (bits, probes) = self.sizes();
        if bits == 0 || probes == 0 {
            return f64::INFINITY;
        }
        -(-fill(words, bits)).ln_1p() * bits as f64 / f64::from(probes)
    }

    /// Adds the rule's own details and warnings to `info`.
    fn describe(&self, _info: &mut FilterInfo) {}
}

/// Returns the share of bits that are set. Returns 1 if there are no bits.
pub(crate) fn fill(words: &[u64], bits: u64) -> f64 {
    if bits == 0 {
        return 1.0;
    }
    let ones: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
    ones as f64 / bits as f64
}

/// Returns the standard deviation of a rate that is estimated from the bits, as a share of the
/// rate.
pub(crate) fn rate_std_error(fill: f64, bits: u64, probes: u32) -> f64 {
    let left = 1.0 - fill;
    if !(fill > 0.0 && left > 0.0) {
        return 0.0;
    }
    // Linear counting (Whang et al. 1990, §4): a load of t draws a bit leaves e⁻ᵗ of m bits clear,
    // with a variance of e⁻ᵗ(1 − (1 + t)e⁻ᵗ)/m.
    let t = -left.ln();
    let variance = left * (1.0 - (1.0 + t) * left) / bits as f64;
    f64::from(probes) * variance.max(0.0).sqrt() / fill
}
