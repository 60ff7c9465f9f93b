//! Reads a file whose columns have Bloom filters.

use std::path::Path;

use tamis_formats::{DecodeOptions, Funnel};

use crate::exit::Failure;
use crate::filters::open_filter::{NoFilter, OpenFilter};
use crate::filters::orc_file;
use crate::filters::orc_table;
use crate::filters::parquet_table;

/// The format of a file whose columns have filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnTable {
    /// A Parquet table.
    Parquet,
    /// An ORC file.
    Orc,
}

impl ColumnTable {
    /// Detects a table by its magic bytes.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if parquet_table::is_table(bytes) {
            Some(ColumnTable::Parquet)
        } else if orc_file::is_orc(bytes) {
            Some(ColumnTable::Orc)
        } else {
            None
        }
    }

    /// Returns the name of the format of the filters.
    pub fn format(self) -> &'static str {
        match self {
            ColumnTable::Parquet => "parquet",
            ColumnTable::Orc => "orc",
        }
    }

    /// Reads the filters of `column`, or of all columns, in the order of the row groups.
    ///
    /// # Errors
    ///
    /// A message for a damaged table, a table without a filter of `column`, or a funnel that
    /// contradicts the type of the column.
    pub fn filters(
        self,
        path: &Path,
        bytes: &[u8],
        column: Option<&str>,
        options: &DecodeOptions,
        funnel: Option<Funnel>,
    ) -> Result<Vec<Result<OpenFilter, NoFilter>>, Failure> {
        match self {
            ColumnTable::Parquet => parquet_table::filters(path, bytes, column, options, funnel),
            ColumnTable::Orc => orc_table::filters(path, bytes, column, options, funnel),
        }
    }
}
