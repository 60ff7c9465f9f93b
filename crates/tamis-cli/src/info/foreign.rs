//! Describes a filter of another system.

use std::path::Path;

use serde_json::{Map, Value, json};
use tamis_formats::{FilterInfo, Items};

use crate::count::{About, Count, Rate};
use crate::foreign::Foreign;
use crate::input;
use crate::size::Size;
use crate::table::{align, plain};

/// Appends a text table.
pub fn text(file: &Foreign, facts: &FilterInfo, text: &mut String) {
    let row = |name: &str, value: String| vec![format!("  {name}"), value];
    let probes = facts.probes.map_or_else(String::new, |probes| format!(", {probes} probes"));
    let items = if facts.items.is_nan() {
        "unknown: the bits do not determine it".into()
    } else if facts.items.is_finite() {
        format!("about {}", About(facts.items))
    } else {
        "unknown: the filter is saturated".into()
    };
    let mut rows = vec![
        row("format", format!("{}: {}", file.format.name, file.format.summary)),
        row(
            "size",
            format!("{} ({} bits{probes})", Size { bytes: bytes(file, facts) }, Count(facts.bits)),
        ),
        row("rule", facts.rule.clone()),
        row("items", items),
        row("fill", format!("{:.1} %", facts.fill * 100.0)),
    ];
    if let Some(column) = &file.column {
        rows.push(row("an item is", column.item.clone()));
    } else if file.funnel.is_none() && file.format.items == Items::Unspecified {
        rows.push(row("an item is", "not said by the bytes: --funnel, --charset".into()));
    }
    if let Some(planned) = file.told.rate.or(facts.planned_rate) {
        rows.push(row("rate planned", Rate(planned).to_string()));
    }
    rows.push(row("rate now", Rate(facts.rate).to_string()));
    rows.extend(facts.more.iter().map(|(name, value)| row(name, plain(value))));
    if !file.is_whole_file {
        rows.push(row("in a file of", Size { bytes: file.len_bytes }.to_string()));
    }
    text.push_str(&file.name);
    text.push('\n');
    align(text, &rows, &[]);
}

/// Appends the filters of a Parquet table, one per line.
pub fn table(path: &Path, rows: Vec<Vec<String>>, text: &mut String) {
    let heading =
        ["  row group", "column", "items about", "fill", "rate now", "size", "an item is"];
    let mut lines = vec![heading.map(String::from).to_vec()];
    lines.extend(rows);
    text.push_str(&input::name(path));
    text.push('\n');
    align(text, &lines, &[0, 2, 3, 4, 5]);
}

/// Returns the row for the filter of a row group and column.
pub fn row(file: &Foreign, facts: &FilterInfo) -> Vec<String> {
    let items = if facts.items.is_finite() { About(facts.items).to_string() } else { "all".into() };
    let mut row = of_group(&file.name, &file.path);
    row.extend([
        items,
        format!("{:.1} %", facts.fill * 100.0),
        Rate(facts.rate).to_string(),
        Size { bytes: bytes(file, facts) }.to_string(),
    ]);
    row.extend(file.column.as_ref().map(|column| column.item.clone()));
    row
}

/// Returns the row for a row group without a filter of the column.
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

/// Returns the same properties as JSON.
pub fn json(file: &Foreign, facts: &FilterInfo) -> Value {
    let more: Map<String, Value> =
        facts.more.iter().map(|(name, value)| ((*name).into(), value.as_str().into())).collect();
    json!({
        "name": file.name,
        "format": file.format.name,
        "bits": facts.bits,
        "bytes": bytes(file, facts),
        "file_bytes": file.len_bytes,
        "probes": facts.probes,
        "rule": facts.rule,
        // Null if the bits do not determine the number, for example if every bit is set.
        "items": facts.items,
        "fill": facts.fill,
        "rate_planned": file.told.rate.or(facts.planned_rate),
        "rate_now": facts.rate,
        "more": more,
        "warnings": facts.warnings,
    })
}

/// Returns the size of the filter in bytes.
fn bytes(file: &Foreign, facts: &FilterInfo) -> u64 {
    if file.is_whole_file { file.len_bytes } else { facts.bits.div_ceil(8) }
}
