//! The errors of planning and of creating filters.

use std::fmt;

use crate::bits::OutOfMemory;
use crate::plan::geometry::Geometry;
use crate::plan::kind::Kind;

/// The reason why a plan does not exist, or why a filter of the plan cannot be created.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// The number of items is negative, or exceeds `u64::MAX`.
    Items,
    /// The rate is not a probability between 0 and 1.
    Rate {
        /// The requested rate.
        rate: f64,
    },
    /// No filter of this kind keeps a rate this low for this number of items.
    RateTooLow {
        /// The requested kind.
        kind: Kind,
        /// The requested rate.
        rate: f64,
        /// The lowest rate of the kind, rounded up to two digits.
        lowest: f64,
    },
    /// A filter of this kind for these items and this rate would be too large.
    TooLarge {
        /// The requested kind.
        kind: Kind,
        /// The requested number of items.
        items: u64,
        /// The requested rate.
        rate: f64,
    },
    /// No useful filter of this kind fits in this memory.
    TooSmall {
        /// The requested kind.
        kind: Kind,
        /// The memory limit.
        max_bytes: u64,
    },
    /// No filter of this kind has this geometry.
    Geometry {
        /// The requested kind.
        kind: Kind,
        /// The requested number of bits.
        bits: u64,
        /// The requested geometry.
        geometry: Geometry,
    },
    /// The kind of the plan differs from the kind of the filter's type.
    OtherKind {
        /// The kind of the type.
        expected: Kind,
        /// The kind of the plan.
        found: Kind,
    },
    /// The plan is valid, but no filter of this kind can have these words.
    Words {
        /// The kind of the plan.
        kind: Kind,
        /// The reason why the words are rejected.
        reason: &'static str,
    },
    /// The plan is valid, but the memory cannot be allocated.
    Memory(OutOfMemory),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Items => f.write_str(
                "the number of items must not be negative, and must be at most 18446744073709551615",
            ),
            PlanError::Rate { rate } => {
                write!(
                    f,
                    "the rate must be between 0 and 1, for example 0.01 for one percent: {rate:?}"
                )
            }
            PlanError::RateTooLow { kind, rate, lowest } => write!(
                f,
                "no {kind} filter keeps a rate of {rate:?}: plan a rate of at least {lowest:.1e}, \
                fewer items or another kind"
            ),
            PlanError::TooLarge { kind, items, rate } => write!(
                f,
                "no {kind} filter can hold {items} items at rate {rate:?}: plan fewer items, a \
                higher rate or another kind"
            ),
            PlanError::TooSmall { kind, max_bytes } => write!(
                f,
                "{max_bytes} bytes are too few for a useful {kind} filter: allow more memory, a \
                 higher rate or fewer items"
            ),
            PlanError::Words { kind, reason } => {
                write!(f, "the words are not a valid {kind} filter: {reason}")
            }
            PlanError::Geometry { kind, bits, geometry } => {
                write!(f, "no {kind} filter has {bits} bits and {geometry}")
            }
            PlanError::OtherKind { expected, found } => {
                write!(f, "this filter is {expected}, and the plan is for {found}")
            }
            PlanError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<OutOfMemory> for PlanError {
    fn from(error: OutOfMemory) -> Self {
        PlanError::Memory(error)
    }
}
