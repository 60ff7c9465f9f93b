//! Tests that a planner returns an error or a plan that keeps the rate, for any numbers.

use tamis::{Geometry, Kind, Plan};

pub(crate) fn run(data: (u64, u64, u64, u32)) {
    let (items, rate_bits, bits, geometry) = data;
    let rate = f64::from_bits(rate_bits);
    let plans = Kind::ALL.map(|kind| Plan::for_kind(kind, items, rate));
    for plan in plans.into_iter().chain([Plan::new(items, rate)]).flatten() {
        assert!(plan.rate_at(plan.items()) <= rate, "{plan:?} exceeds its rate");
        // The rate is a floating-point number. Near 1, a change of the last bit of the rate changes
        // the capacity by more than 2^-40 of the items.
        let least = plan.items() - (plan.items() >> 30);
        assert!(plan.items_at(rate) >= least, "{plan:?} has a smaller capacity");
        let _ = plan.why();
    }
    for kind in Kind::ALL {
        if let Ok(plan) = Plan::for_memory(kind, bits, rate) {
            assert!(plan.bytes() <= bits && plan.items() > 0, "{plan:?} in {bits} bytes");
            assert!(plan.rate_at(plan.items()) <= rate, "{plan:?} exceeds its rate");
        }
        if let Ok(plan) = Plan::for_items_in(kind, items, bits) {
            assert!(plan.bytes() <= bits, "{plan:?} in {bits} bytes");
            assert!((0.0..1.0).contains(&plan.rate()), "{plan:?}");
        }
        let geometry = Geometry::from_number(kind, geometry);
        if let Some(Ok(plan)) =
            geometry.map(|geometry| Plan::from_parts(kind, items, rate, bits, geometry))
        {
            assert!((0.0..=1.0).contains(&plan.rate_at(items)), "{plan:?}");
            let _ = (plan.items_at(rate), plan.why(), plan.bits_per_item());
        }
    }
}
