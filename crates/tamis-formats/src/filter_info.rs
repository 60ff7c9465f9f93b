//! What is reported about a filter.

/// The report about a filter of any format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterInfo {
    /// The hash and the rule, in a few words.
    pub rule: String,
    /// The number of bits.
    pub bits: u64,
    /// The number of probes of an item. `None` if it differs between parts of the filter.
    pub probes: Option<u32>,
    /// The share of bits that are set.
    pub fill: f64,
    /// The estimated number of distinct items. Infinite if every bit is set, and NaN if the bits do
    /// not determine it.
    pub items: f64,
    /// Whether `items` is a count that is never above the number of distinct items, instead of an
    /// estimate from the bits.
    pub are_items_counted: bool,
    /// The present false positive rate. 0 for an exact set.
    pub rate: f64,
    /// The standard deviation of `rate`, as a share of it: chance decides which bits the items set.
    /// 0 if unknown.
    pub rate_std_error: f64,
    /// The planned rate in the file, of all layers together if the filter grows. `None` if the file
    /// does not store it.
    pub planned_rate: Option<f64>,
    /// Further values that the format stores, as pairs of name and value in the order of display.
    pub more: Vec<(&'static str, String)>,
    /// Warnings for the user, one per line.
    pub warnings: Vec<String>,
}

impl FilterInfo {
    /// Tests whether the rate is above a planned one by more than chance explains: by more than
    /// four standard deviations, and by more than a tenth, because plans round the number of
    /// probes.
    #[must_use]
    pub fn is_over(&self, planned: f64) -> bool {
        // The rate is a power of the fill, so chance moves its logarithm symmetrically.
        self.rate > planned * (4.0 * self.rate_std_error).exp().max(1.1)
    }

    /// Names the rule and the sizes, for messages about filters that do not merge.
    pub(crate) fn layout(&self) -> String {
        match self.probes {
            Some(probes) => format!("{}, {probes} probes of {} bits", self.rule, self.bits),
            None => format!("{}, {} bits", self.rule, self.bits),
        }
    }
}
