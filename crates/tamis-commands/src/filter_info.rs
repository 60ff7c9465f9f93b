//! Returns the info of a filter, for `TM.INFO`, `/metrics` and the console.

pub(crate) mod curve;
pub(crate) mod forecast;
mod redisbloom;
pub(crate) mod utilization;

use tamis_formats::FilterInfo;

pub(crate) use crate::filter_info::redisbloom::expected_fill;
use crate::filter_info::redisbloom::{of_redis_bloom, of_redis_cuckoo};
use crate::filter_info::utilization::SAMPLE_BYTES;
use crate::settings::Settings;
use crate::value::Value;

impl Value {
    /// Returns the info of a filter at `now_millis`, in milliseconds since 1970; `None` if the
    /// value is not a filter. May read all bits of the filter.
    ///
    /// `settings` are the current settings for inserts. The setting `cf-max-expansions` decides
    /// whether a cuckoo filter of RedisBloom rejects inserts.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{Forecast, ScalableBloom, Settings, Value};
    ///
    /// let filter = Value::Bloom(Box::new(ScalableBloom::reserve(1000, 0.01, None)?));
    /// let info = filter.info(&Settings::default(), 0).expect("it is a filter");
    /// assert_eq!((info.items, info.headroom_items), (0.0, Some(1000)));
    /// let forecast = Forecast::of(&info, Some(0.01));
    /// assert_eq!(forecast.to_string(), "full in 27.8 hours at the present rate of adds");
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    #[must_use]
    pub fn info(&self, settings: &Settings, now_millis: u64) -> Option<FilterInfo> {
        self.info_from(settings, now_millis, None)
    }

    /// Returns the same info as [`info`](Self::info) in at most tens of microseconds. For a large
    /// filter, the info is an estimate from a part of the bits.
    #[must_use]
    pub fn sampled_info(&self, settings: &Settings, now_millis: u64) -> Option<FilterInfo> {
        self.info_from(settings, now_millis, Some(SAMPLE_BYTES))
    }

    fn info_from(
        &self,
        settings: &Settings,
        now_millis: u64,
        sample_bytes: Option<u64>,
    ) -> Option<FilterInfo> {
        let info = match self {
            Value::Bytes(_) | Value::PartialLoad(_) => return None,
            Value::Empty(empty) => {
                return empty.build().info_from(settings, now_millis, sample_bytes);
            }
            Value::Bloom(filter) => filter.info(sample_bytes.is_some()),
            Value::RedisBloom(filter) => of_redis_bloom(filter),
            Value::RedisCuckoo(filter) => of_redis_cuckoo(filter, settings),
            Value::Filter(file) => {
                let counted = file.counted_items();
                let sample = sample_bytes.and_then(|max_bytes| file.filter.sample(max_bytes));
                // The lock is shared, so set the time in a view of the window, not in the window.
                match sample.as_ref().unwrap_or(&file.filter).as_view() {
                    Some(mut part) => {
                        part.advance(now_millis);
                        file.info_from(&part, counted)
                    }
                    None => file.info_from(&file.filter, counted),
                }
            }
        };
        Some(FilterInfo { kind: self.kind_name(), bytes: self.memory_bytes(), ..info })
    }
}

#[cfg(test)]
mod tests {
    use tamis::{Answers, AnyFilter, Hasher, Kind, Plan, Span};
    use tamis_formats::TamisFile;
    use tamis_redisbloom::{RedisBloom, RedisBloomOptions, RedisCuckoo, RedisCuckooOptions};

    use super::*;
    use crate::filter_info::forecast::Forecast;
    use crate::filter_info::utilization::Utilization;
    use crate::value::scalable_bloom::ScalableBloom;

    fn info(value: &Value) -> FilterInfo {
        value.info(&Settings::default(), 0).unwrap()
    }

    fn sampled(value: &Value) -> FilterInfo {
        value.sampled_info(&Settings::default(), 0).unwrap()
    }

    fn file(filter: AnyFilter) -> Value {
        Value::Filter(Box::new(TamisFile::new(filter)))
    }

    fn filled(plan: &Plan, items: u64) -> Value {
        let mut filter = AnyFilter::from_plan(plan, Hasher::default()).unwrap();
        filter.advance(0);
        (0..items).for_each(|item| _ = filter.try_insert(&item).unwrap());
        file(filter)
    }

    /// Returns a window of three slices with items.
    fn window(capacity: u64, span: Span, items: u64) -> Value {
        let plan = Plan::window(capacity, 0.01, 3).unwrap();
        let mut filter = tamis::Window::from_plan(&plan, Hasher::default(), span).unwrap();
        (0..items).for_each(|item| _ = tamis::Insert::insert(&mut filter, &item));
        file(AnyFilter::Window(filter))
    }

