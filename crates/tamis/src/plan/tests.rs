//! Tests that plans keep the requested rate with the fewest bits.

use crate::plan::search::smallest;
use crate::plan::*;

#[test]
fn zero_items_plan_as_one() {
    assert_eq!(Plan::new(0, 0.01), Plan::new(1, 0.01));
}

#[test]
fn rates_outside_zero_and_one_are_refused() {
    for rate in [0.0, 1.0, -0.1, 2.0, f64::NAN, f64::INFINITY] {
        for kind in Kind::ALL {
            assert!(matches!(Plan::for_kind(kind, 10, rate), Err(PlanError::Rate { .. })));
            assert!(matches!(Plan::for_memory(kind, 999, rate), Err(PlanError::Rate { .. })));
        }
    }
}

#[test]
fn a_rate_that_no_growing_filter_keeps_is_refused_with_the_lowest() {
    for plan in
        [Plan::for_kind(Kind::Growing, 1, 1e-14), Plan::for_memory(Kind::Growing, 1 << 30, 1e-14)]
    {
        assert_eq!(
            plan.unwrap_err().to_string(),
            "no growing filter keeps a rate of 1e-14: plan a rate of at least 2.2e-14, fewer items or \
            another kind"
        );
    }
    assert!(Plan::for_kind(Kind::Growing, 1, 2.2e-14).is_ok());
}

#[test]
fn the_default_needs_as_few_bits_as_promised() {
    assert!(Plan::for_kind(Kind::SplitBlock, 10_000_000, 0.01).unwrap().bits_per_item() < 10.15);
    assert!(Plan::for_kind(Kind::SplitBlock, 10_000_000, 0.001).unwrap().bits_per_item() < 15.8);
}

/// Returns the number of bits of a place in a kind with blocks. A place is the group of blocks at
/// the position of an item. The smallest filter consists of its header and one place.
fn place_bits(kind: Kind, geometry: Geometry) -> u64 {
    let head = if kind == Kind::Window { 512 } else { 0 };
    let mut bytes = (1_u64..).map(|words| words * 8);
    bytes.find_map(|bytes| kind.sizing().usable_bits(geometry, bytes)).unwrap() - head
}

/// Returns the difference in bits between two adjacent filter sizes of this plan's kind. Returns
/// `None` if the rate does not determine the size alone.
fn step_bits(plan: &Plan) -> Option<u64> {
    match plan.kind {
        // The capacity and the whole number of bits of an entry also determine the size of cuckoo
        // filters and growing filters.
        Kind::Cuckoo | Kind::Growing => None,
        // The formula of the plan may give up to two bits more than the exact formula.
        Kind::Classic => Some(3),
        kind => Some(place_bits(kind, plan.geometry)),
    }
}

#[test]
fn plans_are_tight() {
    for kind in Kind::ALL {
        for items in [1, 2, 10, 1000, 1_000_000] {
            for rate in [0.5, 0.1, 0.01, 0.001] {
                let plan = Plan::for_kind(kind, items, rate).unwrap();
                assert!(plan.rate_at(items) <= rate, "{kind} {items} {rate}");
                let smaller = step_bits(&plan).map(|step| plan.bits.saturating_sub(step));
                if let Some(bits) =
                    smaller.filter(|&bits| bits > 0 && kind.sizing().is_valid(plan.geometry, bits))
                {
                    let smaller = Plan { bits, ..plan };
                    assert!(smaller.rate_at(items) > rate, "{kind} {items} {rate} is too large");
                }
                assert!(plan.items_at(rate) >= items, "{kind} {items} {rate}");
            }
        }
    }
}

/// Searches by bisection for the fewest bits of a kind with blocks.
fn slowly(kind: Kind, geometry: Geometry, items: u64, rate: f64) -> Option<u64> {
    let step = place_bits(kind, geometry);
    let head = if kind == Kind::Window { 512 } else { 0 };
    let rate_of = |places: u64| kind.sizing().rate_at(geometry, head + places * step, items);
    let most = if kind == Kind::Parquet { (1 << 26) - 1 } else { (MAX_BITS - head) / step };
    smallest(1, most, |places| rate_of(places) <= rate).map(|places| head + places * step)
}

