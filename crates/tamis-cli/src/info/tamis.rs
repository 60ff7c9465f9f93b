//! Describes a Tamis filter.

use serde_json::{Map, Value, json};
use tamis::{AnyFilter, BitView, Span};
use tamis_formats::TamisFile;

use crate::byte_size::ByteSize;
use crate::clock::clock_lead;
use crate::info::description::Description;
use crate::numbers::{About, Count, Rate};
use crate::repeats::RepeatPolicy;
use crate::table::plain;
use crate::window_span::WindowSpan;

/// Describes a filter at the present time.
pub fn describe(name: &str, file: &TamisFile<BitView<'_>>) -> Description {
    let state = FilterState::of(file);
    let mut notes = Vec::from_iter(clock_lead(&file.filter));
    if state.is_full {
        notes.push(state.refusal());
    }
    if state.is_over_rate {
        notes.push(format!("over its rate: {}", state.overflow()));
    }
    Description {
        rows: state.rows(),
        json: state.json(name),
        notes,
        is_over_rate: state.is_over_rate,
        // Only a Parquet table has several filters.
        table_row: Vec::new(),
    }
}

/// The state of a filter that several rows report.
struct FilterState<'a> {
    file: &'a TamisFile<BitView<'a>>,
    items: f64,
    fill: f64,
    rate: f64,
    is_over_rate: bool,
    is_full: bool,
}

impl<'a> FilterState<'a> {
    fn of(file: &'a TamisFile<BitView<'a>>) -> Self {
        Self {
            file,
            items: file.filter.estimate_items(),
            fill: file.filter.fill(),
            rate: file.filter.estimate_rate(),
            is_over_rate: file.is_over_rate(),
            is_full: is_full(file),
        }
    }

    fn items_text(&self) -> String {
        if self.items.is_finite() {
            format!("about {}", About(self.items))
        } else {
            "unknown: the filter is saturated".into()
        }
    }

    /// Returns how many more items the filter can hold at its rate. `None` means no limit.
    fn headroom_items(&self) -> Option<u64> {
        let plan = self.file.filter.plan();
        // A filter can hold more items than planned if its size was rounded up.
        let most = plan.items_at(plan.rate()).max(plan.items()) as f64;
        let is_endless =
            (plan.kind().grows() || plan.kind().forgets()) && !self.is_over_rate && !self.is_full;
        let most = if self.is_full { self.items } else { most };
        (!is_endless).then_some((most - self.items).max(0.0) as u64)
    }

    /// Returns a description of a full filter, with advice.
    fn refusal(&self) -> String {
        let kind = self.file.filter.plan().kind();
        format!("full: refuses adds; {}", RepeatPolicy::Once.advice(kind))
    }

    /// Returns the reason for which the filter is over its rate.
    fn overflow(&self) -> String {
        let plan = self.file.filter.plan();
        if plan.kind().grows() {
            "it was merged from several filters, whose rates add up".into()
        } else if plan.kind().forgets() {
            let more = match &self.file.filter {
                AnyFilter::Window(window) if window.slices() > 1 => "build with --slices 1, or",
                _ => "build",
            };
            format!("a slice of the window holds more items than planned; {more} for more items")
        } else if !self.items.is_finite() {
            "saturated: every lookup answers yes; build a larger filter".into()
        } else {
            format!(
                "it holds about {:.2} times its capacity; build one for {} items",
                self.items / plan.items() as f64,
                About(self.items)
            )
        }
    }

    fn headroom(&self) -> String {
        let plan = self.file.filter.plan();
        match self.headroom_items() {
            None if plan.kind().forgets() => "unlimited: old items expire".into(),
            None => "unlimited: the filter grows".into(),
            Some(_) if plan.kind().forgets() => self.overflow(),
            Some(_) if self.is_full => format!("none: {}", self.refusal()),
            Some(_) if plan.kind().grows() => format!("none: {}", self.overflow()),
            Some(0) if self.is_over_rate => format!("none: {}", self.overflow()),
            Some(0) => "none".into(),
            Some(items) => format!("about {} items within the planned rate", About(items as f64)),
        }
    }

    /// Returns the size in bits. The size of a growing filter differs from its plan.
    fn bits(&self) -> u64 {
        let (plan, filter) = (self.file.filter.plan(), &self.file.filter);
        if plan.kind().grows() { filter.len_words() * 64 } else { plan.bits() }
    }

