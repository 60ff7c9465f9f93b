//! From an item's bytes to bit numbers, as another system does it.

use std::fmt;

use crate::bip37::Bip37;
use crate::bits_and_blooms::BitsAndBlooms;
use crate::byte_buffer::EightColumns;
use crate::c_hashcode::MaskedSeven;
use crate::cassandra::Cassandra;
use crate::contents::FilterInfo;
use crate::guava_rules::{Mitz32, Mitz64};
use crate::hadoop::Hadoop;
use crate::hive::Hive;
use crate::orc::Orc;
use crate::pybloom_live::Slices;
use crate::pybloomfiltermmap::Seeds;
use crate::rbloom::Generator;
use crate::redisson::Redisson;
use crate::rocksdb::{FastLocal, Legacy};
use crate::spark::Spark;
use crate::stream_lib::StreamLib;

/// A rule from bytes to bit numbers. Pure, without storage.
pub(crate) trait ProbeRule {
    /// What is computed of an item once: if each probe has a hash of its own, the item itself.
    type Hash<'k>: Copy + Default;

    /// Whether every filter of the rule fits into caches, so that nothing need be fetched ahead.
    const IS_SMALL: bool = false;

    /// Returns the number of bits; every probe is below it, so that items have none if it is zero.
    fn bits(&self) -> u64;

    /// Returns how many probes an item has.
    fn probes(&self) -> u32;

    /// Hashes the bytes of an item.
    fn hash<'k>(&self, key: &'k [u8]) -> Self::Hash<'k>;

    /// Returns the bit numbers of an item, in the order in which the original tests them.
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64>;

    /// Estimates the rate from the bits: that of probes which fall anywhere, unless a rule knows better.
    fn estimate_rate(&self, words: &[u64]) -> f64 {
        fill(words, self.bits()).powf(f64::from(self.probes()))
    }

    /// Estimates the number of distinct items from the bits, infinite if all are set or items set none.
    fn estimate_items(&self, words: &[u64]) -> f64 {
        let (m, k) = (self.bits() as f64, f64::from(self.probes()));
        if m == 0.0 || k == 0.0 {
            return f64::INFINITY;
        }
        -(-fill(words, self.bits())).ln_1p() * m / k
    }

    /// Adds what else there is to tell, and to warn of.
    fn describe(&self, _facts: &mut FilterInfo) {}
}

/// Returns the share of bits that are set; of no bits, all are.
pub(crate) fn fill(words: &[u64], bits: u64) -> f64 {
    if bits == 0 {
        return 1.0;
    }
    let ones: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
    ones as f64 / bits as f64
}

/// Returns how far chance moves the rate of so many probes: its standard deviation, as a share of the rate.
pub(crate) fn rate_std_error(fill: f64, bits: u64, probes: u32) -> f64 {
    let left = 1.0 - fill;
    if !(fill > 0.0 && left > 0.0) {
        return 0.0;
    }
    // Linear counting (Whang et al. 1990, §4): a load of t draws a bit leaves e⁻ᵗ of m bits, with a variance of
    // e⁻ᵗ(1 − (1 + t)e⁻ᵗ)/m.
    let t = -left.ln();
    let variance = left * (1.0 - (1.0 + t) * left) / bits as f64;
    f64::from(probes) * variance.max(0.0).sqrt() / fill
}

/// All that two filters must share for their bits to mean the same: the hash, the number of bits and of probes, seeds.
///
/// Bits move between two formats if both have this rule.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rule {
    /// Guava before 17, `BloomFilterHelper`.
    Mitz32(Mitz32),
    /// Guava since 17, `RedisBitmaps`.
    Mitz64(Mitz64),
    /// Spark, both versions.
    Spark(Spark),
    /// Cassandra, both orders.
    Cassandra(Cassandra),
    /// Hadoop's `util.bloom`.
    Hadoop(Hadoop),
    /// RocksDB before `format_version` 5.
    RocksLegacy(Legacy),
    /// RocksDB since `format_version` 5.
    RocksFastLocal(FastLocal),
    /// Bitcoin's BIP-37.
    Bip37(Bip37),
    /// Redisson.
    Redisson(Redisson),
    /// `ByteBufferBloomFilter` of a Java article.
    EightColumns(EightColumns),
    /// `hashcode(cap, seed)` of an article, in C.
    MaskedSeven(MaskedSeven),
    /// `pybloom_live` of Python.
    Slices(Slices),
    /// `pybloomfiltermmap` of Python.
    Seeds(Seeds),
    /// `rbloom` of Python.
    Generator(Generator),
    /// Hive's `BloomKFilter`.
    Hive(Hive),
    /// ORC's row groups.
    Orc(Orc),
    /// stream-lib of Java.
    StreamLib(StreamLib),
    /// bits-and-blooms of Go.
    BitsAndBlooms(BitsAndBlooms),
}

/// Runs an expression on whichever rule it is.
macro_rules! with_rule {
    ($rule:expr, $concrete:ident => $body:expr) => {
        match $rule {
            $crate::rule::Rule::Mitz32($concrete) => $body,
            $crate::rule::Rule::Mitz64($concrete) => $body,
            $crate::rule::Rule::Spark($concrete) => $body,
            $crate::rule::Rule::Cassandra($concrete) => $body,
            $crate::rule::Rule::Hadoop($concrete) => $body,
            $crate::rule::Rule::RocksLegacy($concrete) => $body,
            $crate::rule::Rule::RocksFastLocal($concrete) => $body,
            $crate::rule::Rule::Bip37($concrete) => $body,
            $crate::rule::Rule::Redisson($concrete) => $body,
            $crate::rule::Rule::EightColumns($concrete) => $body,
            $crate::rule::Rule::MaskedSeven($concrete) => $body,
            $crate::rule::Rule::Slices($concrete) => $body,
            $crate::rule::Rule::Seeds($concrete) => $body,
            $crate::rule::Rule::Generator($concrete) => $body,
            $crate::rule::Rule::Hive($concrete) => $body,
            $crate::rule::Rule::Orc($concrete) => $body,
            $crate::rule::Rule::StreamLib($concrete) => $body,
            $crate::rule::Rule::BitsAndBlooms($concrete) => $body,
        }
    };
}
pub(crate) use with_rule;

impl Rule {
    /// Returns the number of bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        with_rule!(self, rule => rule.bits())
    }

    /// Returns how many probes an item has.
    #[must_use]
    pub fn probes(&self) -> u32 {
        with_rule!(self, rule => rule.probes())
    }

    /// Returns how many bytes every key has, if the rule takes no others.
    pub(crate) fn key_len(&self) -> Option<usize> {
        match self {
            Rule::Generator(_) => Some(size_of::<u128>()),
            Rule::Orc(_) => Some(size_of::<u64>()),
            _ => None,
        }
    }

    pub(crate) fn describe(&self, info: &mut FilterInfo) {
        with_rule!(self, rule => rule.describe(info));
    }
}

impl fmt::Display for Rule {
    /// Names the hash and what else there is to know, without the sizes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_rule!(self, rule => rule.fmt(f))
    }
}
