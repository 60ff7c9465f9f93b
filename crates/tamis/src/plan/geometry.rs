//! The parameters of a filter kind besides its number of bits.

use std::fmt;

/// The parameters that determine the place of an item, together with the kind and the number of
/// bits.
///
/// Files store a geometry as one number, [`to_number`](Self::to_number).
///
/// # Examples
///
/// ```
/// use tamis::{Kind, Plan, Geometry};
///
/// let plan = Plan::for_kind(Kind::Classic, 1_000, 0.01)?;
/// assert_eq!(plan.geometry(), Geometry::Probes(7));
/// assert_eq!(Geometry::from_number(Kind::Classic, 7), Some(Geometry::Probes(7)));
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Geometry {
    /// Bloom filters: how many bits an item sets.
    Probes(u32),
    /// Counting filters: the bits of a counter, 4, 8 or 16. An item increments eight counters.
    Counters(u32),
    /// Cuckoo filters: the bits of a slot, 4 to 32, and the slots of a bucket, 2 to 4.
    Slots {
        /// The number of bits of a slot. A slot stores a fingerprint and the offset of the slot in
        /// its bucket.
        bits: u32,
        /// The number of slots of a bucket.
        bucket: u32,
    },
    /// Growing filters: the rule of growth, which follows from the rate.
    Prefixes {
        /// The number of remainder bits of a new entry, at most sizes of a filter. A remainder is
        /// the part of a hash that an entry stores.
        bits: u32,
        /// The average number of entries of a page at which pages begin to split into two pages.
        split_at: u32,
    },
    /// Window filters: the number of slices of a window's span. The memory of a window filter
    /// contains one slice in addition to the slices of the span.
    Slices(u32),
}

impl Geometry {
    /// Returns the number that files store for this geometry.
    #[must_use]
    pub const fn to_number(self) -> u32 {
        match self {
            Geometry::Probes(number) | Geometry::Counters(number) | Geometry::Slices(number) => {
                number
            }
            Geometry::Slots { bits, bucket } => bits | bucket << 8,
            Geometry::Prefixes { bits, split_at } => bits | split_at << 8,
        }
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Geometry::Probes(1) => f.write_str("1 probe"),
            Geometry::Probes(probes) => write!(f, "{probes} probes"),
            Geometry::Counters(bits) => write!(f, "counters of {bits} bits"),
            Geometry::Slots { bits, bucket } => {
                write!(f, "slots of {bits} bits, {bucket} a bucket")
            }
            Geometry::Prefixes { bits, .. } => write!(f, "remainders of {bits} bits"),
            Geometry::Slices(1) => f.write_str("1 slice and one"),
            Geometry::Slices(slices) => write!(f, "{slices} slices and one"),
        }
    }
}
