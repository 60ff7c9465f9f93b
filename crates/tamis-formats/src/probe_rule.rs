//! How another system computes the bit numbers of an item.

use std::fmt;

use crate::filter_info::FilterInfo;

/// Computes bit numbers from the bytes of an item. A rule is pure: it holds sizes and seeds, but no
/// bits.
pub(crate) trait ProbeRule: Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The part of the computation that all probes of an item share. If each probe has its own
    /// hash, this is the item itself.
    type Hash<'k>: Copy + Default;

    /// Whether every filter of this rule fits into the CPU caches, so that prefetching is useless.
    const IS_SMALL: bool = false;

    /// The length of every item in bytes. `None` if items can have any length.
    const ITEM_BYTES: Option<usize> = None;

    /// Returns the number of bits, and the number of probes of an item. Every probe is below the
    /// number of bits. If there are no bits, an item has no probes.
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
    /// or if an item sets no bits.
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

/// Returns the standard deviation of a rate that is estimated from the bits, divided by the rate.
pub(crate) fn rate_std_error(fill: f64, bits: u64, probes: u32) -> f64 {
    let left = 1.0 - fill;
    if !(fill > 0.0 && left > 0.0) {
        return 0.0;
    }
    // Linear counting (Whang et al. 1990, §4): t is the number of draws per bit, and m is the
    // number of bits. The share of clear bits has the mean e⁻ᵗ and the variance e⁻ᵗ(1 − (1 +
    // t)e⁻ᵗ)/m.
    let t = -left.ln();
    let variance = left * (1.0 - (1.0 + t) * left) / bits as f64;
    f64::from(probes) * variance.max(0.0).sqrt() / fill
}
