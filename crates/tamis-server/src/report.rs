//! The filters nearest to their limits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tamis_commands::{Facts, Forecast};

use crate::keyspace::Keyspace;

/// What there is to tell of the filters of a server.
#[derive(Debug)]
pub(crate) struct FilterReports {
    /// How many filters there are.
    pub filters: u64,
    /// Some of them, the nearest to its limit first.
    pub reports: Vec<FilterReport>,
}

/// What there is to tell of a filter.
#[derive(Debug)]
pub(crate) struct FilterReport {
    pub key: Vec<u8>,
    /// Kind, items, fill, rates, memory, layers: see [`Facts`].
    pub facts: Facts,
    /// How many more items a second there were of late, if that is known yet.
    pub items_per_second: Option<f64>,
    pub forecast: Forecast,
}

/// What of its room a filter uses, as the bits of an `f32` from zero on, which have its order; and its key. The least
/// first, so that it goes when a worse one comes.
type Candidate = Reverse<(u32, Box<[u8]>)>;

/// Returns the filters nearest to their limits, up to so many.
///
/// All keys are looked at, but only the last measurement of each: millions take a second or so, and no lock is held
/// longer than a part of the keys takes.
pub(crate) fn filter_reports(keyspace: &Keyspace, limit: usize, now_millis: u64) -> FilterReports {
    let mut filters = 0;
    let mut worst: BinaryHeap<Candidate> = BinaryHeap::new();
    for part in 0..keyspace.parts() {
        keyspace.each_gauge(part, now_millis, |key, used| {
            filters += 1;
            let used = used.to_bits();
            let is_worse = worst.len() < limit
                || worst.peek().is_some_and(|Reverse((least, _))| *least < used);
            if limit > 0 && is_worse {
                worst.push(Reverse((used, key.into())));
                if worst.len() > limit {
                    worst.pop();
                }
            }
        });
    }
    let reports = worst.into_sorted_vec().into_iter().filter_map(|Reverse((_, key))| {
        let (facts, items_per_second) =
            keyspace.shared().read_measured(&key, now_millis, |value, pace| {
                Some((Facts::at_a_glance(value?, now_millis)?, pace))
            })?;
        let forecast = facts.forecast(items_per_second);
        Some(FilterReport { key: key.into(), facts, items_per_second, forecast })
    });
    FilterReports { filters, reports: reports.collect() }
}

#[cfg(test)]
mod tests {
    use tamis_commands::{Expandable, Value};

    use super::*;

    fn put(keyspace: &Keyspace, key: &str, capacity: u64, items: u64) {
        let mut filter = Expandable::reserve(capacity, 0.01, None).unwrap();
        for item in 0..items {
            filter.insert_hash(item.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
        }
        let mut value = Some(Value::Bloom(Box::new(filter)));
        keyspace.shared().write(key.as_bytes(), 0, |slot| *slot = value.take());
    }

    fn keys(reports: &FilterReports) -> Vec<String> {
        let text = |it: &FilterReport| String::from_utf8(it.key.clone()).unwrap();
        reports.reports.iter().map(text).collect()
    }

    #[test]
    fn the_worst_come_first_and_strings_not_at_all() {
        let keyspace = Keyspace::new();
        for items in 0..50 {
            put(&keyspace, &format!("k{items:02}"), 100, items);
        }
        for i in 0..20 {
            let key = format!("text{i}");
            let text = || Some(Value::Bytes(b"a".to_vec().into()));
            keyspace.shared().write(key.as_bytes(), 0, |value| *value = text());
        }
        let told = filter_reports(&keyspace, 3, 1000);
        assert_eq!(
            (told.filters, keys(&told)),
            (50, vec!["k49".into(), "k48".into(), "k47".into()])
        );
        assert_eq!(told.reports[0].forecast, Forecast::Unknown);
        assert_eq!(keys(&filter_reports(&keyspace, 0, 1000)).len(), 0);
        assert_eq!(filter_reports(&keyspace, 1000, 1000).reports.len(), 50);
        // Later, when one has taken more.
        put(&keyspace, "k00", 100, 90);
        (0..keyspace.parts()).for_each(|part| keyspace.measure(part, 31_000));
        let told = filter_reports(&keyspace, 2, 31_000);
        assert_eq!(keys(&told), ["k00", "k49"]);
        assert!(told.reports[0].items_per_second.is_some_and(|pace| (2.5..=3.5).contains(&pace)));
        let Forecast::FullInDays(days) = told.reports[0].forecast else { panic!() };
        assert!(days > 0.0 && days < 0.001, "{days}");
        assert_eq!(told.reports[1].forecast, Forecast::NotGrowing);
        keyspace.shared().remove(b"k00", 0);
        assert_eq!(filter_reports(&keyspace, 2, 31_000).filters, 49);
    }
}
