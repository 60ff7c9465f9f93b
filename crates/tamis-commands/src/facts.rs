//! What there is to tell of a filter: for `TM.INFO`, and for whoever watches a server.

use std::fmt;

use tamis::{AnyFilter, Bits, Filter, Kind, Plan, RedisBloom, RedisCuckoo, Span};
use tamis_formats::TamisFile;

use crate::expandable::{Expandable, Part};
use crate::settings::Settings;
use crate::value::Value;

/// What a filter is, what it holds, and how much room is left.
///
/// # Examples
///
/// ```
/// use tamis_commands::{Expandable, Facts, Forecast, Settings, Value};
///
/// let filter = Value::Bloom(Box::new(Expandable::reserve(1000, 0.01, None)?));
/// let facts = Facts::of(&filter, &Settings::default(), 0).expect("it is a filter");
/// assert_eq!((facts.items, facts.headroom_items), (0.0, Some(1000)));
/// let forecast = facts.forecast(Some(0.01));
/// assert_eq!(forecast.to_string(), "full in 27.8 hours at the present rate of adds");
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// As [`Value::kind_name`] names it.
    pub kind: &'static str,
    /// What must be equal for two filters to merge, in words.
    pub layout: String,
    /// How many items it holds.
    pub items: f64,
    /// Whether items are counted as they come; otherwise the bits tell how many there are, about.
    pub is_counted: bool,
    /// How many items it is for; `None` if there is room for any number.
    pub capacity: Option<u64>,
    /// The rate asked for, a probability.
    pub rate_planned: f64,
    /// The present rate, a probability.
    pub rate_now: f64,
    /// The share of bits, or of slots, that are taken; of growing filters that of the rate.
    pub fill: f64,
    /// How many items it takes before its rate is above the planned one, or before it takes no more; `None` if any
    /// number of items keeps the rate.
    pub headroom_items: Option<u64>,
    /// Its memory.
    pub bytes: u64,
    /// Whether its rate is above the planned one.
    pub is_over_rate: bool,
    /// Whether it takes no items beyond its headroom.
    pub refuses: bool,
    /// How much memory another item takes, about, if the filter is growing.
    pub bytes_per_new_item: Option<f64>,
    /// Its parts, if it has several or may have.
    pub layers: Vec<Layer>,
    /// Of a window: what it remembers, in how many slices, and whether a repeat counts as new.
    pub window: Option<(Span, u32, bool)>,
}

/// A part of a filter that has several.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Layer {
    /// How many items it holds.
    pub items: u64,
    /// How many items it is for; `None` if there is room for any number.
    pub capacity: Option<u64>,
    /// As [`Facts::fill`].
    pub fill: f64,
}

/// How near a filter is to its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Strain {
    /// How many items it holds.
    pub items: f64,
    /// What of its room is used: 1 at its limit, more above the planned rate; 0 if it has no limit.
    pub used: f64,
}

/// When a filter comes to its limit, at the present rate of adds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Forecast {
    /// Its rate is above the planned one.
    Over,
    /// It takes no more items.
    Full,
    /// It grows or forgets.
    NoLimit {
        /// By how much it grows, if it does.
        bytes_per_day: Option<f64>,
    },
    /// Nobody has counted the adds.
    Unknown,
    /// Not as long as no items come, or no more than go.
    NotGrowing,
    /// After so many days it is above the planned rate.
    OverInDays(f64),
    /// After so many days it takes no more items.
    FullInDays(f64),
}

/// How much of a large filter is looked at where a glance must do: what it tells is within a percent, mostly.
const SAMPLE_BYTES: u64 = 64 << 10;

const SECONDS_PER_DAY: f64 = 86_400.0;

impl Facts {
    /// Returns the facts of a filter at `now_millis`, in milliseconds since 1970; `None` if the value is no filter. May
    /// read all bits of the filter.
    ///
    /// The `settings` are those by which commands insert now: `cf-max-expansions` decides whether RedisBloom's cuckoo
    /// filters refuse adds.
    #[must_use]
    pub fn of(value: &Value, settings: &Settings, now_millis: u64) -> Option<Self> {
        Self::by(value, settings, now_millis, None)
    }

