//! Selects the filters of a table by the column that the user requests. A table is a Parquet table
//! or an ORC file.

use std::collections::{BTreeSet, HashSet};

use crate::exit::Failure;
use crate::filters::open_filter::{NoFilter, OpenFilter};
use crate::io::input;
use crate::records::column_name::ColumnName;
use crate::records::column_text::ColumnItems;

/// The message about a table without filters.
pub const NO_FILTER: &str = "none of its columns has a Bloom filter: write it with one";

/// The filters that were found in a table, in the order of the row groups.
pub struct TableFilters {
    /// The column that the user requests.
    asked: Option<String>,
    filters: Vec<(String, Result<OpenFilter, NoFilter>)>,
    with_filters: Vec<String>,
    is_with_filter: HashSet<String>,
    contradiction: Option<String>,
}

impl TableFilters {
    /// Creates an empty set of filters. `asked` is the full name of the column that the user
    /// requests.
    pub fn new(asked: Option<String>) -> Self {
        Self {
            asked,
            filters: Vec::new(),
            with_filters: Vec::new(),
            is_with_filter: HashSet::new(),
            contradiction: None,
        }
    }

    /// Records that `column` has a filter. Tests whether the user requests this column.
    pub fn wants(&mut self, column: &ColumnName) -> bool {
        if self.is_with_filter.insert(column.quoted.clone()) {
            self.with_filters.push(column.quoted.clone());
        }
        self.is_asked(column)
    }

    /// Tests whether the user requests this column, or requests no column.
    pub fn is_asked(&self, column: &ColumnName) -> bool {
        self.asked.as_ref().is_none_or(|asked| *asked == column.quoted)
    }

    /// Appends a filter of a row group.
    pub fn push(&mut self, column: &ColumnName, filter: OpenFilter) {
        let filter = OpenFilter { column_name: Some(column.clone()), ..filter };
        self.filters.push((column.quoted.clone(), Ok(filter)));
    }

    /// Appends a row group without a filter of its column. `name` names the row group and the
    /// column.
    pub fn push_missing(&mut self, column: &ColumnName, name: String) {
        if self.is_asked(column) {
            self.filters.push((column.quoted.clone(), Err(NoFilter { name })));
        }
    }

    /// Records that the funnel of the user contradicts the items of a column.
    pub fn contradict(&mut self, column: &ColumnName, items: &ColumnItems, advice: &str) {
        self.contradiction.get_or_insert_with(|| {
            format!("an item of its column {column} is {}: {advice}", items.item)
        });
    }

    /// Returns the filters of the requested column. If the user requests no column, returns the
    /// filters of all columns that have a filter in any row group.
    ///
    /// # Errors
    ///
    /// A message if there are no filters, or if the funnel contradicts the column. `without` is the
    /// message about a table without filters.
    pub fn finish(
        self,
        columns: &[ColumnName],
        without: &str,
    ) -> Result<Vec<Result<OpenFilter, NoFilter>>, String> {
        let Self { asked, filters, with_filters, is_with_filter, contradiction } = self;
        let has_filter = filters.into_iter().filter(|(column, _)| is_with_filter.contains(column));
        let filters: Vec<_> = has_filter.map(|(_, filter)| filter).collect();
        // If several columns have filters and the user names no column, the error that
        // requests `--column` comes first.
        if let Some(contradiction) =
            contradiction.filter(|_| asked.is_some() || with_filters.len() == 1)
        {
            return Err(contradiction);
        }
        match asked.as_deref() {
            _ if !filters.is_empty() => Ok(filters),
            Some(asked) if !columns.iter().any(|it| it.quoted == asked) => {
                let columns: Vec<&str> = columns.iter().map(|it| &it.quoted[..]).collect();
                Err(format!("has no column {asked}; its columns: {}", columns.join(", ")))
            }
            Some(asked) if !with_filters.is_empty() => Err(format!(
                "its column {asked} has no Bloom filter; columns that have one: {}",
                with_filters.join(", ")
            )),
            _ => Err(without.to_owned()),
        }
    }
}

/// Rejects filters of several columns. The message requests `--column`.
///
/// # Errors
///
/// A message if several columns have filters.
pub fn check_one_column(filters: &[Result<OpenFilter, NoFilter>]) -> Result<(), Failure> {
    let filters = filters.iter().filter_map(|filter| filter.as_ref().ok());
    let columns = filters.clone().filter_map(|filter| filter.column_name.as_ref());
    let columns: BTreeSet<&str> = columns.map(|column| &column.quoted[..]).collect();
    match filters.clone().next() {
        Some(filter) if columns.len() > 1 => Err(Failure::new(format!(
            "{}: several columns have filters: choose one with --column ({})",
            input::name(&filter.path),
            columns.into_iter().collect::<Vec<_>>().join(", ")
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::open_filter::FilterContents;

    #[test]
    fn columns_are_told_apart_by_their_names_alone() {
        let filter = |column: &str| {
            let contents =
                tamis_formats::Contents::new(tamis_formats::orc::create(1, 0.5).unwrap());
            let contents = FilterContents::Decoded(contents);
            let column_name = Some(ColumnName::of(&[column.to_owned()]));
            OpenFilter { column_name, ..OpenFilter::new("t.orc".as_ref(), contents) }
        };
        let check = |columns: &[&str]| {
            let filters: Vec<_> = columns.iter().map(|column| Ok(filter(column))).collect();
            check_one_column(&filters)
        };
        assert!(check(&["x].id", "x].id"]).is_ok());
        let Err(Failure::Message(error)) = check(&["id", "x].id"]) else { panic!("two columns") };
        let expected =
            r#"t.orc: several columns have filters: choose one with --column ("x].id", id)"#;
        assert_eq!(error, expected);
    }
}
