//! The id column, and the commands that read its ids.

use crate::ids::fold::Fold;
use crate::kinds::postgres::column::ColumnKind;

/// The id column, with quoted names for SQL.
#[derive(Clone, Debug)]
pub(super) struct IdColumn {
    pub(super) table: String,
    pub(super) column: String,
    pub(super) kind: ColumnKind,
    /// How text ids are folded to keys.
    pub(super) fold: Fold,
    /// The OID of the relation, which the stream uses.
    pub(super) relation: u32,
    /// The condition of the source as SQL. Without a condition, the SQL is `TRUE`.
    pub(super) filter: String,
}

impl IdColumn {
    /// Returns the `COPY` command that reads all ids.
    pub(super) fn copy(&self) -> String {
        let Self { table, column, filter, .. } = self;
        format!("COPY (SELECT {column} FROM {table} WHERE {filter}) TO STDOUT")
    }

    /// Returns the `COPY` command that reads the ids in a range of blocks. A range without an end contains all blocks
    /// from `first` on.
    pub(super) fn copy_of_blocks(&self, first: u64, end: Option<u64>) -> String {
        let end = end.map_or(String::new(), |end| format!(" AND ctid < '({end},0)'"));
        let Self { table, column, filter, .. } = self;
        format!(
            "COPY (SELECT {column} FROM {table} WHERE {filter} AND ctid >= '({first},0)'{end}) TO STDOUT"
        )
    }
}
