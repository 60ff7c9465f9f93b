//! Measures how close a filter is to its limit.

use tamis::{AnyFilter, BitView, Plan};
use tamis_formats::TamisFile;
use tamis_redisbloom::RedisCuckoo;

use crate::value::Value;

/// The number of bytes that a fast estimate reads from a large filter. The error of the estimate is
/// usually below one percent.
pub(crate) const SAMPLE_BYTES: u64 = 64 << 10;

/// The utilization of a filter: how close the filter is to its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Utilization {
    /// The number of items in the filter.
    pub items: f64,
    /// The used share of the filter. The value is 1 at the limit, above 1 if the filter exceeds the
    /// planned rate, and 0 if the filter has no limit.
    pub used: f64,
}

impl Value {
    /// Returns the number of items; `None` if the filter does not count items. Constant time.
    #[must_use]
    pub fn counted_items(&self) -> Option<u64> {
        match self {
            Value::Bloom(filter) => Some(filter.items()),
            Value::RedisBloom(filter) => Some(filter.len()),
            Value::RedisCuckoo(filter) => Some(filter.len()),
            Value::Filter(file) => file.counted_items(),
            Value::Bytes(_) | Value::PartialLoad(_) => None,
            Value::Empty(empty) => empty.build().counted_items(),
        }
    }

    /// Returns the utilization of a filter at `now_millis`, in milliseconds since 1970; `None` if
    /// the value is not a filter. Takes a few microseconds, or tens of microseconds if the number
    /// of items must be estimated.
    #[must_use]
    pub fn utilization(&self, now_millis: u64) -> Option<Utilization> {
        let (items, room) = match self {
            Value::Bytes(_) | Value::PartialLoad(_) => return None,
            Value::Empty(empty) => return empty.build().utilization(now_millis),
            Value::Bloom(filter) => {
                let items = filter.items() as f64;
                if filter.is_over_rate() {
                    return Some(Utilization {
                        items,
                        used: filter.expected_rate() / filter.rate(),
                    });
                }
                let room = filter.expansion().is_none().then(|| filter.capacity() as f64);
                (items, room)
            }
            Value::RedisBloom(filter) => {
                let room = (!filter.is_scaling()).then(|| filter.capacity() as f64);
                (filter.len() as f64, room)
            }
            Value::RedisCuckoo(filter) => {
                (filter.len() as f64, Some(accepted_by_redis_cuckoo(filter) as f64))
            }
            Value::Filter(file) => match &file.filter {
                AnyFilter::Growing(filter) => {
                    let items = filter.len() as f64;
                    (items, filter.is_full().then_some(items))
                }
                AnyFilter::Cuckoo(filter) => {
                    (filter.len() as f64, Some(filter.plan().items() as f64))
                }
                filter => {
                    let sample = filter.sample(SAMPLE_BYTES);
                    // Every filter of fixed size has a view.
                    let mut part = sample.as_ref().unwrap_or(filter).as_view()?;
                    part.advance(now_millis);
                    let utilization = utilization_of(&part, filter.plan());
                    let most = if file.is_counted_within() { 1.0 } else { f64::INFINITY };
                    return Some(Utilization { used: utilization.used.min(most), ..utilization });
                }
            },
        };
        Some(Utilization { items, used: room.map_or(0.0, |room| items / room.max(1.0)) })
    }
}

/// Estimates the utilization of a filter without an item count from a part of the filter.
fn utilization_of(part: &AnyFilter<BitView<'_>>, whole: &Plan) -> Utilization {
    let items = part.estimate_items() * (whole.bits() as f64 / part.plan().bits() as f64);
    let used = if whole.kind().forgets() {
        // A window always accepts new items. The window exceeds the planned rate only if too many
        // items arrive within one span.
        let rate = part.estimate_rate();
        if rate > part.plan().rate_limit() { rate / whole.rate() } else { 0.0 }
    } else {
        items / whole.items() as f64
    };
    Utilization { items, used }
}

/// Returns the number of items that fit in one sub-filter. In a sub-filter with more items than this number, a lookup
/// compares more fingerprints than two full buckets contain.
pub(crate) fn accepted_by_redis_cuckoo(filter: &RedisCuckoo) -> u64 {
    filter.slots() / filter.sub_filters() as u64
}

/// The number of bytes that `BF.CARD` reads from a large filter. Reading `ITEMS_BYTES` bytes takes a few milliseconds.
const ITEMS_BYTES: u64 = 8 << 20;

/// Returns the number of items in a filter. If the filter has no item count, the number is
/// estimated from the bits. For a large filter, the estimate reads only a part of the bits.
pub(crate) fn items_of(file: &TamisFile, now_millis: u64) -> u64 {
    match &file.filter {
        AnyFilter::Window(window) => {
            let mut window = window.as_view();
            window.advance(now_millis);
            rounded(window.estimate_items())
        }
        filter => file.counted_items().unwrap_or_else(|| {
            let sample = filter.sample(ITEMS_BYTES);
            let part = sample.as_ref().unwrap_or(filter);
            let share = filter.plan().bits() as f64 / part.plan().bits().max(1) as f64;
            rounded(part.estimate_items() * share)
        }),
    }
}

/// Rounds an estimate to an integer that fits a reply. The estimate is infinite if every bit is
/// set.
pub(crate) fn rounded(items: f64) -> u64 {
    (items.round() as u64).min(i64::MAX as u64)
}
