//! Probe rules: from the bytes of an item to bit numbers, and the rates that follow.

pub(crate) mod any_rule;
pub(crate) mod guava_rules;
pub(crate) mod guava_sizing;
pub(crate) mod hash;
pub(crate) mod probe_positions;
pub(crate) mod probe_rule;
pub(crate) mod probing;
pub(crate) mod pybloom_rule;
pub(crate) mod rates;
