//! Plans the size of a filter: the number of bits for a number of items and a rate.
//!
//! A plan describes the smallest filter with a whole number of probes whose computed rate at
//! capacity is at most the requested rate. The formulas are in `rates`, the search is in `search`.
//!
//! The rate of a very small classic filter is computed exactly. The plan of a very small classic
//! filter uses a formula whose result is never below the exact rate. Therefore the plan takes up to
//! two bits more than the smallest filter.

pub(crate) mod blocks;
pub(crate) mod error;
pub(crate) mod geometry;
pub(crate) mod input;
pub(crate) mod kind;
pub(crate) mod kind_table;
pub(crate) mod layout;
pub(crate) mod rates;
pub(crate) mod search;
pub(crate) mod sizing;
mod table;

#[cfg(test)]
mod tests;

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::strategy::classic::sizing::estimate_bits;
use blocks::Blocks;
pub use error::PlanError;
pub use geometry::Geometry;
pub use kind::Kind;
use rates::{LANES, lowest_rate};
use sizing::{Best, MAX_BITS, Sample};

/// The size of a filter, planned from any two of: items, rate and memory.
///
/// # Examples
///
/// ```
/// use tamis::{Kind, Plan};
///
/// let plan = Plan::for_kind(Kind::Classic, 1_000_000, 0.01)?;
/// assert_eq!((plan.bits(), plan.probes()), (9_592_957, 7));
/// let plan = Plan::new(1_000_000, 0.01)?;
/// assert_eq!((plan.kind(), plan.bytes()), (Kind::SplitBlock, 1_262_464));
/// assert!(plan.rate_at(1_000_000) <= 0.01 && plan.rate_at(2_000_000) > 0.1);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    kind: Kind,
    items: u64,
    rate: f64,
    bits: u64,
    geometry: Geometry,
}

/// [`Plan::new`] chooses the classic filter if a blocked filter needs more than `WORTH_ONE_LINE`
/// times the bits of the classic filter.
const WORTH_ONE_LINE: f64 = 1.25;

/// The size up to which [`Plan::new`] always accepts a blocked filter.
const TINY_BITS: u64 = 4096;

impl Plan {
    /// Plans a filter that keeps its rate at or below `rate` until it holds `items` distinct items.
    ///
    /// The kind is usually the default split-block filter. The plan chooses a classic filter for
    /// very low or high rates at which a blocked filter would take over a quarter more memory than
    /// a classic filter. [`why`](Self::why) returns the reason for the chosen kind.
    ///
    /// `items` is any integer, for example `urls.len()`. Zero `items` are planned as one item.
    /// `rate` is a probability. The plan takes 0.3 to 1 µs and allocates nothing.
    ///
    /// # Errors
    ///
    /// [`PlanError::Items`] if `items` is negative; [`PlanError::Rate`] unless
    /// `0.0 < rate && rate < 1.0`; [`PlanError::RateTooLow`] if too many items have equal 64-bit
    /// hashes for this rate; [`PlanError::TooLarge`] above 2⁵⁶ bits.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    ///
    /// // A block distinguishes only 2³² items, so a very low rate needs the classic kind.
    /// assert_eq!(Plan::new(1, 1e-12)?.kind(), Kind::Classic);
    /// assert_eq!(
    ///     Plan::new(500_000_000, 1e-12).unwrap_err().to_string(),
    ///     "no classic filter keeps a rate of 1e-12: plan a rate of at least 1.1e-10, \
    ///     fewer items or another kind"
    /// );
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn new(items: impl TryInto<u64>, rate: f64) -> Result<Plan, PlanError> {
        Plan::for_count(count(items)?, rate)
    }

    fn for_count(items: u64, rate: f64) -> Result<Plan, PlanError> {
        let (kind, geometry) = (Kind::SplitBlock, Geometry::Probes(LANES));
        check_rate(kind, rate)?;
        let items = items.max(1);
        let worth_bits = worth_one_line(items, rate);
        match Blocks::PLAIN.fewest_within(items, rate, worth_bits) {
            Some(bits) => Ok(Plan { kind, items, rate, bits, geometry }),
            None => Plan::for_kind(Kind::Classic, items, rate),
        }
    }

    /// Plans a filter of the given kind, with the parameters of [`new`](Self::new). The plan takes
    /// 0.1 to 1.5 µs.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new), and [`PlanError::RateTooLow`] if no growing filter keeps
    /// the rate for any number of items.
    pub fn for_kind(kind: Kind, items: impl TryInto<u64>, rate: f64) -> Result<Plan, PlanError> {
        Plan::for_kind_and_count(kind, count(items)?, rate)
    }

