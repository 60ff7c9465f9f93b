//! The errors of sets over a range.

use std::fmt;

use crate::bits::OutOfMemory;

/// A value is outside the range of a [`DenseSet`](crate::DenseSet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The value that is outside the range.
    pub value: u64,
    /// The lowest value of the set's range.
    pub first: u64,
    /// The highest value of the set's range.
    pub last: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, first, last } = self;
        write!(f, "{value} is outside the set's range {first}..={last}")
    }
}

impl std::error::Error for OutOfRange {}

/// The reason why a [`DenseSet`](crate::DenseSet) over a range cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// The range is empty: its first value is above its last value.
    Empty {
        /// The requested first value.
        first: u64,
        /// The requested last value.
        last: u64,
    },
    /// The memory for the range cannot be allocated.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { first, last } => {
                write!(f, "the range {first}..={last} is empty: put the smaller value first")
            }
            Self::OutOfMemory(OutOfMemory { bytes }) => {
                write!(f, "cannot allocate {bytes} bytes: use a narrower range or a compressed set")
            }
        }
    }
}

impl std::error::Error for RangeError {}

/// Two sets have different ranges, so the same bit represents different values in the two sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeMismatch {
    /// The range of the set that the operation would change.
    pub expected: std::ops::RangeInclusive<u64>,
    /// The range of the set that the operation would only read.
    pub found: std::ops::RangeInclusive<u64>,
}

impl fmt::Display for RangeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, found } = self;
        write!(
            f,
            "sets over {expected:?} and {found:?} cannot be combined: give both the same range"
        )
    }
}

impl std::error::Error for RangeMismatch {}