fn check_fewest(items: u64, rate: f64) {
    // Above 10⁸ bits, the rates of adjacent sizes may be equal in the precision of an `f64`.
    let is_same = |plan: &Result<Plan, PlanError>, fewest: Option<u64>| match (plan, fewest) {
        (Ok(plan), Some(fewest)) => plan.bits.abs_diff(fewest) <= fewest / 100_000_000,
        (plan, fewest) => plan.is_err() && fewest.is_none(),
    };
    for (kind, geometry) in [
        (Kind::SplitBlock, Geometry::Probes(8)),
        (Kind::Parquet, Geometry::Probes(8)),
        (Kind::Counting, Geometry::Counters(4)),
    ] {
        let fewest = slowly(kind, geometry, items, rate);
        let plan = Plan::for_kind(kind, items, rate);
        assert!(is_same(&plan, fewest), "{kind} {items} {rate}: {plan:?}, not {fewest:?}");
    }
    let windows = [1, 3].map(|slices| slowly(Kind::Window, Geometry::Slices(slices), items, rate));
    let fewest = windows.into_iter().flatten().min();
    let plan = Plan::for_kind(Kind::Window, items, rate);
    assert!(is_same(&plan, fewest), "{items} {rate}: {plan:?}, not {fewest:?}");
}

#[test]
fn a_fast_search_finds_what_a_slow_one_does() {
    for items in [1, 2, 3, 5, 9, 30, 101, 1000, 31_622, 1_000_000, 1_000_000_000] {
        for rate in [0.999, 0.9, 0.5, 0.2, 0.05, 0.01, 1e-3, 3e-4, 1e-5, 1e-7, 1e-9, 1e-12, 1e-15] {
            check_fewest(items, rate);
        }
    }
    // At this size, equal rates cover more than a billionth of the bits.
    check_fewest(997_753_911, 1.090003018485809e-10);
}

proptest::proptest! {
    #[test]
    fn a_fast_search_finds_what_a_slow_one_does_anywhere(
        items_log in 0.0..30.0_f64,
        rate_log in 0.001..45.0_f64,
    ) {
        check_fewest(items_log.exp2() as u64, (-rate_log).exp2());
    }

    #[test]
    fn a_classic_plan_takes_at_most_two_bits_more_than_the_least(
        items_log in 0.0..9.0_f64,
        rate_log in 0.015..40.0_f64,
    ) {
        let rate = (-rate_log).exp2();
        // The number of items is so small that the rate is computed exactly.
        let probes = rate_log.ceil() as u64;
        let items = (items_log.exp2() as u64).min((1 << 15) / ((probes + 1) * (probes + 1)));
        let plan = Plan::for_kind(Kind::Classic, items, rate).unwrap();
        proptest::prop_assert!(plan.rate_at(items) <= rate, "{:?}", plan);
        if let Some(bits) = plan.bits.checked_sub(3).filter(|&bits| bits > 0) {
            for probes in [rate_log.floor().max(1.0) as u32, rate_log.floor() as u32 + 1] {
                let smaller = Plan { bits, geometry: Geometry::Probes(probes), ..plan };
                proptest::prop_assert!(smaller.rate_at(items) > rate, "{:?}", smaller);
            }
        }
    }
}

#[test]
fn usual_windows_and_counters_lie_in_one_line() {
    for (rate, slices) in [(0.1, 3), (0.01, 3), (1e-3, 3), (1e-4, 3), (1e-5, 1), (1e-9, 1)] {
        let plan = |kind| Plan::for_kind(kind, 1_000_000, rate).unwrap();
        assert_eq!(plan(Kind::Window).geometry(), Geometry::Slices(slices), "{rate}");
        assert_eq!(plan(Kind::Window).cache_lines(), 1);
        assert_eq!(plan(Kind::Counting).cache_lines(), 1);
    }
    let lines = |slices| Plan::window(1000, 0.01, slices).unwrap().cache_lines();
    assert_eq!([1, 2, 3, 4, 7, 8].map(lines), [1, 1, 1, 2, 2, 3]);
}