    /// Returns the same in tens of microseconds at most: large filters are estimated from a part of their bits.
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
            Value::Bytes(_) | Value::Arriving(_) => return None,
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
                        // A view has a clock of its own: it is told the time under shared access.
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

    /// Returns how many items the filter holds when it is as full as planned; `None` if there is room for any number.
    ///
    /// Of most filters that is the capacity. The capacity of a window is the items of one span, and a window holds up to
    /// one slice more, which it forgets next.
    #[must_use]
    pub fn held_capacity(&self) -> Option<u64> {
        let slice = match self.window {
            Some((_, slices, _)) => self.capacity? / u64::from(slices.max(1)),
            None => 0,
        };
        Some(self.capacity?.saturating_add(slice))
    }

    /// Tells whether the filter refuses adds.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refuses && self.headroom_items == Some(0)
    }

    /// Tells when the filter comes to its limit if it goes on taking so many new items a second.
    #[must_use]
    pub fn forecast(&self, items_per_second: Option<f64>) -> Forecast {
        match (self.headroom_items, items_per_second) {
            _ if self.is_full() => Forecast::Full,
            _ if self.is_over_rate => Forecast::Over,
            (None, pace) => Forecast::NoLimit {
                bytes_per_day: self
                    .bytes_per_new_item
                    .and_then(|bytes| Some(bytes * pace.filter(|it| *it > 0.0)? * SECONDS_PER_DAY)),
            },
            (_, None) => Forecast::Unknown,
            (Some(_), Some(pace)) if pace <= 0.0 => Forecast::NotGrowing,
            (Some(items), Some(pace)) => {
                let days = items as f64 / pace / SECONDS_PER_DAY;
                if self.refuses { Forecast::FullInDays(days) } else { Forecast::OverInDays(days) }
            }
        }
    }
}

impl Forecast {
    /// Returns the days that are left, 0 if there are none; `None` if there is no end to them, or nobody knows.
    #[must_use]
    pub fn days(self) -> Option<f64> {
        match self {
            Forecast::Over | Forecast::Full => Some(0.0),
            Forecast::OverInDays(days) | Forecast::FullInDays(days) => Some(days),
            Forecast::NoLimit { .. } | Forecast::Unknown | Forecast::NotGrowing => None,
        }
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, days) = match *self {
            Forecast::Over => return f.write_str("over target"),
            Forecast::Full => return f.write_str("full: refuses adds"),
            Forecast::NoLimit { bytes_per_day: None } => {
                return f.write_str("no limit: it grows or forgets");
            }
            Forecast::NoLimit { bytes_per_day: Some(bytes) } => {
                return write!(
                    f,
                    "no limit: it grows by {bytes:.0} bytes a day at the present rate of adds"
                );
            }
            Forecast::Unknown => {
                return f.write_str("not known yet: adds are watched for a minute or two first");
            }
            Forecast::NotGrowing => {
                return f.write_str("not over target as long as no more items come than now");
            }
            Forecast::OverInDays(days) => ("over target", days),
            Forecast::FullInDays(days) => ("full", days),
        };
        let hours = days * 24.0;
        match days {
            _ if days > 36_525.0 => write!(f, "{what} in more than 100 years")?,
            _ if days >= 2.0 => write!(f, "{what} in {days:.1} days")?,
            _ if hours >= 2.0 => write!(f, "{what} in {hours:.1} hours")?,
            _ => write!(f, "{what} in {:.0} minutes", (hours * 60.0).ceil())?,
        }
        f.write_str(" at the present rate of adds")
    }
}

impl Value {
    /// Returns how many items a filter holds, if it counts them. Constant time.
    #[must_use]
    pub fn counted_items(&self) -> Option<u64> {
        match self {
            Value::Bloom(filter) => Some(filter.items()),
            Value::RedisBloom(filter) => Some(filter.items()),
            Value::RedisCuckoo(filter) => Some(filter.items()),
            Value::Filter(file) => match &file.filter {
                AnyFilter::Growing(filter) => Some(filter.items()),
                AnyFilter::Cuckoo(filter) => Some(filter.items()),
                _ => None,
            },
            Value::Bytes(_) | Value::Arriving(_) => None,
        }
    }

