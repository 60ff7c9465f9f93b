//! How full a filter is and when it reaches its limit, for `TM.INFO`, `/metrics` and the console.

mod fields;
mod forecast;
mod of_kind;
mod utilization;

use tamis::AnyFilter;

use crate::settings::Settings;
use crate::value::Value;
pub use fields::{FilterStatus, Layer};
pub use forecast::Forecast;
pub(crate) use of_kind::{FINGERPRINTS, slots_of_redis_cuckoo};
use of_kind::{SAMPLE_BYTES, of_file, of_redis_bloom, of_redis_cuckoo, of_scalable_bloom};
pub use utilization::Utilization;
pub(crate) use utilization::{items_of, rounded};

impl FilterStatus {
    /// Returns the info of a filter at `now_millis`, in milliseconds since 1970; `None` if the
    /// value is no filter. May read all bits of the filter.
    ///
    /// `settings` are the current settings for inserts: `cf-max-expansions` decides whether
    /// RedisBloom's cuckoo filters reject inserts.
    #[must_use]
    pub fn of(value: &Value, settings: &Settings, now_millis: u64) -> Option<Self> {
        Self::by(value, settings, now_millis, None)
    }

    /// Returns the same info in at most tens of microseconds. For a large filter it is estimated
    /// from a part of the bits.
    #[must_use]
    pub fn at_a_glance(value: &Value, settings: &Settings, now_millis: u64) -> Option<Self> {
        Self::by(value, settings, now_millis, Some(SAMPLE_BYTES))
    }

    fn by(
        value: &Value,
        settings: &Settings,
        now_millis: u64,
        sample_bytes: Option<u64>,
    ) -> Option<Self> {
        let status = match value {
            Value::Bytes(_) | Value::PartialLoad(_) => return None,
            Value::Empty(empty) => {
                return Self::by(&empty.build(), settings, now_millis, sample_bytes);
            }
            Value::Bloom(filter) => of_scalable_bloom(filter, sample_bytes.is_some()),
            Value::RedisBloom(filter) => of_redis_bloom(filter),
            Value::RedisCuckoo(filter) => of_redis_cuckoo(filter, settings),
            Value::Filter(file) => {
                let sample = sample_bytes.and_then(|max_bytes| file.filter.sample(max_bytes));
                match (sample, &file.filter) {
                    (Some(mut part), _) => {
                        part.advance(now_millis);
                        of_file(file, &part)
                    }
                    (None, AnyFilter::Window(window)) => {
                        // Setting the clock needs a view, because access to the value is shared.
                        let mut whole = AnyFilter::Window(window.as_view());
                        whole.advance(now_millis);
                        of_file(file, &whole)
                    }
                    (None, filter) => of_file(file, filter),
                }
            }
        };
        Some(Self { kind: value.kind_name(), bytes: value.memory_bytes(), ..status })
    }
}

#[cfg(test)]
mod tests {
    use tamis::{Hasher, Kind, Plan, Span};
    use tamis_formats::TamisFile;
    use tamis_redisbloom::RedisCuckoo;

    use super::*;
    use crate::scalable_bloom::ScalableBloom;

    fn filled(plan: &Plan, items: u64, now_millis: u64) -> Value {
        let mut filter = AnyFilter::new(plan, Hasher::default()).unwrap();
        filter.advance(now_millis);
        for item in 0..items {
            filter.try_insert(&item).unwrap();
        }
        Value::Filter(Box::new(TamisFile::new(filter)))
    }

    #[test]
    fn a_glance_finds_nearly_what_all_bits_show() {
        for kind in [
            Kind::SplitBlock,
            Kind::Parquet,
            Kind::Classic,
            Kind::Counting,
            Kind::Window,
            Kind::Cuckoo,
        ] {
            let plan = Plan::for_kind(kind, 500_000, 0.01).unwrap();
            for items in [0, 1000, 400_000] {
                let value = filled(&plan, items, 0);
                let all = FilterStatus::of(&value, &Settings::default(), 0).unwrap();
                let glance = FilterStatus::at_a_glance(&value, &Settings::default(), 0).unwrap();
                let utilization = value.utilization(0).unwrap();
                // With few items, the number of items in the sampled part is random.
                let slack = 4.0 * (items as f64 * all.bytes as f64 / SAMPLE_BYTES as f64).sqrt();
                for (what, one, other, slack) in [
                    ("items", all.items, glance.items, slack),
                    ("items of utilization", all.items, utilization.items, slack),
                    ("fill", all.fill, glance.fill, 1e-3),
                    ("rate", all.rate_now, glance.rate_now, 1e-4),
                ] {
                    let error = (one - other).abs();
                    assert!(error <= one * 0.05 + slack, "{kind}, {items} {what}: {one}, {other}");
                }
                assert!(!all.is_over_rate && !glance.is_over_rate && utilization.used <= 1.0);
                assert_eq!(
                    (all.bytes, all.capacity, all.layout),
                    (glance.bytes, glance.capacity, glance.layout)
                );
            }
        }
    }

