//! The info about a filter in `TM.INFO`, in `/metrics` and in the console.

mod forecast;
mod of_kind;
mod utilization;

use tamis::{AnyFilter, Span};

use crate::settings::Settings;
use crate::value::Value;
pub use forecast::Forecast;
pub(crate) use of_kind::{FINGERPRINTS, slots_of_redis_cuckoo};
use of_kind::{of_expandable, of_file, of_redis_bloom, of_redis_cuckoo};
pub use utilization::Utilization;

/// The type, contents and remaining capacity of a filter.
///
/// # Examples
///
/// ```
/// use tamis_commands::{ScalableBloom, Facts, Forecast, Settings, Value};
///
/// let filter = Value::Bloom(Box::new(ScalableBloom::reserve(1000, 0.01, None)?));
/// let facts = Facts::of(&filter, &Settings::default(), 0).expect("it is a filter");
/// assert_eq!((facts.items, facts.headroom_items), (0.0, Some(1000)));
/// let forecast = facts.forecast(Some(0.01));
/// assert_eq!(forecast.to_string(), "full in 27.8 hours at the present rate of adds");
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// The kind, as [`Value::kind_name`] returns it.
    pub kind: &'static str,
    /// A description of everything that must be equal for two filters to merge.
    pub layout: String,
    /// The number of items in the filter.
    pub items: f64,
    /// True if the filter counts its inserts; false if the number of items is estimated from the
    /// bits.
    pub is_counted: bool,
    /// The planned number of items; `None` if the filter accepts any number.
    pub capacity: Option<u64>,
    /// The planned rate, a probability.
    pub rate_planned: f64,
    /// The current rate, a probability.
    pub rate_now: f64,
    /// The share of bits or slots in use; for a growing filter, the share of its rate in use.
    pub fill: f64,
    /// The number of items that the filter accepts before its rate exceeds the planned one or
    /// before it is full. `None` if the filter keeps its rate at any number of items.
    pub headroom_items: Option<u64>,
    /// The memory of the filter, in bytes.
    pub bytes: u64,
    /// True if the current rate exceeds the planned one.
    pub is_over_rate: bool,
    /// True if the filter rejects items beyond its headroom.
    pub refuses: bool,
    /// The approximate memory of one more item, in bytes, if the filter is growing.
    pub bytes_per_new_item: Option<f64>,
    /// The parts of the filter, if it has or may get several.
    pub layers: Vec<Layer>,
    /// For a window: its span, its number of slices, and whether inserting an item again refreshes
    /// it.
    pub window: Option<(Span, u32, bool)>,
}

/// One of several parts of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Layer {
    /// The number of items in the part.
    pub items: u64,
    /// The planned number of items; `None` if the part accepts any number.
    pub capacity: Option<u64>,
    /// The same measure as [`Facts::fill`].
    pub fill: f64,
}

/// How many bytes of a large filter a fast estimate reads. The estimate is usually within a
/// percent.
const SAMPLE_BYTES: u64 = 64 << 10;

impl Facts {
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
        let facts = match value {
            Value::Bytes(_) | Value::PartialLoad(_) => return None,
            Value::Empty(empty) => {
                return Self::by(&empty.build(), settings, now_millis, sample_bytes);
            }
            Value::Bloom(filter) => of_expandable(filter, sample_bytes.is_some()),
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
        Some(Self { kind: value.kind_name(), bytes: value.memory_bytes(), ..facts })
    }

    /// Returns the number of items at which the filter is as full as planned; `None` if it accepts
    /// any number.
    ///
    /// For most filters this is the capacity. The capacity of a window counts the items of one
    /// span, but a window holds up to one more slice, which it forgets next.
    #[must_use]
    pub fn held_capacity(&self) -> Option<u64> {
        let slice = match self.window {
            Some((_, slices, _)) => self.capacity? / u64::from(slices.max(1)),
            None => 0,
        };
        Some(self.capacity?.saturating_add(slice))
    }

