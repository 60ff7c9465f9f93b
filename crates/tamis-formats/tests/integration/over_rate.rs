//! A filter of another system is reported as over its rate if it holds more items than planned. A
//! deviation by chance is not reported.

use crate::support;
use tamis_formats::Contents;

/// Returns a filter that was planned for `planned` items at 1 % and holds `items` items. Each seed
/// gives other items.
fn filled(format: &str, planned: u64, items: u64, seed: u64) -> Contents {
    let mut filter = (support::format(format).create)(&support::planned(planned, RATE)).unwrap();
    let items: Vec<_> = (0..items).map(|i| format!("{seed}:{i}")).collect();
    support::insert(&mut filter, &items).unwrap();
    filter
}

fn is_over(filter: &Contents, options: Option<f64>) -> bool {
    filter.exceeded_rate(&filter.info(), options).is_some()
}

const RATE: f64 = 0.01;
/// The formats that accept more items than planned.
const FLAT: [&str; 4] = ["guava", "spark", "redis-bitmap", "redisson"];
const SEEDS: u64 = 50;

#[test]
fn a_filter_as_full_as_planned_is_not_over_its_rate() {
    // Redisson's own plan exceeds its rate at every size.
    let formats = FLAT.into_iter().filter(|&format| format != "redisson");
    for format in formats.chain(["pybloom-live"]) {
        // Filters of fewer items exceed their rate, because their probes often repeat.
        for items in [100, 500] {
            for seed in 0..SEEDS {
                let filter = filled(format, items, items, seed);
                let info = filter.info();
                assert!(!is_over(&filter, Some(RATE)), "{format}, {items}, seed {seed}: {info:?}");
            }
        }
    }
}

#[test]
fn a_filter_half_as_full_again_is_over_its_rate() {
    for format in FLAT.into_iter() {
        for (items, seeds) in [(500, SEEDS), (5_000, 10)] {
            for seed in 0..seeds {
                let filter = filled(format, items, items * 3 / 2, seed);
                let info = filter.info();
                assert!(is_over(&filter, Some(RATE)), "{format}, {items}, seed {seed}: {info:?}");
            }
        }
    }
    // The original rejects more items, so the test sets the bits by a merge.
    let mut filter = filled("pybloom-live", 500, 500, 0);
    filter.merge(&filled("pybloom-live", 500, 250, 1)).unwrap();
    assert!(is_over(&filter, None));
}

#[test]
fn a_grown_filter_is_compared_with_the_plan_of_its_layers() {
    for format in ["pybloom-live-scalable", "redisbloom", "redis-bitmaps"] {
        for items in [100, 450, 2_000, 5_000] {
            for seed in 0..10 {
                let filter = filled(format, 100, items, seed);
                let rate = filter.info().rate_now;
                for options in [None, Some(RATE)] {
                    assert!(!is_over(&filter, options), "{format}, {items}, seed {seed}: {rate}");
                }
            }
        }
    }
    let filter = filled("pybloom-live-scalable", 100, 5_000, 0);
    assert!(filter.info().rate_now > RATE * 1.1, "above the rate of one layer");
    assert!(is_over(&filter, Some(RATE / 10.0)), "a filter planned for a lower rate is over it");
}
