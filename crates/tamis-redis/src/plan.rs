//! The plan of a filter: the parameters of the caller and the computed sizes.

use std::fmt;

use tamis::Hasher;

use crate::layouts::geometry::{MAX_ALL_SHARDS, MAX_SHARDS, RedisGrowth, ShardGeometry};

/// The smallest and the largest argument of [`RedisPlan::max_shard_bytes`].
const SHARD_BYTES: std::ops::RangeInclusive<u64> = 1 << 12..=64 << 20;

/// The default for the largest size of a shard.
const MAX_SHARD_BYTES: u64 = 4 << 20;

/// The sizes and the hash function of a new filter.
///
/// # Examples
///
/// ```
/// use tamis_redis::RedisPlan;
///
/// let plan = RedisPlan::new(100_000_000, 0.01)?;
/// assert_eq!((plan.probes(), plan.shards()), (3, 59));
/// assert!(plan.bytes() < 160_000_000);
/// # Ok::<(), tamis_redis::RedisPlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RedisPlan {
    items: u64,
    rate: f64,
    growth: RedisGrowth,
    max_shard_bytes: u64,
    hasher: Hasher,
    window: Option<RedisWindow>,
    pub(crate) geometry: ShardGeometry,
}

/// The time span of a window: the present slice and the slices before the present slice.
///
/// After the insert, an item stays in the filter for at least `slices - 1` slice lengths and at
/// most `slices` slice lengths. The server that stores the metadata measures the time. The clocks
/// of the clients have no effect on a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisWindow {
    /// The number of slices that a lookup tests.
    pub slices: u32,
    /// The length of a slice in milliseconds.
    pub slice_millis: u64,
}

impl RedisWindow {
    pub(crate) fn is_valid(self) -> bool {
        (1..=1000).contains(&self.slices) && (1..=1 << 40).contains(&self.slice_millis)
    }

    /// Returns the largest number of generations of a window, which has one generation for each
    /// slice. Besides the slices that a lookup tests, a window has at most one older slice, whose
    /// keys have not expired yet, and one newer slice, which a client is adding.
    pub(crate) fn max_generations(self) -> u64 {
        2 + u64::from(self.slices)
    }
}

/// The reason why a filter cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisPlanError {
    /// The number of items is negative, or exceeds `u64::MAX`.
    Items,
    /// The rate is not between 0 and 1.
    Rate(f64),
    /// The planned rate is too low: hashes of 64 bits collide too often for this number of items.
    TooLow {
        /// The planned number of items.
        items: u64,
        /// The planned rate.
        rate: f64,
    },
    /// The filter needs more than 2²⁰ shards, or a window needs more than 2²² shards in all slices.
    TooLarge {
        /// The planned number of items.
        items: u64,
        /// The planned rate.
        rate: f64,
    },
    /// The largest size of a shard is below 4 KiB or above 64 MiB.
    ShardBytes(u64),
    /// The window does not have from 1 to 1000 slices, or a slice does not have from 1 to 2⁴⁰
    /// milliseconds.
    Window(RedisWindow),
}

impl fmt::Display for RedisPlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Items => f.write_str(
                "the number of items must not be negative, and must be at most 18446744073709551615",
            ),
            Self::Rate(rate) => write!(f, "the rate is {rate}: it must be above 0 and below 1"),
            Self::TooLow { items, rate } => write!(
                f,
                "hashes of 64 bits collide too often for {items} items at rate {rate}: plan a \
                 higher rate"
            ),
            Self::TooLarge { items, rate } => write!(
                f,
                "{items} items at rate {rate} need more than {MAX_SHARDS} shards, or a window more \
                 than {MAX_ALL_SHARDS}: allow larger shards, fewer items, fewer slices or a higher \
                 rate"
            ),
            Self::Window(RedisWindow { slices, slice_millis }) => write!(
                f,
                "the window has {slices} slices of {slice_millis} ms: it must have from 1 to 1000 \
                 slices of 1 to 2^40 ms"
            ),
            Self::ShardBytes(bytes) => write!(
                f,
                "the largest size of a shard is {bytes} bytes: it must be from {} to {}",
                SHARD_BYTES.start(),
                SHARD_BYTES.end()
            ),
        }
    }
}

