//! Parses the sources `lines`, `csv`, `parquet` and `filter`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tamis_sources::{CsvColumn, FileFormat, FileOptions, SourceKind};

use crate::config::setting::{InvalidValue, invalid, set_to, set_to_text};
use crate::config::source::fields::SourceFields;
use crate::config::units::{Size, Text};

/// The table `source = { kind = "lines", path = "ids.txt" }`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lines {
    path: PathBuf,
    quiet: Option<Text<Duration>>,
    min_items: Option<u64>,
    min_share: Option<f64>,
    max_invalid: Option<f64>,
}

/// The table `source = { kind = "csv", path = "ids.csv", column = "id" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Csv {
    path: PathBuf,
    column: Column,
    delimiter: Option<char>,
    quiet: Option<Text<Duration>>,
    min_items: Option<u64>,
    min_share: Option<f64>,
    max_invalid: Option<f64>,
}

/// A column of a CSV file: its name, or its number starting at 1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Column {
    Number(usize),
    Name(String),
}

/// The table `source = { kind = "parquet", path = "ids.parquet", column = "id" }`.
#[cfg(feature = "sources")]
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parquet {
    path: PathBuf,
    column: String,
    quiet: Option<Text<Duration>>,
    min_items: Option<u64>,
    min_share: Option<f64>,
    max_invalid: Option<f64>,
}

/// The table `source = { kind = "filter", path = "ids.tamis" }`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    path: PathBuf,
    quiet: Option<Text<Duration>>,
    max_size: Option<Text<Size>>,
}

impl Lines {
    /// Creates a table with this path and default values for all other fields.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }
}

impl SourceFields for Lines {
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let mut options = FileOptions::new(folder.join(&self.path), FileFormat::Lines);
        set_to_text(&mut options.quiet, self.quiet);
        set_limits(&mut options, self.min_items, self.min_share, self.max_invalid);
        Ok(vec![Arc::new(options)])
    }
}

impl SourceFields for Csv {
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let column = match &self.column {
            Column::Name(name) => CsvColumn::Name(name.clone()),
            Column::Number(0) => {
                return Err(invalid("column", "the first column has the number 1"));
            }
            Column::Number(number) => CsvColumn::Number(number - 1),
        };
        let delimiter = u8::try_from(self.delimiter.unwrap_or(','));
        let delimiter = delimiter.ok().filter(u8::is_ascii);
        let delimiter =
            delimiter.ok_or_else(|| invalid("delimiter", "write one ASCII character"))?;
        let format = FileFormat::Csv { column, delimiter };
        let mut options = FileOptions::new(folder.join(&self.path), format);
        set_to_text(&mut options.quiet, self.quiet);
        set_limits(&mut options, self.min_items, self.min_share, self.max_invalid);
        Ok(vec![Arc::new(options)])
    }
}

#[cfg(feature = "sources")]
impl SourceFields for Parquet {
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let format = FileFormat::Parquet { column: self.column.clone() };
        let mut options = FileOptions::new(folder.join(&self.path), format);
        set_to_text(&mut options.quiet, self.quiet);
        set_limits(&mut options, self.min_items, self.min_share, self.max_invalid);
        Ok(vec![Arc::new(options)])
    }
}

impl Filter {
    /// Creates a table with this path and default values for all other fields.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }
}

impl SourceFields for Filter {
    fn needs_proof(&self) -> bool {
        true
    }

    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let mut options = FileOptions::new(folder.join(&self.path), FileFormat::Filter);
        set_to_text(&mut options.quiet, self.quiet);
        set_to(&mut options.max_bytes, self.max_size.map(|Text(Size(bytes))| bytes));
        Ok(vec![Arc::new(options)])
    }
}

/// Sets the limits at which the guard rejects a list. After a rejection, the guard keeps its present ids.
fn set_limits(
    options: &mut FileOptions,
    min_items: Option<u64>,
    min_share: Option<f64>,
    max_invalid: Option<f64>,
) {
    set_to(&mut options.min_items, min_items);
    set_to(&mut options.min_share, min_share);
    set_to(&mut options.max_invalid, max_invalid);
}
