//! `tamis info`: describes a filter and its free capacity.

mod chart;
mod foreign;
mod keys;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tamis::{AnyFilter, BitView, Span};
use tamis_formats::TamisFile;

use crate::clock::now_millis;
use crate::count::{About, Count, Rate};
use crate::decode_option::Unused;
use crate::exit::{Exit, Failure, Outcome};
use crate::filter_file::{Source, Trust, check_clock};
use crate::notice;
use crate::opened::{Opened, Opener};
use crate::output::{Output, is_same_file};
use crate::repeats::Repeats;
use crate::size::Size;
use crate::span::SpanArg;
use crate::table::{align, plain};
use crate::told::TellArgs;

/// Describes filters: kind, size, items, present rate and free capacity
///
/// The command verifies every byte of a file. It computes items, fill and the present rate from the bits.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis info seen.tamis
  tamis info --json *.tamis | jq '.[] | select(.headroom_items == 0) | .name'
  tamis info seen.tamis --svg seen.svg
  tamis info users.guava                              filters of other systems: see 'tamis formats'
  tamis info --keys dump.rdb                          all keys of a snapshot of Redis

Exit status: 0 shown, 2 failed, 3 a filter is over its rate.")]
pub struct Args {
    /// Filters
    #[arg(required = true, value_name = "FILTERS")]
    files: Vec<PathBuf>,

    /// Print a JSON list
    #[arg(long)]
    json: bool,

    /// Draw the fill of each block and the rate by items to FILE (for one filter)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// List the keys of Redis snapshots instead: database, type and key
    #[arg(long, conflicts_with = "svg")]
    keys: bool,

    // This is the last field: clap puts later options under its heading in the help.
    #[command(flatten)]
    tell: TellArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    if args.svg.is_some() && args.files.len() > 1 {
        return Err(Failure::new("--svg draws one filter: name one"));
    }
    if let Some(path) = &args.svg
        && args.files.iter().any(|file| is_same_file(file, path))
    {
        let path = path.display();
        return Err(Failure::new(format!("{path}: is the filter; name another file for --svg")));
    }
    if args.keys {
        refuse_decode_options(&args.tell)?;
        return keys::run(&args.files, args.json);
    }
    let mut opener = Opener::new(&args.tell);
    let mut shown = Shown::default();
    let mut failures = Vec::new();
    for (index, path) in args.files.iter().enumerate() {
        let opened = opener.all(path, Trust::Verify);
        let is_last = index + 1 == args.files.len();
        if is_last && opened.is_ok() && failures.is_empty() {
            opener.finish()?;
        }
        match opened.and_then(|all| shown.add(args, path, &all)) {
            Ok(()) => {}
            Err(Failure::Message(message)) => failures.push(message),
            Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
        }
    }
    let last = failures.pop();
    if last.is_none() || !shown.is_empty() {
        let mut output = Output::open(None)?;
        output.write(shown.finish(args.json).as_bytes())?;
        output.finish()?;
    }
    for message in failures {
        notice::error(message);
    }
    last.map_or(Ok(shown.exit), |message| Err(Failure::Message(message)))
}

/// Rejects decode options together with `--keys`. The list of keys needs no decode option.
fn refuse_decode_options(tell: &TellArgs) -> Result<(), Failure> {
    let given: Vec<_> = Unused::of(tell).names().collect();
    if given.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "info --keys lists all keys and decodes no filter: leave out {}",
        given.join(", ")
    )))
}

/// The results so far.
struct Shown {
    text: String,
    list: Vec<Value>,
    exit: Exit,
}

impl Default for Shown {
    fn default() -> Self {
        Self { text: String::new(), list: Vec::new(), exit: Exit::Yes }
    }
}

