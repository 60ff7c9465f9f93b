//! The result of removing an item.

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Removed {
    /// The item was present, and its count is now one lower than before.
    Yes,
    /// The item was absent, so the filter is unchanged.
    Absent,
    /// The item was inserted more often than the filter can count. The true count of the item is
    /// unknown, so the item is not removed and the filter is unchanged.
    Saturated,
}
