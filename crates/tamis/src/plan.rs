//! How many bits for how many items at what rate.
//!
//! A plan is the smallest filter, with a whole number of probes, whose computed rate at capacity is at most
//! the one asked for. The formulas are in `rates`, the search is in `search`. Classic filters so small that
//! their rate is computed exactly are planned by a formula that is never below it, so they take up to two
//! bits more.

mod error;
mod rates;
mod search;
pub(crate) mod sizes;

#[cfg(test)]
mod tests;

use crate::cuckoo;
use crate::geometry::Geometry;
use crate::growing::prefixes::Growth;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::strategy::Kind;
pub use error::PlanError;
use rates::blocks_deviation;
use search::smallest;

/// A filter's size, planned from items and rate, or from any two of items, rate and memory.
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

/// How much larger than the classic filter a blocked one may be before [`Plan::new`] leaves it.
const WORTH_ONE_LINE: f64 = 1.25;

/// Up to here a block more or less is no waste.
const TINY_BITS: u64 = 4096;

/// The largest filter: bit numbers and byte counts stay far inside 64 bits.
const MAX_BITS: u64 = 1 << 56;

impl Plan {
    /// Plans a filter that keeps its rate at or below `rate` until it holds `items` distinct items.
    ///
    /// The kind is the default split-block filter, unless `rate` is so low (or high) that blocks would
    /// take over a quarter more memory: then it is the classic filter. [`why`](Self::why) gives the reason.
    /// `rate` is a probability. Zero `items` are planned as one. Cost: 0.3 to 1 µs; nothing is allocated.
    ///
    /// # Errors
    ///
    /// [`PlanError::Rate`] unless `0.0 < rate && rate < 1.0`; [`PlanError::TooLarge`] above 2⁵⁶ bits.
    pub fn new(items: u64, rate: f64) -> Result<Plan, PlanError> {
        let (kind, geometry) = (Kind::SplitBlock, Geometry::Probes(LANES));
        check_rate(kind, rate)?;
        let items = items.max(1);
        let worth_bits = worth_one_line(items, rate);
        match sizes::fewest_within(kind, geometry, items, rate, worth_bits) {
            Some(bits) => Ok(Plan { kind, items, rate, bits, geometry }),
            None => Plan::for_kind(Kind::Classic, items, rate),
        }
    }

    /// Plans a filter of this kind, as [`new`](Self::new) does for the kind it chooses. Cost: 0.1 to 1.5 µs.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new), and [`PlanError::RateTooLow`] if no growing filter keeps the rate.
    pub fn for_kind(kind: Kind, items: u64, rate: f64) -> Result<Plan, PlanError> {
        check_rate(kind, rate)?;
        let items = items.max(1);
        Plan::of_size(kind, items, rate, sizes::fewest_usual(kind, items, rate))
    }

    /// Plans a counting filter with counters of 4, 8 or 16 bits: counting ends at 15, 255 or 65 535.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new), and [`PlanError::Geometry`] for counters of other sizes.
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
    pub fn counting(items: u64, rate: f64, counter_bits: u32) -> Result<Plan, PlanError> {
        Plan::for_geometry(Kind::Counting, Geometry::Counters(counter_bits), items, rate)
    }

    /// Plans a window of `items` whose span is divided into 1 to 255 `slices`: an item is forgotten at
    /// the latest 1/`slices` of the span after it may be.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new), and [`PlanError::Geometry`] for other numbers of slices.
    pub fn window(items: u64, rate: f64, slices: u32) -> Result<Plan, PlanError> {
        Plan::for_geometry(Kind::Window, Geometry::Slices(slices), items, rate)
    }

