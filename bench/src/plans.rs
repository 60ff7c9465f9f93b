//! Measures how long it takes to plan a filter.

use std::hint::black_box;

use tamis::{Kind, Plan, PlanError};

use crate::lookups::short;
use crate::run::{Bench, Entry, time};

/// The number of plans in one run of a loop.
const PLANS: u64 = 64;

const RATES: [f64; 4] = [0.01, 1e-4, 1e-6, 1e-9];

/// Runs every plan case. The report shows the time of one plan as the time per item.
pub fn run(bench: &mut Bench) {
    for items in [1, 100, 10_000, 1_000_000, 1_000_000_000] {
        let of = |rate| entry(format!("tamis at {rate:e}"), items, rate, Plan::new);
        bench.case(&format!("plan {} items", short(items)), RATES.into_iter().map(of).collect());
    }
    for rate in RATES {
        let of = |kind| {
            entry(format!("tamis {kind}"), 1_000_000, rate, move |items, rate| {
                Plan::for_kind(kind, items, rate)
            })
        };
        bench.case(&format!("plan each kind at {rate:e}"), Kind::ALL.into_iter().map(of).collect());
    }
}

fn entry(
    name: String,
    items: u64,
    rate: f64,
    plan: impl Fn(u64, f64) -> Result<Plan, PlanError> + 'static,
) -> Entry<'static> {
    let planned = plan(items, rate).expect("a sound plan");
    let work = move || {
        time(|| {
            let plans = (0..PLANS).map(|_| plan(black_box(items), black_box(rate)));
            plans.filter(|plan| plan.as_ref() == Ok(&planned)).count() as u64
        })
    };
    Entry {
        name,
        items: PLANS,
        bits_per_item: Some(planned.bits_per_item()),
        rate: Some(planned.rate_at(items)),
        expect: PLANS..=PLANS,
        work: Box::new(work),
    }
}
