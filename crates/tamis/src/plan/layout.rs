//! The layout: the properties that two filters must share to be merged.

use std::fmt;

use crate::hash::Hasher;
use crate::plan::geometry::Geometry;
use crate::plan::kind::Kind;

/// The properties that determine which bits an item sets. Filters with equal layouts can be merged.
/// Filters with different layouts cannot be merged.
///
/// # Examples
///
/// ```
/// use tamis::Bloom;
///
/// let (one, other): (Bloom, Bloom) = (Bloom::for_items(10, 0.01)?, Bloom::for_items(900, 0.01)?);
/// assert_eq!(one.layout(), one.clone().layout());
/// assert_ne!(one.layout(), other.layout());
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The kind, which determines the rule from hash to bits.
    pub kind: Kind,
    /// The number of bits.
    pub bits: u64,
    /// The parameters of the kind besides the number of bits.
    pub geometry: Geometry,
    /// The hash function with its seed or key.
    pub hasher: Hasher,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { kind, bits, geometry, hasher } = self;
        // A growing filter has no fixed number of bits, and can be merged with growing filters of
        // any size.
        if !kind.grows() {
            return write!(f, "{kind}, {bits} bits, {geometry}, {hasher}");
        }
        write!(f, "{kind}, {geometry}, {hasher}")
    }
}
