//! Reports the filters closest to their limits, for `/metrics` and the console.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tamis_commands::{Forecast, Settings, Value};
use tamis_formats::FilterInfo;

use crate::keyspace::Keyspace;

/// The report of a filter.
#[derive(Clone, Debug)]
pub(crate) struct FilterReport {
    pub key: Box<[u8]>,
    /// The time of the measurement, in milliseconds since 1970.
    pub measured_millis: u64,
    pub info: FilterInfo,
    /// The recent growth in items per second. The value is `None` if the growth is unknown.
    pub items_per_second: Option<f64>,
    pub forecast: Forecast,
}

impl FilterReport {
    /// Creates the report of a value that recently got `items_per_second` new items per second.
    /// Returns `None` if the value is not a filter. For a large filter, reads only a part of the
    /// bits.
    pub fn of(
        key: &[u8],
        value: &Value,
        settings: &Settings,
        items_per_second: Option<f64>,
        now_millis: u64,
    ) -> Option<Self> {
        let info = value.sampled_info(settings, now_millis)?;
        let forecast = Forecast::of(&info, items_per_second);
        Some(Self {
            key: key.into(),
            measured_millis: now_millis,
            info,
            items_per_second,
            forecast,
        })
    }

    /// Creates the report of the filter under a key. Returns `None` if the key has no filter.
    pub fn of_key(
        keyspace: &Keyspace,
        key: &[u8],
        settings: &Settings,
        now_millis: u64,
    ) -> Option<Self> {
        keyspace.shared().read_measured(key, now_millis, |value, items_per_second| {
            Self::of(key, value?, settings, items_per_second, now_millis)
        })
    }

    /// Uses `items_per_second` as the insertion rate if the keyspace has not measured a rate.
    pub fn or_at(&mut self, items_per_second: Option<f64>) {
        if self.items_per_second.is_none() {
            self.items_per_second = items_per_second;
            self.forecast = Forecast::of(&self.info, items_per_second);
        }
    }

    /// Compares two filters; the worse filter comes first. The order is:
    ///
    /// * filters that are full or exceed their planned rate
    /// * filters that reach their limit soonest
    /// * filters whose rate is closest to the planned rate
    pub fn cmp_worst(&self, other: &Self) -> Ordering {
        let days = |it: &Self| it.forecast.days().unwrap_or(f64::INFINITY);
        let is_bad = |it: &Self| it.info.is_over_rate || it.info.is_full();
        is_bad(other)
            .cmp(&is_bad(self))
            .then_with(|| days(self).total_cmp(&days(other)))
            .then_with(|| other.info.relative_rate().total_cmp(&self.info.relative_rate()))
            .then_with(|| self.key.cmp(&other.key))
    }
}

/// Searches for the filters that are closest to their limits, one part of the keyspace at a time.
/// The search reads only the last measurement of each key. The search holds a lock only while the
/// search reads one part of the keyspace. The whole search takes about one second for millions of
/// keys.
pub(crate) struct Worst {
    limit: usize,
    /// The number of filters.
    pub filters: u64,
    /// The number of filters that exceed their planned rates and are not in the result.
    pub others_over: u64,
    found: BinaryHeap<Candidate>,
}

/// The used share of a filter and the key of the filter. The share is stored as the bits of a
/// non-negative `f32`; these bits sort in the same order as the numbers. The lowest share comes
/// first in the heap, so that a filter with a higher share replaces the entry with the lowest
/// share.
type Candidate = Reverse<(u32, Box<[u8]>)>;

impl Worst {
    /// Creates a search for at most `limit` filters.
    pub fn new(limit: usize) -> Self {
        Self { limit, filters: 0, others_over: 0, found: BinaryHeap::new() }
    }

    pub fn look_at(&mut self, keyspace: &Keyspace, part: usize, now_millis: u64) {
        keyspace.each_measurement(part, now_millis, |key, used| {
            self.filters += 1;
            let used = used.to_bits();
            let is_worse = self.found.len() < self.limit
                || self.found.peek().is_some_and(|Reverse((least, _))| *least < used);
            let left_out = if self.limit > 0 && is_worse {
                self.found.push(Reverse((used, key.into())));
                let is_one_too_many = self.found.len() > self.limit;
                if is_one_too_many { self.found.pop().map(|Reverse((used, _))| used) } else { None }
            } else {
                Some(used)
            };
            let is_over = left_out.is_some_and(|used| f32::from_bits(used) > 1.0);
            self.others_over += u64::from(is_over);
        });
    }

