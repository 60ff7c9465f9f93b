//! The reasons why a filter refuses an item or a merge.

use std::fmt;

use crate::bits::OutOfMemory;
use crate::plan::layout::Layout;

/// The error of an insert if the filter has no space for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsertError {
    /// The number of items of the batch that were inserted before the filter refused an item.
    pub inserted: usize,
    /// The reason why the filter refused the item.
    pub reason: NoRoom,
}

/// The reason why a filter has no space for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoRoom {
    /// The filter is at its maximum number of items.
    Full {
        /// The number of items in the filter.
        items: u64,
    },
    /// The filter holds fewer items than planned, but copies of repeated items fill the slots of the
    /// refused item. A plan for more items does not help. The filter estimates this reason from its
    /// first 4096 slots.
    Copies {
        /// The number of items in the filter. Each copy counts as one item.
        items: u64,
        /// The planned number of items.
        capacity: u64,
    },
    /// Too many items belong to the same part of the filter as the refused item. Random hashes do
    /// not cause `Crowded`, so an attacker must have chosen the items by their hashes. The filter
    /// still accepts items that belong to other parts of the filter.
    Crowded,
    /// The filter must grow, but the allocation of memory failed.
    Memory(OutOfMemory),
}

/// Writes the message of [`NoRoom::Copies`].
fn fmt_copies(items: u64, capacity: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "copies of repeated items fill the filter at {items} of {capacity} planned items: insert \
        each item once with try_insert, or plan buckets of four slots with \
        Plan::cuckoo(items, rate, 4); a plan for more items does not help"
    )
}

const CROWDED: &str = "too many items hash to one page of the filter, as in an attack; other items \
    can still be inserted: create a filter with a secret hash key";

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            NoRoom::Full { items } => {
                write!(f, "the filter is full at {items} items: plan a filter for more items")
            }
            NoRoom::Copies { items, capacity } => fmt_copies(items, capacity, f),
            NoRoom::Crowded => f.write_str(CROWDED),
            NoRoom::Memory(OutOfMemory { bytes }) => {
                write!(f, "the filter cannot grow: {bytes} more bytes cannot be allocated")
            }
        }
    }
}

impl std::error::Error for InsertError {}

/// The reason why two filters cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// The layouts of the two filters differ, so the filters store the same item in different bits.
    Layout {
        /// The layout of the target filter.
        expected: Layout,
        /// The layout of the source filter.
        found: Layout,
    },
    /// The windows have different spans, different units of the span, or different settings for
    /// refreshing items.
    Span,
    /// The target has no space for the items of both filters.
    NoRoom(NoRoom),
}

impl MergeError {
    /// Checks that the layouts of two filters are equal.
    pub(crate) fn check_layouts(expected: Layout, found: Layout) -> Result<(), MergeError> {
        if expected == found { Ok(()) } else { Err(MergeError::Layout { expected, found }) }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Layout { expected, found } => {
                write!(f, "filters of different layout do not merge: {expected} against {found}")
            }
            MergeError::Span => f.write_str(
                "windows that differ in span, in its unit or in refreshing cannot be merged",
            ),
            MergeError::NoRoom(NoRoom::Full { items }) => {
                write!(
                    f,
                    "the items of both filters do not fit: the target has space for about {items}"
                )
            }
            MergeError::NoRoom(NoRoom::Copies { items, capacity }) => {
                fmt_copies(*items, *capacity, f)
            }
            MergeError::NoRoom(NoRoom::Crowded) => f.write_str(CROWDED),
            MergeError::NoRoom(NoRoom::Memory(OutOfMemory { bytes })) => {
                write!(
                    f,
                    "the items of both filters do not fit in memory: {bytes} more bytes cannot be \
                    allocated"
                )
            }
        }
    }
}

impl std::error::Error for MergeError {}
