//! The rule of growth defines the number of remainder bits at each depth, and when pages split.
//! With the rule of growth, the filter keeps its rate at any size.

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::geometry::Geometry;

use crate::filter::growing::prefixes::page::{BLOCKS, ENTRY_BITS_MAX, QUOTIENT_BITS, QUOTIENTS};
use crate::plan::rates::rounded_up;

/// The rule by which a filter grows. The rule depends only on the planned rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// The number of remainder bits at depths 6 to 19, which are the depths of most filters.
    /// Filters at depths 6 to 19 hold about 64 thousand to 700 million items.
    base_bits: u32,
    /// The mean number of entries of a page at which the pages of a depth begin to split.
    split_at: u32,
    /// The largest depth whose prefixes fit in a hash.
    max_depth: u32,
}

/// All pages of a depth split while the filter grows by the share 1/`SPLIT_STRETCH`.
const SPLIT_STRETCH: u64 = 8;

/// The minimum and the maximum of the number of entries at which a page splits. If a page split at
/// fewer entries than the minimum, the code of the quotients would take too much space. If a page
/// split at more entries than the maximum, each quotient would have a long run of entries.
const SPLIT_AT: (u32, u32) = (640, 1280);

/// The number of words of a page in addition to its blocks: the header and the entry in the
/// directory. The directory entry contains the memory address of the page and a copy of its header.
const EMPTY_HEAD_WORDS: f64 = 10.0;

/// The maximum depth of a page. With the limit `MAX_DEPTH`, the directory has fewer than 2⁴¹ pages,
/// far more than fit in any memory.
const MAX_DEPTH: u32 = 40;

/// Returns the number of remainder bits at a depth in addition to the rule's base bits.
const fn extra_bits(depth: u32) -> u32 {
    match depth {
        0..=3 => 3,
        4..6 => 6 - depth,
        6..20 => 0,
        20..=30 => 2,
        31.. => 2 + depth - 30,
    }
}

/// Returns 2^−`exponent`, for exponents up to 1022.
const fn power_of_half(exponent: u32) -> f64 {
    f64::from_bits((1023 - exponent as u64) << 52)
}

/// The largest depth whose prefixes fit in a hash, for each number of base bits of a rule.
static MAX_DEPTHS: [u32; ENTRY_BITS_MAX as usize] = {
    let mut depths = [0; ENTRY_BITS_MAX as usize];
    let mut base_bits = 0;
    while base_bits < ENTRY_BITS_MAX {
        let mut depth = 0;
        while depth <= MAX_DEPTH {
            let bits = base_bits + extra_bits(depth);
            if depth + QUOTIENT_BITS + bits > 64 || bits >= ENTRY_BITS_MAX {
                break;
            }
            depths[base_bits as usize] = depth;
            depth += 1;
        }
        base_bits += 1;
    }
    depths
};

/// The highest rate of a filter that grows to a given maximum depth, indexed by this depth. The
/// rates are computed for a rule without base bits, and for pages with one entry for each quotient.
static RATES_UNTIL_DEPTH: [f64; MAX_DEPTH as usize + 1] = {
    let (mut rates, mut rate, mut depth) = ([0.0; MAX_DEPTH as usize + 1], 0.0, 0);
    while depth <= MAX_DEPTH {
        let grown = if depth == 0 { 1.0 } else { (1.0 + 1.0 / SPLIT_STRETCH as f64) / 2.0 };
        rate += grown * power_of_half(extra_bits(depth));
        rates[depth as usize] = rate;
        depth += 1;
    }
    rates
};

impl Growth {
    /// Returns the rule that takes the fewest bits and keeps `rate` at every number of items.
    /// Returns `None` if `rate` is not a probability, or if 64-bit hashes cannot keep the rate even
    /// in a small filter.
    pub(crate) fn for_rate(rate: f64) -> Option<Self> {
        if !(rate > 0.0 && rate < 1.0) {
            return None;
        }
        let (least, most) = SPLIT_AT;
        Self::all().find_map(|rule| {
            // The rate is proportional to `split_at`.
            let split_at = rate / rule.rate_per_entry();
            let split_at = (split_at * (1.0 - 1e-12)).min(f64::from(most)) as u32;
            (split_at >= least).then_some(Self { split_at, ..rule })
        })
    }