#[test]
fn the_rate_of_a_window_keeps_its_digits() {
    let (items, rate) = (343_597_386, 4.656681724250834e-10);
    let plan = Plan::for_kind(Kind::Window, items, rate).unwrap();
    assert!(plan.rate_at(items) <= rate, "{plan:?}");
    let place_bits = place_bits(plan.kind, plan.geometry);
    let smaller = Plan { bits: plan.bits - place_bits * 1000, ..plan };
    assert!(smaller.rate_at(items) > rate, "{plan:?}");
}

#[test]
fn memory_plans_invert_item_plans() {
    for kind in Kind::ALL {
        let plan = Plan::for_kind(kind, 50_000, 0.01).unwrap();
        let back = Plan::for_memory(kind, plan.bytes(), 0.01).unwrap();
        assert!(back.items() >= 50_000 && back.items() < 50_400, "{kind}: {}", back.items());
        let rate = Plan::for_items_in(kind, 50_000, plan.bytes()).unwrap().rate();
        // If an entry of a kind has a whole number of bits, no rate exists between the rates of two
        // adjacent widths.
        let (least, most) = match step_bits(&plan) {
            Some(_) => (0.0098, 0.01),
            None => (0.005, 0.0105),
        };
        assert!(rate <= most && rate > least, "{kind}: rate {rate}");
    }
}

#[test]
fn too_little_memory_is_refused() {
    assert!(matches!(
        Plan::for_memory(Kind::SplitBlock, 63, 0.01),
        Err(PlanError::TooSmall { max_bytes: 63, .. })
    ));
    assert!(Plan::for_items_in(Kind::Classic, 5, 0).is_err());
    assert!(Plan::for_items_in(Kind::SplitBlock, u64::MAX, 64).is_err());
}

#[test]
fn absurd_sizes_are_refused() {
    assert!(matches!(Plan::new(u64::MAX, 0.5), Err(PlanError::TooLarge { .. })));
    assert!(Plan::for_kind(Kind::Parquet, 1_u64 << 40, 0.01).is_err());
}

#[test]
fn the_numbers_of_the_filters_page_hold() {
    let plan = |kind, rate| Plan::for_kind(kind, 10_000_000, rate).unwrap();
    let near = |found: f64, page: f64| assert!((found - page).abs() <= 0.05, "{found} {page}");
    near(plan(Kind::SplitBlock, 0.01).bits_per_item(), 10.1);
    near(plan(Kind::SplitBlock, 0.001).bits_per_item(), 15.7);
    near(plan(Kind::Parquet, 0.01).bits_per_item(), 10.5);
    near(plan(Kind::Counting, 0.01).bits_per_item(), 45.7);
    near(Plan::counting(10_000_000, 0.01, 8).unwrap().bits_per_item(), 91.4);
    near(plan(Kind::Window, 0.01).bits_per_item(), 21.0);
    near(Plan::window(10_000_000, 0.01, 1).unwrap().bits_per_item(), 24.4);
    let low = Plan::new(10_000_000, 1e-5).unwrap();
    assert_eq!(low.kind(), Kind::Classic);
    near(low.bits_per_item(), 24.0);
    for (rate, percent) in [(0.01, 5.0), (0.001, 9.0)] {
        let (blocked, classic) = (plan(Kind::SplitBlock, rate), plan(Kind::Classic, rate));
        let more = (blocked.bits() as f64 / classic.bits() as f64 - 1.0) * 100.0;
        assert_eq!(more.round(), percent);
    }
    let overfull = plan(Kind::SplitBlock, 0.01);
    assert_eq!((overfull.rate_at(20_000_000) * 100.0).round(), 17.0);
    assert!(overfull.rate_at(100_000_000) > 0.99);
}