    fn for_kind_and_count(kind: Kind, items: u64, rate: f64) -> Result<Plan, PlanError> {
        check_rate(kind, rate)?;
        let items = items.max(1);
        Plan::of_size(kind, items, rate, kind.sizing().fewest_usual(items, rate))
    }

    /// Plans a counting filter with counters of 4, 8 or 16 bits. The highest counts are 15, 255 and
    /// 65 535.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new), and [`PlanError::Geometry`] if no counting filter has
    /// counters of `counter_bits` bits.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Plan;
    ///
    /// let (four, eight) = (Plan::counting(1_000, 0.01, 4)?, Plan::counting(1_000, 0.01, 8)?);
    /// assert_eq!((four.cache_lines(), eight.cache_lines()), (1, 2));
    /// assert_eq!(eight.bits(), 2 * four.bits());
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn counting(
        items: impl TryInto<u64>,
        rate: f64,
        counter_bits: u32,
    ) -> Result<Plan, PlanError> {
        Plan::for_geometry(Kind::Counting, Geometry::Counters(counter_bits), count(items)?, rate)
    }

    /// Plans a window of `items` whose time span is divided into 1 to 255 `slices`. The filter
    /// forgets an item at the end of the span, or later by at most 1/`slices` of the span.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new), and [`PlanError::Geometry`] if no window has this number
    /// of `slices`.
    pub fn window(items: impl TryInto<u64>, rate: f64, slices: u32) -> Result<Plan, PlanError> {
        Plan::for_geometry(Kind::Window, Geometry::Slices(slices), count(items)?, rate)
    }

    /// Plans a cuckoo filter with buckets of 2 to 4 slots. Buckets of two slots are the default,
    /// because these buckets take the fewest bits and count up to 4 copies of an item. Larger
    /// buckets count up to twice their number of slots. A table with larger buckets also accepts
    /// more items than a table with buckets of two slots.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new), and [`PlanError::Geometry`] if no cuckoo filter has
    /// buckets of `bucket` slots.
    pub fn cuckoo(items: impl TryInto<u64>, rate: f64, bucket: u32) -> Result<Plan, PlanError> {
        Plan::for_geometry(Kind::Cuckoo, Geometry::Slots { bits: 8, bucket }, count(items)?, rate)
    }

    fn for_geometry(
        kind: Kind,
        geometry: Geometry,
        items: u64,
        rate: f64,
    ) -> Result<Plan, PlanError> {
        check_rate(kind, rate)?;
        if Geometry::from_number(kind, geometry.to_number()) != Some(geometry) {
            return Err(PlanError::Geometry { kind, bits: 0, geometry });
        }
        let items = items.max(1);
        Plan::of_size(kind, items, rate, kind.sizing().fewest(geometry, items, rate))
    }

    fn of_size(
        kind: Kind,
        items: u64,
        rate: f64,
        size: Option<(u64, Geometry)>,
    ) -> Result<Plan, PlanError> {
        let (bits, geometry) = size.filter(|&(bits, _)| bits <= MAX_BITS).ok_or_else(|| {
            // In a filter of any size, an absent item may have the same hash as an inserted item.
            // Therefore no size keeps a lower rate than `lowest`.
            match lowest_rate(items) {
                lowest if rate < lowest && lowest < 1.0 => {
                    PlanError::RateTooLow { kind, rate, lowest }
                }
                _ => PlanError::TooLarge { kind, items, rate },
            }
        })?;
        Ok(Plan { kind, items, rate, bits, geometry })
    }

    /// Plans the largest filter of this kind within `max_bytes`. The capacity follows from `rate`.
    ///
    /// # Errors
    ///
    /// [`PlanError::Rate`] and [`PlanError::RateTooLow`] as for [`for_kind`](Self::for_kind);
    /// [`PlanError::TooSmall`] if no filter of this size keeps the rate with one item.
    pub fn for_memory(kind: Kind, max_bytes: u64, rate: f64) -> Result<Plan, PlanError> {
        check_rate(kind, rate)?;
        let (items, size) = kind
            .sizing()
            .largest(max_bytes, rate)
            .ok_or(PlanError::TooSmall { kind, max_bytes })?;
        Plan::of_size(kind, items, rate, Some(size))
    }