    /// Returns a full filter, which has refused an item.
    fn full(plan: &Plan) -> Value {
        let mut filter = AnyFilter::from_plan(plan, Hasher::default()).unwrap();
        _ = (0_u64..).find(|item| filter.try_insert(item).is_err());
        file(filter)
    }

    #[test]
    fn a_sample_gives_nearly_what_all_bits_show() {
        use Kind::{Classic, Counting, Cuckoo, Parquet, SplitBlock, Window};
        for kind in [SplitBlock, Parquet, Classic, Counting, Window, Cuckoo] {
            let plan = Plan::for_kind(kind, 500_000, 0.01).unwrap();
            for items in [0, 1000, 400_000] {
                let value = filled(&plan, items);
                let (all, sampled) = (info(&value), sampled(&value));
                let utilization = value.utilization(0).unwrap();
                // With few items, the number of items in the sampled part is random.
                let slack = 4.0 * (items as f64 * all.bytes as f64 / SAMPLE_BYTES as f64).sqrt();
                for (what, one, other, slack) in [
                    ("items", all.items, sampled.items, slack),
                    ("items of utilization", all.items, utilization.items, slack),
                    ("fill", all.fill, sampled.fill, 1e-3),
                    ("rate", all.rate_now, sampled.rate_now, 1e-4),
                ] {
                    let error = (one - other).abs();
                    assert!(error <= one * 0.05 + slack, "{kind}, {items} {what}: {one}, {other}");
                }
                assert!(!all.is_over_rate && !sampled.is_over_rate && utilization.used <= 1.0);
                let size = |it: &FilterInfo| (it.bytes, it.capacity, it.layout.clone());
                assert_eq!(size(&all), size(&sampled));
            }
        }
    }

    #[test]
    fn a_sample_shows_too_many_items() {
        for kind in [Kind::SplitBlock, Kind::Classic, Kind::Counting] {
            let value = filled(&Plan::for_kind(kind, 200_000, 0.01).unwrap(), 300_000);
            let sampled = sampled(&value);
            assert!(sampled.is_over_rate && value.utilization(0).unwrap().used > 1.2, "{kind}");
            let forecast = Forecast::of(&sampled, None);
            assert_eq!(forecast, Forecast::Over);
            assert_eq!((sampled.headroom_items, forecast.days()), (Some(0), Some(0.0)));
        }
    }

    #[test]
    fn only_a_filter_with_a_capacity_has_headroom() {
        let headroom = |plan: &Plan, items| {
            let info = info(&filled(plan, items));
            (info.headroom_items, info.bytes_per_new_item)
        };
        let classic = Plan::for_kind(Kind::Classic, 1_000_000, 0.01).unwrap();
        let (bounded, growth) = headroom(&classic, 0);
        assert!(bounded.is_some_and(|items| items.abs_diff(1_000_000) < 5000) && growth.is_none());
        let (endless, growth) = headroom(&Plan::for_kind(Kind::Growing, 1, 0.01).unwrap(), 10_000);
        assert!(growth.is_some_and(|bytes| (1.0..10.0).contains(&bytes)), "{growth:?}");
        assert_eq!(endless, None);
        assert_eq!(headroom(&Plan::window(1000, 0.01, 1).unwrap(), 5000), (None, None));
        let mut full = ScalableBloom::reserve(3, 0.01, None).unwrap();
        let items: [&[u8]; 3] = [&[0], &[1], &[2]];
        assert_eq!(full.insert_each(&items, &mut Answers::new()), Ok(()));
        assert!(info(&Value::Bloom(Box::new(full))).is_full());
    }

    #[test]
    fn a_cuckoo_filter_at_its_last_expansion_is_full() {
        let options = RedisCuckooOptions { capacity: 64, ..Default::default() };
        let mut cuckoo = RedisCuckoo::new(&options).unwrap();
        let mut items = 0_u64..;
        while cuckoo.sub_filters() < 3 {
            cuckoo.insert(&items.next().unwrap()).unwrap();
        }
        let value = Value::RedisCuckoo(Box::new(cuckoo));
        for (cf_max_expansions, is_full) in [(1, true), (3, true), (4, false)] {
            let settings = Settings { cf_max_expansions, ..Settings::default() };
            for info in [value.info(&settings, 0), value.sampled_info(&settings, 0)] {
                let info = info.unwrap();
                assert_eq!(info.is_full(), is_full, "{cf_max_expansions}");
                let forecast = Forecast::of(&info, None);
                assert_eq!(forecast == Forecast::Full, is_full, "{cf_max_expansions}");
            }
        }
    }

