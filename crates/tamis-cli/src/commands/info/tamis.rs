//! Describes a Tamis filter.

use serde_json::{Map, Value, json};
use tamis::{AnyFilter, BitView, Span};
use tamis_formats::{FilterInfo, TamisFile};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::{self, HumanCount, Rate};
use crate::arguments::window_span::WindowSpan;
use crate::clock::clock_lead;
use crate::commands::info::description::{Description, items_text};
use crate::io::table::plain;
use crate::records::repeats::RepeatPolicy;

/// Describes the current state of a filter.
pub fn describe(name: &str, file: &TamisFile<BitView<'_>>) -> Description {
    let mut info = file.info_from(&file.filter, None);
    // The server command `TM.INFO` compares the count of a cuckoo filter with its capacity. `tamis
    // info` instead tests whether the filter refuses inserts.
    info.refuses = refuses(file);
    if info.refuses {
        info.headroom_items = Some(0);
    }
    let mut notes = Vec::from_iter(clock_lead(&file.filter));
    if info.refuses {
        notes.push(refusal(file));
    }
    if info.is_over_rate {
        notes.push(format!("over its rate: {}", overflow(file, &info)));
    }
    Description {
        rows: rows(file, &info),
        json: json(name, file, &info),
        notes,
        is_over_rate: info.is_over_rate,
        // Only a Parquet table or an ORC file has several filters.
        table_row: Vec::new(),
    }
}

/// Returns a description of a full filter, with advice.
fn refusal(file: &TamisFile<BitView<'_>>) -> String {
    format!("full: refuses adds; {}", RepeatPolicy::Once.advice(file.filter.plan().kind()))
}

/// Returns the reason why the filter exceeds its rate.
fn overflow(file: &TamisFile<BitView<'_>>, info: &FilterInfo) -> String {
    let plan = file.filter.plan();
    if plan.kind().grows() {
        "it was merged from several filters, whose rates add up".into()
    } else if let Some(window) = info.window {
        let more = if window.slices > 1 { "build with --slices 1, or" } else { "build" };
        format!("a slice of the window holds more items than planned; {more} for more items")
    } else if !info.items.is_finite() {
        "saturated: every lookup answers yes; build a larger filter".into()
    } else {
        format!(
            "it holds about {:.2} times its capacity; build one for {}",
            info.items / plan.items() as f64,
            numbers::about(info.items)
        )
    }
}

fn headroom(file: &TamisFile<BitView<'_>>, info: &FilterInfo) -> String {
    let kind = file.filter.plan().kind();
    match info.headroom_items {
        None if kind.forgets() => "unlimited: old items expire".into(),
        None => "unlimited: the filter grows".into(),
        Some(_) if kind.forgets() => overflow(file, info),
        Some(_) if info.refuses => format!("none: {}", refusal(file)),
        Some(_) if kind.grows() => format!("none: {}", overflow(file, info)),
        Some(0) if info.is_over_rate => format!("none: {}", overflow(file, info)),
        Some(0) => "none".into(),
        Some(items) => {
            format!("about {} within the planned rate", numbers::about(items as f64))
        }
    }
}

fn capacity(file: &TamisFile<BitView<'_>>, info: &FilterInfo) -> String {
    let items = numbers::items(file.filter.plan().items());
    match &file.filter {
        AnyFilter::Growing(filter) if info.refuses => {
            format!("{}: it has used all bits of the hash", numbers::items(filter.len()))
        }
        AnyFilter::Growing(_) => "any number of items".into(),
        AnyFilter::Window(_) => format!("{items} in a window"),
        AnyFilter::Cuckoo(_) => format!("{items}, each copy counted"),
        _ => items,
    }
}

/// Returns the table row that only filters of this kind have.
fn row_of_kind(file: &TamisFile<BitView<'_>>) -> Option<(&'static str, String)> {
    match &file.filter {
        AnyFilter::Window(window) => {
            let slices = u64::from(window.slices());
            let most = |span: u64| (slices + 1) * span.div_ceil(slices);
            let (least, most) = match window.span() {
                Span::Millis(span) => (Span::Millis(span), Span::Millis(most(span))),
                Span::Items(span) => (Span::Items(span), Span::Items(most(span))),
            };
            let shown = |span| WindowSpan(span).to_string().replace("lines", "items");
            let (least, most) = (shown(least), shown(most));
            let again = if window.refreshes() { "a repeat is" } else { "an item is" };
            Some(("remembers", format!("{again} remembered at least {least}, at most {most}")))
        }
        AnyFilter::Counting(counting) if counting.saturated_counters() > 0 => Some((
            "stuck",
            format!(
                "{} counters: items added over {} times cannot be deleted",
                HumanCount(counting.saturated_counters()),
                counting.max_count() - 1
            ),
        )),
        _ => None,
    }
}

