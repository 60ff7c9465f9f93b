//! The filters nearest to their limits, as `/metrics` and the console report them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tamis_commands::{Facts, Forecast, Settings, Value};

use crate::keyspace::Keyspace;

/// The report of a filter.
#[derive(Clone, Debug)]
pub(crate) struct FilterReport {
    pub key: Box<[u8]>,
    /// When it was looked at, in milliseconds since 1970.
    pub measured_millis: u64,
    /// Kind, items, fill, rates, memory, layers: see [`Facts`].
    pub facts: Facts,
    /// How many more items a second there were of late, if that is known yet.
    pub items_per_second: Option<f64>,
    pub forecast: Forecast,
}

impl FilterReport {
    /// Reports on a value that had `items_per_second` new items of late; `None` if it is no filter. A glance, which estimates a
    /// large filter from a part of its bits.
    pub fn of(
        key: &[u8],
        value: &Value,
        settings: &Settings,
        items_per_second: Option<f64>,
        now_millis: u64,
    ) -> Option<Self> {
        let facts = Facts::at_a_glance(value, settings, now_millis)?;
        let forecast = facts.forecast(items_per_second);
        Some(Self {
            key: key.into(),
            measured_millis: now_millis,
            facts,
            items_per_second,
            forecast,
        })
    }

    /// Looks at the filter of a key, if there is one.
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

    /// Takes another measurement of the adds, if there is none of the keyspace yet.
    pub fn or_at(&mut self, items_per_second: Option<f64>) {
        if self.items_per_second.is_none() {
            self.items_per_second = items_per_second;
            self.forecast = self.facts.forecast(items_per_second);
        }
    }

    /// Worst first: over the target, then soonest to be, then nearest to it.
    pub fn cmp_worst(&self, other: &Self) -> Ordering {
        let days = |it: &Self| it.forecast.days().unwrap_or(f64::INFINITY);
        let nearness = |it: &Self| {
            if it.facts.rate_planned > 0.0 {
                it.facts.rate_now / it.facts.rate_planned
            } else {
                0.0
            }
        };
        let is_bad = |facts: &Facts| facts.is_over_rate || facts.is_full();
        let by_over = is_bad(&other.facts).cmp(&is_bad(&self.facts));
        by_over
            .then_with(|| days(self).total_cmp(&days(other)))
            .then_with(|| nearness(other).total_cmp(&nearness(self)))
            .then_with(|| self.key.cmp(&other.key))
    }
}

/// Looks for the filters that are nearest to their limits, a part of the keys at a time. All keys are looked at, but only
/// the last measurement of each, and no lock is held longer than a part of the keys takes: of millions all parts take a second
/// or so.
pub(crate) struct Worst {
    limit: usize,
    /// How many filters there are.
    pub filters: u64,
    /// How many of the omitted filters are above their planned rates.
    pub others_over: u64,
    found: BinaryHeap<Candidate>,
}

/// What of its room a filter uses, as the bits of an `f32` from zero on, which have its order; and its key. The least
/// first, so that it goes when a worse one comes.
type Candidate = Reverse<(u32, Box<[u8]>)>;

impl Worst {
    /// Collects at most `limit` filters.
    pub fn new(limit: usize) -> Self {
        Self { limit, filters: 0, others_over: 0, found: BinaryHeap::new() }
    }

    pub fn look_at(&mut self, keyspace: &Keyspace, part: usize, now_millis: u64) {
        keyspace.each_gauge(part, now_millis, |key, used| {
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

    /// Returns the keys found, that of the worst first.
    pub fn into_keys(self) -> impl Iterator<Item = Box<[u8]>> {
        self.found.into_sorted_vec().into_iter().map(|Reverse((_, key))| key)
    }
}

/// The report of the filters of a server.
#[derive(Debug)]
pub(crate) struct FilterReports {
    /// How many filters there are.
    pub filters: u64,
    /// Some of them, the worst first.
    pub reports: Vec<FilterReport>,
}

/// Returns the filters nearest to their limits, at most `limit` of them.
pub(crate) fn filter_reports(
    keyspace: &Keyspace,
    settings: &Settings,
    limit: usize,
    now_millis: u64,
) -> FilterReports {
    let mut worst = Worst::new(limit);
    for part in 0..keyspace.parts() {
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
        // Later, when one has taken more.
        put(&keyspace, "k00", 100, 90);
        (0..keyspace.parts()).for_each(|part| keyspace.measure(part, 31_000));
        let listed = reports(&keyspace, 2, 31_000);
        assert_eq!(keys(&listed), ["k00", "k49"]);
        assert!(listed.reports[0].items_per_second.is_some_and(|pace| (2.5..=3.5).contains(&pace)));
        let Forecast::FullInDays(days) = listed.reports[0].forecast else { panic!() };
        assert!(days > 0.0 && days < 0.001, "{days}");
        assert_eq!(listed.reports[1].forecast, Forecast::NotGrowing);
        let mut worst = Worst::new(1);
        (0..keyspace.parts()).for_each(|part| worst.look_at(&keyspace, part, 31_000));
        assert_eq!((worst.filters, worst.others_over), (50, 0));
        keyspace.shared().remove(b"k00", 0);
        assert_eq!(reports(&keyspace, 2, 31_000).filters, 49);
    }
}