    /// Tells how near a filter is to its limit, at this time in milliseconds since 1970; `None` if it is none. Takes
    /// microseconds, some tens of them where items must be estimated.
    #[must_use]
    pub fn strain(&self, now_millis: u64) -> Option<Strain> {
        let (items, room) = match self {
            Value::Bytes(_) | Value::Arriving(_) => return None,
            Value::Bloom(filter) => {
                let items = filter.items() as f64;
                if filter.is_over_rate() {
                    return Some(Strain { items, used: filter.expected_rate() / filter.rate() });
                }
                let room = filter.expansion().is_none().then(|| filter.capacity() as f64);
                (items, room)
            }
            Value::RedisBloom(filter) => {
                let room = (!filter.is_scaling()).then(|| filter.capacity() as f64);
                (filter.items() as f64, room)
            }
            Value::RedisCuckoo(filter) => {
                (filter.items() as f64, Some(room_of_redis_cuckoo(filter) as f64))
            }
            Value::Filter(file) => match &file.filter {
                AnyFilter::Growing(filter) => (filter.items() as f64, None),
                AnyFilter::Cuckoo(filter) => {
                    (filter.items() as f64, Some(filter.plan().items() as f64))
                }
                filter => {
                    let strain = match (filter.sample(SAMPLE_BYTES), filter) {
                        (Some(mut part), whole) => {
                            part.advance(now_millis);
                            strain_by(&part, whole.plan())
                        }
                        (None, AnyFilter::Window(window)) => {
                            let mut window = window.as_view();
                            window.advance(now_millis);
                            strain_by(&window, window.plan())
                        }
                        (None, whole) => strain_by(whole, whole.plan()),
                    };
                    let most = if file.is_counted_within() { 1.0 } else { f64::INFINITY };
                    return Some(Strain { used: strain.used.min(most), ..strain });
                }
            },
        };
        Some(Strain { items, used: room.map_or(0.0, |room| items / room.max(1.0)) })
    }
}

/// Tells of a filter without a count how near it is to its limit, by a part of it.
fn strain_by(part: &impl Filter, whole: &Plan) -> Strain {
    let items = part.estimate_items() * share(part.plan(), whole);
    let used = if whole.kind().forgets() {
        // A window has room for what comes: only too much at once counts.
        let rate = part.estimate_rate();
        if rate > part.plan().rate_limit() { rate / whole.rate() } else { 0.0 }
    } else {
        items / whole.items() as f64
    };
    Strain { items, used }
}

/// Returns how many times as large the whole is as a part.
fn share(part: &Plan, whole: &Plan) -> f64 {
    whole.bits() as f64 / part.bits() as f64
}

/// Tells of a filter by what it is itself, or by a part of it.
fn of_file<B: Bits<Word = u64>, C: Bits<Word = u64>>(
    file: &TamisFile<B>,
    part: &AnyFilter<C>,
) -> Facts {
    let plan = file.filter.plan();
    let (items, is_counted) = match &file.filter {
        AnyFilter::Growing(filter) => (filter.items() as f64, true),
        AnyFilter::Cuckoo(filter) => (filter.items() as f64, true),
        _ => (part.estimate_items() * share(part.plan(), plan), false),
    };
    let kind = plan.kind();
    // A filter can hold more than planned where its size was rounded up.
    let most = plan.items_at(plan.rate()).max(plan.items()) as f64;
    let is_over_rate = !file.is_counted_within() && part.is_over_rate();
    let is_endless = (kind.grows() || kind.forgets()) && !is_over_rate;
    let bytes = file.filter.len_words() * 8;
    Facts {
        kind: kind.name(),
        layout: file.filter.layout().to_string(),
        items,
        is_counted,
        capacity: (!kind.grows()).then_some(plan.items()),
        rate_planned: plan.rate(),
        rate_now: part.estimate_rate(),
        fill: part.fill(),
        headroom_items: (!is_endless).then_some((most - items).max(0.0) as u64),
        bytes,
        is_over_rate,
        refuses: kind == Kind::Cuckoo,
        bytes_per_new_item: (kind.grows() && items > 0.0).then(|| bytes as f64 / items),
        layers: Vec::new(),
        window: match &file.filter {
            AnyFilter::Window(it) => Some((it.span(), it.slices(), it.refreshes())),
            _ => None,
        },
    }
}

