//! Returns the info of RedisBloom filters.
//!
//! [`Contents::info`](tamis_formats::Contents::info) counts the set bits, because a file may contain no item counts.
//! The functions of this module are called often, so they read no bits of a Bloom filter and compute fill and rate from
//! the item counts.

use tamis_formats::{FilterInfo, ItemCount, LayerInfo, redisbloom_rates};
use tamis_redisbloom::{RedisBloom, RedisCuckoo};

use crate::filter_info::utilization::{SAMPLE_BYTES, accepted_by_redis_cuckoo};
use crate::settings::Settings;

pub(super) fn of_redis_bloom(filter: &RedisBloom) -> FilterInfo {
    let (first, last) = (filter.layers().next(), filter.layers().next_back());
    let (first, last) = first.zip(last).expect("a filter has a layer");
    let (mut ones, mut bits) = (0.0, 0.0);
    let mut layers = Vec::with_capacity(filter.layers().len());
    for layer in filter.layers() {
        let fill = expected_fill(layer.items, layer.probes, layer.bits);
        ones += fill * layer.bits as f64;
        bits += layer.bits as f64;
        layers.push(LayerInfo { items: layer.items, capacity: Some(layer.capacity), fill });
    }
    let is_endless = filter.is_scaling();
    // The first layer of a scaling filter has half the total rate, and the second layer has a
    // quarter.
    let rate_planned = if is_endless { first.rate * 2.0 } else { first.rate };
    let fills: Vec<f64> = layers.iter().map(|layer| layer.fill).collect();
    let rates = redisbloom_rates(filter, &fills);
    let rate_now = 1.0 - rates.iter().map(|rate| 1.0 - rate).product::<f64>();
    FilterInfo {
        layout: format!("RedisBloom's, {} layers, {bits} bits", filter.layers().len()),
        items: filter.len() as f64,
        items_are: ItemCount::Distinct,
        capacity: Some(filter.capacity()),
        rate_planned: Some(rate_planned),
        rate_now,
        fill: ones / bits,
        headroom_items: (!is_endless).then(|| filter.capacity().saturating_sub(filter.len())),
        is_over_rate: rate_now > rate_planned,
        refuses: !is_endless,
        bytes_per_new_item: is_endless.then(|| last.bytes as f64 / last.capacity.max(1) as f64),
        layers,
        ..FilterInfo::default()
    }
}

pub(super) fn of_redis_cuckoo(filter: &RedisCuckoo, settings: &Settings) -> FilterInfo {
    let (bucket, parts, slots) = (filter.bucket_size(), filter.sub_filters(), filter.slots());
    // A lookup compares the fingerprints of two buckets in each sub-filter.
    let rate_planned = RedisCuckoo::rate_at(2.0 * f64::from(bucket));
    let rate_now = filter.estimate_rate(SAMPLE_BYTES);
    // Each insert first compares the number of sub-filters with the limit, so every insert fails at
    // the limit.
    let is_at_limit = parts >= settings.cf_max_expansions as usize;
    let is_refusing = filter.is_refusing() || is_at_limit;
    let headroom = accepted_by_redis_cuckoo(filter).saturating_sub(filter.len());
    FilterInfo {
        layout: format!(
            "RedisBloom's, {parts} sub-filters, {slots} slots of 8 bits, {bucket} a bucket"
        ),
        items: filter.len() as f64,
        items_are: ItemCount::Inserted,
        capacity: Some(slots),
        rate_planned: Some(rate_planned),
        rate_now,
        fill: filter.len() as f64 / slots as f64,
        headroom_items: Some(if is_refusing { 0 } else { headroom }),
        is_over_rate: rate_now > rate_planned,
        refuses: is_refusing || filter.expansion() == 0,
        ..FilterInfo::default()
    }
}

/// Returns the expected share of `bits` that `items` items set with `probes` probes each.
pub(crate) fn expected_fill(items: u64, probes: u32, bits: u64) -> f64 {
    let draws = items as f64 * f64::from(probes);
    -(-draws / bits as f64).exp_m1()
}
