//! Probe rules, and their false positive rates. A probe rule converts the bytes of an item to bit numbers.

mod any_rule;
pub(crate) mod guava_rules;
pub(crate) mod guava_sizing;
pub(crate) mod hash;
pub(crate) mod probe_positions;
mod probe_rule;
pub(crate) mod probing;
pub(crate) mod pybloom_rule;
pub(crate) mod rates;

pub use any_rule::Rule;
pub(crate) use probe_rule::{ProbeRule, fill};
pub(crate) use rates::measure::{SplitMix, measure, test_bits};
pub(crate) use rates::progression::{Progression, Sums};
pub(crate) use rates::{EstimatedRate, chance};