fn of_expandable(filter: &Expandable, is_a_glance: bool) -> Facts {
    let items = filter.items();
    let layout = match filter.layouts() {
        (Some(reserved), Some(overflow)) => format!("{reserved}; then {overflow}"),
        (one, other) => one.or(other).map_or_else(String::new, |layout| layout.to_string()),
    };
    let is_over_rate = filter.is_over_rate();
    let is_endless = filter.expansion().is_some() && !is_over_rate;
    let (reserved, overflow) = filter.expected();
    let bytes_per_new_item = overflow
        .filter(|overflow| overflow.items > 0)
        .map(|overflow| overflow.bytes as f64 / overflow.items as f64);
    let layer = |part: &Part| Layer { items: part.items, capacity: part.capacity, fill: part.fill };
    let (rate_now, fill) = if is_a_glance {
        (filter.expected_rate(), reserved.or(overflow).map_or(0.0, |part| part.fill))
    } else {
        (filter.estimate_rate(), filter.fill())
    };
    Facts {
        kind: "",
        layout,
        items: items as f64,
        is_counted: true,
        capacity: Some(filter.capacity()),
        rate_planned: filter.rate(),
        rate_now,
        fill,
        headroom_items: match is_over_rate {
            true => Some(0),
            false => (!is_endless).then(|| filter.capacity().saturating_sub(items)),
        },
        bytes: filter.memory_bytes(),
        is_over_rate,
        refuses: filter.expansion().is_none(),
        bytes_per_new_item,
        layers: [&reserved, &overflow].into_iter().flatten().map(layer).collect(),
        window: None,
    }
}

fn of_redis_bloom(filter: &RedisBloom) -> Facts {
    let first = filter.layers().next().expect("a filter has a layer");
    let mut all_no = 1.0;
    let (mut ones, mut bits) = (0.0, 0.0);
    let mut layers = Vec::with_capacity(filter.layers().len());
    for layer in filter.layers() {
        // As many bits as the layer's items set, on average.
        let draws = layer.items as f64 * f64::from(layer.probes);
        let fill = -(-draws / layer.bits as f64).exp_m1();
        all_no *= 1.0 - fill.powi(layer.probes as i32);
        ones += fill * layer.bits as f64;
        bits += layer.bits as f64;
        layers.push(Layer { items: layer.items, capacity: Some(layer.capacity), fill });
    }
    let is_endless = filter.is_scaling();
    // Of what grows the first layer has half the rate, the next a quarter.
    let rate_planned = if is_endless { first.rate * 2.0 } else { first.rate };
    let rate_now = 1.0 - all_no;
    let last = filter.layers().next_back().expect("a filter has a layer");
    Facts {
        kind: "",
        layout: format!("RedisBloom's, {} layers, {bits} bits", filter.layers().len()),
        items: filter.items() as f64,
        is_counted: true,
        capacity: Some(filter.capacity()),
        rate_planned,
        rate_now,
        fill: ones / bits,
        headroom_items: (!is_endless).then(|| filter.capacity().saturating_sub(filter.items())),
        bytes: filter.size_bytes(),
        is_over_rate: rate_now > rate_planned,
        refuses: !is_endless,
        bytes_per_new_item: is_endless.then(|| last.bytes as f64 / last.capacity.max(1) as f64),
        layers,
        window: None,
    }
}

/// How many fingerprints an item of RedisBloom's cuckoo filter may have.
pub(crate) const FINGERPRINTS: f64 = 255.0;

/// Returns the slots of all sub-filters.
pub(crate) fn slots_of_redis_cuckoo(filter: &RedisCuckoo) -> u64 {
    let (bucket, parts) = (u64::from(filter.bucket_size()), filter.sub_filters());
    let growth = u64::from(filter.expansion().max(1));
    let (mut buckets, mut slots) = (filter.buckets(), 0_u64);
    for _ in 0..parts {
        slots = slots.saturating_add(buckets.saturating_mul(bucket));
        buckets = buckets.saturating_mul(growth);
    }
    slots
}

