//! The report about a filter.

use tamis::Span;

/// The type, contents and remaining capacity of a filter.
///
/// # Examples
///
/// ```
/// use tamis_commands::{ScalableBloom, FilterStatus, Forecast, Settings, Value};
///
/// let filter = Value::Bloom(Box::new(ScalableBloom::reserve(1000, 0.01, None)?));
/// let status = FilterStatus::of(&filter, &Settings::default(), 0).expect("it is a filter");
/// assert_eq!((status.items, status.headroom_items), (0.0, Some(1000)));
/// let forecast = status.forecast(Some(0.01));
/// assert_eq!(forecast.to_string(), "full in 27.8 hours at the present rate of adds");
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FilterStatus {
    /// The kind, as [`Value::kind_name`](crate::Value::kind_name) returns it.
    pub kind: &'static str,
    /// A description of everything that must be equal for two filters to merge.
    pub layout: String,
    /// The number of items in the filter.
    pub items: f64,
    /// True if the filter counts its inserts; false if the number of items is estimated from the
    /// bits.
    pub is_counted: bool,
    /// The planned number of items; `None` if the filter accepts any number.
    pub capacity: Option<u64>,
    /// The planned rate, a probability.
    pub rate_planned: f64,
    /// The current rate, a probability.
    pub rate_now: f64,
    /// The share of bits or slots in use; for a growing filter, the share of its rate in use.
    pub fill: f64,
    /// The number of items that the filter accepts before its rate exceeds the planned one or
    /// before it is full. `None` if the filter keeps its rate at any number of items.
    pub headroom_items: Option<u64>,
    /// The memory of the filter, in bytes.
    pub bytes: u64,
    /// True if the current rate exceeds the planned one.
    pub is_over_rate: bool,
    /// True if the filter rejects items beyond its headroom.
    pub refuses: bool,
    /// The approximate memory of one more item, in bytes, if the filter is growing.
    pub bytes_per_new_item: Option<f64>,
    /// The parts of the filter, if it has or may get several.
    pub layers: Vec<Layer>,
    /// For a window: its span, its number of slices, and whether inserting an item again refreshes
    /// it.
    pub window: Option<(Span, u32, bool)>,
}

/// One of several parts of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Layer {
    /// The number of items in the part.
    pub items: u64,
    /// The planned number of items; `None` if the part accepts any number.
    pub capacity: Option<u64>,
    /// The same measure as [`FilterStatus::fill`].
    pub fill: f64,
}

impl FilterStatus {
    /// Returns the number of items at which the filter is as full as planned; `None` if it accepts
    /// any number.
    ///
    /// For most filters this is the capacity. The capacity of a window counts the items of one
    /// span, but a window holds up to one more slice, which it forgets next.
    #[must_use]
    pub fn held_capacity(&self) -> Option<u64> {
        let slice = match self.window {
            Some((_, slices, _)) => self.capacity? / u64::from(slices.max(1)),
            None => 0,
        };
        Some(self.capacity?.saturating_add(slice))
    }

    /// Tests whether the filter rejects inserts.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refuses && self.headroom_items == Some(0)
    }
}
