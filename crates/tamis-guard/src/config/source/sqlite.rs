//! Parses the source `sqlite`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tamis_sources::{SourceKind, SqliteOptions};

use crate::config::setting::{InvalidValue, set_to, set_to_text};
use crate::config::source::fields::SourceFields;
use crate::config::source::poll::change_column;
use crate::config::source::tables::{Tables, tables};
use crate::config::units::Text;

/// The table `source = { kind = "sqlite", path = "shop.db", table = "products", column = "id" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sqlite {
    path: PathBuf,
    table: Option<String>,
    /// The tables of one set, such as `orders_{00..15}`.
    tables: Option<Tables>,
    column: String,
    /// The condition for rows that count.
    #[serde(rename = "where")]
    condition: Option<String>,
    /// The name of a column whose values never decrease.
    changed: Option<String>,
    overlap: Option<Text<Duration>>,
    deletions: Option<String>,
    reread: Option<Text<Duration>>,
    chunk: Option<u32>,
}

impl SourceFields for Sqlite {
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let tables = tables(self.table.as_deref(), self.tables.as_ref())?;
        tables.iter().map(|table| self.kind(table, folder)).collect()
    }
}

impl Sqlite {
    /// Returns the settings of the source of one table.
    fn kind(&self, table: &str, folder: &Path) -> Result<Arc<dyn SourceKind>, InvalidValue> {
        let mut options = SqliteOptions::new(folder.join(&self.path), table, &self.column);
        options.condition.clone_from(&self.condition);
        options.deletions.clone_from(&self.deletions);
        set_to_text(&mut options.reread, self.reread);
        set_to(&mut options.chunk, self.chunk);
        options.changes = change_column(self.changed.as_deref(), self.overlap)?;
        Ok(Arc::new(options))
    }
}
