//! The rule of BIP-37: each probe has its own hash.

use std::fmt;

use tamis::Modulus;

use crate::filters::FilterInfo;
use crate::formats::bip37::plan::{MAX_BYTES, MAX_PROBES};
use crate::rules::ProbeRule;
use crate::rules::hash::murmur3::x86_32;

/// Selects the outpoints that a node inserts when a transaction pays to an item. If the node did not insert an
/// outpoint, the wallet would miss the transaction that spends the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Update {
    /// No outpoints.
    #[default]
    None = 0,
    /// All outpoints.
    All = 1,
    /// Only outpoints whose output is locked by one or several public keys. A transaction that spends an output locked
    /// by public keys does not reveal the keys.
    PublicKeyOnly = 2,
}

impl Update {
    /// The bits of the flags that are not reserved.
    const MASK: u8 = 0b11;

    /// Returns the meaning of the flags in Bitcoin Core, which ignores reserved bits.
    #[must_use]
    pub const fn of(flags: u8) -> Self {
        match flags & Self::MASK {
            1 => Update::All,
            2 => Update::PublicKeyOnly,
            _ => Update::None,
        }
    }
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Update::None => "none",
            Update::All => "all",
            Update::PublicKeyOnly => "public keys and bare multisig only",
        })
    }
}

/// The rule of BIP-37, and the flags that control which outpoints a node inserts.
///
/// The flags are part of the rule, because filters with different flags contain different outpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bip37 {
    // Invariant: the number of bits is a whole number of bytes, at most `MAX_BYTES`. `None` if the filter has no bytes.
    bits: Option<Modulus>,
    probes: u32,
    tweak: u32,
    flags: u8,
}

impl Bip37 {
    /// Creates a rule. The sizes must be within the limits of nodes.
    pub(crate) fn new(bytes: usize, probes: u32, tweak: u32, flags: u8) -> Self {
        debug_assert!(bytes <= MAX_BYTES && probes <= MAX_PROBES);
        Self { bits: Modulus::new(bytes as u64 * 8), probes, tweak, flags }
    }

    /// Returns the size of the filter in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.sizes().0 as usize / 8
    }

    /// Returns the tweak. Filters with different tweaks hash an item differently.
    #[must_use]
    pub fn tweak(&self) -> u32 {
        self.tweak
    }

    /// Returns the flags of the message, including reserved flags.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }
}

impl ProbeRule for Bip37 {
    // An item has up to 50 hashes, but the lookup of an absent item needs only one or two hashes. The rule computes a
    // hash only when a lookup needs its probe.
    type Hash<'k> = &'k [u8];

    // Disables prefetching. With prefetching, each item would be hashed twice, and a batch would take twice the time.
    const IS_SMALL: bool = true;

    fn sizes(&self) -> (u64, u32) {
        (self.bits.map_or(0, Modulus::bits), self.probes)
    }

    fn name(&self) -> String {
        format!("murmur3 x86 32, BIP-37 with tweak {}, flags {}", self.tweak, self.flags)
    }

    #[inline]
    fn hash<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key
    }

    #[inline]
    fn each_probe(&self, key: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let Self { bits, probes, tweak, .. } = *self;
        // A filter without bytes has no probes, even if its header states a number of probes. Because a filter without
        // bytes has no probes, the filter matches every item.
        bits.into_iter().flat_map(move |bits| {
            (0..probes).map(move |i| {
                let seed = i.wrapping_mul(0xfba4_c795).wrapping_add(tweak);
                bits.reduce(x86_32(key, seed).into())
            })
        })
    }

    fn describe(&self, info: &mut FilterInfo) {
        info.details.push(("tweak", self.tweak.to_string()));
        info.details.push(("update", Update::of(self.flags).to_string()));
        if self.bits.is_none() {
            info.warnings.push("it has no bytes: it matches every item".into());
        } else if self.probes == 0 {
            info.warnings.push("it has no hash functions: it matches every item".into());
        }
        if self.flags & !Update::MASK != 0 {
            info.warnings.push(format!(
                "flags {:#04x} have reserved bits: Bitcoin Core ignores them, and other nodes \
                reject the filter",
                self.flags
            ));
        }
    }
}
