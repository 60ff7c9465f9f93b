//! The result of removing an item.

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Removed {
    /// The item was present. Its count is now one lower.
    Yes,
    /// The item was absent. The filter is unchanged.
    Absent,
    /// The item was inserted more often than the filter can count. Its true count is unknown, so
    /// the item is not removed. The filter is unchanged.
    Saturated,
}