    /// Tests whether the filter rejects inserts.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refuses && self.headroom_items == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use tamis::{Hasher, Kind, Plan};
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
                let all = Facts::of(&value, &Settings::default(), 0).unwrap();
                let glance = Facts::at_a_glance(&value, &Settings::default(), 0).unwrap();
                let strain = value.strain(0).unwrap();
                // With few items, the number of items in the sampled part is random.
                let slack = 4.0 * (items as f64 * all.bytes as f64 / SAMPLE_BYTES as f64).sqrt();
                for (what, one, other, slack) in [
                    ("items", all.items, glance.items, slack),
                    ("items of strain", all.items, strain.items, slack),
                    ("fill", all.fill, glance.fill, 1e-3),
                    ("rate", all.rate_now, glance.rate_now, 1e-4),
                ] {
                    let error = (one - other).abs();
                    assert!(error <= one * 0.05 + slack, "{kind}, {items} {what}: {one}, {other}");
                }
                assert!(!all.is_over_rate && !glance.is_over_rate && strain.used <= 1.0);
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
            let glance = Facts::at_a_glance(&value, &Settings::default(), 0).unwrap();
            assert!(glance.is_over_rate && value.strain(0).unwrap().used > 1.2, "{kind}");
            assert_eq!(glance.forecast(None), Forecast::Over);
            assert_eq!((glance.headroom_items, glance.forecast(None).days()), (Some(0), Some(0.0)));
        }
    }

    #[test]
    fn forecasts_follow_from_room_and_pace() {
        let bounded = Facts::of(
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
        let growing = Facts::of(
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
        let window = Facts::of(
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
        let full = Facts::of(&Value::Bloom(Box::new(full)), &Settings::default(), 0).unwrap();
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
            for facts in [Facts::of(&value, &settings, 0), Facts::at_a_glance(&value, &settings, 0)]
            {
                let facts = facts.unwrap();
                assert_eq!(facts.is_full(), is_full, "{cf_max_expansions}");
                assert_eq!(facts.forecast(None) == Forecast::Full, is_full, "{cf_max_expansions}");
            }
        }
    }

    #[test]
    fn a_full_window_holds_a_slice_more_than_a_span() {
        let plan = Plan::window(9000, 0.01, 3).unwrap();
        let mut filter = tamis::Window::new(&plan, Hasher::default(), Span::Items(9000)).unwrap();
        (0..200_000_u64).for_each(|item| _ = tamis::Insert::insert(&mut filter, &item));
        let value = Value::Filter(Box::new(TamisFile::new(AnyFilter::Window(filter))));
        let facts = Facts::of(&value, &Settings::default(), 0).unwrap();
        assert_eq!((facts.capacity, facts.held_capacity()), (Some(9000), Some(12_000)));
        assert!((9000.0..=12_300.0).contains(&facts.items), "{}", facts.items);
    }

    #[test]
    fn a_filter_that_refuses_adds_is_full() {
        let options = tamis_redisbloom::RedisCuckooOptions {
            capacity: 64,
            expansion: 0,
            ..Default::default()
        };
        let mut cuckoo = RedisCuckoo::new(&options).unwrap();
        let facts = |cuckoo: &RedisCuckoo| {
            Facts::of(&Value::RedisCuckoo(Box::new(cuckoo.clone())), &Settings::default(), 0)
                .unwrap()
        };
        assert!(!facts(&cuckoo).is_full());
        let mut item = 0_u64;
        while cuckoo.insert(&item).is_ok() {
            item += 1;
        }
        let full = facts(&cuckoo);
        assert!(full.is_full() && full.headroom_items == Some(0));
        assert_eq!(full.forecast(Some(5.0)).to_string(), "full: refuses adds");
        let mut ours =
            AnyFilter::new(&Plan::for_kind(Kind::Cuckoo, 1000, 0.01).unwrap(), Hasher::default())
                .unwrap();
        let mut item = 0_u64;
        while ours.try_insert(&item).is_ok() {
            item += 1;
        }
        let full =
            Facts::of(&Value::Filter(Box::new(TamisFile::new(ours))), &Settings::default(), 0)
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
        let full = Facts::of(&value, &Settings::default(), 0).unwrap();
        assert!(full.is_full() && !full.is_over_rate, "{full:?}");
        assert_eq!(value.strain(0), Some(Utilization { items: full.items, used: 1.0 }));
        // Other filters that grow or forget are never full; `is_over_rate` reports when one exceeds
        // its rate.
        for kind in [Kind::Growing, Kind::SplitBlock] {
            let plan = Plan::for_kind(kind, 100, 0.01).unwrap();
            assert!(
                !Facts::of(&filled(&plan, 1000, 0), &Settings::default(), 0).unwrap().is_full(),
                "{kind}"
            );
        }
    }

    #[test]
    fn an_expandable_filter_reports_its_parts() {
        let mut filter = ScalableBloom::reserve(100_000, 0.01, Some(2)).unwrap();
        for item in 0..150_000_u64 {
            filter
                .insert_each(&[item.to_le_bytes().as_slice()], &mut tamis::Answers::new())
                .unwrap();
        }
        let value = Value::Bloom(Box::new(filter));
        let (all, glance) = (
            Facts::of(&value, &Settings::default(), 0).unwrap(),
            Facts::at_a_glance(&value, &Settings::default(), 0).unwrap(),
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
        assert_eq!(value.strain(0), Some(Utilization { items: all.items, used: 0.0 }));
    }
}
