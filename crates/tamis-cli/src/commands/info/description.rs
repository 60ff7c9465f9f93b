//! The description of a filter, as text and as JSON.

use serde_json::Value;
use tamis_formats::{FilterInfo, ItemCount};

use crate::arguments::numbers::{HumanCount, HumanEstimate};
use crate::io::table::align;

/// The description of a filter that `tamis info` prints.
pub struct Description {
    /// The names and values of a text table.
    pub rows: Vec<(String, String)>,
    /// The properties of the filter as JSON, for programs.
    pub json: Value,
    /// Messages for the user, without the name of the filter.
    pub notes: Vec<String>,
    /// True if the filter is over its planned rate.
    pub is_over_rate: bool,
    /// The cells of this filter in a text table with one row per filter.
    pub table_row: Vec<String>,
}

impl Description {
    /// Appends a text table below `name`.
    pub fn text(&self, name: &str, text: &mut String) {
        let rows = self.rows.iter().map(|(name, value)| vec![format!("  {name}"), value.clone()]);
        text.push_str(name);
        text.push('\n');
        text.push_str(&align(&rows.collect::<Vec<_>>(), &[]));
    }
}

/// Returns the number of items as text.
pub fn items_text(info: &FilterInfo) -> String {
    if info.items.is_nan() {
        "unknown: the bits do not determine it".into()
    } else if info.items_are == ItemCount::Exact {
        HumanCount(info.items as u64).to_string()
    } else if info.items.is_finite() {
        format!("about {}", HumanEstimate(info.items))
    } else {
        "unknown: the filter is saturated".into()
    }
}