    fn bytes(&self) -> u64 {
        self.bits().div_ceil(64) * 8
    }

    fn capacity(&self) -> String {
        let plan = self.file.filter.plan();
        let items = Count(plan.items());
        match &self.file.filter {
            AnyFilter::Growing(filter) if self.is_full => {
                format!("{} items: it has used all bits of the hash", Count(filter.len()))
            }
            AnyFilter::Growing(_) => "any number of items".into(),
            AnyFilter::Window(_) => format!("{items} items in a window"),
            AnyFilter::Cuckoo(_) => format!("{items} items, each copy counted"),
            _ => format!("{items} items"),
        }
    }

    /// Returns the rows that apply to this kind of filter only.
    fn of_kind(&self) -> Vec<(&'static str, String)> {
        match &self.file.filter {
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
                vec![("remembers", format!("{again} remembered at least {least}, at most {most}"))]
            }
            AnyFilter::Counting(counting) => match counting.saturated_counters() {
                0 => Vec::new(),
                stuck => vec![(
                    "stuck",
                    format!(
                        "{} counters: items added over {} times cannot be deleted",
                        Count(stuck),
                        counting.max_count() - 1
                    ),
                )],
            },
            _ => Vec::new(),
        }
    }

    fn window_json(&self) -> Option<Value> {
        let AnyFilter::Window(window) = &self.file.filter else { return None };
        let (unit, span) = match window.span() {
            Span::Millis(span) => ("span_millis", span),
            Span::Items(span) => ("span_items", span),
        };
        Some(json!({ unit: span, "slices": window.slices(), "refreshes": window.refreshes() }))
    }

    fn rows(&self) -> Vec<(String, String)> {
        let (plan, layout) = (self.file.filter.plan(), self.file.filter.layout());
        let lines = match plan.cache_lines() {
            1 => "one cache line per lookup".into(),
            lines => format!("{lines} cache lines a lookup"),
        };
        let size = ByteSize { bytes: self.bytes() };
        let mut rows = vec![
            ("kind", format!("{}, {lines}", plan.kind())),
            ("size", format!("{size} ({} bits, {})", Count(self.bits()), plan.geometry())),
            ("hash", layout.hasher.to_string()),
            ("capacity", self.capacity()),
            ("added", format!("{}, repeats included", Count(self.file.added))),
            ("items", self.items_text()),
            ("fill", format!("{:.1} %", self.fill * 100.0)),
            ("rate planned", Rate(plan.rate()).to_string()),
            ("rate now", Rate(self.rate).to_string()),
            ("headroom", self.headroom()),
        ];
        rows.extend(self.of_kind());
        let rows = rows.into_iter().map(|(name, value)| (name.to_owned(), value));
        let metadata = self.file.metadata.iter();
        rows.chain(metadata.map(|(key, value)| (format!("meta {}", plain(key)), plain(value))))
            .collect()
    }

    fn json(&self, name: &str) -> Value {
        let plan = self.file.filter.plan();
        let metadata: Map<String, Value> =
            self.file.metadata.iter().map(|(key, value)| (key.into(), value.into())).collect();
        json!({
            "name": name,
            "kind": plan.kind().name(),
            "bits": self.bits(),
            "bytes": self.bytes(),
            "shape": plan.geometry().to_string(),
            "probes": plan.probes(),
            "cache_lines": plan.cache_lines(),
            "hash": self.file.filter.hasher().to_string(),
            "capacity": plan.items(),
            "added": self.file.added,
            // Null if every bit is set: the filter is saturated.
            "items": self.items,
            "fill": self.fill,
            "rate_planned": plan.rate(),
            "rate_now": self.rate,
            // Null if the number of items is unlimited.
            "headroom_items": self.headroom_items(),
            "over_rate": self.is_over_rate,
            "full": self.is_full,
            "window": self.window_json(),
            "saturated_counters": match &self.file.filter {
                AnyFilter::Counting(counting) => Some(counting.saturated_counters()),
                _ => None,
            },
            "metadata": metadata,
        })
    }
}

/// Tests whether a filter refuses items. A growing filter stores this. For a cuckoo filter, the
/// function inserts items into a copy: a full filter refuses at least half of them. Filters of
/// other kinds refuse no item.
fn is_full(file: &TamisFile<BitView<'_>>) -> bool {
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
