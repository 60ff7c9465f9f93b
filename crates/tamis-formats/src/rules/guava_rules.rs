//! The two rules of Guava: double hashing with the two halves of one 128-bit hash. Guava names both rules after
//! Mitzenmacher.
//!
//! Source: Kirsch and Mitzenmacher, "Less Hashing, Same Performance" (2006); Guava,
//! `BloomFilterStrategies`.

use tamis::Modulus;

use crate::filters::filter_info::FilterInfo;
use crate::rules::hash::murmur3::{Tail, x64_128};
use crate::rules::probe_rule::ProbeRule;
use crate::rules::rates::progression::{Progression, Sums};

/// `MURMUR128_MITZ_32`: both halves come from the low 64 bits of the hash.
///
/// For the halves `a` and `b`, probe `i` is `a + i·b` in 32 bits, starting with `i` = 1. All bits of a negative sum are
/// flipped, so at most 2³¹ bits are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mitz32 {
    bits: Modulus,
    probes: u32,
}

/// `MURMUR128_MITZ_64`: each half has 64 bits.
///
/// For the halves `a` and `b`, probe `i` is `a + i·b` in 64 bits with the sign bit cleared, starting with `i` = 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mitz64 {
    bits: Modulus,
    probes: u32,
}

impl Mitz32 {
    /// Creates the rule. Returns `None` if `bits` is 0.
    pub(crate) fn new(bits: u64, probes: u32) -> Option<Self> {
        Some(Self { bits: Modulus::new(bits)?, probes })
    }
}

impl Mitz64 {
    /// Creates the rule. Returns `None` if `bits` is 0.
    pub(crate) fn new(bits: u64, probes: u32) -> Option<Self> {
        Some(Self { bits: Modulus::new(bits)?, probes })
    }
}

impl ProbeRule for Mitz32 {
    type Hash<'k> = u64;

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        "murmur3 x64 128, MITZ_32".into()
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        x64_128(key, 0, Tail::Unsigned).0
    }

    #[inline]
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        flipped_sums(hash, self.probes, self.bits)
    }

    fn progression(&self) -> Option<Progression> {
        Some(Progression { bits: self.bits, probes: self.probes, sums: Sums::Flipped(32) })
    }

    fn describe(&self, info: &mut FilterInfo) {
        const MOST: u64 = i32::MAX as u64;
        let bits = self.bits.bits();
        if bits > MOST + 1 {
            info.warnings.push(format!(
                "MITZ_32 uses only 2,147,483,648 of the {bits} bits: its rate is above the planned \
                one"
            ));
        } else if bits == MOST {
            info.warnings.push(
                "BloomFilterHelper has at most 2,147,483,647 bits: if more items were planned, the \
                rate is above the planned one"
                    .into(),
            );
        }
    }
}

impl ProbeRule for Mitz64 {
    type Hash<'k> = (u64, u64);

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        "murmur3 x64 128, MITZ_64".into()
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> (u64, u64) {
        x64_128(key, 0, Tail::Unsigned)
    }

    #[inline]
    fn each_probe(&self, (mut c, step): Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let bits = self.bits;
        (0..self.probes).map(move |_| {
            let bit = bits.reduce(c & i64::MAX.cast_unsigned());
            c = c.wrapping_add(step);
            bit
        })
    }

    fn progression(&self) -> Option<Progression> {
        Some(Progression { bits: self.bits, probes: self.probes, sums: Sums::Wrapped(63) })
    }
}

/// Returns the bit numbers `a + i·b`, starting with `i` = 1. `a` and `b` are the two halves of `hash`. All bits of a
/// negative sum are flipped. ORC computes bit numbers with the same formula as Guava.
#[inline]
pub(crate) fn flipped_sums(hash: u64, probes: u32, bits: Modulus) -> impl Iterator<Item = u64> {
    let (mut c, step) = (hash as i32, (hash >> 32) as i32);
    (0..probes).map(move |_| {
        c = c.wrapping_add(step);
        bits.reduce(u64::from((if c < 0 { !c } else { c }).cast_unsigned()))
    })
}
