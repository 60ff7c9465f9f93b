//! What is reported about a filter.

/// All there is to tell of what a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterInfo {
    /// What it is, in a few words: the hash and the rule.
    pub rule: String,
    /// How many bits it has.
    pub bits: u64,
    /// How many probes an item has, if that is one number.
    pub probes: Option<u32>,
    /// The share of bits that are set.
    pub fill: f64,
    /// About how many distinct items are in; infinite if every bit is set, NaN if the bits do not tell.
    pub items: f64,
    /// Whether `items` is a count that is never above the number of distinct items, and not an estimate from the bits.
    pub are_items_counted: bool,
    /// The rate at which it takes absent items for present ones now; 0 for an exact set.
    pub rate: f64,
    /// How far chance moves `rate`, since other items set other bits: its standard deviation, as a share of it. 0 if not known.
    pub rate_std_error: f64,
    /// The rate that its bytes say it was planned for, of all its layers if it grows; `None` if they say none.
    pub planned_rate: Option<f64>,
    /// What else the format says, as names and values in the order in which they are shown.
    pub more: Vec<(&'static str, String)>,
    /// What a user should be warned of, each a line.
    pub warnings: Vec<String>,
}

impl FilterInfo {
    /// Tells whether the rate is above a planned one by more than chance explains: four standard deviations, and a tenth at least,
    /// as plans round the number of probes.
    #[must_use]
    pub fn is_over(&self, planned: f64) -> bool {
        // The rate is a power of the fill, so that its logarithm is what chance moves evenly.
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
