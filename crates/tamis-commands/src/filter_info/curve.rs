//! Computes the expected rate of a filter for increasing numbers of items.

use tamis::{AnyFilter, Plan};
use tamis_formats::{redisbloom_rate, redisbloom_rates};
use tamis_redisbloom::{RedisBloom, RedisCuckoo, RedisLayer};

use crate::filter_info::expected_fill;
use crate::value::Value;

/// A number of items, and the expected rate of a filter with this number of items.
pub type RatePoint = (u64, f64);

/// The end of the curve, as a multiple of the capacity, for a filter that accepts items above the
/// capacity.
const PAST_CAPACITY: f64 = 1.5;

impl Value {
    /// Returns the expected rate at `points` evenly spaced numbers of items, starting at zero. If the filter rejects
    /// inserts at the capacity, the curve ends at the capacity. If the filter accepts items above the capacity, the
    /// curve ends at 1.5 times the capacity. The curve always includes `items`, the current number of items. If the
    /// filter keeps the planned rate at any number of items, the curve is empty.
    ///
    /// For a window, the number of items includes the items of the oldest slice, which the window
    /// removes next.
    #[must_use]
    pub fn rate_curve(&self, points: u64, items: f64) -> Vec<RatePoint> {
        // The curve extends beyond the current number of items, so that the current point is not at
        // the edge of the curve. `items` is infinite if all bits are set.
        let held = if items.is_finite() { (items * 1.1) as u64 } else { 0 };
        match self {
            Value::Bytes(_) | Value::PartialLoad(_) => Vec::new(),
            Value::Empty(empty) => empty.build().rate_curve(points, items),
            Value::Bloom(filter) => {
                let Some(plan) = filter.reserved_plan() else { return Vec::new() };
                let reserved = filter.reserved_items();
                let mut points = curve(reserved, points, |items| plan.rate_at(items));
                // No formula gives the rate of the growing part for all numbers of items, so only the current rate of
                // this part is known.
                if filter.items() > reserved {
                    points.push((filter.items(), filter.expected_rate()));
                }
                points
            }
            Value::RedisBloom(filter) => {
                let fill = |it: &RedisLayer| expected_fill(it.capacity, it.probes, it.bits);
                let full = redisbloom_rates(filter, &filter.layers().map(fill).collect::<Vec<_>>());
                curve(filter.capacity(), points, |items| redis_bloom_rate(filter, &full, items))
            }
            Value::RedisCuckoo(filter) => {
                let slots = filter.slots();
                let compared = 2.0 * f64::from(filter.bucket_size()) * filter.sub_filters() as f64;
                curve(slots, points, |items| {
                    RedisCuckoo::rate_at(compared * items as f64 / slots as f64)
                })
            }
            Value::Filter(file) => match &file.filter {
                AnyFilter::Growing(_) => Vec::new(),
                AnyFilter::Window(window) => {
                    let (plan, slices) = (window.plan(), u64::from(window.slices()));
                    let most = most_of(plan);
                    let most = (most + most / slices).max(held);
                    curve(most, points, |items| plan.rate_at(per_window(items, slices)))
                }
                filter => {
                    let plan = filter.plan();
                    curve(most_of(plan).max(held), points, |items| plan.rate_at(items))
                }
            },
        }
    }
}

/// Returns the expected rate of a plan at `points` numbers of items, as [`Value::rate_curve`] does
/// for a filter.
pub(crate) fn plan_curve(plan: &Plan, points: u64) -> Vec<RatePoint> {
    if plan.kind().grows() {
        return Vec::new();
    }
    curve(most_of(plan), points, |items| plan.rate_at(items))
}

/// Returns the number of items at which the curve of a plan ends.
fn most_of(plan: &Plan) -> u64 {
    match plan.kind() {
        // A full cuckoo table rejects items, so the number of items cannot exceed the capacity by
        // much.
        tamis::Kind::Cuckoo => plan.items_at(1.0).max(plan.items()),
        _ => (plan.items() as f64 * PAST_CAPACITY) as u64,
    }
}

/// Returns the number of items that arrive in one span if `slices + 1` slices hold `items` items.
fn per_window(items: u64, slices: u64) -> u64 {
    (u128::from(items) * u128::from(slices) / u128::from(slices + 1)) as u64
}

