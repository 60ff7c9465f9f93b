//! The trait of probe rules, which compute the bit numbers of an item as another system does.

use std::fmt;

use crate::filters::filter_info::FilterInfo;
use crate::rules::rates::EstimatedRate;
use crate::rules::rates::drawn_fill::drawn_fill;
use crate::rules::rates::progression::Progression;

/// Computes bit numbers from the bytes of an item. A rule contains sizes and seeds, but not the bits of a filter.
pub(crate) trait ProbeRule: Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The part of the computation that all probes of an item share. If each probe has its own hash, the shared part is
    /// the item itself.
    type Hash<'k>: Copy + Default;

    /// Whether every filter of this rule fits into the CPU caches. Prefetching is useless for a filter that fits into
    /// the CPU caches.
    const IS_SMALL: bool = false;

    /// The length in bytes that every item has. `None` if items can have any length.
    const ITEM_BYTES: Option<usize> = None;

    /// Returns the number of bits, and the number of probes of an item. Every bit number is below the number of bits.
    /// If the number of bits is 0, an item has no probes.
    fn sizes(&self) -> (u64, u32);

    /// Returns the name of the hash and its parameters, without the sizes.
    fn name(&self) -> String;

    /// Hashes the bytes of an item.
    fn hash<'k>(&self, key: &'k [u8]) -> Self::Hash<'k>;

    /// Returns the bit numbers of an item, in the order in which the original system tests the bits.
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64>;

    /// Returns the progression that the probes form. Returns `None` if the probes do not form a progression.
    fn progression(&self) -> Option<Progression> {
        None
    }

    /// Returns the binary logarithm of the number of values that are reduced to bit numbers. Returns `None` if the
    /// number of values is far larger than the number of bits.
    fn log2_values(&self) -> Option<u32> {
        self.progression()?.log2_values()
    }

    /// Estimates the false positive rate from the bits. Without a [progression](Self::progression), the default
    /// implementation assumes independent probes.
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let (bits, probes) = self.sizes();
        let fill = match self.log2_values() {
            Some(log2_values) => drawn_fill(words, bits, log2_values),
            None => fill(words, bits),
        };
        match self.progression() {
            Some(progression) => progression.estimate_rate(words, fill),
            None => EstimatedRate::independent(fill, bits, probes),
        }
    }

    /// Estimates the number of distinct items from the bits. Returns infinity if all bits are set
    /// or if an item sets no bits.
    fn estimate_items(&self, words: &[u64]) -> f64 {
        let (bits, probes) = self.sizes();
        if bits == 0 || probes == 0 {
            return f64::INFINITY;
        }
        let reached = self.log2_values().map_or(bits, |it| bits.min(1_u64.unbounded_shl(it)));
        let fill = (fill(words, bits) * (bits as f64 / reached as f64)).min(1.0);
        -(-fill).ln_1p() * reached as f64 / f64::from(probes)
    }

    /// Adds the details and warnings of the rule to `info`.
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