impl std::error::Error for RedisPlanError {}

impl RedisPlan {
    /// Plans a filter that keeps its false positive rate at or below `rate` until the filter
    /// holds `items` distinct items. The size of the filter is fixed, and no shard takes more than
    /// 4 MiB.
    ///
    /// `items` is any integer, for example `urls.len()`. Zero `items` are planned as one item. `rate`
    /// is a probability. Planning takes some milliseconds.
    ///
    /// # Errors
    ///
    /// [`RedisPlanError::Items`] if `items` is negative; [`RedisPlanError::Rate`] unless
    /// `0.0 < rate && rate < 1.0`; [`RedisPlanError::TooLow`] if the collisions of 64-bit hashes
    /// alone exceed an eighth of the rate; [`RedisPlanError::TooLarge`] if the filter needs more
    /// than 2²⁰ shards.
    pub fn new(items: impl TryInto<u64>, rate: f64) -> Result<Self, RedisPlanError> {
        let items = items.try_into().map_err(|_| RedisPlanError::Items)?;
        Self::planned(items, rate, RedisGrowth::Fixed, MAX_SHARD_BYTES)
    }

    /// Changes the plan to a filter that grows when the filter holds more than the planned items.
    /// See [`RedisGrowth::Doubling`].
    ///
    /// # Errors
    ///
    /// [`RedisPlanError::TooLarge`] if the filter needs more than 2²⁰ shards.
    pub fn growing(self) -> Result<Self, RedisPlanError> {
        self.replanned(RedisGrowth::Doubling, self.max_shard_bytes)
    }

    /// Sets the largest size of a shard in bytes. Small shards spread more evenly over a cluster
    /// than large shards. With large shards, a batch needs fewer commands than with small shards.
    ///
    /// # Errors
    ///
    /// [`RedisPlanError::ShardBytes`] unless the size is from 4 KiB to 64 MiB; [`RedisPlanError::TooLarge`] if
    /// the filter needs more than 2²⁰ shards.
    pub fn max_shard_bytes(self, bytes: u64) -> Result<Self, RedisPlanError> {
        self.replanned(self.growth, bytes)
    }

    /// Sets the hash function. If the hash is [keyed](Hasher::keyed), an attacker cannot choose
    /// items that collide. The metadata of the filter stores the key of the hash.
    #[must_use]
    pub fn hasher(self, hasher: Hasher) -> Self {
        Self { hasher, ..self }
    }

    /// Makes the filter a window over time, whose old items expire. Each slice of time is planned
    /// for the items of the plan. The false positive rate of the window is the sum of the rates of
    /// all slices.
    ///
    /// # Errors
    ///
    /// [`RedisPlanError::Window`] unless the window has from 1 to 1000 slices of 1 to 2⁴⁰
    /// milliseconds; [`RedisPlanError::TooLarge`] if all slices together need more than 2²² shards.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_redis::{RedisPlan, RedisWindow};
    ///
    /// // A million items a day at a rate of 1 % for the whole week.
    /// let week = RedisWindow { slices: 7, slice_millis: 86_400_000 };
    /// let plan = RedisPlan::new(1_000_000, 0.01 / 7.0)?.window(week)?;
    /// assert_eq!(plan.window_span(), Some(week));
    /// # Ok::<(), tamis_redis::RedisPlanError>(())
    /// ```
    pub fn window(self, span: RedisWindow) -> Result<Self, RedisPlanError> {
        if !span.is_valid() {
            return Err(RedisPlanError::Window(span));
        }
        self.with_window(Some(span))
    }

    /// Returns the time span of a window, or `None` if the filter is no window.
    #[must_use]
    pub fn window_span(&self) -> Option<RedisWindow> {
        self.window
    }

