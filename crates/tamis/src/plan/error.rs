//! Why a plan cannot be made or kept.

use std::fmt;

use crate::bits::OutOfMemory;
use crate::geometry::Geometry;
use crate::kind::Kind;

/// Why there is no such plan, or no memory for it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// The rate is no probability between 0 and 1.
    Rate {
        /// The rate asked for.
        rate: f64,
    },
    /// No filter of this kind keeps so low a rate.
    RateTooLow {
        /// The kind asked for.
        kind: Kind,
        /// The rate asked for.
        rate: f64,
        /// The lowest rate of the kind, rounded up to two digits.
        lowest: f64,
    },
    /// No filter of this kind can be so large.
    TooLarge {
        /// The kind asked for.
        kind: Kind,
        /// The items asked for.
        items: u64,
        /// The rate asked for.
        rate: f64,
    },
    /// So little memory holds no useful filter of this kind.
    TooSmall {
        /// The kind asked for.
        kind: Kind,
        /// The most memory allowed.
        max_bytes: u64,
    },
    /// A filter of this kind has no such geometry.
    Geometry {
        /// The kind asked for.
        kind: Kind,
        /// The bits asked for.
        bits: u64,
        /// The geometry asked for.
        geometry: Geometry,
    },
    /// The plan is for another kind than the filter's type.
    OtherKind {
        /// The kind of the type.
        expected: Kind,
        /// The kind of the plan.
        found: Kind,
    },
    /// The plan is sound, but the words are not those of a filter of this kind.
    Words {
        /// The kind of the plan.
        kind: Kind,
        /// What is wrong with them.
        reason: &'static str,
    },
    /// The plan is sound, but the memory is not there.
    Memory(OutOfMemory),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Rate { rate } => {
                write!(
                    f,
                    "the rate must lie between 0 and 1, such as 0.01 for one percent: {rate:?}"
                )
            }
            PlanError::RateTooLow { kind, rate, lowest } => write!(
                f,
                "no {kind} filter keeps a rate of {rate:?}: plan a rate of at least {lowest:.1e} or another kind"
            ),
            PlanError::TooLarge { kind, items, rate } => write!(
                f,
                "no {kind} filter can hold {items} items at rate {rate:?}: plan fewer items, a higher \
                 rate or another kind"
            ),
            PlanError::TooSmall { kind, max_bytes } => write!(
                f,
                "{max_bytes} bytes are too few for a useful {kind} filter: allow more memory, a \
                 higher rate or fewer items"
            ),
            PlanError::Words { kind, reason } => {
                write!(f, "these words are no {kind} filter: {reason}")
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
