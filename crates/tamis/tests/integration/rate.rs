//! Every kind of filter keeps the requested rate at every size.
//!
//! Seeds are fixed, so a test that passes once always passes. The test looks up absent items in a
//! filter at capacity. The number of false positives must be below the binomial bound of the
//! requested rate, and near the rate that the plan computes.

use crate::support::{absent, count_found, filled};
use tamis::{Answers, AnyFilter, Geometry, Hasher, Kind, Plan};

/// The kinds that accept any number of items and estimate this number from their bits alone.
const BITS_ALONE: [Kind; 4] = [Kind::SplitBlock, Kind::Parquet, Kind::Classic, Kind::Counting];

/// The number of standard deviations that the tests accept as noise.
const SIGMAS: f64 = 4.0;

/// Fills filters of this plan with the numbers below `items`, each filter with its own seed, and
/// looks up absent items in each filter. Returns how many absent items are found.
fn measure(plan: &Plan, items: u64, filters: u64, lookups_each: u64) -> f64 {
    let (items, absent) = ((0..items).collect::<Vec<_>>(), absent(lookups_each));
    let found = |seed| count_found(&filled(plan, Hasher::mix(seed), &items), &absent);
    (0..filters).map(found).sum::<u64>() as f64
}

fn check(kind: Kind, items: u64, rate: f64) {
    let plan = Plan::for_kind(kind, items, rate).unwrap();
    // The rates of small filters vary widely, so the test takes the mean of many filters.
    let filters = (2_000_000 / (items + 200)).clamp(1, 4000);
    let lookups_each = (8_000_000 / filters).clamp(500, 4_000_000);
    let found = measure(&plan, plan.items(), filters, lookups_each);
    let lookups = (filters * lookups_each) as f64;
    let computed = plan.rate_at(items);
    let sigma = |p: f64| {
        // The sum of two variances: the binomial noise of the lookups, and the differences between
        // filters. The rates of tiny filters differ by up to their mean, and the rates of large
        // filters hardly differ.
        let binomial = lookups * p * (1.0 - p);
        let of_filters = lookups * lookups / filters as f64 * p * p / items as f64;
        (binomial + of_filters).sqrt()
    };
    let upper = lookups * rate + SIGMAS * sigma(rate);
    assert!(
        found <= upper,
        "{kind}, {items} items at {rate}: {found} of {lookups}, at most {upper}"
    );
    let off = (found - lookups * computed).abs();
    let noise = SIGMAS * sigma(computed);
    assert!(
        off <= noise,
        "{kind}, {items} items at {rate}: {found} of {lookups}, computed {}, off by {off} > {noise}",
        lookups * computed
    );
}

fn check_sizes(kind: Kind, sizes: &[u64]) {
    for &items in sizes {
        for rate in [0.1, 0.01, 0.001] {
            check(kind, items, rate);
        }
    }
}

const SIZES: [u64; 7] = [1, 2, 10, 100, 1_000, 10_000, 1_000_000];

#[test]
fn filters_of_one_size_keep_their_rate_at_every_size() {
    for kind in [Kind::SplitBlock, Kind::Parquet, Kind::Classic, Kind::Counting, Kind::Cuckoo] {
        check_sizes(kind, &SIZES);
        if kind != Kind::Counting {
            check(kind, 10_000_000, 0.01);
        }
    }
}

/// A growing filter keeps the planned rate at all sizes. At some sizes, the rate of a growing
/// filter is lower than planned.
#[test]
fn growing_keeps_its_rate_at_every_size() {
    for rate in [0.1, 0.01, 0.001] {
        let plan = Plan::for_kind(Kind::Growing, 1, rate).unwrap();
        let mut filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
        let mut answers = Answers::new();
        let absent = absent(500_000);
        let mut len = 0_u64;
        for size in [1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 3_000_000] {
            filter.try_insert_each(&(len..size).collect::<Vec<_>>(), &mut answers).unwrap();
            len = size;
            let (lookups, found) = (absent.len() as f64, count_found(&filter, &absent) as f64);
            let exact = filter.estimate_rate();
            let noise = SIGMAS * (lookups * exact * (1.0 - exact)).sqrt() + 1.0;
            assert!(
                (found - lookups * exact).abs() <= noise,
                "{size} at {rate}: {found}, not {exact}"
            );
            assert!(exact <= rate, "{size} at {rate}: {exact}");
            assert!(!filter.is_over_rate());
        }
    }
}

