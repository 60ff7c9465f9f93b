//! The report about a filter.

use tamis::Span;

/// The report about a filter: its kind, size, contents, present rate and free capacity.
///
/// For a filter of another system, only the fields that the format determines are set. The unset fields have their
/// default values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterInfo {
    /// The name of the kind in replies. The name is empty for a filter of another system.
    pub kind: &'static str,
    /// A description of all properties that two filters must share to merge, except the size.
    pub layout: String,
    /// The number of bits.
    pub bits: u64,
    /// The memory of the filter, in bytes. The value is 0 if the memory is unknown.
    pub bytes: u64,
    /// The number of probes of an item. `None` if parts of the filter have different numbers of probes.
    pub probes: Option<u32>,
    /// The number of items. The number of items is infinite if every bit is set, and NaN if the bits do not determine
    /// the number.
    pub items: f64,
    /// How `items` was determined.
    pub items_are: ItemCount,
    /// The planned number of items. `None` if the filter accepts any number of items, or if the capacity is unknown.
    pub capacity: Option<u64>,
    /// The share of bits or slots in use. For a growing filter, the fill is the used share of the planned rate.
    pub fill: f64,
    /// The present false positive rate, a probability. The rate of an exact set is 0.
    pub rate_now: f64,
    /// The standard deviation of `rate_now`, divided by `rate_now`. The value is 0 if the standard deviation is
    /// unknown. The rate varies because chance decides which bits the items set.
    pub rate_std_error: f64,
    /// The planned rate. For a growing filter, the value is the planned rate of all layers together. `None` if the file
    /// does not store the planned rate.
    pub rate_planned: Option<f64>,
    /// True if the present rate exceeds the planned rate.
    pub is_over_rate: bool,
    /// The number of further items that the filter accepts before the filter is full or exceeds its planned rate.
    /// `None` if the headroom is unknown, or if the filter keeps its rate at any number of items.
    pub headroom_items: Option<u64>,
    /// True if the filter rejects items beyond its headroom.
    pub refuses: bool,
    /// The approximate memory of one more item, in bytes, if the filter is growing.
    pub bytes_per_new_item: Option<f64>,
    /// The parts of the filter, if the filter can have several parts.
    pub layers: Vec<LayerInfo>,
    /// The parameters of the window, if the filter is a window.
    pub window: Option<WindowInfo>,
    /// Values that are specific to the format, as pairs of name and value in the order of display.
    pub details: Vec<(&'static str, String)>,
    /// Warnings for the user, one per line.
    pub warnings: Vec<String>,
    /// Notes about changes that affect the readers of the file, one note per line.
    pub changes: Vec<String>,
}

/// How the number of items of a filter was determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemCount {
    /// The number was estimated from the bits.
    #[default]
    Estimated,
    /// The number counts inserts, which may include repeated inserts of an item.
    Inserted,
    /// The number counts new items. The count of new items is at most the number of distinct items.
    Distinct,
    /// The number counts the items of an exact set.
    Exact,
}

/// One of several parts of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerInfo {
    /// The number of items in the part.
    pub items: u64,
    /// The planned number of items. `None` if the part accepts any number of items.
    pub capacity: Option<u64>,
    /// The fill of the part, in the same measure as [`FilterInfo::fill`].
    pub fill: f64,
}

/// The parameters of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowInfo {
    /// The time for which the window keeps an item: a duration, or a number of later items.
    pub span: Span,
    /// The number of slices of the span.
    pub slices: u32,
    /// True if a repeated insert of an item restarts the span of the item.
    pub refreshes: bool,
}

/// The highest accepted ratio of the present rate to the planned rate. Plans round the number of probes, so a small
/// excess is normal.
const SLACK: f64 = 1.1;

/// Returns the highest rate that is accepted for the rate `planned`. The rate may exceed `planned` by the factor
/// `slack`. The share of absent items that the filter rejects may be lower than planned by the factor `slack`. The
/// limit on rejected items matters for high rates. For `planned` = 0.9 and `slack` = 1.1, the limit on the rate alone
/// would be 0.99.
fn at_most(planned: f64, slack: f64) -> f64 {
    (planned * slack).min(1.0 - (1.0 - planned) / slack)
}

impl FilterInfo {
    /// Tests whether the rate exceeds a planned rate by more than chance explains. The excess over the planned rate
    /// must be more than four standard deviations and more than a tenth. The limit of a tenth is necessary because
    /// plans round the number of probes.
    #[must_use]
    pub fn is_over(&self, planned: f64) -> bool {
        // The rate is a power of the fill, so chance changes the logarithm of the rate symmetrically.
        let by_chance = planned * (4.0 * self.rate_std_error).exp();
        // Even in a small filter, chance alone does not make the filter accept nearly all absent items.
        let by_chance = by_chance.min(1.0 - (1.0 - planned) / 10.0);
        self.rate_now > at_most(planned, SLACK).max(by_chance)
    }

    /// Tests whether the rate is at most the planned rate, with a tolerance for the rounding of a plan. Unlike
    /// [`is_over`](Self::is_over), `keeps` has no tolerance for chance.
    #[must_use]
    pub fn keeps(&self, planned: f64) -> bool {
        self.rate_now <= at_most(planned, SLACK)
    }

    /// Tests whether the filter rejects inserts.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refuses && self.headroom_items == Some(0)
    }

    /// Returns the present rate as a multiple of the planned rate. Returns 0 if there is no planned rate.
    #[must_use]
    pub fn relative_rate(&self) -> f64 {
        self.rate_planned.filter(|&planned| planned > 0.0).map_or(0.0, |it| self.rate_now / it)
    }

    /// Returns the number of items at which the filter is as full as planned. Returns `None` if the filter accepts any
    /// number of items.
    ///
    /// For most filters, the returned number is the capacity. The capacity of a window counts the items of one span. In
    /// addition to the items of one span, a window contains the items of up to one slice that the window removes next.
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