fn curve(most: u64, points: u64, rate_at: impl Fn(u64) -> f64) -> Vec<RatePoint> {
    let steps = points.saturating_sub(1).clamp(1, most.max(1));
    (0..=steps)
        .map(|step| {
            let items = (u128::from(most) * u128::from(step) / u128::from(steps)) as u64;
            (items, rate_at(items))
        })
        .collect()
}

/// Returns the rate of a scaling Bloom filter with `items` items. The layers fill in order. `full` contains the rate of
/// each layer when the layer is full.
fn redis_bloom_rate(filter: &RedisBloom, full: &[f64], items: u64) -> f64 {
    let mut left = items;
    let mut all_no = 1.0;
    for (layer, &full) in filter.layers().zip(full) {
        let held = left.min(layer.capacity);
        left -= held;
        let rate = if held == layer.capacity { full } else { layer_rate(filter, layer, held) };
        all_no *= 1.0 - rate;
    }
    1.0 - all_no
}

/// Returns the expected rate of a layer with `items` items.
fn layer_rate(filter: &RedisBloom, layer: &RedisLayer, items: u64) -> f64 {
    redisbloom_rate(filter, layer, expected_fill(items, layer.probes, layer.bits))
}

#[cfg(test)]
mod tests {
    use tamis_resp::Protocol;

    use super::*;
    use crate::command::handler::Handler;
    use crate::command::run::Env;
    use crate::settings::Settings;
    use crate::table::find;

    fn made(line: &str) -> Value {
        let mut value = None;
        run(&mut value, line);
        value.unwrap()
    }

    fn run(value: &mut Option<Value>, line: &str) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let settings = Settings::default();
        let env = Env::new(&settings, Protocol::Resp3, 1);
        let Handler::Key(handler) = find(words[0]).unwrap().handler else { panic!() };
        handler.run(value, &words, &env);
    }

    #[test]
    fn curves_rise_to_the_target_at_capacity() {
        for line in [
            "BF.RESERVE k 0.01 10000 NONSCALING",
            "TM.RESERVE k KIND classic ITEMS 10000 RATE 0.01",
            "TM.RESERVE k KIND split-block ITEMS 10000 RATE 0.01",
            "TM.RESERVE k KIND counting ITEMS 10000 RATE 0.01",
            "TM.RESERVE k KIND cuckoo ITEMS 10000 RATE 0.01",
            "CF.RESERVE k 10000",
        ] {
            let value = made(line);
            let curve = value.rate_curve(31, 0.0);
            assert_eq!((curve.len(), curve[0]), (31, (0, 0.0)), "{line}");
            assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{line}: {curve:?}");
            let at_capacity = curve.iter().find(|point| point.0 >= 10_000).unwrap().1;
            assert!((0.005..0.03).contains(&at_capacity), "{line}: {at_capacity}");
        }
    }

    #[test]
    fn growing_filters_have_no_curve() {
        for line in ["TM.RESERVE k KIND growing ITEMS 10 RATE 0.01", "BF.ADD k a"] {
            let value = made(line);
            assert!(value.rate_curve(9, 0.0).is_empty(), "{line}");
        }
    }

    #[test]
    fn the_curve_reaches_the_present_items_and_their_rate() {
        for (line, most) in [
            ("TM.RESERVE k KIND classic ITEMS 1000 RATE 0.01", 4000),
            ("TM.RESERVE k KIND split-block ITEMS 1000 RATE 0.01", 4000),
            ("TM.RESERVE k KIND window WINDOW 1000 ITEMS RATE 0.01", 10_000),
            ("BF.RESERVE k 0.01 1000", 5000),
        ] {
            let mut value = Some(made(line));
            let add = if line.starts_with("BF") { "BF.ADD" } else { "TM.ADD" };
            for item in 0..most {
                run(&mut value, &format!("{add} k {item}"));
            }
            let value = value.unwrap();
            let info = value.info(&Settings::default(), 1).unwrap();
            let curve = value.rate_curve(61, info.items);
            let (end, _) = *curve.last().unwrap();
            assert!(end as f64 >= info.items, "{line}: {end}, {}", info.items);
            let after = curve.iter().find(|point| point.0 as f64 >= info.items).unwrap().1;
            let error = (info.rate_now - after).abs();
            assert!(error <= after * 0.3, "{line}: {}, curve {after}", info.rate_now);
        }
    }

    #[test]
    fn the_smallest_filters_have_curves() {
        let value = made("BF.RESERVE k 0.5 1 NONSCALING");
        assert_eq!(value.rate_curve(50, 0.0).len(), 2);
    }
}