    #[test]
    fn too_many_items_are_seen_at_a_glance() {
        for kind in [Kind::SplitBlock, Kind::Classic, Kind::Counting] {
            let value = filled(&Plan::for_kind(kind, 200_000, 0.01).unwrap(), 300_000, 0);
            let glance = FilterStatus::at_a_glance(&value, &Settings::default(), 0).unwrap();
            assert!(glance.is_over_rate && value.utilization(0).unwrap().used > 1.2, "{kind}");
            assert_eq!(glance.forecast(None), Forecast::Over);
            assert_eq!((glance.headroom_items, glance.forecast(None).days()), (Some(0), Some(0.0)));
        }
    }

    #[test]
    fn forecasts_follow_from_room_and_pace() {
        let bounded = FilterStatus::of(
            &filled(&Plan::for_kind(Kind::Classic, 1_000_000, 0.01).unwrap(), 0, 0),
            &Settings::default(),
            0,
        )
        .unwrap();
        let room = bounded.headroom_items.unwrap() as f64;
        assert_eq!(bounded.forecast(None), Forecast::Unknown);
        assert_eq!(bounded.forecast(Some(0.0)), Forecast::NotGrowing);
        assert_eq!(bounded.forecast(Some(-3.0)), Forecast::NotGrowing);
        assert_eq!(bounded.forecast(Some(10.0)), Forecast::OverInDays(room / 864_000.0));
        for (pace, text) in [
            (1.0, "over target in 11.6 days at the present rate of adds"),
            (100.0, "over target in 2.8 hours at the present rate of adds"),
            (1e5, "over target in 1 minutes at the present rate of adds"),
            (1e-6, "over target in more than 100 years at the present rate of adds"),
        ] {
            assert_eq!(bounded.forecast(Some(pace)).to_string(), text);
        }
        let growing = FilterStatus::of(
            &filled(&Plan::for_kind(Kind::Growing, 1, 0.01).unwrap(), 10_000, 0),
            &Settings::default(),
            0,
        )
        .unwrap();
        assert_eq!(growing.forecast(None), Forecast::NoLimit { bytes_per_day: None });
        let Forecast::NoLimit { bytes_per_day: Some(bytes) } = growing.forecast(Some(1.0)) else {
            panic!("it grows")
        };
        assert!((86_400.0..864_000.0).contains(&bytes), "{bytes}");
        let window = FilterStatus::of(
            &filled(&Plan::window(1000, 0.01, 1).unwrap(), 5000, 0),
            &Settings::default(),
            0,
        )
        .unwrap();
        assert_eq!(window.forecast(Some(1e9)), Forecast::NoLimit { bytes_per_day: None });
        let mut full = ScalableBloom::reserve(3, 0.01, None).unwrap();
        for hash in 0..3 {
            let item = [hash];
            assert_eq!(full.insert_each(&[item.as_slice()], &mut tamis::Answers::new()), Ok(()));
        }
        let full =
            FilterStatus::of(&Value::Bloom(Box::new(full)), &Settings::default(), 0).unwrap();
        assert_eq!(
            (full.forecast(None), full.forecast(Some(0.0))),
            (Forecast::Full, Forecast::Full)
        );
    }

    #[test]
    fn a_cuckoo_filter_at_its_last_expansion_is_full() {
        let options = tamis_redisbloom::RedisCuckooOptions { capacity: 64, ..Default::default() };
        let mut cuckoo = RedisCuckoo::new(&options).unwrap();
        let mut item = 0_u64;
        while cuckoo.sub_filters() < 3 {
            cuckoo.insert(&item).unwrap();
            item += 1;
        }
        let value = Value::RedisCuckoo(Box::new(cuckoo));
        for (cf_max_expansions, is_full) in [(1, true), (3, true), (4, false)] {
            let settings = Settings { cf_max_expansions, ..Settings::default() };
            for status in [
                FilterStatus::of(&value, &settings, 0),
                FilterStatus::at_a_glance(&value, &settings, 0),
            ] {
                let status = status.unwrap();
                assert_eq!(status.is_full(), is_full, "{cf_max_expansions}");
                assert_eq!(status.forecast(None) == Forecast::Full, is_full, "{cf_max_expansions}");
            }
        }
    }

