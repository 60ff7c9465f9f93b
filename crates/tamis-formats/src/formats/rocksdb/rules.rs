//! The two rules of RocksDB. All probes of an item are in one cache line.

use tamis::Modulus;

use crate::rules::hash::leveldb::{self, step};
use crate::rules::hash::murmur3::Tail;
use crate::rules::hash::xxh3_preview;
use crate::rules::rates::blocks::blocks_rate;
use crate::rules::{
    EstimatedRate, ProbeRule, Progression, SplitMix, Sums, fill, measure, test_bits,
};

/// The rule of RocksDB before `format_version` 5, with the hash of LevelDB. The hash modulo the number of lines selects
/// the line. Sums of the hash and multiples of a step select the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legacy {
    // Invariant: `lines` is at least 1.
    lines: u32,
    // Invariant: `line_bytes` is a power of two and at least 64.
    line_bytes: u32,
    probes: u32,
}

/// The rule of RocksDB since `format_version` 5, called "fast local Bloom".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastLocal {
    // Invariant: `lines` is at least 1.
    lines: u32,
    probes: u32,
}

impl Legacy {
    pub(crate) fn new(lines: u32, line_bytes: u32, probes: u32) -> Self {
        assert!(lines > 0 && line_bytes >= 64 && line_bytes.is_power_of_two());
        Self { lines, line_bytes, probes }
    }

    pub(crate) fn lines(&self) -> u32 {
        self.lines
    }

    fn line_bits(self) -> u64 {
        u64::from(self.line_bytes) * 8
    }
}

impl FastLocal {
    pub(crate) fn new(lines: u32, probes: u32) -> Self {
        assert!(lines > 0);
        Self { lines, probes }
    }
}

/// The number of bits of a line.
const LINE_BITS: u64 = 512;

impl ProbeRule for Legacy {
    type Hash<'k> = u32;

    fn sizes(&self) -> (u64, u32) {
        (u64::from(self.lines) * self.line_bits(), self.probes)
    }

    fn name(&self) -> String {
        format!("RocksDB's filter before format_version 5, {} lines", self.lines)
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u32 {
        leveldb::hash(key, Tail::Signed)
    }

    #[inline]
    fn each_probe(&self, mut h: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let bits = self.line_bits();
        let (line, step) = (u64::from(h % self.lines) * bits, step(h));
        (0..self.probes).map(move |_| {
            let bit = line + (u64::from(h) & (bits - 1));
            h = h.wrapping_add(step);
            bit
        })
    }

    /// Measures the rate. The number of possible steps is only the number of bits of a line, so the items of a line
    /// often share several bits.
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let independent = blocks_rate(words, (self.line_bits() / 64) as usize, self.probes);
        let computed = || {
            let bits = Modulus::new(self.line_bits()).expect("at least 512 bits");
            let rule = Progression { bits, probes: self.probes, sums: Sums::Wrapped(32) };
            let items_of_line = self.estimate_items(words) / f64::from(self.lines);
            independent.rate + rule.excess(fill(words, self.sizes().0), items_of_line)
        };
        let test = |random: &mut SplitMix| test_bits(words, self.each_probe(random.next() as u32));
        measure(independent.std_error, computed, test)
    }
}

impl ProbeRule for FastLocal {
    type Hash<'k> = u64;

    fn sizes(&self) -> (u64, u32) {
        (u64::from(self.lines) * LINE_BITS, self.probes)
    }

    fn name(&self) -> String {
        format!("RocksDB's fast local Bloom, preview of XXH3, {} lines", self.lines)
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        xxh3_preview::hash(key)
    }

    #[inline]
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let line = ((u64::from(hash as u32) * u64::from(self.lines)) >> 32) * LINE_BITS;
        let mut h = (hash >> 32) as u32;
        (0..self.probes).map(move |_| {
            let bit = line + u64::from(h >> 23);
            h = h.wrapping_mul(0x9e37_79b9);
            bit
        })
    }

    /// Estimates the rate as the sum of two parts. The first part of the rate is the mean rate of all lines. The second
    /// part of the rate is the probability that an absent item has the same probes as an item of its line. The probes
    /// come from only 32 bits of the hash, so two items can have equal probes.
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let of_lines = blocks_rate(words, (LINE_BITS / 64) as usize, self.probes);
        let items_of_line = self.estimate_items(words) / f64::from(self.lines);
        let rate = of_lines.rate + items_of_line / 2_f64.powi(32);
        EstimatedRate { rate: rate.min(1.0), ..of_lines }
    }
}
