//! The data of the page, as JSON. The data never contains bits or items of filters.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use hyper::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};
use serde_json::{Value as Json, json};
use tamis_commands::{Env, Forecast, RatePoint, find, info_reply, plan_curves};
use tamis_resp::{Protocol, Reply};

use crate::http::answer::{self, HttpError};
use crate::http::console::Console;
use crate::http::history::SampleInterval;
use crate::http::kinds::kind_id;
use crate::http::order::{Column, PageRequest};
use crate::http::sampler::CURVE_POINTS;
use crate::pattern::{MAX_PATTERN_BYTES, matches};
use crate::shared_state::SharedState;
use crate::stats::report::FilterReport;
use crate::system::clock::now_millis;
use crate::users::User;

/// The default number of filters in a response.
const DEFAULT_FILTERS: usize = 100;

/// The maximum number of filters in a response. The server measures each filter in a response when
/// the server builds the response.
const MAX_FILTERS: usize = 1000;

/// Returns the data for `/api/overview.json`.
pub(super) fn overview(console: &Console) -> Json {
    let shared = &console.shared;
    let (config, now) = (shared.config(), now_millis());
    let totals = console.sampler.totals();
    let log = shared.durable.as_ref().map(|durable| {
        json!({
            "error": shared.log_failure(),
            "bytes": durable.log_bytes(),
            "is_saving": durable.is_saving(),
            "saved_millis": durable.last_save_millis.load(Ordering::Relaxed),
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now_millis": now,
        "started_millis": shared.started_millis,
        "port": shared.port,
        "commands": shared.stats.commands.load(Ordering::Relaxed),
        "commands_per_second": console.history.commands_per_second(),
        "memory_bytes": shared.used_memory(),
        "max_memory_bytes": config.max_memory_bytes,
        "clients": shared.clients.len(),
        "max_clients": config.max_clients,
        "keys": totals.keys,
        "filters": totals.filters,
        "over_rate": totals.over_rate,
        "full": totals.full,
        "measured_millis": totals.millis,
        "log": log,
        "history": console.history.to_json(SampleInterval::Second),
    })
}

/// Returns the data for `/api/history.json?step=…`: commands, errors, slow commands and latency
/// over time.
pub(super) fn history(console: &Console, query: &str) -> Result<Json, HttpError> {
    let step = match parameter(query, "step").as_deref() {
        None | Some(b"second") => SampleInterval::Second,
        Some(b"minute") => SampleInterval::Minute,
        Some(_) => return Err(bad("step takes second or minute")),
    };
    Ok(console.history.to_json(step))
}

/// Returns the data for `/api/filters.json?sort=…&order=…&offset=…&limit=…&match=…`.
pub(super) fn filters(console: &Console, user: &User, query: &str) -> Result<Json, HttpError> {
    let pattern = parameter(query, "match").unwrap_or(Cow::Borrowed(b"*"));
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(bad(&format!("match takes at most {MAX_PATTERN_BYTES} bytes")));
    }
    let is_match = |key: &[u8]| matches(&pattern, key) && may_see(user, key);
    let (reports, matching, totals) = console.sampler.page(&console.shared, page(query)?, is_match);
    Ok(json!({
        "filters": reports.iter().map(filter_json).collect::<Vec<_>>(),
        "matching": matching,
        "sortable": totals.sortable,
        "total": totals.filters,
        "measured_from_millis": totals.began_millis,
        "measured_millis": totals.millis,
        "now_millis": now_millis(),
    }))
}

/// Parses the order and the page of filters in a request.
fn page(query: &str) -> Result<PageRequest, HttpError> {
    let or_most = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let column = match parameter(query, "sort") {
        None => Column::Worst,
        Some(name) => Column::named(&name)
            .ok_or_else(|| bad(&format!("sort takes one of: {}", Column::names())))?,
    };
    let is_descending = match parameter(query, "order").as_deref() {
        None | Some(b"asc") => false,
        Some(b"desc") => true,
        Some(_) => return Err(bad("order takes asc or desc")),
    };
    Ok(PageRequest {
        column,
        is_descending,
        offset: number(query, "offset")?.map_or(0, or_most),
        limit: number(query, "limit")?.map_or(DEFAULT_FILTERS, or_most).min(MAX_FILTERS),
    })
}

/// Returns the data for `/api/filter.json?key=…`.
pub(super) fn filter(console: &Console, user: &User, query: &str) -> Result<Json, HttpError> {
    let key =
        parameter(query, "key").ok_or_else(|| bad("say which key: ?key=, percent-encoded"))?;
    if !may_see(user, &key) {
        return Err(answer::not_allowed("tm.info"));
    }
    let Some((report, curve)) = console.sampler.of_key(&console.shared, &key) else {
        return Err((StatusCode::NOT_FOUND, "there is no filter of this key".to_owned()));
    };
    let mut body = filter_json(&report);
    let samples = console.sampler.samples(&key);
    body["now_millis"] = json!(now_millis());
    body["port"] = json!(console.shared.port);
    body["rate_curve"] = curve_json(&curve);
    body["samples"] = samples.iter().map(|it| json!([it.millis, it.items, it.rate])).collect();
    Ok(body)
}

/// Returns the data for `/api/plan.json?items=…&rate=…`, or any two of `items`, `rate` and
/// `memory`: the reply of `TM.PLAN`, with curves.
pub(super) fn plan(shared: &SharedState, query: &str) -> Result<Json, HttpError> {
    let mut argv = vec![Cow::Borrowed(&b"TM.PLAN"[..])];
    for name in ["items", "rate", "memory"] {
        if let Some(value) = parameter(query, name) {
            argv.extend([Cow::Owned(name.to_ascii_uppercase().into_bytes()), value]);
        }
    }
    let argv: Vec<&[u8]> = argv.iter().map(AsRef::as_ref).collect();
    let config = shared.config();
    let env = Env::new(&config.filters, Protocol::Resp3, now_millis());
    let mut plans = match tamis_commands::plan(&argv, &env) {
        Reply::Array(plans) => plans.iter().map(reply_json).collect::<Vec<_>>(),
        Reply::Error(text) => return Err(bad(text.strip_prefix("ERR ").unwrap_or(&text))),
        _ => return Err(bad("there is no plan")),
    };
    let first = plans.first().map(|plan| (plan["items"].as_u64(), plan["rate"].as_f64()));
    if let Some((Some(items), Some(rate))) = first {
        let curves = plan_curves(items, rate, CURVE_POINTS);
        for plan in &mut plans {
            let Some(curve) = curves.iter().find(|curve| plan["kind"] == curve.kind) else {
                continue;
            };
            plan["is_usual"] = json!(curve.is_usual);
            plan["kind_id"] = json!(kind_id(curve.kind, false));
            plan["rate_curve"] = curve_json(&curve.points);
        }
    }
    Ok(json!({ "plans": plans, "port": shared.port }))
}

/// Tests whether a user may read the information about a filter.
pub(super) fn may_see(user: &User, key: &[u8]) -> bool {
    user.check(find(b"TM.INFO").expect("a row of the table"), &[b"TM.INFO", key]).is_ok()
}

fn bad(text: &str) -> HttpError {
    (StatusCode::BAD_REQUEST, text.to_owned())
}

fn curve_json(curve: &[RatePoint]) -> Json {
    curve.iter().map(|(items, rate)| json!([items, rate])).collect()
}

/// Converts a report to JSON. The result contains all fields of `TM.INFO` with their names, and
/// additional fields.
fn filter_json(report: &FilterReport) -> Json {
    let info = &report.info;
    let mut body = reply_json(&info_reply(info, report.items_per_second));
    // JSON shows an infinite number of items as `null`.
    let layer = |items: f64, capacity| json!({ "items": items.round(), "capacity": capacity });
    // A filter without layers is shown as one layer.
    let layers: Json = match info.layers.is_empty() {
        true => json!([layer(info.items, info.held_capacity())]),
        false => info.layers.iter().map(|it| layer(it.items as f64, it.capacity)).collect(),
    };
    body["key"] = json!(String::from_utf8_lossy(&report.key));
    body["key_encoded"] = json!(percent_encode(&report.key, NON_ALPHANUMERIC).to_string());
    if !info.items.is_finite() {
        // If all bits are set, the estimated number of items is infinite.
        body["items"] = Json::Null;
    }
    body["kind_id"] = json!(kind_id(info.kind, info.refuses));
    body["layers"] = layers;
    // A window filter holds the items of several spans, so the page divides the number of items by
    // `held_capacity`.
    body["held_capacity"] = json!(info.held_capacity());
    body["refuses"] = json!(info.refuses);
    body["adds_per_second"] = json!(report.items_per_second);
    body["days_until_over"] = match report.forecast {
        Forecast::OverInDays(days) | Forecast::FullInDays(days) => json!(days),
        _ => Json::Null,
    };
    body
}

fn reply_json(reply: &Reply) -> Json {
    match reply {
        Reply::Integer(n) => json!(n),
        Reply::Double(n) => json!(n),
        Reply::Bool(is_so) => json!(is_so),
        Reply::Simple(text) => json!(text),
        Reply::Bulk(bytes) => json!(String::from_utf8_lossy(bytes)),
        Reply::Array(all) => all.iter().map(reply_json).collect(),
        Reply::Map(pairs) => {
            let named = pairs.iter().filter_map(|(name, value)| match name {
                Reply::Simple(name) => Some((name.to_string(), reply_json(value))),
                _ => None,
            });
            Json::Object(named.collect())
        }
        _ => Json::Null,
    }
}

/// Returns the decoded value of a query parameter. If the query contains the name several times,
/// the function returns the first value.
fn parameter<'a>(query: &'a str, name: &str) -> Option<Cow<'a, [u8]>> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (_, value) = pairs.into_iter().find(|(found, _)| *found == name)?;
    Some(percent_decode(value.as_bytes()).into())
}

fn number(query: &str, name: &str) -> Result<Option<u64>, HttpError> {
    let Some(value) = parameter(query, name) else { return Ok(None) };
    let number = str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| bad(&format!("{name} takes a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_bytes() {
        let query = "limit=5&key=%ff%00a+b%2&key=second&match&=x&&a%3db=c";
        assert_eq!(parameter(query, "key").as_deref(), Some(&b"\xff\0a+b%2"[..]));
        assert_eq!(parameter(query, "match").as_deref(), Some(&b""[..]));
        assert_eq!(parameter(query, "none"), None);
        assert_eq!(number(query, "limit"), Ok(Some(5)));
        assert_eq!(number("limit=-1", "limit").unwrap_err().0, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn infinite_numbers_and_nan_are_null_in_json() {
        assert_eq!(reply_json(&Reply::Double(f64::INFINITY)), Json::Null);
        assert_eq!(reply_json(&Reply::Double(f64::NAN)), Json::Null);
    }
}
