//! `TM.INFO`.

use tamis::Span;
use tamis_resp::Reply;

use crate::argv::Argv;
use crate::filter_status::{FilterStatus, rounded};
use crate::run::{Env, error};
use crate::text::{self, tm};
use crate::value::Value;

/// `TM.INFO key`
pub(crate) fn info(value: Option<&Value>, _: Argv<'_>, env: &Env<'_>) -> Reply {
    let Some(value) = value else { return error(tm::NOT_FOUND) };
    match FilterStatus::of(value, env.settings, env.now_millis) {
        Some(status) => status.to_reply(env.items_per_second),
        None if matches!(value, Value::PartialLoad(_)) => error(text::bf::INCOMPLETE),
        None => error(text::WRONG_TYPE),
    }
}

impl FilterStatus {
    /// Returns the info as `TM.INFO` replies with it. The forecast uses this rate of inserts, in
    /// new items per second.
    #[must_use]
    pub fn to_reply(&self, items_per_second: Option<f64>) -> Reply {
        let integer = |n: u64| Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        let or_null = |n: Option<u64>| n.map_or(Reply::Null, integer);
        let forecast = self.forecast(items_per_second);
        // A filter without a capacity is measured by its items.
        let items = self.capacity.map_or(self.items, |capacity| capacity as f64);
        let bits_per_item = match items > 0.0 {
            true => Reply::Double(self.bytes as f64 * 8.0 / items),
            false => Reply::Null,
        };
        let mut fields = vec![
            ("kind", Reply::bulk(self.kind)),
            ("layout", Reply::bulk(self.layout.as_str())),
            ("items", integer(rounded(self.items))),
            ("items_are", Reply::bulk(if self.is_counted { "counted" } else { "estimated" })),
            ("capacity", or_null(self.capacity)),
            ("rate_planned", Reply::Double(self.rate_planned)),
            ("rate_now", Reply::Double(self.rate_now)),
            ("fill", Reply::Double(self.fill)),
            ("headroom_items", or_null(self.headroom_items)),
            ("bytes", integer(self.bytes)),
            ("bits_per_item", bits_per_item),
            ("over_rate", Reply::Bool(self.is_over_rate)),
            ("full", Reply::Bool(self.is_full())),
            ("items_per_second", items_per_second.map_or(Reply::Null, Reply::Double)),
            ("forecast", Reply::bulk(forecast.to_string())),
            ("forecast_days", forecast.days().map_or(Reply::Null, Reply::Double)),
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