/// Returns how many items there may be until a lookup compares more fingerprints than those of two full buckets, or
/// until the filter is full.
fn room_of_redis_cuckoo(filter: &RedisCuckoo) -> u64 {
    slots_of_redis_cuckoo(filter) / filter.sub_filters().max(1) as u64
}

fn of_redis_cuckoo(filter: &RedisCuckoo, settings: &Settings) -> Facts {
    let (bucket, parts) = (u64::from(filter.bucket_size()), filter.sub_filters());
    let slots = slots_of_redis_cuckoo(filter);
    let fill = filter.items() as f64 / slots as f64;
    // A lookup compares two buckets of each sub-filter, whose fingerprints are one of 255.
    let rate_of = |slots: f64| 1.0 - (1.0 - 1.0 / FINGERPRINTS).powf(slots);
    let rate_planned = rate_of(2.0 * bucket as f64);
    let rate_now = filter.estimate_rate(SAMPLE_BYTES);
    // The setting counts sub-filters, and is checked before each add: at the limit every add fails.
    let is_at_limit = filter.sub_filters() >= settings.cf_max_expansions as usize;
    let is_refusing = filter.is_refusing() || is_at_limit;
    Facts {
        kind: "",
        layout: format!(
            "RedisBloom's, {parts} sub-filters, {slots} slots of 8 bits, {bucket} a bucket"
        ),
        items: filter.items() as f64,
        is_counted: true,
        capacity: Some(slots),
        rate_planned,
        rate_now,
        fill,
        headroom_items: Some(match is_refusing {
            true => 0,
            false => room_of_redis_cuckoo(filter).saturating_sub(filter.items()),
        }),
        bytes: filter.size_bytes(),
        is_over_rate: rate_now > rate_planned,
        refuses: is_refusing || filter.expansion() == 0,
        bytes_per_new_item: None,
        layers: Vec::new(),
        window: None,
    }
}

#[cfg(test)]
mod tests {
    use tamis::{Hasher, TryInsert as _};

    use super::*;

    fn filled(plan: &Plan, items: u64, now_millis: u64) -> Value {
        let mut filter = AnyFilter::new(plan, Hasher::default()).unwrap();
        filter.advance(now_millis);
        for item in 0..items {
            filter.try_insert(&item).unwrap();
        }
        Value::Filter(Box::new(TamisFile::new(filter)))
    }

    #[test]
    fn a_glance_tells_nearly_what_all_bits_do() {
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
                // What the part holds of so few items is chance.
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
        let mut full = Expandable::reserve(3, 0.01, None).unwrap();
        for hash in 0..3 {
            let item = [hash];
            assert_eq!(full.insert_each(&[item.as_slice()], &mut tamis::Answers::new()), Ok(1));
        }
        let full = Facts::of(&Value::Bloom(Box::new(full)), &Settings::default(), 0).unwrap();
        assert_eq!(
            (full.forecast(None), full.forecast(Some(0.0))),
            (Forecast::Full, Forecast::Full)
        );
    }

    #[test]
    fn a_cuckoo_filter_at_its_last_expansion_is_full() {
        let options = tamis::RedisCuckooOptions { capacity: 64, ..Default::default() };
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
        let options =
            tamis::RedisCuckooOptions { capacity: 64, expansion: 0, ..Default::default() };
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
        // What grows or forgets is never full, and what passes its rate says that.
        for kind in [Kind::Growing, Kind::SplitBlock] {
            let plan = Plan::for_kind(kind, 100, 0.01).unwrap();
            assert!(
                !Facts::of(&filled(&plan, 1000, 0), &Settings::default(), 0).unwrap().is_full(),
                "{kind}"
            );
        }
    }

    #[test]
    fn an_expandable_filter_tells_of_its_parts() {
        let mut filter = Expandable::reserve(100_000, 0.01, Some(2)).unwrap();
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
        assert_eq!(value.strain(0), Some(Strain { items: all.items, used: 0.0 }));
    }
}
