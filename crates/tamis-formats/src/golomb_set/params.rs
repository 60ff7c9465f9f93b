//! The two parameters of a Golomb-coded set.

use std::fmt;

/// How a set is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GolombParams {
    // Invariants: at most 32; at least 1.
    pub(super) p: u8,
    pub(super) m: u32,
}

impl GolombParams {
    /// Those of basic block filters, BIP-158: P = 19, M = 784,931.
    pub const BASIC: Self = Self { p: 19, m: 784_931 };

    /// Takes P, the bits of a remainder, and M: an absent item is taken for a present one once in M times.
    ///
    /// M of about 1.5 times 2ᴾ makes the smallest sets. A far larger M makes steps of as many ones as it is larger: sets of
    /// N·M / 2ᴾ bits.
    ///
    /// # Errors
    ///
    /// [`GolombError::Params`] if P is above 32 or M is 0.
    pub const fn new(p: u8, m: u32) -> Result<Self, GolombError> {
        if p > 32 || m == 0 { Err(GolombError::Params) } else { Ok(Self { p, m }) }
    }

    /// Returns P: how many bits the remainder of a step has.
    #[must_use]
    pub const fn p(self) -> u8 {
        self.p
    }

    /// Returns M: an absent item is taken for a present one once in so many times.
    #[must_use]
    pub const fn m(self) -> u32 {
        self.m
    }
}

/// Why there is no such set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GolombError {
    /// The number of bits of a remainder is above 32, or the range of an item is 0.
    Params,
    /// 2³² distinct items or more.
    TooManyItems,
}

impl fmt::Display for GolombError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GolombError::Params => "P is at most 32, and M at least 1",
            GolombError::TooManyItems => "a Golomb-coded set has 2³² − 1 distinct items at most",
        })
    }
}

impl std::error::Error for GolombError {}
