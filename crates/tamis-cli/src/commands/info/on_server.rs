//! Describes a filter of `tamis-redis` on a Redis server.

use serde_json::json;
use tamis_redis::{RedisFilter, RedisFilterInfo, RedisGrowth, RedisNodes};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::{HumanCount, Rate};
use crate::arguments::window_span::WindowSpan;
use crate::commands::info::description::Description;
use crate::exit::Failure;
use crate::filters::redis_key::{StoredKind, StoredValue, failure, native_excess};
use crate::filters::redis_url::RedisUrl;

/// The name of the layout.
const LAYOUT: &str = "tamis-redis";

/// Describes the filter under the key of a URL. Returns `None` if the value of the key is not a
/// filter of `tamis-redis`.
///
/// # Errors
///
/// Returns a message with the error of the server or the connection.
pub fn describe(url: RedisUrl) -> Result<Option<Description>, Failure> {
    let stored = StoredValue::open(url)?;
    if stored.kind != StoredKind::Native {
        return Ok(None);
    }
    let (url, filter) = stored.native()?;
    let info = filter.info().map_err(|error| failure(&url, &error))?;
    Ok(Some(of_filter(&url.name, &filter, &info)))
}

fn of_filter(name: &str, filter: &RedisFilter<RedisNodes>, info: &RedisFilterInfo) -> Description {
    let plan = filter.plan();
    let grows = plan.growth() == RedisGrowth::Doubling;
    let window = plan.window_span().map(|span| {
        let whole = u64::from(span.slices - 1) * span.slice_millis;
        (WindowSpan(tamis::Span::Millis(whole.max(span.slice_millis))), span)
    });
    let kind = match (grows, &window) {
        (_, Some(_)) => "window",
        (true, _) => "growing",
        _ => "fixed size",
    };
    let planned = HumanCount(plan.items());
    let planned = if window.is_some() { format!("{planned} a slice") } else { planned.to_string() };
    let mut rows = vec![
        ("format", format!("{LAYOUT}: strings of Redis, {kind}")),
        ("size", format!("{} in {}", ByteSize { bytes: info.bytes }, keys_text(info))),
        ("hash", format!("{}, {} probes", plan.hash_function(), info.probes)),
        ("items", format!("about {}", HumanCount(info.items))),
        ("planned for", planned),
        ("rate planned", Rate(info.rate_planned).to_string()),
        ("rate now", Rate(info.rate).to_string()),
    ];
    if info.layers > 1 {
        rows.push(("layers", info.layers.to_string()));
    }
    if let Some((span, slices)) = &window {
        rows.push(("window", format!("{span}; lookups test {} slices", slices.slices)));
    }
    let mut notes = Vec::new();
    if let Some(key) = info.missing.first() {
        notes.push(format!(
            "{} keys are missing, such as {key}, and their items are lost: build the filter again \
             with 'tamis build --replace', and set maxmemory-policy noeviction",
            HumanCount(info.missing.len() as u64)
        ));
    }
    let excess = native_excess(info);
    let is_over_rate = excess.is_some();
    notes.extend(excess);
    Description {
        rows: rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        json: json!({
            "name": name,
            "format": LAYOUT,
            "kind": kind,
            "bytes": info.bytes,
            "shards": info.shards,
            "probes": info.probes,
            "layers": info.layers,
            "hash": plan.hash_function().to_string(),
            "items": info.items,
            "items_planned": info.items_planned,
            "rate_planned": info.rate_planned,
            "rate_now": info.rate,
            "window_slices": window.as_ref().map(|(_, span)| span.slices),
            "window_slice_millis": window.as_ref().map(|(_, span)| span.slice_millis),
            "missing_keys": info.missing,
        }),
        notes,
        is_over_rate,
        table_row: Vec::new(),
    }
}

/// Returns the number of keys that hold bits, as text. The number assumes that every shard has all
/// layers.
fn keys_text(info: &RedisFilterInfo) -> String {
    match u64::from(info.shards) * u64::from(info.layers) {
        1 => "1 key".to_owned(),
        keys if info.layers > 1 => format!("at most {} keys", HumanCount(keys)),
        keys => format!("{} keys", HumanCount(keys)),
    }
}