    /// Returns the rules with the smallest pages, in ascending order of the remainder length.
    fn all() -> impl Iterator<Item = Self> {
        (1..ENTRY_BITS_MAX - 4)
            .map(|base_bits| Self::new(base_bits, SPLIT_AT.0))
            .take_while(Self::is_deep)
    }

    const fn new(base_bits: u32, split_at: u32) -> Self {
        Self { base_bits, split_at, max_depth: MAX_DEPTHS[base_bits as usize] }
    }

    /// Returns true if a filter with this rule can grow at least to a small size.
    const fn is_deep(&self) -> bool {
        self.max_depth >= 8
    }

    /// Returns the lowest rate for which [`for_rate`](Self::for_rate) has a rule, rounded up to two
    /// digits.
    pub(crate) fn lowest_rate() -> f64 {
        rounded_up(Self::all().last().map_or(1.0, Self::rate_for_ever))
    }

    /// Returns the parameters of the rule, for files and layouts.
    pub(crate) fn geometry(self) -> Geometry {
        Geometry::Prefixes { bits: self.base_bits, split_at: self.split_at }
    }

    /// Restores a rule from its parameters. Returns `None` if [`for_rate`](Self::for_rate) never
    /// returns this rule.
    pub(crate) fn of_geometry(geometry: Geometry) -> Option<Self> {
        let Geometry::Prefixes { bits: base_bits, split_at } = geometry else { return None };
        let is_known = (1..ENTRY_BITS_MAX - 4).contains(&base_bits)
            && (SPLIT_AT.0..=SPLIT_AT.1).contains(&split_at);
        let growth = is_known.then(|| Self::new(base_bits, split_at));
        growth.filter(Self::is_deep)
    }

    /// Returns the number of remainder bits of a new entry in a page of this depth.
    ///
    /// Small filters take little memory, so their remainders can be longer than in large filters.
    /// Beyond 2³⁰ pages, the remainders grow with each depth, so that the sum of the rates of all
    /// depths is finite. From one depth to the next, a remainder loses at most one bit. The lost
    /// bit becomes part of the address, so no prefix becomes shorter.
    pub(crate) const fn remainder_bits(self, depth: u32) -> u32 {
        self.base_bits + extra_bits(depth)
    }

    /// Returns the highest rate at any number of items, as a sum over all depths. While the
    /// shallowest pages have depth `depth`, the number of entries of a page grows from 9/16 to 9/8
    /// of `split_at`. At depth 0, the number of entries grows from zero to the number at which the
    /// only page splits. While the shallowest pages have depth `depth`, every new entry has a
    /// prefix that is at least as long as the prefixes of this depth.
    pub(crate) fn rate_for_ever(self) -> f64 {
        f64::from(self.split_at) * self.rate_per_entry()
    }

    /// Returns the result of [`rate_for_ever`](Self::rate_for_ever), divided by `split_at`.
    fn rate_per_entry(self) -> f64 {
        let until_depth = RATES_UNTIL_DEPTH[self.max_depth as usize];
        until_depth / QUOTIENTS as f64 * power_of_half(self.base_bits)
    }

    /// Computes the rate of a filter with `items` items, as a sum over all depths up to the current
    /// depth.
    pub(crate) fn rate_at(self, items: u64) -> f64 {
        let (mut rate, mut before) = (0.0, 0.0);
        for depth in 0..=self.max_depth {
            // The shallowest pages have depth `depth` until the last page of this depth splits.
            let pages = f64::from(depth).exp2();
            let stretch = SPLIT_STRETCH as f64;
            let last = f64::from(self.split_at) * ((stretch + 1.0) * pages - 1.0) / stretch;
            let here = (items as f64).min(last) - before;
            if here <= 0.0 {
                break;
            }
            rate += here / (pages * QUOTIENTS as f64) * power_of_half(self.remainder_bits(depth));
            before = last;
        }
        rate.min(1.0)
    }

