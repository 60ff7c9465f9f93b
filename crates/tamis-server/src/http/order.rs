//! Sorts all filters by any column of the overview. The sort uses the last measurements of the
//! sampler, which visits all filters in turn.
//!
//! A row takes about 80 bytes and the bytes of its key. There are at most [`MAX_ROWS`] rows.
//! Because the number of rows is limited, the server sorts any page in memory without a lock of the
//! keyspace. The sort takes about 20 ms for 100,000 filters.

use std::cmp::Ordering;

use crate::http::kinds::kind_id;
use crate::stats::report::FilterReport;

/// The maximum number of filters that can be sorted. If the number of filters exceeds this maximum,
/// the rows contain only the filters that are closest to their limits.
pub(super) const MAX_ROWS: usize = 100_000;

/// The values of a filter by which the page can sort.
#[derive(Clone, Debug)]
pub(super) struct FilterRow {
    pub key: Box<[u8]>,
    kind: &'static str,
    items: f64,
    /// The number of items divided by the capacity of the filter. The value is 0 if the filter
    /// accepts any number of items.
    fill: f32,
    /// The current false positive rate divided by the planned rate.
    rate: f32,
    /// The number of days until the filter is full or exceeds its planned rate. The value is
    /// infinite if the time is unknown or if the filter never reaches a limit.
    days: f32,
    bytes: u64,
    is_bad: bool,
}

/// A column of the table of filters in the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// The order from first to last: filters that are full or exceed their planned rate, filters
    /// that reach their limit soonest, filters that are closest to their limit.
    Worst,
    Key,
    Kind,
    Items,
    Fill,
    Rate,
    Forecast,
    Memory,
}

/// The columns, with their names in the query parameter `sort`.
const COLUMNS: [(&str, Column); 8] = [
    ("worst", Column::Worst),
    ("key", Column::Key),
    ("kind", Column::Kind),
    ("items", Column::Items),
    ("fill", Column::Fill),
    ("rate", Column::Rate),
    ("forecast", Column::Forecast),
    ("memory", Column::Memory),
];

impl Column {
    /// Returns the column with the name `name`.
    pub fn named(name: &[u8]) -> Option<Self> {
        COLUMNS.iter().find(|(of, _)| of.as_bytes() == name).map(|(_, column)| *column)
    }

    /// Returns the names of all columns, for error messages.
    pub fn names() -> String {
        COLUMNS.map(|(name, _)| name).join(", ")
    }
}

impl FilterRow {
    pub fn of(report: &FilterReport) -> Self {
        let info = &report.info;
        Self {
            key: report.key.clone(),
            kind: kind_id(info.kind, info.refuses),
            items: info.items,
            fill: info.held_capacity().map_or(0.0, |most| info.items / most.max(1) as f64) as f32,
            rate: info.relative_rate() as f32,
            days: report.forecast.days().unwrap_or(f64::INFINITY) as f32,
            bytes: info.bytes,
            is_bad: info.is_over_rate || info.is_full(),
        }
    }

    fn cmp(&self, other: &Self, column: Column) -> Ordering {
        match column {
            Column::Worst => (other.is_bad.cmp(&self.is_bad))
                .then_with(|| self.days.total_cmp(&other.days))
                .then_with(|| other.rate.total_cmp(&self.rate)),
            Column::Key => self.key.cmp(&other.key),
            Column::Kind => self.kind.cmp(other.kind),
            Column::Items => self.items.total_cmp(&other.items),
            Column::Fill => self.fill.total_cmp(&other.fill),
            Column::Rate => self.rate.total_cmp(&other.rate),
            Column::Forecast => self.days.total_cmp(&other.days),
            Column::Memory => self.bytes.cmp(&other.bytes),
        }
    }
}

/// A page of the sorted filters.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRequest {
    pub column: Column,
    pub is_descending: bool,
    pub offset: usize,
    pub limit: usize,
}

impl PageRequest {
    /// Returns the keys of the page, and the number of all matching rows. Rows with equal values
    /// are sorted by key, so that no filter appears on two pages.
    pub fn of<'r>(
        &self,
        rows: &'r [FilterRow],
        is_match: impl Fn(&[u8]) -> bool,
    ) -> (Vec<&'r [u8]>, usize) {
        let mut matching: Vec<&FilterRow> = rows.iter().filter(|row| is_match(&row.key)).collect();
        matching.sort_unstable_by(|one, other| {
            let by_column = one.cmp(other, self.column);
            let by_column = if self.is_descending { by_column.reverse() } else { by_column };
            by_column.then_with(|| one.key.cmp(&other.key))
        });
        let page = matching.iter().skip(self.offset).take(self.limit);
        (page.map(|row| &*row.key).collect(), matching.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, items: f64, days: f32, is_bad: bool) -> FilterRow {
        let key = key.as_bytes().into();
        let (fill, rate, bytes) = (0.5, items as f32, items as u64);
        FilterRow { key, kind: "classic", items, fill, rate, days, bytes, is_bad }
    }

    #[test]
    fn pages_follow_each_other_in_any_order() {
        let numbers: Vec<u32> = (0..1000).map(|i| i * 7919 % 1000).collect();
        let rows: Vec<FilterRow> = numbers
            .iter()
            .map(|i| row(&format!("k{i:03}"), f64::from(i / 10), 1.0, *i == 5))
            .collect();
        for (_, column) in COLUMNS {
            for is_descending in [false, true] {
                let mut seen = Vec::new();
                for offset in (0..1100).step_by(90) {
                    let page = PageRequest { column, is_descending, offset, limit: 90 };
                    let (keys, matching) = page.of(&rows, |key| key != b"k999");
                    assert_eq!(matching, 999);
                    seen.extend(keys);
                }
                assert_eq!(seen.len(), 999, "{column:?}");
                let first: &[u8] = match (column, is_descending) {
                    (Column::Worst, false) => b"k005",
                    (Column::Items | Column::Rate | Column::Memory, true) => b"k990",
                    (Column::Key, true) => b"k998",
                    _ => b"k000",
                };
                if column != Column::Worst {
                    assert_eq!(seen[0], first, "{column:?} {is_descending}");
                }
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), 999, "{column:?}");
            }
        }
    }

    #[test]
    fn the_worst_filters_are_sorted_by_state_forecast_and_rate() {
        let rows = [
            row("near", 9.0, f32::INFINITY, false),
            row("far", 1.0, f32::INFINITY, false),
            row("soon", 0.0, 2.0, false),
            row("bad", 0.0, 0.0, true),
        ];
        let page = PageRequest { column: Column::Worst, is_descending: false, offset: 0, limit: 9 };
        let (keys, _) = page.of(&rows, |_| true);
        assert_eq!(keys, [&b"bad"[..], b"soon", b"near", b"far"]);
    }

    #[test]
    fn columns_have_names() {
        assert_eq!(Column::named(b"memory"), Some(Column::Memory));
        assert_eq!(Column::named(b"Memory"), None);
        assert!(Column::names().starts_with("worst, key"));
    }
}
