//! The formulas that each kind of filter provides for plans. The formulas compute the number of
//! bits for a number of items and a rate.

use crate::plan::geometry::Geometry;
use crate::plan::search::smallest;

/// The size of the largest filter, in bits. With a limit of `MAX_BITS`, bit numbers and byte counts
/// stay far below 2⁶⁴.
pub(crate) const MAX_BITS: u64 = 1 << 56;

/// The formulas of a kind. Each row of the table `kinds!` contains one value that implements this
/// trait.
///
/// The caller passes only geometries that [`geometry`](Self::geometry) returns.
pub(crate) trait Sizing: Sync {
    /// Returns the geometry that files store as `number`. Returns `None` if the kind has no
    /// geometry with the given number.
    fn geometry(&self, number: u32) -> Option<Geometry>;

    /// Returns the default geometry of a plan.
    fn usual_geometry(&self, items: u64, rate: f64) -> Geometry;

    /// Returns the fewest bits that keep `rate` at `items`, and the geometry with this number of
    /// bits. The search starts from `geometry`.
    fn fewest(&self, geometry: Geometry, items: u64, rate: f64) -> Option<(u64, Geometry)>;

    /// Returns the fewest bits that keep `rate` at `items` in the default geometry, and the default
    /// geometry.
    fn fewest_usual(&self, items: u64, rate: f64) -> Option<(u64, Geometry)> {
        self.fewest(self.usual_geometry(items, rate), items, rate)
    }

    /// Returns the number of bits of the largest filter of this geometry within `max_bytes`.
    fn usable_bits(&self, _geometry: Geometry, max_bytes: u64) -> Option<u64> {
        Some((max_bytes / 8).saturating_mul(64).min(MAX_BITS)).filter(|&bits| bits > 0)
    }

    /// Returns the filter with the lowest rate for `items` among the filters of at most `bits`
    /// bits.
    fn best(&self, geometry: Geometry, items: u64, bits: u64) -> Best;

    /// Returns the maximum number of items that keep `rate` within `max_bytes`. Also returns the
    /// bits and the geometry of the filter for these items.
    fn largest(&self, max_bytes: u64, rate: f64) -> Option<(u64, (u64, Geometry))> {
        // The size has little effect on the geometry.
        let geometry = self.usual_geometry(max_bytes.max(1), rate);
        let bits = self.usable_bits(geometry, max_bytes)?;
        let fits = |items: u64| self.best(geometry, items, bits).rate <= rate;
        // The result is the smallest number of items that does not fit, minus one.
        let items = match smallest(1, bits.saturating_mul(2), |items| !fits(items)) {
            Some(over) => over - 1,
            None => bits,
        };
        let best = (items > 0).then(|| self.best(geometry, items, bits))?;
        Some((items, (best.bits, best.geometry)))
    }

    /// Computes the rate of a filter that holds `items` distinct items. In a window, the items are
    /// distributed evenly over the slices.
    fn rate_at(&self, geometry: Geometry, bits: u64, items: u64) -> f64;

    /// Computes how many items a filter may hold before its rate exceeds `rate`.
    fn items_at(&self, geometry: Geometry, bits: u64, rate: f64) -> u64 {
        // With 64 items for each bit, a filter of any kind is full.
        let is_above = |items| self.rate_at(geometry, bits, items) > rate;
        smallest(1, bits.saturating_mul(64), is_above).map_or(u64::MAX, |over| over - 1)
    }

    /// Returns the lowest rate of the kind if `rate` is below the lowest rate.
    fn lowest_rate_above(&self, _rate: f64) -> Option<f64> {
        None
    }

    /// Returns true if a filter of this geometry can have `bits` bits. The caller checks that
    /// `bits` is 1 to [`MAX_BITS`].
    fn is_valid(&self, geometry: Geometry, bits: u64) -> bool;

    /// Returns the parameters of the estimate of `items` from the set bits. Returns `None` if the
    /// filter counts its items.
    fn sample(&self, _geometry: Geometry, _bits: u64, _items: u64) -> Option<Sample> {
        None
    }

    /// Returns the size of the largest part of a larger filter, at most `max_bits`. The part must
    /// be a valid filter and start at the beginning of the larger filter. Returns `None` if no part
    /// of this kind is a valid filter.
    fn part_bits(&self, _geometry: Geometry, _max_bits: u64) -> Option<u64> {
        None
    }

    /// Returns how many cache lines a lookup of an inserted item reads.
    fn cache_lines(&self, geometry: Geometry) -> u32;
}

/// The filter with the lowest rate within a number of bits.
pub(crate) struct Best {
    pub rate: f64,
    pub geometry: Geometry,
    /// The number of bits, at most the requested number. The number of bits is lower than requested
    /// if the kind has no filter of exactly the requested size.
    pub bits: u64,
}

/// The parameters of the estimate of a filter's number of items from its set bits.
/// [`Plan::rate_limit`](super::Plan::rate_limit) derives the deviation of the estimate from the
/// parameters.
pub(crate) struct Sample {
    /// The number of parts among which the items are divided: the slices of a window, or 1.
    pub parts: f64,
    /// The number of bits of one slice of a window, or of the whole filter.
    pub bits: f64,
    /// The number of bits that the items of one slice, or of the whole filter, set. A bit is
    /// counted once for each item that sets the bit.
    pub draws: f64,
    /// The standard deviation of the rate for a fixed number of items.
    pub rate_deviation: f64,
}
