//! What is reported about a filter.

use tamis::Span;

/// The report about a filter: its kind, size, contents, present rate and free capacity.
///
/// A filter of another system fills only the fields that its format knows. The other fields keep
/// their default values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterInfo {
    /// The kind, as replies show it. Empty for a filter of another system.
    pub kind: &'static str,
    /// A description of everything that must be equal for two filters to merge, except the size.
    pub layout: String,
    /// The number of bits.
    pub bits: u64,
    /// The memory of the filter, in bytes. 0 if unknown.
    pub bytes: u64,
    /// The number of probes of an item. `None` if it differs between parts of the filter.
    pub probes: Option<u32>,
    /// The number of items. Infinite if every bit is set, and NaN if the bits do not determine it.
    pub items: f64,
    /// How `items` was determined.
    pub items_are: ItemCount,
    /// The planned number of items. `None` if the filter accepts any number, or if it is unknown.
    pub capacity: Option<u64>,
    /// The share of bits or slots in use. For a growing filter, the share of its rate in use.
    pub fill: f64,
    /// The present false positive rate, a probability. 0 for an exact set.
    pub rate_now: f64,
    /// The standard deviation of `rate_now`, divided by `rate_now`. The rate deviates because
    /// chance decides which bits the items set. 0 if unknown.
    pub rate_std_error: f64,
    /// The planned rate. For a growing filter, the planned rate of all layers together. `None` if
    /// the file does not store it.
    pub rate_planned: Option<f64>,
    /// True if the present rate is above the planned one.
    pub is_over_rate: bool,
    /// The number of further items that the filter accepts before its rate exceeds the planned one
    /// or before it is full. `None` if the filter keeps its rate at any number of items, or if the
    /// number is unknown.
    pub headroom_items: Option<u64>,
    /// True if the filter rejects items beyond its headroom.
    pub refuses: bool,
    /// The approximate memory of one more item, in bytes, if the filter is growing.
    pub bytes_per_new_item: Option<f64>,
    /// The parts of the filter, if it has or may get several.
    pub layers: Vec<LayerInfo>,
    /// The parameters of the window, if the filter is a window.
    pub window: Option<WindowInfo>,
    /// Further values that the format stores, as pairs of name and value in the order of display.
    pub details: Vec<(&'static str, String)>,
    /// Warnings for the user, one per line.
    pub warnings: Vec<String>,
    /// What the readers of the file must know since it was changed, one per line.
    pub changes: Vec<String>,
}

/// How the number of items of a filter was determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemCount {
    /// Estimated from the bits.
    #[default]
    Estimated,
    /// Counted. Repeats of an item may be included.
    Inserted,
    /// Counted. Never above the number of distinct items.
    Distinct,
    /// Counted. The filter is an exact set.
    Exact,
}

/// One of several parts of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerInfo {
    /// The number of items in the part.
    pub items: u64,
    /// The planned number of items; `None` if the part accepts any number.
    pub capacity: Option<u64>,
    /// The same measure as [`FilterInfo::fill`].
    pub fill: f64,
}

/// The parameters of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowInfo {
    /// How long, or for how many later items, an item is remembered.
    pub span: Span,
    /// The number of slices of the span.
    pub slices: u32,
    /// True if inserting an item again refreshes it.
    pub refreshes: bool,
}

/// A rate is kept up to this factor, because plans round the number of probes.
const SLACK: f64 = 1.1;

/// Returns the highest rate that counts as the planned one with this slack. The share of absent items that are
/// not found may also be lower by the slack: at 0.9, a tenth more would be nearly all items.
fn at_most(planned: f64, slack: f64) -> f64 {
    (planned * slack).min(1.0 - (1.0 - planned) / slack)
}

impl FilterInfo {
    /// Tests whether the rate exceeds a planned one by more than chance explains. The excess must
    /// be more than four standard deviations. It must also be more than a tenth, because plans
    /// round the number of probes.
    #[must_use]
    pub fn is_over(&self, planned: f64) -> bool {
        // The rate is a power of the fill, so chance changes the logarithm of the rate
        // symmetrically.
        let by_chance = planned * (4.0 * self.rate_std_error).exp();
        // However small the filter is, it does not find nearly all absent items by chance.
        let by_chance = by_chance.min(1.0 - (1.0 - planned) / 10.0);
        self.rate_now > at_most(planned, SLACK).max(by_chance)
    }

    /// Tests whether the rate is at most the planned one, but for the rounding of a plan. Unlike
    /// [`is_over`](Self::is_over), this makes no allowance for chance.
    #[must_use]
    pub fn keeps(&self, planned: f64) -> bool {
        self.rate_now <= at_most(planned, SLACK)
    }

    /// Tests whether the filter rejects inserts.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refuses && self.headroom_items == Some(0)
    }

    /// Returns the present rate as a multiple of the planned one; 0 without a planned rate.
    #[must_use]
    pub fn relative_rate(&self) -> f64 {
        self.rate_planned.filter(|&planned| planned > 0.0).map_or(0.0, |it| self.rate_now / it)
    }

    /// Returns the number of items at which the filter is as full as planned; `None` if it accepts
    /// any number.
    ///
    /// For most filters this is the capacity. The capacity of a window counts the items of one
    /// span. A window holds the items of up to one more slice, which it forgets next.
    #[must_use]
    pub fn held_capacity(&self) -> Option<u64> {
        let capacity = self.capacity?;
        let slice = self.window.map_or(0, |window| capacity / u64::from(window.slices.max(1)));
        Some(capacity.saturating_add(slice))
    }

    /// Describes the layout and the size, for messages about filters that do not merge.
    pub(crate) fn layout_and_size(&self) -> String {
        match self.probes {
            Some(probes) => format!("{}, {probes} probes of {} bits", self.layout, self.bits),
            None => format!("{}, {} bits", self.layout, self.bits),
        }
    }
}
