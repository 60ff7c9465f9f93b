//! The table that contains the ids, and its rows in the binary log.

use std::borrow::Cow;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Value};

use crate::errors::source_error::SourceError;
use crate::ids::fold::Fold;
use crate::ids::id::IdType;
use crate::kinds::condition::InvalidCondition;
use crate::kinds::mysql::charset::Charset;
use crate::kinds::mysql::column::{Column, ColumnKind, columns, hex};
use crate::kinds::mysql::condition::RowCondition;
use crate::kinds::mysql::explain::explained;
use crate::kinds::mysql::numbers::decimal_text;
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::quoted::quoted;
use crate::kinds::mysql::unreadable::Unreadable;

/// The table and its id column, as read from the information schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) database: String,
    pub(super) name: String,
    /// The value of `TABLE_TYPE` in the information schema.
    pub(super) table_type: String,
    /// The name of the id column.
    pub(super) column: String,
    /// True if an index begins with the id column.
    pub(super) has_index: bool,
    /// True if a unique index guarantees that no two rows have the same id.
    pub(super) is_unique: bool,
    /// The number of columns.
    pub(super) columns: usize,
    /// The index of the id column in the table, starting at 0.
    pub(super) id: usize,
    pub(super) kind: ColumnKind,
    /// How text ids are folded to keys.
    pub(super) fold: Fold,
    /// True for `BINARY(16)` and `UUID`, because the log omits trailing zeros of a value.
    pub(super) is_trimmed: bool,
    /// The condition for each row of the log. With `None`, all rows count.
    pub(super) condition: Option<RowCondition>,
    /// The condition as SQL, for full reads and polls.
    pub(super) filter: String,
    /// The properties that the decoding of log rows depends on: the names and types of all columns, and whether the id
    /// is unique.
    pub(super) shape: String,
}

/// The length of a UUID in bytes.
const UUID_BYTES: usize = 16;

impl Table {
    /// Returns the quoted name of the table for SQL.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.name))
    }

    /// Returns a query for the ids of the rows that satisfy the condition of the source and another condition.
    pub(super) fn select(&self, condition: &str) -> String {
        let (column, from) = (quoted(&self.column), self.quoted());
        format!("SELECT {column} FROM {from} WHERE {} AND ({condition})", self.filter)
    }

    /// Returns the text of an id from the log. Returns an error if the source cannot read the value.
    pub(super) fn id_of(&self, mut value: Value) -> Result<Option<Vec<u8>>, Unreadable> {
        if let Value::Bytes(bytes) = &mut value {
            if self.is_trimmed {
                bytes.resize(bytes.len().max(UUID_BYTES), 0);
            }
            match self.kind {
                ColumnKind::Text(charset) => {
                    let text = charset.decode(bytes).ok_or(Unreadable)?;
                    return Ok(Some(text.into_owned()));
                }
                ColumnKind::Decimal(digits) => {
                    let text = decimal_text(bytes, digits).ok_or(Unreadable)?;
                    return Ok(Some(text.into_bytes()));
                }
                // A query returns a text, but the log has the bytes.
                ColumnKind::Uuid => return Ok(Some(hex(bytes))),
                _ => {}
            }
        }
        Ok(self.kind.text(&value).map(Cow::into_owned))
    }
}

/// Finds the table and its id column. Rejects a column whose type cannot hold ids of the configured type.
pub(super) async fn find_table(
    connection: &mut Conn,
    database: &str,
    options: &MysqlOptions,
    id: &IdType,
) -> Result<Table, SourceError> {
    let explained = |error: Error| explained(&error, options);
    let columns = columns(connection, database, &options.table).await.map_err(explained)?;
    let refuse = |message: String| Err(SourceError::Preflight(message));
    let (name, column) = (&options.table, &options.column);
    let sql = "SELECT TABLE_TYPE FROM information_schema.TABLES \
        WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ?";
    let table_type: Option<String> =
        connection.exec_first(sql, (database, name)).await.map_err(explained)?;
    let table_type = table_type.unwrap_or_default();
    if columns.is_empty() {
        return refuse(format!("there is no table {database}.{name}, or the user may not read it"));
    }
    let Some(place) = columns.iter().position(|it| it.name.eq_ignore_ascii_case(column)) else {
        let names: Vec<&str> = columns.iter().map(|it| &*it.name).collect();
        let names = names.join(", ");
        return refuse(format!("the table {name} has no column {column}; it has: {names}"));
    };
    let (kind, fold) = id_column(&columns[place], id, options)?;
    // Queries return a UUID as a text. Only the log has its bytes.
    if kind == ColumnKind::Uuid && options.poll.is_none() {
        let version: Option<String> =
            connection.query_first("SELECT VERSION()").await.map_err(explained)?;
        check_uuids(&version.unwrap_or_default())?;
    }
    let Column { name: column_name, data_type, .. } = &columns[place];
    // The log also contains deletions of old row versions, whose ids may still exist.
    let is_unique = table_type != "SYSTEM VERSIONED"
        && kind.is_one_to_one(id)
        && is_unique(connection, database, name, column_name).await.map_err(explained)?;
    let (condition, filter) = find_condition(options, &columns)?;
    let has_index = has_index(connection, database, name, column_name).await;
    Ok(Table {
        has_index: has_index.map_err(explained)?,
        is_unique,
        table_type,
        database: database.to_owned(),
        name: name.clone(),
        column: column.clone(),
        columns: columns.len(),
        id: place,
        kind,
        fold,
        is_trimmed: kind == ColumnKind::Uuid || data_type == "binary",
        condition,
        filter,
        shape: format!("{columns:?} {is_unique}"),
    })
}