    /// Plans a cuckoo filter with buckets of 2 to 4 slots. Buckets of two, the usual, take the fewest bits and
    /// count to 4; larger ones count to twice their slots, and fill up further.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new), and [`PlanError::Geometry`] for other buckets.
    pub fn cuckoo(items: u64, rate: f64, bucket: u32) -> Result<Plan, PlanError> {
        Plan::for_geometry(Kind::Cuckoo, Geometry::Slots { bits: 8, bucket }, items, rate)
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
        Plan::of_size(kind, items, rate, sizes::fewest(kind, geometry, items, rate))
    }

    fn of_size(
        kind: Kind,
        items: u64,
        rate: f64,
        size: Option<(u64, Geometry)>,
    ) -> Result<Plan, PlanError> {
        let (bits, geometry) = size.ok_or(PlanError::TooLarge { kind, items, rate })?;
        Ok(Plan { kind, items, rate, bits, geometry })
    }

    /// Plans the largest filter of this kind within `max_bytes`: its capacity follows from `rate`.
    ///
    /// # Errors
    ///
    /// [`PlanError::Rate`] and [`PlanError::RateTooLow`] as for [`for_kind`](Self::for_kind); [`PlanError::TooSmall`] if not
    /// even one item keeps the rate in so little memory.
    pub fn for_memory(kind: Kind, max_bytes: u64, rate: f64) -> Result<Plan, PlanError> {
        check_rate(kind, rate)?;
        let too_small = PlanError::TooSmall { kind, max_bytes };
        match kind {
            Kind::Cuckoo => {
                let (table, items) = sizes::largest_cuckoo(max_bytes, rate).ok_or(too_small)?;
                let (bits, geometry) = sizes::geometry_of(&table);
                return Ok(Plan { kind, items, rate, bits, geometry });
            }
            Kind::Growing => {
                let items = sizes::most_growing(max_bytes, rate).ok_or(too_small)?;
                return Plan::for_kind(kind, items, rate);
            }
            _ => {}
        }
        // The geometry of a window hardly depends on its size.
        let geometry = sizes::usual_geometry(kind, max_bytes.max(1), rate);
        let bits = sizes::usable_bits(kind, geometry, max_bytes).ok_or(too_small.clone())?;
        let fits = |items: u64| sizes::best(kind, geometry, items, bits).rate <= rate;
        // The smallest number of items that is too many, less one.
        let items = match smallest(1, bits.saturating_mul(2), |items| !fits(items)) {
            Some(over) => over - 1,
            None => bits,
        };
        if items == 0 {
            return Err(too_small);
        }
        let best = sizes::best(kind, geometry, items, bits);
        Ok(Plan { kind, items, rate, bits: best.bits, geometry: best.geometry })
    }

    /// Plans the best filter of this kind for `items` within `max_bytes`: its rate follows.
    ///
    /// # Errors
    ///
    /// [`PlanError::TooSmall`] if no filter fits, or none that ever answers no.
    pub fn for_items_in(kind: Kind, items: u64, max_bytes: u64) -> Result<Plan, PlanError> {
        let too_small = PlanError::TooSmall { kind, max_bytes };
        let items = items.max(1);
        // The geometry depends on the rate, and the rate hardly on the geometry.
        let (mut rate, mut geometry, mut bits) = (0.01_f64, Geometry::Probes(1), 0);
        for _ in 0..2 {
            geometry = sizes::usual_geometry(kind, items, rate.clamp(f64::MIN_POSITIVE, 0.9));
            bits = sizes::usable_bits(kind, geometry, max_bytes).ok_or(too_small.clone())?;
            sizes::Best { rate, geometry, bits } = sizes::best(kind, geometry, items, bits);
        }
        if rate >= 1.0 {
            return Err(too_small);
        }
        // A rate of zero is one below the smallest double.
        Ok(Plan { kind, items, rate: rate.max(f64::MIN_POSITIVE), bits, geometry })
    }