    /// Returns the found keys, worst filter first.
    pub fn into_keys(self) -> impl Iterator<Item = Box<[u8]>> {
        self.found.into_sorted_vec().into_iter().map(|Reverse((_, key))| key)
    }
}

/// The reports on the filters of a server.
#[derive(Debug)]
pub(crate) struct FilterReports {
    /// The number of filters.
    pub filters: u64,
    /// The reports on the worst filters, worst filter first.
    pub reports: Vec<FilterReport>,
}

/// Reports on the filters that are closest to their limits. Returns at most `limit` reports.
pub(crate) fn filter_reports(
    keyspace: &Keyspace,
    settings: &Settings,
    limit: usize,
    now_millis: u64,
) -> FilterReports {
    let mut worst = Worst::new(limit);
    for part in 0..keyspace.shard_count() {
        worst.look_at(keyspace, part, now_millis);
    }
    let filters = worst.filters;
    let look = |key: Box<[u8]>| FilterReport::of_key(keyspace, &key, settings, now_millis);
    let mut reports: Vec<FilterReport> = worst.into_keys().filter_map(look).collect();
    reports.sort_by(FilterReport::cmp_worst);
    FilterReports { filters, reports }
}

#[cfg(test)]
mod tests {
    use tamis_commands::{ScalableBloom, Value};

    use super::*;

    fn put(keyspace: &Keyspace, key: &str, capacity: u64, items: u64) {
        let mut filter = ScalableBloom::reserve(capacity, 0.01, None).unwrap();
        for item in 0..items {
            filter.insert_hash(item.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
        }
        let mut value = Some(Value::Bloom(Box::new(filter)));
        keyspace.shared().write(key.as_bytes(), 0, |slot| *slot = value.take());
    }

    fn reports(keyspace: &Keyspace, limit: usize, now_millis: u64) -> FilterReports {
        filter_reports(keyspace, &Settings::default(), limit, now_millis)
    }

    fn keys(reports: &FilterReports) -> Vec<String> {
        let text = |it: &FilterReport| String::from_utf8(it.key.to_vec()).unwrap();
        reports.reports.iter().map(text).collect()
    }

    #[test]
    fn the_worst_come_first_and_strings_not_at_all() {
        let keyspace = Keyspace::new();
        for items in 0..50 {
            put(&keyspace, &format!("k{items:02}"), 100, items.max(1));
        }
        for i in 0..20 {
            let key = format!("text{i}");
            let text = || Some(Value::Bytes(b"a".to_vec().into()));
            keyspace.shared().write(key.as_bytes(), 0, |value| *value = text());
        }
        let listed = reports(&keyspace, 3, 1000);
        assert_eq!(
            (listed.filters, keys(&listed)),
            (50, vec!["k49".into(), "k48".into(), "k47".into()])
        );
        assert_eq!(listed.reports[0].forecast, Forecast::Unknown);
        assert_eq!(keys(&reports(&keyspace, 0, 1000)).len(), 0);
        assert_eq!(reports(&keyspace, 1000, 1000).reports.len(), 50);
        // Measure all filters again after the test has added items to one filter.
        put(&keyspace, "k00", 100, 90);
        (0..keyspace.shard_count()).for_each(|part| keyspace.measure(part, 31_000));
        let listed = reports(&keyspace, 2, 31_000);
        assert_eq!(keys(&listed), ["k00", "k49"]);
        assert!(listed.reports[0].items_per_second.is_some_and(|pace| (2.5..=3.5).contains(&pace)));
        let Forecast::FullInDays(days) = listed.reports[0].forecast else { panic!() };
        assert!(days > 0.0 && days < 0.001, "{days}");
        assert_eq!(listed.reports[1].forecast, Forecast::NotGrowing);
        let mut worst = Worst::new(1);
        (0..keyspace.shard_count()).for_each(|part| worst.look_at(&keyspace, part, 31_000));
        assert_eq!((worst.filters, worst.others_over), (50, 0));
        keyspace.shared().remove(b"k00", 0);
        assert_eq!(reports(&keyspace, 2, 31_000).filters, 49);
    }
}