    #[test]
    fn a_full_window_holds_a_slice_more_than_a_span() {
        let plan = Plan::window(9000, 0.01, 3).unwrap();
        let mut filter = tamis::Window::new(&plan, Hasher::default(), Span::Items(9000)).unwrap();
        (0..200_000_u64).for_each(|item| _ = tamis::Insert::insert(&mut filter, &item));
        let value = Value::Filter(Box::new(TamisFile::new(AnyFilter::Window(filter))));
        let status = FilterStatus::of(&value, &Settings::default(), 0).unwrap();
        assert_eq!((status.capacity, status.held_capacity()), (Some(9000), Some(12_000)));
        assert!((9000.0..=12_300.0).contains(&status.items), "{}", status.items);
    }

    #[test]
    fn a_filter_that_refuses_adds_is_full() {
        let options = tamis_redisbloom::RedisCuckooOptions {
            capacity: 64,
            expansion: 0,
            ..Default::default()
        };
        let mut cuckoo = RedisCuckoo::new(&options).unwrap();
        let status = |cuckoo: &RedisCuckoo| {
            FilterStatus::of(&Value::RedisCuckoo(Box::new(cuckoo.clone())), &Settings::default(), 0)
                .unwrap()
        };
        assert!(!status(&cuckoo).is_full());
        let mut item = 0_u64;
        while cuckoo.insert(&item).is_ok() {
            item += 1;
        }
        let full = status(&cuckoo);
        assert!(full.is_full() && full.headroom_items == Some(0));
        assert_eq!(full.forecast(Some(5.0)).to_string(), "full: refuses adds");
        let mut ours =
            AnyFilter::new(&Plan::for_kind(Kind::Cuckoo, 1000, 0.01).unwrap(), Hasher::default())
                .unwrap();
        let mut item = 0_u64;
        while ours.try_insert(&item).is_ok() {
            item += 1;
        }
        let full = FilterStatus::of(
            &Value::Filter(Box::new(TamisFile::new(ours))),
            &Settings::default(),
            0,
        )
        .unwrap();
        assert!(full.is_full() && !full.is_over_rate, "{full:?}");
        // The growing filter has used all bits of the hash.
        let mut growing =
            AnyFilter::new(&Plan::for_kind(Kind::Growing, 1, 2.2e-14).unwrap(), Hasher::default())
                .unwrap();
        let mut item = 0_u64;
        while growing.try_insert(&item).is_ok() {
            item += 1;
        }
        let value = Value::Filter(Box::new(TamisFile::new(growing)));
        let full = FilterStatus::of(&value, &Settings::default(), 0).unwrap();
        assert!(full.is_full() && !full.is_over_rate, "{full:?}");
        assert_eq!(value.utilization(0), Some(Utilization { items: full.items, used: 1.0 }));
        // Other filters that grow or forget are never full; `is_over_rate` reports when one exceeds
        // its rate.
        for kind in [Kind::Growing, Kind::SplitBlock] {
            let plan = Plan::for_kind(kind, 100, 0.01).unwrap();
            assert!(
                !FilterStatus::of(&filled(&plan, 1000, 0), &Settings::default(), 0)
                    .unwrap()
                    .is_full(),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_scalable_filter_reports_its_parts() {
        let mut filter = ScalableBloom::reserve(100_000, 0.01, Some(2)).unwrap();
        for item in 0..150_000_u64 {
            filter
                .insert_each(&[item.to_le_bytes().as_slice()], &mut tamis::Answers::new())
                .unwrap();
        }
        let value = Value::Bloom(Box::new(filter));
        let (all, glance) = (
            FilterStatus::of(&value, &Settings::default(), 0).unwrap(),
            FilterStatus::at_a_glance(&value, &Settings::default(), 0).unwrap(),
        );
        assert_eq!(all.layers, glance.layers);
        let sum: u64 = all.layers.iter().map(|layer| layer.items).sum();
        assert_eq!(
            (all.layers.len(), sum as f64, all.layers[0].capacity),
            (2, all.items, Some(100_000))
        );
        assert!((all.fill - glance.fill).abs() < 0.01, "{} {}", all.fill, glance.fill);
        assert!(
            (all.rate_now - glance.rate_now).abs() < 0.001,
            "{} {}",
            all.rate_now,
            glance.rate_now
        );
        assert!(all.bytes_per_new_item.is_some_and(|bytes| (1.0..10.0).contains(&bytes)));
        assert_eq!(value.utilization(0), Some(Utilization { items: all.items, used: 0.0 }));
    }
}
