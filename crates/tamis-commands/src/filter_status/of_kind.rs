//! Collects the info about filters of each kind.

use tamis::{AnyFilter, Bits, Kind, Plan};
use tamis_formats::TamisFile;
use tamis_redisbloom::{RedisBloom, RedisCuckoo};

use crate::filter_status::fields::{FilterStatus, Layer};
use crate::scalable_bloom::ScalableBloom;
use crate::scalable_bloom::info::Part;
use crate::settings::Settings;

/// How many bytes of a large filter a fast estimate reads. The estimate is usually within a
/// percent.
pub(super) const SAMPLE_BYTES: u64 = 64 << 10;

/// Returns the info of a filter, with estimates taken from `part`: the filter itself or a part of
/// it.
pub(super) fn of_file<B: Bits<Word = u64>, C: Bits<Word = u64>>(
    file: &TamisFile<B>,
    part: &AnyFilter<C>,
) -> FilterStatus {
    let plan = file.filter.plan();
    let (items, is_counted) = match &file.filter {
        AnyFilter::Growing(filter) => (filter.len() as f64, true),
        AnyFilter::Cuckoo(filter) => (filter.len() as f64, true),
        _ => (part.estimate_items() * share(part.plan(), plan), false),
    };
    let kind = plan.kind();
    // A filter can hold more items than planned if its size was rounded up.
    let most = plan.items_at(plan.rate()).max(plan.items()) as f64;
    let is_over_rate = !file.is_counted_within() && part.is_over_rate();
    let is_full = matches!(&file.filter, AnyFilter::Growing(filter) if filter.is_full());
    let most = if is_full { items } else { most };
    let is_endless = (kind.grows() || kind.forgets()) && !is_over_rate && !is_full;
    let bytes = file.filter.len_words() * 8;
    FilterStatus {
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
        refuses: kind == Kind::Cuckoo || is_full,
        bytes_per_new_item: (kind.grows() && items > 0.0).then(|| bytes as f64 / items),
        layers: Vec::new(),
        window: match &file.filter {
            AnyFilter::Window(it) => Some((it.span(), it.slices(), it.refreshes())),
            _ => None,
        },
    }
}

pub(super) fn of_scalable_bloom(filter: &ScalableBloom, is_a_glance: bool) -> FilterStatus {
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
    FilterStatus {
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

pub(super) fn of_redis_bloom(filter: &RedisBloom) -> FilterStatus {
    let first = filter.layers().next().expect("a filter has a layer");
    let mut all_no = 1.0;
    let (mut ones, mut bits) = (0.0, 0.0);
    let mut layers = Vec::with_capacity(filter.layers().len());
    for layer in filter.layers() {
        // The expected share of bits that the layer's items set.
        let draws = layer.items as f64 * f64::from(layer.probes);
        let fill = -(-draws / layer.bits as f64).exp_m1();
        all_no *= 1.0 - fill.powi(layer.probes as i32);
        ones += fill * layer.bits as f64;
        bits += layer.bits as f64;
        layers.push(Layer { items: layer.items, capacity: Some(layer.capacity), fill });
    }
    let is_endless = filter.is_scaling();
    // The first layer of a scaling filter has half the total rate, the next one a quarter.
    let rate_planned = if is_endless { first.rate * 2.0 } else { first.rate };
    let rate_now = 1.0 - all_no;
    let last = filter.layers().next_back().expect("a filter has a layer");
    FilterStatus {
        kind: "",
        layout: format!("RedisBloom's, {} layers, {bits} bits", filter.layers().len()),
        items: filter.len() as f64,
        is_counted: true,
        capacity: Some(filter.capacity()),
        rate_planned,
        rate_now,
        fill: ones / bits,
        headroom_items: (!is_endless).then(|| filter.capacity().saturating_sub(filter.len())),
        bytes: filter.size_bytes(),
        is_over_rate: rate_now > rate_planned,
        refuses: !is_endless,
        bytes_per_new_item: is_endless.then(|| last.bytes as f64 / last.capacity.max(1) as f64),
        layers,
        window: None,
    }
}

/// The number of possible fingerprints in RedisBloom's cuckoo filter.
pub(crate) const FINGERPRINTS: f64 = 255.0;

/// Counts the slots of all sub-filters.
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

/// Returns how many items fit until a lookup compares more fingerprints than those of two full
/// buckets, or until the filter is full.
pub(super) fn room_of_redis_cuckoo(filter: &RedisCuckoo) -> u64 {
    slots_of_redis_cuckoo(filter) / filter.sub_filters().max(1) as u64
}

pub(super) fn of_redis_cuckoo(filter: &RedisCuckoo, settings: &Settings) -> FilterStatus {
    let (bucket, parts) = (u64::from(filter.bucket_size()), filter.sub_filters());
    let slots = slots_of_redis_cuckoo(filter);
    let fill = filter.len() as f64 / slots as f64;
    // A lookup compares the fingerprints of two buckets in each sub-filter. A fingerprint has 255
    // possible values.
    let rate_of = |slots: f64| 1.0 - (1.0 - 1.0 / FINGERPRINTS).powf(slots);
    let rate_planned = rate_of(2.0 * bucket as f64);
    let rate_now = filter.estimate_rate(SAMPLE_BYTES);
    // The limit counts sub-filters and is checked before each insert, so at the limit every insert
    // fails.
    let is_at_limit = filter.sub_filters() >= settings.cf_max_expansions as usize;
    let is_refusing = filter.is_refusing() || is_at_limit;
    FilterStatus {
        kind: "",
        layout: format!(
            "RedisBloom's, {parts} sub-filters, {slots} slots of 8 bits, {bucket} a bucket"
        ),
        items: filter.len() as f64,
        is_counted: true,
        capacity: Some(slots),
        rate_planned,
        rate_now,
        fill,
        headroom_items: Some(match is_refusing {
            true => 0,
            false => room_of_redis_cuckoo(filter).saturating_sub(filter.len()),
        }),
        bytes: filter.size_bytes(),
        is_over_rate: rate_now > rate_planned,
        refuses: is_refusing || filter.expansion() == 0,
        bytes_per_new_item: None,
        layers: Vec::new(),
        window: None,
    }
}

/// Returns the size of the whole filter as a multiple of the size of the part.
pub(super) fn share(part: &Plan, whole: &Plan) -> f64 {
    whole.bits() as f64 / part.bits() as f64
}