impl Shown {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.list.is_empty()
    }

    fn finish(&mut self, json: bool) -> String {
        if json {
            format!("{:#}\n", Value::Array(std::mem::take(&mut self.list)))
        } else {
            std::mem::take(&mut self.text)
        }
    }

    /// Appends the filters of a file.
    fn add(&mut self, args: &Args, path: &Path, all: &[Opened]) -> Result<(), Failure> {
        if !args.json && !self.text.is_empty() {
            self.text.push('\n');
        }
        // The filters of a Parquet table are rows of one text table.
        let mut rows = Vec::new();
        for opened in all {
            match opened {
                Opened::Tamis(source) => self.add_tamis(args, source)?,
                Opened::Foreign(_) if args.svg.is_some() => {
                    return Err(Failure::new("--svg draws filters of Tamis only"));
                }
                Opened::Unfiltered(name) => {
                    note!("{name}: has no filter: any item may be in it");
                    rows.push(foreign::row_without(name, path));
                }
                Opened::Foreign(file) => {
                    let facts = file.contents.info();
                    file.warn(&facts);
                    if file.judge(&facts) == Exit::OverRate {
                        self.exit = Exit::OverRate;
                    }
                    if args.json {
                        self.list.push(foreign::json(file, &facts));
                    } else if all.len() == 1 {
                        foreign::text(file, &facts, &mut self.text);
                    } else {
                        rows.push(foreign::row(file, &facts));
                    }
                }
            }
        }
        if !args.json && !rows.is_empty() {
            foreign::table(path, rows, &mut self.text);
        }
        Ok(())
    }

    fn add_tamis(&mut self, args: &Args, source: &Source) -> Result<(), Failure> {
        let mut file = source.file()?;
        if let Err(Failure::Message(message)) =
            check_clock(&file.filter, now_millis(), source.name())
        {
            note!("{message}");
        }
        file.filter.advance(now_millis());
        let facts = Facts::of(source.name(), &file);
        source.check_unchanged()?;
        if facts.is_full {
            note!("{}: {}", facts.name, facts.refusal());
        }
        if facts.is_over_rate {
            self.exit = Exit::OverRate;
            note!("{}: over its rate: {}", facts.name, facts.overflow());
        }
        if let Some(path) = &args.svg {
            let mut output = Output::open(Some(path))?;
            let charts = chart::charts(source.name(), &file);
            output.write(crate::svg::document(&charts).as_bytes())?;
            output.finish()?;
        }
        if args.json {
            self.list.push(facts.json());
        } else {
            facts.text(&mut self.text);
        }
        Ok(())
    }
}

/// The reported properties of a filter.
struct Facts<'a> {
    name: &'a str,
    file: &'a TamisFile<BitView<'a>>,
    items: f64,
    fill: f64,
    rate: f64,
    is_over_rate: bool,
    is_full: bool,
}

impl<'a> Facts<'a> {
    fn of(name: &'a str, file: &'a TamisFile<BitView<'a>>) -> Self {
        Self {
            name,
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
        format!("full: refuses adds; {}", Repeats::Once.advice(kind))
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
                let shown = |span| SpanArg(span).to_string().replace("lines", "items");
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

    fn text(&self, text: &mut String) {
        let (plan, layout) = (self.file.filter.plan(), self.file.filter.layout());
        let row = |name: &str, value: String| vec![format!("  {name}"), value];
        let lines = match plan.cache_lines() {
            1 => "one cache line per lookup".into(),
            lines => format!("{lines} cache lines a lookup"),
        };
        let mut rows = vec![
            row("kind", format!("{}, {lines}", plan.kind())),
            row(
                "size",
                format!(
                    "{} ({} bits, {})",
                    Size { bytes: self.bytes() },
                    Count(self.bits()),
                    plan.geometry()
                ),
            ),
            row("hash", layout.hasher.to_string()),
            row("capacity", self.capacity()),
            row("added", format!("{}, repeats included", Count(self.file.added))),
            row("items", self.items_text()),
            row("fill", format!("{:.1} %", self.fill * 100.0)),
            row("rate planned", Rate(plan.rate()).to_string()),
            row("rate now", Rate(self.rate).to_string()),
            row("headroom", self.headroom()),
        ];
        rows.extend(self.of_kind().into_iter().map(|(name, value)| row(name, value)));
        for (key, value) in self.file.metadata.iter() {
            rows.push(row(&format!("meta {}", plain(key)), plain(value)));
        }
        text.push_str(self.name);
        text.push('\n');
        align(text, &rows, &[]);
    }

    fn json(&self) -> Value {
        let plan = self.file.filter.plan();
        let metadata: Map<String, Value> =
            self.file.metadata.iter().map(|(key, value)| (key.into(), value.into())).collect();
        json!({
            "name": self.name,
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
