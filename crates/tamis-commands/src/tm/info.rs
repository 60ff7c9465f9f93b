//! `TM.INFO`.

use tamis::{AnyFilter, Bits, Filter as _, RedisBloom, RedisCuckoo, Span};
use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::expandable::Expandable;
use crate::run::{Env, error};
use crate::text::{self, tm};
use crate::value::Value;
use crate::words::Words;

/// What is told of every filter.
struct Facts {
    kind: &'static str,
    layout: String,
    items: f64,
    /// Whether items are counted as they come; otherwise the bits tell how many there are, about.
    is_counted: bool,
    /// `None` if there is room for any number.
    capacity: Option<u64>,
    rate_planned: f64,
    rate_now: f64,
    fill: f64,
    /// `None` if any number of items keeps the rate.
    headroom_items: Option<u64>,
    bytes: u64,
    is_over_rate: bool,
    window: Option<(Span, u32, bool)>,
}

/// `TM.INFO key`
pub(crate) fn info(value: Option<&Value>, _: Words<'_>, env: &Env<'_>) -> Reply {
    let Some(value) = value else { return error(tm::NOT_FOUND) };
    let bytes = value.memory_bytes();
    let facts = match value {
        Value::Bytes(_) => return error(text::WRONG_TYPE),
        Value::Arriving(_) => return error(text::bf::ARRIVING),
        Value::Bloom(filter) => of_expandable(filter),
        Value::RedisBloom(filter) => of_redis_bloom(filter),
        Value::RedisCuckoo(filter) => of_redis_cuckoo(filter),
        Value::Filter(file) => match &file.filter {
            AnyFilter::Window(window) => {
                // A view has a clock of its own: it is told the time under shared access.
                let mut filter = AnyFilter::Window(window.as_view());
                filter.advance(env.now_millis);
                of_file(&TamisFile { filter, added: file.added, metadata: file.metadata.clone() })
            }
            _ => of_file(file),
        },
    };
    Facts { kind: value.kind_name(), bytes, ..facts }.reply()
}

/// Returns how many items a filter holds: counted, or estimated from its bits.
pub(crate) fn items_of(file: &TamisFile, now_millis: u64) -> u64 {
    match &file.filter {
        AnyFilter::Growing(filter) => filter.items(),
        AnyFilter::Cuckoo(filter) => filter.items(),
        AnyFilter::Window(window) => {
            let mut window = window.as_view();
            window.advance(now_millis);
            in_integers(window.estimate_items())
        }
        filter => in_integers(filter.estimate_items()),
    }
}

/// Rounds an estimate, which is infinite where every bit is set, to what a reply can hold.
fn in_integers(items: f64) -> u64 {
    (items.round() as u64).min(i64::MAX as u64)
}

fn of_file<B: Bits<Word = u64>>(file: &TamisFile<B>) -> Facts {
    let (filter, plan) = (&file.filter, file.filter.plan());
    let (items, is_counted) = match filter {
        AnyFilter::Growing(filter) => (filter.items() as f64, true),
        AnyFilter::Cuckoo(filter) => (filter.items() as f64, true),
        filter => (filter.estimate_items(), false),
    };
    let kind = plan.kind();
    // A filter can hold more than planned where its size was rounded up.
    let most = plan.items_at(plan.rate()).max(plan.items()) as f64;
    let is_over_rate = file.is_over_rate();
    let is_endless = (kind.grows() || kind.forgets()) && !is_over_rate;
    Facts {
        kind: kind.name(),
        layout: filter.layout().to_string(),
        items,
        is_counted,
        capacity: (!kind.grows()).then_some(plan.items()),
        rate_planned: plan.rate(),
        rate_now: filter.estimate_rate(),
        fill: filter.fill(),
        headroom_items: (!is_endless).then_some((most - items).max(0.0) as u64),
        bytes: filter.len_words() * 8,
        is_over_rate,
        window: match filter {
            AnyFilter::Window(it) => Some((it.span(), it.slices(), it.refreshes())),
            _ => None,
        },
    }
}