    /// Restores a plan whose geometry is known, such as from a file.
    ///
    /// # Errors
    ///
    /// [`PlanError::Rate`] as for [`new`](Self::new); [`PlanError::Geometry`] if `kind` has no filter
    /// of so many bits and this geometry.
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
        if !sizes::is_valid(kind, geometry, bits) {
            return Err(PlanError::Geometry { kind, bits, geometry });
        }
        Ok(Plan { kind, items: items.max(1), rate, bits, geometry })
    }

    /// Returns the family of the filter.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the capacity: how many distinct items keep the rate.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// Returns the rate asked for, a probability.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the number of bits.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the memory of the bits, in whole 64-bit words.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bits.div_ceil(64) * 8
    }

    /// Returns what the kind must know besides its bits.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the bits an item sets, or the counters it counts up.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        match self.geometry {
            Geometry::Probes(probes) => probes,
            Geometry::Counters(_) | Geometry::Slices(_) => LANES,
            Geometry::Slots { .. } => 2,
            Geometry::Prefixes { .. } => 1,
        }
    }

    /// Returns the bits for each item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.bits as f64 / self.items as f64
    }

    /// Returns how many cache lines a lookup of a member reads.
    #[must_use]
    pub const fn cache_lines(&self) -> u32 {
        match (self.kind, self.geometry) {
            (Kind::Classic, Geometry::Probes(probes)) => probes,
            (_, Geometry::Probes(_)) => 1,
            // Neighbours: where they are not whole lines, or half a line, some places reach into one more.
            (kind, Geometry::Counters(_) | Geometry::Slices(_)) => {
                sizes::place_bits(kind, self.geometry).div_ceil(LINE_BITS) as u32
            }
            // A bucket lies on one line, mostly.
            (_, Geometry::Slots { .. }) => 2,
            // The directory, the page's head, and mostly one of a block.
            (_, Geometry::Prefixes { .. }) => 3,
        }
    }

    /// Computes the rate of this filter when it holds `items` distinct items. Cost: 0.1 to 0.3 µs; up to some
    /// 20 µs for a small classic filter, whose rate is exact.
    #[must_use]
    pub fn rate_at(&self, items: u64) -> f64 {
        sizes::rate_of(self.kind, self.geometry, self.bits, items)
    }

    /// Computes how many items this filter may hold before its rate passes `rate`.
    #[must_use]
    pub fn items_at(&self, rate: f64) -> u64 {
        if let Some(table) = sizes::cuckoo_table(self.geometry, self.bits) {
            return cuckoo::plan::items_at(&table, rate).min(cuckoo::plan::room(&table));
        }
        // At 64 items a bit every kind is full.
        smallest(1, self.bits.saturating_mul(64), |items| self.rate_at(items) > rate)
            .map_or(u64::MAX, |over| over - 1)
    }

    /// Returns the highest rate that a filter at capacity shows by chance: its own bits say what its
    /// present rate is, and half of all filters with exactly `items` in them lie above the planned one.
    ///
    /// Four standard deviations of what the bits say. A filter whose
    /// [estimated rate](crate::Filter::estimate_rate) is higher holds more than it was planned for.
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
        // These know their rate exactly.
        if let Geometry::Slots { .. } | Geometry::Prefixes { .. } = self.geometry {
            return self.rate_at(self.items).max(self.rate);
        }
        // Of a window each slice is a filter of its own.
        let slices =
            if let Geometry::Slices(slices) = self.geometry { f64::from(slices) } else { 1.0 };
        let (n, k) = (self.items as f64 / slices, f64::from(self.probes()));
        // Linear counting (Whang et al. 1990, §4): m bits under load t = draws/m let n be told with
        // a deviation of √(m(eᵗ − t − 1)) draws. The lanes of blocks are each drawn from once.
        let (m, draws) = match self.kind {
            Kind::Classic => (self.bits as f64, n * k),
            _ => ((self.places() * self.lane_bits()) as f64, n),
        };
        let t = draws / m;
        let deviation = n * (m * (t.exp_m1() - t)).sqrt() / draws;
        // An item more at least: tiny filters jump.
        let items = slices * n + (4.0 * deviation * slices.sqrt()).max(slices);
        let uneven = match self.kind {
            Kind::Classic => 0.0,
            _ => {
                let deviation = blocks_deviation(n.ceil() as u64, self.places(), self.lane_bits());
                (slices + 1.0).sqrt() * deviation
            }
        };
        (self.rate_at(items.ceil() as u64) + 4.0 * uneven).max(self.rate)
    }

    /// Plans what the first `max_bytes` of this filter are as a filter of their own, which holds its share of the
    /// items, since a hash chooses its place evenly: what is told of the part is told of all. `None` if the filter is
    /// no larger, or of a kind that knows its items without counting bits.
    #[must_use]
    pub fn part(&self, max_bytes: u64) -> Option<Plan> {
        let max_bits = (max_bytes / 8).checked_mul(64)?;
        if max_bits >= self.bits {
            return None;
        }
        let bits = match self.geometry {
            Geometry::Slots { .. } | Geometry::Prefixes { .. } => return None,
            _ if self.kind == Kind::Classic => max_bits,
            _ => sizes::whole_places(self.kind, self.geometry, max_bits),
        };
        let items = (self.items as f64 * bits as f64 / self.bits as f64) as u64;
        Plan::from_parts(self.kind, items, self.rate, bits, self.geometry).ok()
    }

    /// Checks that there are as many words as this plan's bits take.
    pub(crate) fn check_len(&self, len_words: usize) -> Result<(), PlanError> {
        if len_words as u64 == self.bits.div_ceil(64) {
            return Ok(());
        }
        let (kind, bits, geometry) = (self.kind, len_words as u64 * 64, self.geometry);
        Err(PlanError::Geometry { kind, bits, geometry })
    }

    /// How many blocks there are, those of all slices or of all bits of counters taken for one.
    pub(crate) fn places(&self) -> u64 {
        sizes::places(self.kind, self.geometry, self.bits)
    }

    /// The bits of a lane of a block.
    pub(crate) fn lane_bits(&self) -> u64 {
        sizes::lane_bits(self.kind, self.geometry)
    }

    /// Says why [`new`](Self::new) takes this kind, in a line.
    #[must_use]
    pub fn why(&self) -> String {
        let classic = Plan::for_kind(Kind::Classic, self.items, self.rate);
        let blocked = Plan::for_kind(Kind::SplitBlock, self.items, self.rate);
        let (Ok(classic), Ok(blocked)) = (classic, blocked) else {
            return format!("only {} filters can be so large", self.kind);
        };
        if blocked.bits <= TINY_BITS {
            return "one cache line a lookup, and so few items need only a few of them".into();
        }
        let percent = (blocked.bits as f64 / classic.bits as f64 - 1.0) * 100.0;
        if blocked.bits <= worth_one_line(self.items, self.rate) {
            format!(
                "one cache line a lookup, for {percent:.0} % more memory than the classic filter"
            )
        } else {
            format!("at this rate one line a lookup would cost {percent:.0} % more memory")
        }
    }
}

/// Computes the most bits that [`Plan::new`] takes for a blocked filter. Tiny filters are never too large:
/// a block is the least one can have.
fn worth_one_line(items: u64, rate: f64) -> u64 {
    ((sizes::about_classic_bits(items, rate) * WORTH_ONE_LINE) as u64).max(TINY_BITS)
}

/// Refuses a rate that is no probability, or that no filter of this kind keeps.
fn check_rate(kind: Kind, rate: f64) -> Result<(), PlanError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(PlanError::Rate { rate });
    }
    if kind == Kind::Growing && Growth::for_rate(rate).is_none() {
        return Err(PlanError::RateTooLow { kind, rate, lowest: Growth::lowest_rate() });
    }
    Ok(())
}

/// Lanes in a block, and so probes of a blocked filter.
const LANES: u32 = 8;

/// Bits of a cache line.
const LINE_BITS: u64 = 512;