/// Tests the worst case, in which every slice is as full as allowed.
#[test]
fn window_keeps_its_rate_at_every_size() {
    for items in [1_u64, 2, 10, 100, 1_000, 10_000, 1_000_000] {
        for rate in [0.1, 0.01, 0.001] {
            let plan = Plan::for_kind(Kind::Window, items, rate).unwrap();
            let Geometry::Slices(slices) = plan.geometry() else {
                unreachable!("a window has slices")
            };
            let inserted = items.div_ceil(u64::from(slices)) * (3 * u64::from(slices) + 1);
            let filters = (500_000 / (items + 200)).clamp(1, 1000);
            let lookups_each = (4_000_000 / filters).clamp(500, 1_000_000);
            let found = measure(&plan, inserted, filters, lookups_each);
            let lookups = (filters * lookups_each) as f64;
            let of_filters = lookups * lookups / filters as f64 * rate * rate / items as f64;
            let upper = lookups * rate + SIGMAS * (lookups * rate + of_filters).sqrt();
            assert!(found <= upper, "{items} at {rate}: {found} of {lookups}, at most {upper}");
        }
    }
}

#[test]
fn the_recommended_plan_keeps_low_rates() {
    for rate in [1e-4, 1e-5] {
        let plan = Plan::new(100_000, rate).unwrap();
        check(plan.kind(), 100_000, rate);
    }
}

#[test]
fn other_hash_functions_keep_the_rate() {
    for hasher in [Hasher::sip13([7, 8]), Hasher::xxh64(9)] {
        let plan = Plan::for_kind(Kind::SplitBlock, 100_000, 0.01).unwrap();
        let filter = filled(&plan, hasher, &(0..100_000_u64).collect::<Vec<_>>());
        let found = count_found(&filter, &absent(1_000_000)) as f64;
        assert!(found <= 10_000.0 + SIGMAS * 100.0, "{hasher}: {found} of a million");
    }
}

#[test]
fn estimates_follow_the_bits() {
    for kind in BITS_ALONE {
        // A small filter has few blocks, whose fill varies widely.
        for (items, inserted, off) in
            [(1_000_u64, 500_u64, 0.4), (100_000, 100_000, 0.15), (100_000, 300_000, 0.15)]
        {
            let plan = Plan::for_kind(kind, items, 0.01).unwrap();
            let items: Vec<u64> = (0..inserted).collect();
            let filter = filled(&plan, Hasher::default(), &items);
            let (n, p) = (filter.estimate_items(), filter.estimate_rate());
            assert!((n / inserted as f64 - 1.0).abs() < 0.05, "{kind}: {n} for {inserted}");
            let computed = plan.rate_at(inserted);
            assert!((p / computed - 1.0).abs() < off, "{kind}: {p} for {computed}");
            assert!(filter.fill() > 0.0 && filter.fill() < 1.0);
        }
    }
}

#[test]
fn a_full_filter_reports_that_it_is_full() {
    for kind in BITS_ALONE {
        let plan = Plan::for_kind(kind, 1, 0.01).unwrap();
        let items: Vec<u64> = (0..1_000_000).collect();
        let filter = filled(&plan, Hasher::default(), &items);
        assert!(filter.estimate_rate() > 0.999, "{kind}");
        assert!(filter.estimate_items() > 100.0, "{kind}");
        assert!(filter.contains("anything"), "{kind}");
    }
}