    #[test]
    fn a_full_window_holds_a_slice_more_than_a_span() {
        let info = info(&window(9000, Span::Items(9000), 200_000));
        assert_eq!((info.capacity, info.held_capacity()), (Some(9000), Some(12_000)));
        assert!((9000.0..=12_300.0).contains(&info.items), "{}", info.items);
    }

    #[test]
    fn a_window_over_its_rate_has_no_headroom() {
        // The window holds fewer items than planned, but all items are in one slice.
        let info = info(&window(3000, Span::Millis(60_000), 2500));
        assert!(info.is_over_rate && info.items < 3000.0, "{info:?}");
        assert_eq!(info.headroom_items, Some(0));
    }

    #[test]
    fn a_small_redisbloom_filter_states_the_rate_that_it_has() {
        let options = RedisBloomOptions { capacity: 1000, rate: 1e-6, ..Default::default() };
        let mut filter = RedisBloom::new(&options).unwrap();
        (0..1000_u64).for_each(|item| _ = filter.insert(&item.to_le_bytes()).unwrap());
        let stated = info(&Value::RedisBloom(Box::new(filter.clone()))).rate_now;
        let asked = 1_000_000..5_000_000_u64;
        let found = asked.filter(|item| filter.contains(&item.to_le_bytes())).count() as f64;
        let slack = 0.1 * found + 4.0 * found.sqrt();
        assert!(found > 16.0 && (found - 4e6 * stated).abs() < slack, "{found}: {stated}");
    }

    #[test]
    fn a_filter_that_refuses_adds_is_full() {
        let options = RedisCuckooOptions { capacity: 64, expansion: 0, ..Default::default() };
        let mut cuckoo = RedisCuckoo::new(&options).unwrap();
        assert!(!info(&Value::RedisCuckoo(Box::new(cuckoo.clone()))).is_full());
        while cuckoo.insert(&cuckoo.len()).is_ok() {}
        let info_of_full = info(&Value::RedisCuckoo(Box::new(cuckoo)));
        assert!(info_of_full.is_full() && info_of_full.headroom_items == Some(0));
        assert_eq!(Forecast::of(&info_of_full, Some(5.0)).to_string(), "full: refuses adds");
        let info_of_full = info(&full(&Plan::for_kind(Kind::Cuckoo, 1000, 0.01).unwrap()));
        assert!(info_of_full.is_full() && !info_of_full.is_over_rate, "{info_of_full:?}");
        // The growing filter has used all bits of the hash.
        let value = full(&Plan::for_kind(Kind::Growing, 1, 2.2e-14).unwrap());
        let info_of_full = info(&value);
        assert!(info_of_full.is_full() && !info_of_full.is_over_rate, "{info_of_full:?}");
        let utilization = Utilization { items: info_of_full.items, used: 1.0 };
        assert_eq!(value.utilization(0), Some(utilization));
        // A filter that never rejects items is never full. `is_over_rate` reports that the filter
        // exceeds the planned rate.
        for kind in [Kind::Growing, Kind::SplitBlock] {
            let plan = Plan::for_kind(kind, 100, 0.01).unwrap();
            assert!(!info(&filled(&plan, 1000)).is_full(), "{kind}");
        }
    }

    #[test]
    fn a_scalable_filter_reports_its_parts() {
        let mut filter = ScalableBloom::reserve(100_000, 0.01, Some(2)).unwrap();
        for item in 0..150_000_u64 {
            filter.insert_each(&[item.to_le_bytes().as_slice()], &mut Answers::new()).unwrap();
        }
        let value = Value::Bloom(Box::new(filter));
        let (all, sampled) = (info(&value), sampled(&value));
        assert_eq!(all.layers, sampled.layers);
        let sum: u64 = all.layers.iter().map(|layer| layer.items).sum();
        assert_eq!((all.layers.len(), all.layers[0].capacity), (2, Some(100_000)));
        assert_eq!(sum as f64, all.items);
        assert!((all.fill - sampled.fill).abs() < 0.01, "{all:?}, {sampled:?}");
        assert!((all.rate_now - sampled.rate_now).abs() < 0.001, "{all:?}, {sampled:?}");
        assert!(all.bytes_per_new_item.is_some_and(|bytes| (1.0..10.0).contains(&bytes)));
        assert_eq!(value.utilization(0), Some(Utilization { items: all.items, used: 0.0 }));
    }
}
