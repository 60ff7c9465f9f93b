//! Checks the table, its id column and its publication. Error messages contain the SQL that fixes a problem.

mod check;

use tokio_postgres::Client;

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::condition::{BoundColumn, FieldKind, InvalidCondition};
use crate::kinds::postgres::condition::{self, RowCondition, TestedColumn};
use crate::kinds::postgres::id_column::IdColumn;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::preflight::{TableName, check_text_encoding};
use crate::kinds::postgres::table::check::{Check, Quoted, refuse};

/// A table whose changes are followed.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) column: String,
    /// The OID of the column type.
    pub(super) column_type: u32,
    /// True if no two rows have the same id. A deleted row means a deleted id only if ids are unique.
    pub(super) is_unique: bool,
    pub(super) ids: IdColumn,
    /// The condition for each row of the stream. With `None`, all rows count.
    pub(super) condition: Option<RowCondition>,
}

impl Table {
    /// Returns the names of the columns that the condition tests.
    pub(super) fn tested(&self) -> Vec<&str> {
        self.condition.iter().flat_map(|it| &it.columns).map(|it| &*it.name).collect()
    }
}

/// Rejects a table whose changes are not completely in the stream.
pub(super) async fn check_table(
    client: &Client,
    name: &TableName,
    options: &PostgresOptions,
    id: &IdType,
) -> Result<Table, SourceError> {
    let check = Check::new(client, name, options).await?;
    let is_partitioned = check.kind()?;
    let column = check.column(id).await?;
    if column.is_generated {
        let Quoted { table, column, .. } = &check.quoted;
        return refuse(format!(
            "{table}.{column} is a generated column, whose values are not in the stream of changes; name a column \
             from which it is computed, or set follow = \"poll\""
        ));
    }
    check.grants().await?;
    let relations = check.relations().await?;
    let condition = find_condition(client, name, options).await?;
    let filter = condition.as_ref().map_or("TRUE", |it| it.condition.sql()).to_owned();
    let table = Table {
        schema: name.schema.clone(),
        name: name.table.clone(),
        column: options.column.clone(),
        column_type: column.type_number,
        is_unique: relations.is_unique && column.kind.is_one_to_one(id),
        ids: check.id_column(&column, filter),
        condition,
    };
    check.publication(is_partitioned, &relations, &table.tested()).await?;
    Ok(table)
}

/// Finds the columns of the condition, and checks each of these columns. Returns `None` if the source has no condition.
async fn find_condition(
    client: &Client,
    name: &TableName,
    options: &PostgresOptions,
) -> Result<Option<RowCondition>, SourceError> {
    let condition = options.condition_of_log().map_err(InvalidCondition::into_error)?;
    let Some(condition) = condition else { return Ok(None) };
    let (mut columns, mut bound) = (Vec::new(), Vec::new());
    for column in condition.columns() {
        let column = condition::catalog_name(column);
        let options = PostgresOptions { column: column.clone(), ..options.clone() };
        let check = Check::new(client, name, &options).await?;
        let found = check.described().await?;
        if found.is_generated {
            let Quoted { table, column, .. } = &check.quoted;
            return refuse(format!(
                "{table}.{column} is a generated column, whose values are not in the stream of changes; remove {column} \
                 from `where`, or set follow = \"poll\""
            ));
        }
        check.grants().await?;
        let kind = condition::field_kind(&found.base, found.is_enum, found.is_exact);
        bound.push(BoundColumn {
            sql: check.quoted.column,
            kind,
            is_nullable: found.is_nullable,
            full_type: found.full,
        });
        columns.push(TestedColumn { name: column, type_number: found.type_number, kind });
    }
    if columns.iter().any(|column| matches!(column.kind, FieldKind::Text(_))) {
        check_text_encoding(client).await?;
    }
    let condition = condition.bind(&bound).map_err(InvalidCondition::into_error)?;
    Ok(Some(RowCondition { condition, columns }))
}

/// Rejects a table or view whose ids cannot be read.
pub(super) async fn check_column(
    client: &Client,
    name: &TableName,
    options: &PostgresOptions,
    id: &IdType,
) -> Result<IdColumn, SourceError> {
    let check = Check::new(client, name, options).await?;
    if name.kind == "m" {
        return refuse(format!(
            "{} is a materialized view, which gets rows long after their values of the change \
             column; poll a table or a view",
            check.quoted.table
        ));
    }
    let column = check.column(id).await?;
    check.grants().await?;
    let filter = options.condition.as_ref().map_or("TRUE".to_owned(), |it| format!("({it})"));
    Ok(check.id_column(&column, filter))
}

/// A change column, as quoted SQL.
#[derive(Debug)]
pub(super) struct ChangeColumn {
    pub(super) name: String,
    /// The type to which the values are cast. Each type has 8 bytes.
    pub(super) cast: &'static str,
}

/// Rejects a change column whose values have no usable order.
pub(super) async fn check_change_column(
    client: &Client,
    name: &TableName,
    options: &PostgresOptions,
    column: &str,
) -> Result<ChangeColumn, SourceError> {
    let options = PostgresOptions { column: column.to_owned(), ..options.clone() };
    let check = Check::new(client, name, &options).await?;
    let found = check.described().await?;
    let cast = match &*found.base {
        "int2" | "int4" | "int8" => "int8",
        "timestamptz" => "timestamptz",
        "timestamp" => "timestamp",
        _ => {
            return refuse(format!(
                "the column {column} is {}; a change column is smallint, integer, bigint, \
                 timestamptz or timestamp",
                found.full
            ));
        }
    };
    check.grants().await?;
    Ok(ChangeColumn { name: check.quoted.column, cast })
}
