//! A filter with more items than planned reports that its rate is exceeded. A filter at capacity
//! does not report that its rate is exceeded.

use crate::support::filled;
use tamis::{AnyFilter, Hasher, Kind, Plan};

fn of_seed(plan: &Plan, seed: u64, items: u64) -> AnyFilter {
    filled(plan, Hasher::mix(seed), &(0..items).collect::<Vec<_>>())
}

#[test]
fn a_filter_at_capacity_is_not_over_its_rate() {
    let mut over = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.forgets()) {
        for items in [1, 2, 10, 100, 1_000, 30_000] {
            for rate in [0.3, 0.01, 0.0001] {
                let plan = Plan::for_kind(kind, items, rate).unwrap();
                for seed in 0..60 {
                    let filter = of_seed(&plan, seed, items);
                    if filter.is_over_rate() {
                        let (estimate, limit) = (filter.estimate_rate(), plan.rate_limit());
                        over.push((kind, items, rate, seed, estimate, limit));
                    }
                }
            }
        }
    }
    // The limit is four standard deviations above the planned rate. By chance, about one filter in
    // 8,000 exceeds the limit; with 100 items at 0.0001, one filter in 300. With these seeds, at most
    // two filters exceed the limit, and none of them has more than 1,000 items.
    assert!(over.len() <= 2 && over.iter().all(|it| it.1 <= 1_000), "{over:?}");
}

#[test]
fn a_filter_well_past_capacity_is_over_its_rate() {
    for kind in [Kind::SplitBlock, Kind::Parquet, Kind::Classic, Kind::Counting] {
        // Narrow blocks fill less evenly than wide blocks, so an estimate from narrow blocks is
        // less precise than an estimate from wide blocks.
        let more = if kind == Kind::Counting { 2.0 } else { 1.0 };
        for (items, excess) in [(1_000, 0.25), (30_000, 0.06), (300_000, 0.02)] {
            let inserted = (items as f64 * (1.0 + more * excess)) as u64;
            for rate in [0.3, 0.01, 0.0001] {
                let plan = Plan::for_kind(kind, items, rate).unwrap();
                for seed in 0..5 {
                    let filter = of_seed(&plan, seed, inserted);
                    assert!(filter.is_over_rate(), "{kind}, {items} items at {rate}, seed {seed}");
                }
            }
        }
    }
}