fn rows(file: &TamisFile<BitView<'_>>, info: &FilterInfo) -> Vec<(String, String)> {
    let plan = file.filter.plan();
    let lines = match plan.cache_lines() {
        1 => "one cache line per lookup".into(),
        lines => format!("{lines} cache lines a lookup"),
    };
    let size = ByteSize { bytes: info.bytes };
    let mut rows = vec![
        ("kind", format!("{}, {lines}", info.kind)),
        ("size", format!("{size} ({} bits, {})", HumanCount(info.bits), plan.geometry())),
        ("hash", file.filter.hasher().to_string()),
        ("capacity", capacity(file, info)),
        ("items", items_text(info)),
        ("fill", format!("{:.1} %", info.fill * 100.0)),
        ("rate planned", Rate(plan.rate()).to_string()),
        ("rate now", Rate(info.rate_now).to_string()),
        ("headroom", headroom(file, info)),
    ];
    // A server does not count added items, so `added` is zero in its filters.
    if file.added > 0 || info.items < 1.0 {
        rows.insert(4, ("added", format!("{}, repeats included", HumanCount(file.added))));
    }
    rows.extend(row_of_kind(file));
    let rows = rows.into_iter().map(|(name, value)| (name.to_owned(), value));
    let metadata = file.metadata.iter();
    rows.chain(metadata.map(|(key, value)| (format!("meta {}", plain(key)), plain(value))))
        .collect()
}

fn json(name: &str, file: &TamisFile<BitView<'_>>, info: &FilterInfo) -> Value {
    let plan = file.filter.plan();
    let window = info.window.map(|window| {
        let (unit, span) = match window.span {
            Span::Millis(span) => ("span_millis", span),
            Span::Items(span) => ("span_items", span),
        };
        json!({ unit: span, "slices": window.slices, "refreshes": window.refreshes })
    });
    let metadata: Map<String, Value> =
        file.metadata.iter().map(|(key, value)| (key.into(), value.into())).collect();
    json!({
        "name": name,
        "kind": info.kind,
        "bits": info.bits,
        "bytes": info.bytes,
        "shape": plan.geometry().to_string(),
        "probes": plan.probes(),
        "cache_lines": plan.cache_lines(),
        "hash": file.filter.hasher().to_string(),
        "capacity": plan.items(),
        "added": file.added,
        // Null if every bit is set, because the filter is then saturated.
        "items": info.items,
        "fill": info.fill,
        "rate_planned": info.rate_planned,
        "rate_now": info.rate_now,
        // Null if the number of items is unlimited.
        "headroom_items": info.headroom_items,
        "over_rate": info.is_over_rate,
        "full": info.refuses,
        "window": window,
        "saturated_counters": match &file.filter {
            AnyFilter::Counting(counting) => Some(counting.saturated_counters()),
            _ => None,
        },
        "metadata": metadata,
    })
}

/// Tests whether a filter refuses items. A growing filter stores whether it refuses items. For a
/// cuckoo filter, the function inserts items into a copy, because a full filter refuses at least
/// half of all new items. Filters of other kinds refuse no item.
fn refuses(file: &TamisFile<BitView<'_>>) -> bool {
    const TRIED: u64 = 64;
    let filter = match &file.filter {
        AnyFilter::Growing(filter) => return filter.is_full(),
        AnyFilter::Cuckoo(filter) => filter,
        _ => return false,
    };
    // A filter far below its capacity refuses an item only if the item was added many times.
    if filter.len() < filter.plan().items() / 10 * 9 {
        return false;
    }
    let mut bytes = Vec::new();
    let copy = file
        .write_to(&mut bytes)
        .ok()
        .and_then(|()| TamisFile::read_from(&bytes[..], u64::MAX).ok());
    let Some(TamisFile { filter: mut copy, .. }) = copy else { return false };
    let refused = (0..TRIED).filter(|item| copy.try_insert(item).is_err()).count() as u64;
    refused * 2 > TRIED
}
