//! Implements `TM.INFO`.

use tamis::Span;
use tamis_formats::{FilterInfo, ItemCount};
use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, error};
use crate::filter_info::forecast::Forecast;
use crate::filter_info::utilization::rounded;
use crate::text::{self, tm};
use crate::value::Value;

/// The maximum size, in bytes, of a filter for which `TM.INFO` reads all bits. Reading `MAX_READ_BYTES` bytes takes
/// about 5 ms, during which a server with one thread serves no other client. For a larger filter, the info is estimated
/// from a part of the bits.
const MAX_READ_BYTES: u64 = 8 << 20;

/// Runs `TM.INFO key`.
pub(crate) fn info(value: Option<&Value>, _: Argv<'_>, env: &Env<'_>) -> Reply {
    let Some(value) = value else { return error(tm::NOT_FOUND) };
    let info = if value.memory_bytes() > MAX_READ_BYTES {
        value.sampled_info(env.settings, env.now_millis)
    } else {
        value.info(env.settings, env.now_millis)
    };
    match info {
        Some(info) => info_reply(&info, env.items_per_second),
        None if matches!(value, Value::PartialLoad(_)) => error(text::bf::INCOMPLETE),
        None => error(text::WRONG_TYPE),
    }
}

/// Returns the reply of `TM.INFO`. The forecast uses `items_per_second`, the rate of new items per
/// second.
#[must_use]
pub fn info_reply(info: &FilterInfo, items_per_second: Option<f64>) -> Reply {
    let integer = |n: u64| Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    let or_null = |n: Option<u64>| n.map_or(Reply::Null, integer);
    let double_or_null = |n: Option<f64>| n.map_or(Reply::Null, Reply::Double);
    let forecast = Forecast::of(info, items_per_second);
    // For a filter without a capacity, use the current number of items.
    let items = info.capacity.map_or(info.items, |capacity| capacity as f64);
    let bits_per_item = (items > 0.0).then(|| info.bytes as f64 * 8.0 / items);
    let items_are = match info.items_are {
        ItemCount::Estimated => "estimated",
        ItemCount::Inserted | ItemCount::Distinct | ItemCount::Exact => "counted",
    };
    let mut fields = vec![
        ("kind", Reply::bulk(info.kind)),
        ("layout", Reply::bulk(info.layout.as_str())),
        ("items", integer(rounded(info.items))),
        ("items_are", Reply::bulk(items_are)),
        ("capacity", or_null(info.capacity)),
        ("rate_planned", double_or_null(info.rate_planned)),
        ("rate_now", Reply::Double(info.rate_now)),
        ("fill", Reply::Double(info.fill)),
        ("headroom_items", or_null(info.headroom_items)),
        ("bytes", integer(info.bytes)),
        ("bits_per_item", double_or_null(bits_per_item)),
        ("over_rate", Reply::Bool(info.is_over_rate)),
        ("full", Reply::Bool(info.is_full())),
        ("items_per_second", double_or_null(items_per_second)),
        ("forecast", Reply::bulk(forecast.to_string())),
        ("forecast_days", double_or_null(forecast.days())),
    ];
    if let Some(window) = info.window {
        fields.push(match window.span {
            Span::Millis(millis) => ("span_millis", integer(millis)),
            Span::Items(items) => ("span_items", integer(items)),
        });
        fields.push(("slices", Reply::Integer(window.slices.into())));
        fields.push(("refreshes", Reply::Bool(window.refreshes)));
    }
    Reply::Map(fields.into_iter().map(|(name, value)| (Reply::simple(name), value)).collect())
}
