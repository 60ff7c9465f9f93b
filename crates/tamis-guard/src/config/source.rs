//! The table of source kinds: the allowed values for the field `source` of a set.
//!
//! Each kind of source has a variant of [`SourceTable`] and a file in the folder `source`. The file defines the fields
//! of the source kind, and checks the fields in `SourceFields::kinds`.

mod fields;
mod file;
mod leader;
#[cfg(feature = "sources")]
mod mysql;
#[cfg(feature = "sources")]
mod poll;
#[cfg(feature = "sources")]
mod postgres;
#[cfg(feature = "sources")]
mod redis;
#[cfg(feature = "sources")]
mod sqlite;
#[cfg(feature = "sources")]
mod tables;

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use tamis_sources::SourceKind;

use crate::config::setting::InvalidValue;
use fields::SourceFields;
pub(super) use file::{Filter, Lines};

/// The table of a source, such as `source = { kind = "lines", path = "ids.txt" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum SourceTable {
    Lines(Lines),
    Csv(file::Csv),
    #[cfg(feature = "sources")]
    Parquet(file::Parquet),
    Filter(Filter),
    Leader(leader::Leader),
    #[cfg(feature = "sources")]
    Sqlite(sqlite::Sqlite),
    #[cfg(feature = "sources")]
    Mysql(mysql::Mysql),
    #[cfg(feature = "sources")]
    Postgres(postgres::Postgres),
    #[cfg(feature = "sources")]
    Redis(redis::Redis),
}

impl SourceTable {
    fn fields(&self) -> &dyn SourceFields {
        match self {
            Self::Lines(it) => it,
            Self::Csv(it) => it,
            #[cfg(feature = "sources")]
            Self::Parquet(it) => it,
            Self::Filter(it) => it,
            Self::Leader(it) => it,
            #[cfg(feature = "sources")]
            Self::Sqlite(it) => it,
            #[cfg(feature = "sources")]
            Self::Mysql(it) => it,
            #[cfg(feature = "sources")]
            Self::Postgres(it) => it,
            #[cfg(feature = "sources")]
            Self::Redis(it) => it,
        }
    }

    /// Tests whether the source is a filter that responses of the program must prove.
    pub(super) fn needs_proof(&self) -> bool {
        self.fields().needs_proof()
    }

    /// Tests whether the source reports each update of a row, also if the id of the row stays the same.
    pub(super) fn reports_updates(&self) -> bool {
        self.fields().reports_updates()
    }

    /// Tests whether a set may have this source and other sources.
    pub(super) fn is_combinable(&self) -> bool {
        !self.needs_proof() && !matches!(self, Self::Leader(_))
    }

    /// Returns the settings of the source: one source for each table. Paths are relative to `folder`.
    pub(super) fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        self.fields().kinds(folder)
    }
}