    /// Plans the filter again with other parameters. Keeps the hash function and the window.
    fn replanned(&self, growth: RedisGrowth, max_shard_bytes: u64) -> Result<Self, RedisPlanError> {
        let plan = Self::planned(self.items, self.rate, growth, max_shard_bytes)?;
        plan.hasher(self.hasher).with_window(self.window)
    }

    fn with_window(self, window: Option<RedisWindow>) -> Result<Self, RedisPlanError> {
        let generations = window.map_or(1, RedisWindow::max_generations);
        if generations * u64::from(self.shards()) > MAX_ALL_SHARDS {
            return Err(RedisPlanError::TooLarge { items: self.items, rate: self.rate });
        }
        Ok(Self { window, ..self })
    }

    fn planned(
        items: u64,
        rate: f64,
        growth: RedisGrowth,
        max_shard_bytes: u64,
    ) -> Result<Self, RedisPlanError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(RedisPlanError::Rate(rate));
        }
        if !SHARD_BYTES.contains(&max_shard_bytes) {
            return Err(RedisPlanError::ShardBytes(max_shard_bytes));
        }
        // If the filter holds n items, the hash of a lookup collides with probability n / 2⁶⁴.
        let collisions = items.max(1) as f64 / 2_f64.powi(64);
        if collisions > rate / 8.0 {
            return Err(RedisPlanError::TooLow { items, rate });
        }
        let bits_rate = rate - collisions;
        let geometry = ShardGeometry::planned(items.max(1), bits_rate, growth, max_shard_bytes)
            .ok_or(RedisPlanError::TooLarge { items, rate })?;
        let (hasher, window) = (Hasher::default(), None);
        Ok(Self { items, rate, growth, max_shard_bytes, hasher, window, geometry })
    }

    /// Returns the plan of an existing filter.
    pub(crate) fn of_filter(
        (items, rate, growth): (u64, f64, RedisGrowth),
        geometry: ShardGeometry,
        hasher: Hasher,
        window: Option<RedisWindow>,
    ) -> Self {
        Self { items, rate, growth, max_shard_bytes: MAX_SHARD_BYTES, hasher, window, geometry }
    }

    /// Returns the planned number of items.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Returns the planned false positive rate, a probability.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns how the filter behaves when the filter is full.
    #[must_use]
    pub fn growth(&self) -> RedisGrowth {
        self.growth
    }

    /// Returns the hash function.
    #[must_use]
    pub fn hash_function(&self) -> Hasher {
        self.hasher
    }

    /// Returns the number of probes of an item in the first layer.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.geometry.probes
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.geometry.shards
    }

    /// Returns the number of bytes of all shards in the first layer, with their headers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.geometry.shards) * self.geometry.layer(0).bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_parameters_are_rejected() {
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(matches!(RedisPlan::new(1, rate), Err(RedisPlanError::Rate(_))));
        }
        assert_eq!(RedisPlan::new(-1, 0.01), Err(RedisPlanError::Items));
        assert!(matches!(RedisPlan::new(u64::MAX, 0.01), Err(RedisPlanError::TooLow { .. })));
        assert!(matches!(RedisPlan::new(1_u64 << 60, 0.6), Err(RedisPlanError::TooLarge { .. })));
        assert!(matches!(RedisPlan::new(1_u64 << 40, 1e-8), Err(RedisPlanError::TooLow { .. })));
        for items in [0, 1] {
            assert!(matches!(RedisPlan::new(items, 5e-324), Err(RedisPlanError::TooLow { .. })));
        }
        let span = RedisWindow { slices: 1000, slice_millis: 1000 };
        let large = RedisPlan::new(100_000_000, 0.01).unwrap().window(span).unwrap();
        assert!(matches!(large.max_shard_bytes(1 << 12), Err(RedisPlanError::TooLarge { .. })));
        let plan = RedisPlan::new(1, 0.01).unwrap();
        let span = RedisWindow { slice_millis: u64::MAX, ..span };
        assert_eq!(plan.clone().window(span), Err(RedisPlanError::Window(span)));
        assert_eq!(plan.max_shard_bytes(1), Err(RedisPlanError::ShardBytes(1)));
    }
}