fn of_expandable(filter: &Expandable) -> Facts {
    let items = filter.items();
    let layout = match filter.layouts() {
        (Some(reserved), Some(overflow)) => format!("{reserved}; then {overflow}"),
        (one, other) => one.or(other).map_or_else(String::new, |layout| layout.to_string()),
    };
    let is_endless = filter.expansion().is_some();
    Facts {
        kind: "",
        layout,
        items: items as f64,
        is_counted: true,
        capacity: Some(filter.capacity()),
        rate_planned: filter.rate(),
        rate_now: filter.estimate_rate(),
        fill: filter.fill(),
        headroom_items: (!is_endless).then(|| filter.capacity().saturating_sub(items)),
        bytes: filter.memory_bytes(),
        // Each of its parts keeps its share of the rate, whatever comes.
        is_over_rate: false,
        window: None,
    }
}

fn of_redis_bloom(filter: &RedisBloom) -> Facts {
    let first = filter.layers().next().expect("a filter has a layer");
    let mut all_no = 1.0;
    let (mut ones, mut bits) = (0.0, 0.0);
    for layer in filter.layers() {
        // As many bits as the layer's items set, on average.
        let draws = layer.items as f64 * f64::from(layer.probes);
        let fill = -(-draws / layer.bits as f64).exp_m1();
        all_no *= 1.0 - fill.powi(layer.probes as i32);
        ones += fill * layer.bits as f64;
        bits += layer.bits as f64;
    }
    let is_endless = filter.is_scaling();
    // Of what grows the first layer has half the rate, the next a quarter.
    let rate_planned = if is_endless { first.rate * 2.0 } else { first.rate };
    let rate_now = 1.0 - all_no;
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
        window: None,
    }
}

/// How many fingerprints an item of RedisBloom's cuckoo filter may have.
pub(crate) const FINGERPRINTS: f64 = 255.0;

fn of_redis_cuckoo(filter: &RedisCuckoo) -> Facts {
    let (bucket, parts) = (u64::from(filter.bucket_size()), filter.sub_filters());
    let growth = u64::from(filter.expansion().max(1));
    let (mut buckets, mut slots) = (filter.buckets(), 0_u64);
    for _ in 0..parts {
        slots = slots.saturating_add(buckets.saturating_mul(bucket));
        buckets = buckets.saturating_mul(growth);
    }
    let fill = filter.items() as f64 / slots as f64;
    // A lookup compares two buckets of each sub-filter, whose fingerprints are one of 255.
    let rate_of = |slots: f64| 1.0 - (1.0 - 1.0 / FINGERPRINTS).powf(slots);
    let rate_planned = rate_of(2.0 * bucket as f64);
    let rate_now = rate_of(2.0 * bucket as f64 * parts as f64 * fill);
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
        headroom_items: (filter.expansion() == 0).then(|| slots.saturating_sub(filter.items())),
        bytes: filter.size_bytes(),
        is_over_rate: rate_now > rate_planned,
        window: None,
    }
}

impl Facts {
    fn reply(self) -> Reply {
        let integer = |n: u64| Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        let or_null = |n: Option<u64>| n.map_or(Reply::Null, integer);
        // Of what has no capacity: by what it holds.
        let items = self.capacity.map_or(self.items, |capacity| capacity as f64);
        let bits_per_item = match items > 0.0 {
            true => Reply::Double(self.bytes as f64 * 8.0 / items),
            false => Reply::Null,
        };
        let mut fields = vec![
            ("kind", Reply::bulk(self.kind)),
            ("layout", Reply::bulk(self.layout)),
            ("items", integer(in_integers(self.items))),
            ("items_are", Reply::bulk(if self.is_counted { "counted" } else { "estimated" })),
            ("capacity", or_null(self.capacity)),
            ("rate_planned", Reply::Double(self.rate_planned)),
            ("rate_now", Reply::Double(self.rate_now)),
            ("fill", Reply::Double(self.fill)),
            ("headroom_items", or_null(self.headroom_items)),
            ("bytes", integer(self.bytes)),
            ("bits_per_item", bits_per_item),
            ("over_rate", Reply::Bool(self.is_over_rate)),
        ];
        if let Some((span, slices, refreshes)) = self.window {
            fields.push(match span {
                Span::Millis(millis) => ("span_millis", integer(millis)),
                Span::Items(items) => ("span_items", integer(items)),
            });
            fields.push(("slices", Reply::Integer(i64::from(slices))));
            fields.push(("refreshes", Reply::Bool(refreshes)));
        }
        Reply::Map(fields.into_iter().map(|(name, value)| (Reply::simple(name), value)).collect())
    }
}