    /// Plans the filter of this kind with the lowest rate for `items` within `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`PlanError::TooSmall`] if no filter fits, or if every filter that fits returns true for
    /// every item.
    pub fn for_items_in(kind: Kind, items: u64, max_bytes: u64) -> Result<Plan, PlanError> {
        let too_small = PlanError::TooSmall { kind, max_bytes };
        let (items, sizing) = (items.max(1), kind.sizing());
        // The geometry depends on the rate, but the geometry has little effect on the rate.
        let (mut rate, mut geometry, mut bits) = (0.01_f64, Geometry::Probes(1), 0);
        for _ in 0..2 {
            geometry = sizing.usual_geometry(items, rate.clamp(f64::MIN_POSITIVE, 0.9));
            bits = sizing.usable_bits(geometry, max_bytes).ok_or(too_small.clone())?;
            Best { rate, geometry, bits } = sizing.best(geometry, items, bits);
        }
        if rate >= 1.0 {
            return Err(too_small);
        }
        // A rate of zero is replaced by the smallest positive normal double.
        Ok(Plan { kind, items, rate: rate.max(f64::MIN_POSITIVE), bits, geometry })
    }

    /// Restores a plan from its stored parameters, for example from a file.
    ///
    /// # Errors
    ///
    /// [`PlanError::Rate`] as for [`new`](Self::new); [`PlanError::Geometry`] if no filter of this
    /// kind has this number of bits and this geometry.
    pub fn from_parts(
        kind: Kind,
        items: u64,
        rate: f64,
        bits: u64,
        geometry: Geometry,
    ) -> Result<Plan, PlanError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(PlanError::Rate { rate });
        }
        let is_known = (1..=MAX_BITS).contains(&bits)
            && Geometry::from_number(kind, geometry.to_number()) == Some(geometry)
            && kind.sizing().is_valid(geometry, bits);
        if !is_known {
            return Err(PlanError::Geometry { kind, bits, geometry });
        }
        Ok(Plan { kind, items: items.max(1), rate, bits, geometry })
    }

    /// Returns the kind of the filter.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the capacity: how many distinct items the filter holds at the planned rate.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// Returns the planned rate, a probability.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the number of bits.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the memory of the bits, in bytes, rounded up to whole 64-bit words.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bits.div_ceil(64) * 8
    }

    /// Returns the geometry: the parameters of the kind besides the number of bits.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns how many bits an item sets, or how many counters an item increments.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        match self.geometry {
            Geometry::Probes(probes) => probes,
            Geometry::Counters(_) | Geometry::Slices(_) => LANES,
            Geometry::Slots { .. } => 2,
            Geometry::Prefixes { .. } => 1,
        }
    }

    /// Returns the number of bits for each item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.bits as f64 / self.items as f64
    }

    /// Returns how many cache lines a lookup of an inserted item reads.
    #[must_use]
    pub fn cache_lines(&self) -> u32 {
        self.kind.sizing().cache_lines(self.geometry)
    }

    /// Computes the rate of this filter when it holds `items` distinct items. The computation takes
    /// 0.1 to 0.3 µs. The rate of a small classic filter is computed exactly in up to about 20 µs.
    #[must_use]
    pub fn rate_at(&self, items: u64) -> f64 {
        self.kind.sizing().rate_at(self.geometry, self.bits, items)
    }

    /// Computes how many items this filter may hold before its rate exceeds `rate`.
    #[must_use]
    pub fn items_at(&self, rate: f64) -> u64 {
        self.kind.sizing().items_at(self.geometry, self.bits, rate)
    }

    /// Returns the highest rate that a filter at capacity is expected to estimate. A filter
    /// estimates its current rate from its own bits. Therefore half of all filters with exactly
    /// `items` items estimate a rate above the planned rate.
    ///
    /// The limit is the planned rate plus four standard deviations of the estimate. If a filter's
    /// [estimated rate](crate::Filter::estimate_rate) is above this limit, the filter holds more
    /// items than planned.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Plan;
    ///
    /// let (small, large) = (Plan::new(100, 0.01)?, Plan::new(10_000_000, 0.01)?);
    /// assert!(small.rate_limit() > 0.015);
    /// assert!(large.rate_limit() > 0.01 && large.rate_limit() < 0.0101);
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    #[must_use]
    pub fn rate_limit(&self) -> f64 {
        let sizing = self.kind.sizing();
        let Some(sample) = sizing.sample(self.geometry, self.bits, self.items) else {
            // A filter that counts its items computes its rate exactly.
            return self.rate_at(self.items).max(self.rate);
        };
        let Sample { parts, bits: m, draws, rate_deviation } = sample;
        let n = self.items as f64 / parts;
        // Linear counting (Whang et al. 1990, §4): m bits under load t = draws/m estimate n with
        // a deviation of √(m(eᵗ − t − 1)) draws.
        let t = draws / m;
        let deviation = n * (m * (t.exp_m1() - t)).sqrt() / draws;
        // The limit allows at least one additional item, because the rate of a tiny filter changes
        // in large steps.
        let items = parts * n + (4.0 * deviation * parts.sqrt()).max(parts);
        (self.rate_at(items.ceil() as u64) + 4.0 * rate_deviation).max(self.rate)
    }

    /// Plans a filter that consists of the first `max_bytes` of this filter. Hashes distribute
    /// items evenly over the filter. Therefore estimates from the first part of a filter apply to
    /// the whole filter.
    ///
    /// Returns `None` if the filter is not larger than `max_bytes`, or if filters of this kind
    /// count their items.
    #[must_use]
    pub fn part(&self, max_bytes: u64) -> Option<Plan> {
        let max_bits = (max_bytes / 8).checked_mul(64)?;
        if max_bits >= self.bits {
            return None;
        }
        let bits = self.kind.sizing().part_bits(self.geometry, max_bits)?;
        let items = (self.items as f64 * bits as f64 / self.bits as f64) as u64;
        Plan::from_parts(self.kind, items, self.rate, bits, self.geometry).ok()
    }

    /// Checks that this plan is for filters of kind `expected`.
    pub(crate) fn check_kind(&self, expected: Kind) -> Result<(), PlanError> {
        if self.kind == expected { Ok(()) } else { Err(self.other_kind(expected)) }
    }

    /// Returns the error for a caller that expected a filter of kind `expected`.
    pub(crate) fn other_kind(&self, expected: Kind) -> PlanError {
        PlanError::OtherKind { expected, found: self.kind }
    }

    /// Checks that `len_words` words have as many bits as this plan.
    pub(crate) fn check_len(&self, len_words: usize) -> Result<(), PlanError> {
        if len_words as u64 == self.bits.div_ceil(64) {
            return Ok(());
        }
        let (kind, bits, geometry) = (self.kind, len_words as u64 * 64, self.geometry);
        Err(PlanError::Geometry { kind, bits, geometry })
    }

    /// Explains in one line why [`new`](Self::new) chooses this kind.
    #[must_use]
    pub fn why(&self) -> String {
        let classic = Plan::for_kind(Kind::Classic, self.items, self.rate);
        let blocked = Plan::for_kind(Kind::SplitBlock, self.items, self.rate);
        let (Ok(classic), Ok(blocked)) = (classic, blocked) else {
            return format!("only {} filters can be so large", self.kind);
        };
        if blocked.bits <= TINY_BITS {
            return "one cache line per lookup; a filter of few items has only a few lines".into();
        }
        let percent = (blocked.bits as f64 / classic.bits as f64 - 1.0) * 100.0;
        if percent < 0.5 {
            return "one cache line per lookup, in the memory of the classic filter".into();
        }
        if blocked.bits <= worth_one_line(self.items, self.rate) {
            format!(
                "one cache line per lookup, for {percent:.0} % more memory than the classic filter"
            )
        } else {
            format!("at this rate one line per lookup would cost {percent:.0} % more memory")
        }
    }
}

/// Computes the maximum number of bits that [`Plan::new`] accepts for a blocked filter. Tiny
/// blocked filters are always accepted, because a blocked filter has at least one block.
fn worth_one_line(items: u64, rate: f64) -> u64 {
    ((estimate_bits(items, rate) * WORTH_ONE_LINE) as u64).max(TINY_BITS)
}

/// Converts a number of items of any integer type.
fn count(items: impl TryInto<u64>) -> Result<u64, PlanError> {
    items.try_into().map_err(|_| PlanError::Items)
}

/// Checks that a rate is a probability, and that filters of this kind can keep the rate.
fn check_rate(kind: Kind, rate: f64) -> Result<(), PlanError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(PlanError::Rate { rate });
    }
    match kind.sizing().lowest_rate_above(rate) {
        Some(lowest) => Err(PlanError::RateTooLow { kind, rate, lowest }),
        None => Ok(()),
    }
}
