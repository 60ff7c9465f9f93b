//! Describes a filter of another system.

use std::path::Path;

use serde_json::{Map, Value, json};
use tamis_formats::{FilterInfo, ItemCount, Items};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::{HumanCount, HumanEstimate, Rate};
use crate::commands::info::description::{Description, items_text};
use crate::filters::open_filter::OpenFilter;
use crate::io::input;
use crate::io::table::{align, plain};

/// Describes a filter of another system.
pub fn describe(filter: &OpenFilter) -> Description {
    let info = filter.contents().info();
    let (notes, excess) = filter.rate_notes(&info);
    Description {
        rows: rows(filter, &info),
        json: json(filter, &info),
        notes: info.warnings.iter().cloned().chain(notes).collect(),
        is_over_rate: excess.is_some(),
        table_row: row(filter, &info),
    }
}

fn rows(filter: &OpenFilter, info: &FilterInfo) -> Vec<(String, String)> {
    let probes = info.probes.map_or_else(String::new, |probes| format!(", {probes} probes"));
    let bytes = bytes(filter, info);
    let is_exact = info.items_are == ItemCount::Exact;
    let size = if is_exact {
        format!("{} bytes", HumanCount(bytes))
    } else {
        format!("{} ({} bits{probes})", ByteSize { bytes }, HumanCount(info.bits))
    };
    let mut rows = vec![
        ("format", format!("{}: {}", filter.format.name, filter.format.summary)),
        ("size", size),
        ("rule", info.layout.clone()),
        ("items", items_text(info)),
    ];
    if !is_exact {
        rows.push(("fill", format!("{:.1} %", info.fill * 100.0)));
    }
    if let Some(column) = &filter.column {
        rows.push(("an item is", column.item.clone()));
    } else if filter.funnel.is_none() && filter.format.items == Items::Unspecified {
        rows.push(("an item is", "not stored in the file: see --funnel, --charset".into()));
    }
    if let Some(planned) = filter.options.rate.or(info.rate_planned) {
        rows.push(("rate planned", Rate(planned).to_string()));
    }
    rows.push(("rate now", Rate(info.rate_now).to_string()));
    rows.extend(info.details.iter().map(|(name, value)| (*name, plain(value))));
    if !filter.is_whole_file {
        rows.push(("in a file of", ByteSize { bytes: filter.len_bytes }.to_string()));
    }
    rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Appends the filters of a Parquet table or an ORC file, one per line.
pub fn table(path: &Path, rows: Vec<Vec<String>>, text: &mut String) {
    let heading =
        ["  row group", "column", "items about", "fill", "rate now", "size", "an item is"];
    let mut lines = vec![heading.map(String::from).to_vec()];
    lines.extend(rows);
    text.push_str(&input::name(path));
    text.push('\n');
    text.push_str(&align(&lines, &[0, 2, 3, 4, 5]));
}

/// Returns the table row for the filter of a row group and column.
fn row(filter: &OpenFilter, info: &FilterInfo) -> Vec<String> {
    let items =
        if info.items.is_finite() { HumanEstimate(info.items).to_string() } else { "all".into() };
    let mut row = of_group(&filter.name, &filter.path);
    row.extend([
        items,
        format!("{:.1} %", info.fill * 100.0),
        Rate(info.rate_now).to_string(),
        ByteSize { bytes: bytes(filter, info) }.to_string(),
    ]);
    row.extend(filter.column.as_ref().map(|column| column.item.clone()));
    row
}

/// Returns the table row for a row group whose column has no filter.
pub fn row_without(name: &str, path: &Path) -> Vec<String> {
    let mut row = of_group(name, path);
    row.push("no filter".into());
    row
}

/// Splits the name of a filter into its row group and its column.
fn of_group(name: &str, path: &Path) -> Vec<String> {
    let of_table = name.strip_prefix(&input::name(path)).and_then(|name| name.strip_prefix('['));
    let (group, column) = of_table.and_then(|name| name.split_once("].")).unwrap_or(("", name));
    vec![group.into(), plain(column)]
}

fn json(filter: &OpenFilter, info: &FilterInfo) -> Value {
    let more: Map<String, Value> =
        info.details.iter().map(|(name, value)| ((*name).into(), value.as_str().into())).collect();
    json!({
        "name": filter.name,
        "format": filter.format.name,
        "bits": info.bits,
        "bytes": bytes(filter, info),
        "file_bytes": filter.len_bytes,
        "probes": info.probes,
        "rule": info.layout,
        // Null if the bits do not determine the number, for example if every bit is set.
        "items": info.items,
        // Null for a set, which has no bits to fill.
        "fill": (info.items_are != ItemCount::Exact).then_some(info.fill),
        "rate_planned": filter.options.rate.or(info.rate_planned),
        "rate_now": info.rate_now,
        "more": more,
        "warnings": info.warnings,
    })
}

/// Returns the size of the filter in bytes.
fn bytes(filter: &OpenFilter, info: &FilterInfo) -> u64 {
    if filter.is_whole_file { filter.len_bytes } else { info.bits.div_ceil(8) }
}
