//! The two parameters P and M of a Golomb-coded set.

use std::fmt;

/// The parameters P and M of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GolombParams {
    // Invariants: `p` is at most 32, and `m` is at least 1.
    pub(super) p: u8,
    pub(super) m: u32,
}

impl GolombParams {
    /// The parameters of basic block filters (BIP-158): P = 19, M = 784,931.
    pub const BASIC: Self = Self { p: 19, m: 784_931 };

    /// Creates parameters. P is the number of bits of a remainder. The false positive rate is 1/M.
    ///
    /// Sets are smallest if M is about 1.5 times 2ᴾ. If M is much larger than 2ᴾ, a set of N items takes N·M / 2ᴾ bits,
    /// because the runs of 1 bits are long.
    ///
    /// # Errors
    ///
    /// [`GolombError::Params`] if P is above 32 or M is 0.
    pub const fn new(p: u8, m: u32) -> Result<Self, GolombError> {
        if p > 32 || m == 0 { Err(GolombError::Params) } else { Ok(Self { p, m }) }
    }

    /// Returns P, the number of bits of a remainder.
    #[must_use]
    pub const fn p(self) -> u8 {
        self.p
    }

    /// Returns M. The false positive rate is 1/M.
    #[must_use]
    pub const fn m(self) -> u32 {
        self.m
    }
}

/// The reason why a set cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GolombError {
    /// P is above 32, or M is 0.
    Params,
    /// The number of distinct items is 2³² or more.
    TooManyItems,
}

impl fmt::Display for GolombError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GolombError::Params => "P must be at most 32, and M at least 1",
            GolombError::TooManyItems => "a Golomb-coded set has at most 2³² − 1 distinct items",
        })
    }
}

impl std::error::Error for GolombError {}