    /// Estimates how many bits a filter with `items` items takes, including its directory and
    /// unused words.
    pub(crate) fn bits_at(self, items: u64) -> u64 {
        let n = (items as f64).max(1.0);
        let depth =
            (n / f64::from(self.split_at)).log2().ceil().clamp(0.0, f64::from(self.max_depth));
        let entry_bits = f64::from(self.remainder_bits(depth as u32)) + 1.0;
        // Between two sizes at which all pages of a depth have split, the result is at most the
        // bits of the larger size.
        let pages =
            (n / f64::from(self.split_at)).max(1.0).min(depth.exp2()).max(depth.exp2() / 2.0);
        // The terms for each page are the header and the directory entry, a mark for each quotient,
        // half a word for each block, and unused words.
        let of_page = 64.0 * EMPTY_HEAD_WORDS + QUOTIENTS as f64 + 32.0 * BLOCKS as f64 + 128.0;
        let bits = n * (entry_bits + 1.0) + pages * of_page;
        // The size is computed in `f64` to avoid overflow, and rounded up to whole words.
        (bits / 64.0).ceil().min(2_f64.powi(50)) as u64 * 64
    }

    /// Returns the number of entries at which the next page splits. `split` of the 2^`depth` pages
    /// are already split. Returns `None` if the prefixes would no longer fit in a hash.
    pub(crate) fn next_split(self, depth: u32, split: u64) -> Option<u64> {
        let eighths = (SPLIT_STRETCH << depth) + split;
        (depth < self.max_depth).then(|| u64::from(self.split_at) * eighths / SPLIT_STRETCH)
    }

    /// Returns the maximum number of entries of a table. In a table with the maximum number of
    /// entries, no page can split any more.
    pub(crate) fn max_entries(self) -> u64 {
        u64::from(self.split_at) << self.max_depth
    }

    /// Returns the largest depth of a page that the rule allows.
    pub(crate) fn max_depth(self) -> u32 {
        self.max_depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_percent_takes_twelve_bits() {
        let growth = Growth::for_rate(0.01).unwrap();
        assert_eq!(growth.remainder_bits(10), 11);
        assert!(growth.split_at > 900 && growth.max_depth >= 35, "{growth:?}");
    }

    #[test]
    fn the_rate_is_kept_at_the_maximum_number_of_items() {
        for rate in [0.1, 0.01, 0.000_425, 3.051_757_812_5e-5] {
            let growth = Growth::for_rate(rate).unwrap();
            assert!(growth.rate_at(growth.max_entries()) <= rate, "{rate}");
            assert!(growth.rate_at(u64::MAX) <= rate, "{rate}");
        }
    }

    #[test]
    fn a_low_rate_limits_the_number_of_items() {
        for (rate, items) in [(1e-9, 533_725_184), (3e-14, 226_304)] {
            assert_eq!(Growth::for_rate(rate).unwrap().max_entries(), items, "{rate}");
        }
    }

    #[test]
    fn the_lowest_rate_has_a_rule_and_lower_rates_have_none() {
        let lowest = Growth::lowest_rate();
        assert!(Growth::for_rate(lowest).is_some(), "{lowest}");
        for share in [0.9, 0.1, 1e-9] {
            assert_eq!(Growth::for_rate(lowest * share), None, "{lowest} {share}");
        }
    }

    #[test]
    fn the_rate_is_kept_at_every_depth() {
        for exponent in 1..100 {
            let rate = 0.8_f64.powi(exponent);
            let growth = Growth::for_rate(rate).unwrap_or_else(|| panic!("{rate}"));
            assert!(growth.rate_for_ever() <= rate, "{rate}: {growth:?}");
            assert!(growth.rate_for_ever() > rate / 2.1, "{rate}: {growth:?}");
            for depth in 0..growth.max_depth {
                let (bits, next) = (growth.remainder_bits(depth), growth.remainder_bits(depth + 1));
                assert!(next + 1 >= bits);
                assert!(depth + QUOTIENT_BITS + bits <= 64);
            }
        }
        for rate in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert_eq!(Growth::for_rate(rate), None, "{rate}");
        }
    }
}