#[test]
fn extreme_numbers_are_answered_at_once() {
    let start = std::time::Instant::now();
    let mut plans = Vec::new();
    for kind in Kind::ALL {
        for items in [0, 1, 20, 1 << 20, 1 << 40, u64::MAX] {
            for rate in [f64::MIN_POSITIVE, 1e-30, 1e-9, 0.5, 1.0 - f64::EPSILON] {
                plans.extend(Plan::for_kind(kind, items, rate));
                for geometry in [1, 4, 8, 255].iter().flat_map(|&n| Geometry::from_number(kind, n))
                {
                    for bits in [1, 512, 3072, MAX_BITS] {
                        plans.extend(Plan::from_parts(kind, items, rate, bits, geometry));
                    }
                }
            }
            for bytes in [0, 8, 64, 1 << 40, u64::MAX] {
                plans.extend(Plan::for_items_in(kind, items, bytes));
                plans.extend(Plan::for_memory(kind, bytes, 1e-9));
            }
        }
    }
    let len = plans.len() as u32;
    for plan in plans {
        for rate in [plan.rate_at(0), plan.rate_at(u64::MAX), plan.rate_limit()] {
            assert!((0.0..=1.0).contains(&rate), "{plan:?}: {rate}");
        }
        assert!(plan.items_at(0.5) <= plan.items_at(1.0), "{plan:?}");
    }
    // The limit is far above the needed time, but an endless loop exceeds the limit.
    assert!(start.elapsed() < len * std::time::Duration::from_millis(100));
}

#[test]
fn low_rates_leave_the_blocked_filter() {
    assert_eq!(Plan::new(1_000_000, 0.001).unwrap().kind(), Kind::SplitBlock);
    let plan = Plan::new(1_000_000, 1e-6).unwrap();
    assert_eq!(plan.kind(), Kind::Classic);
    assert!(plan.why().contains("more memory"), "{}", plan.why());
    let tiny = Plan::new(3, 1e-6).unwrap();
    assert_eq!(tiny.kind(), Kind::SplitBlock);
    assert!(tiny.why().contains("a filter of few items"), "{}", tiny.why());
}

#[test]
fn very_large_classic_filters_take_the_bits_of_smaller_ones() {
    // From 10¹⁰ items on, the rates of filters of adjacent sizes differ by less than the precision
    // of a double.
    for i in 0..600 {
        let items = (1e10 * 1.02_f64.powi(i)) as u64;
        match Plan::for_kind(Kind::Classic, items, 0.01) {
            Ok(plan) => {
                assert!(plan.rate_at(items) <= 0.01, "{items}");
                // In a very large filter, many items have equal hashes, so the plan takes more bits
                // for each item than the plan of a smaller filter.
                let most = 9.594 + items as f64 / 1e15;
                assert!((9.592..most).contains(&plan.bits_per_item()), "{items}: {plan:?}");
            }
            Err(error) => assert!(items > (1 << 56) / 10, "{items}: {error}"),
        }
    }
}

#[test]
fn a_plan_promises_no_rate_below_what_the_hash_distinguishes() {
    // With probability 2⁻³², an absent item has the pattern of the only item of a block.
    let one_block = Plan::from_parts(Kind::SplitBlock, 1, 1e-9, 512, Geometry::Probes(8)).unwrap();
    assert!((one_block.rate_at(1) / 2_f64.powi(-32) - 1.0).abs() < 1e-3);
    let one_block = Plan::from_parts(Kind::Parquet, 1, 1e-9, 256, Geometry::Probes(8)).unwrap();
    assert!((one_block.rate_at(1) / 2_f64.powi(-32) - 1.0).abs() < 0.01);
    // With probability 2⁻⁶⁴, an absent item has the hash of an item.
    for items in [1, 20, 1_000_000, 500_000_000] {
        let of_hash = items as f64 / 2_f64.powi(64);
        for rate in [1e-9, 1e-12, 1e-15, 1e-19] {
            for kind in [
                Kind::Classic,
                Kind::SplitBlock,
                Kind::Parquet,
                Kind::Counting,
                Kind::Cuckoo,
                Kind::Window,
            ] {
                match Plan::for_kind(kind, items, rate) {
                    Ok(plan) => assert!(rate >= plan.rate_at(items) && rate > of_hash, "{plan:?}"),
                    Err(PlanError::RateTooLow { lowest, .. }) => {
                        assert!(rate < lowest && lowest < 8.0 * of_hash, "{kind} {items} {lowest}");
                        assert!(kind != Kind::Classic || Plan::new(items, lowest).is_ok());
                    }
                    Err(error) => {
                        assert!(matches!(error, PlanError::TooLarge { .. }), "{kind}: {error}");
                        assert!(kind != Kind::Classic, "{items} at {rate}: {error}");
                    }
                }
            }
        }
    }
    assert!(Plan::for_memory(Kind::Classic, 1 << 40, 1e-12).unwrap().items() < 20_000_000);
}