/// Returns how a column stores ids, and how texts are folded. Rejects a column that cannot hold ids of the type.
fn id_column(
    column: &Column,
    id: &IdType,
    options: &MysqlOptions,
) -> Result<(ColumnKind, Fold), SourceError> {
    let Column { name, data_type, column_type, charset, collation, .. } = column;
    let refuse = |message: String| Err(SourceError::Preflight(message));
    let kind = ColumnKind::of(data_type, column_type, charset);
    let Some(kind) = kind.filter(|kind| kind.fits(id)) else {
        return refuse(format!(
            "the column {name} is {column_type} {charset}, which holds no ids of the configured type; \
             integers, DECIMAL without a fraction, texts in utf8mb4, latin1, gbk and gb2312, and UUID or BINARY(16) \
             for UUIDs are possible"
        ));
    };
    let is_text = matches!(id, IdType::Text { .. });
    if is_text && column_type.contains("zerofill") {
        return refuse(format!(
            "the column {name} is {column_type}: queries return its values with leading zeros, and the binary log has \
             them without; set type = \"integer\" for the ids"
        ));
    }
    let fold = match kind {
        _ if !is_text || options.exact => Some(Fold::Exact),
        ColumnKind::Text(Charset::Utf8) => Fold::of_collation(collation),
        // For a comparison, the server converts the text of the request to the character set of the column, or the
        // column to the character set of the request. This choice decides which texts are equal.
        ColumnKind::Text(_) => None,
        _ => Some(Fold::Exact),
    };
    if let Some(fold) = fold {
        return Ok((kind, fold));
    }
    let is_utf8 = kind == ColumnKind::Text(Charset::Utf8);
    let charset = if is_utf8 { charset.as_str() } else { "utf8mb4" };
    refuse(format!(
        "the column {name} has the collation {collation}, and the guard does not know which texts are equal under \
         it; if requests write each id exactly as the table has it, set exact = true in the source; or give the \
         column another collation, such as {charset}_bin, {charset}_general_ci or {charset}_unicode_520_ci"
    ))
}

/// Rejects a version of MariaDB that logs the bytes of the type `UUID` in another order than the text (MDEV-29959).
fn check_uuids(version: &str) -> Result<(), SourceError> {
    let numbers = version.strip_prefix("5.5.5-").unwrap_or(version).split(['.', '-']);
    let mut numbers = numbers.map_while(|part| part.parse::<u32>().ok());
    let mut next = || numbers.next().unwrap_or(0);
    let has_usual_order = match (next(), next(), next()) {
        (10, 11, patch) => patch >= 5,
        (11, 0, patch) => patch >= 3,
        (11, 1, patch) => patch >= 2,
        (major, minor, _) => (major, minor) >= (11, 2),
    };
    if has_usual_order {
        return Ok(());
    }
    Err(SourceError::Preflight(format!(
        "the server is MariaDB {version}, which stores the type UUID in an order of its own; update the server to \
         10.11.5, 11.0.3, 11.1.2, 11.2 or later, or use a BINARY(16) or CHAR(36) column"
    )))
}

/// Returns the condition for rows of the log, and the condition as SQL for queries.
fn find_condition(
    options: &MysqlOptions,
    columns: &[Column],
) -> Result<(Option<RowCondition>, String), SourceError> {
    let condition = options.condition_of_log().and_then(|condition| {
        condition.map(|condition| RowCondition::bind(&condition, columns)).transpose()
    });
    let condition = condition.map_err(InvalidCondition::into_error)?;
    let filter = match (&condition, &options.condition) {
        (Some(condition), _) => condition.sql().to_owned(),
        (None, Some(text)) => format!("({text})"),
        (None, None) => "TRUE".to_owned(),
    };
    Ok((condition, filter))
}

/// Tests whether an index begins with the column.
async fn has_index(
    connection: &mut Conn,
    database: &str,
    table: &str,
    column: &str,
) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE BINARY TABLE_SCHEMA = ? \
        AND BINARY TABLE_NAME = ? AND BINARY COLUMN_NAME = ? AND SEQ_IN_INDEX = 1 \
        AND INDEX_TYPE = 'BTREE' AND SUB_PART IS NULL";
    let count: Option<u64> = connection.exec_first(sql, (database, table, column)).await?;
    Ok(count.is_some_and(|count| count > 0))
}

/// Tests whether a unique index covers only the id column. A unique index may contain NULL several times, but NULL is
/// not an id.
async fn is_unique(
    connection: &mut Conn,
    database: &str,
    table: &str,
    column: &str,
) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT INDEX_NAME FROM information_schema.STATISTICS \
        WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ? AND NON_UNIQUE = 0 \
        GROUP BY INDEX_NAME HAVING COUNT(*) = 1 \
        AND SUM(BINARY COLUMN_NAME = ? AND SUB_PART IS NULL) = 1) AS indexes_of_column";
    let count: Option<u64> = connection.exec_first(sql, (database, table, column)).await?;
    Ok(count.is_some_and(|count| count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_log_uuids_in_another_order_are_known() {
        for (version, expected) in [
            ("10.11.19-MariaDB-0+deb12u1", true),
            ("5.5.5-10.11.5-MariaDB", true),
            ("10.11.4-MariaDB", false),
            ("10.7.8-MariaDB-log", false),
            ("11.0.2-MariaDB", false),
            ("11.1.2-MariaDB", true),
            ("11.4.3-MariaDB", true),
            ("12.0.1-MariaDB", true),
            ("", false),
        ] {
            assert_eq!(check_uuids(version).is_ok(), expected, "{version}");
        }
    }
}
