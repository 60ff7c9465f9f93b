//! The condition of a source on the columns of its table, and the values of these columns in the stream.

use std::borrow::Cow;

use bytes::Bytes;

use crate::ids::fold::Fold;
use crate::kinds::condition::{BoundCondition, ColumnName, Field, FieldKind};
use crate::kinds::postgres::pgoutput::{Tuple, Value};

/// A condition on the rows of a table.
#[derive(Clone, Debug)]
pub(super) struct RowCondition {
    pub(super) condition: BoundCondition,
    pub(super) columns: Vec<TestedColumn>,
}

/// A column that a condition tests.
#[derive(Clone, Debug)]
pub(super) struct TestedColumn {
    pub(super) name: String,
    /// The OID of the column type.
    pub(super) type_number: u32,
    pub(super) kind: FieldKind,
}

/// Returns the name of a column in the catalog. The server converts the ASCII letters of a name without quotes
/// to lowercase.
pub(super) fn catalog_name(column: &ColumnName) -> String {
    if column.is_quoted { column.name.clone() } else { column.name.to_ascii_lowercase() }
}

/// Returns how the server compares the values of a column type. `is_exact` is true if the column never compares
/// different texts as equal.
pub(super) fn field_kind(base: &str, is_enum: bool, is_exact: bool) -> FieldKind {
    match base {
        "int2" | "int4" | "int8" => FieldKind::Integer,
        "bool" => FieldKind::Boolean,
        "text" | "varchar" if is_exact => FieldKind::Text(Fold::Exact),
        "bpchar" if is_exact => FieldKind::Text(Fold::Padded),
        "citext" => FieldKind::Text(Fold::Case),
        _ if is_enum => FieldKind::Text(Fold::Exact),
        _ => FieldKind::Other,
    }
}

impl RowCondition {
    /// Returns the indexes of the columns in a relation of the stream. Returns `None` if the stream does not contain a
    /// column.
    pub(super) fn find(&self, columns: &[(Bytes, u32)]) -> Option<Vec<usize>> {
        let index = |column: &TestedColumn| {
            let wanted = (column.name.as_bytes(), column.type_number);
            columns.iter().position(|(name, kind)| (&**name, *kind) == wanted)
        };
        self.columns.iter().map(index).collect()
    }

    /// Returns false if the condition is certainly not true for a row. `indexes` are the indexes of the columns in the
    /// row.
    pub(super) fn may_hold(&self, indexes: &[usize], row: &Tuple) -> bool {
        let fields = indexes.iter().zip(&self.columns);
        let fields: Vec<Field<'_>> =
            fields.map(|(&index, column)| field(column.kind, row.get(index))).collect();
        self.condition.may_hold(&fields)
    }
}

fn field(kind: FieldKind, value: Option<&Value>) -> Field<'_> {
    let text = match value {
        Some(Value::Text(text)) => text,
        Some(Value::Null) => return Field::Null,
        Some(Value::Unchanged) | None => return Field::Unknown,
    };
    match kind {
        FieldKind::Integer => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok())
            .map_or(Field::Unknown, Field::Integer),
        FieldKind::Boolean => match &**text {
            b"t" => Field::Boolean(true),
            b"f" => Field::Boolean(false),
            _ => Field::Unknown,
        },
        FieldKind::Text(_) | FieldKind::Ascii(_) => Field::Text(Cow::Borrowed(text)),
        FieldKind::Other => Field::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_stream_are_read_by_their_type() {
        let text = |text: &'static str| Value::Text(Bytes::from_static(text.as_bytes()));
        for (kind, value, expected) in [
            (FieldKind::Integer, text("-12"), Field::Integer(-12)),
            (FieldKind::Integer, text("1e3"), Field::Unknown),
            (FieldKind::Boolean, text("t"), Field::Boolean(true)),
            (FieldKind::Boolean, text("f"), Field::Boolean(false)),
            (FieldKind::Boolean, text("true"), Field::Unknown),
            (FieldKind::Text(Fold::Exact), text("t"), Field::Text(Cow::Borrowed(b"t"))),
            (FieldKind::Other, text("2026-01-01"), Field::Other),
            (FieldKind::Other, Value::Null, Field::Null),
            (FieldKind::Text(Fold::Exact), Value::Unchanged, Field::Unknown),
        ] {
            assert_eq!(field(kind, Some(&value)), expected, "{kind:?} {value:?}");
        }
        assert_eq!(field(FieldKind::Integer, None), Field::Unknown);
    }

    #[test]
    fn types_are_compared_only_if_their_equality_is_known() {
        assert_eq!(field_kind("varchar", false, true), FieldKind::Text(Fold::Exact));
        assert_eq!(field_kind("varchar", false, false), FieldKind::Other);
        assert_eq!(field_kind("citext", false, true), FieldKind::Text(Fold::Case));
        assert_eq!(field_kind("order_status", true, true), FieldKind::Text(Fold::Exact));
        for name in ["numeric", "float8", "timestamptz", "uuid", "json"] {
            assert_eq!(field_kind(name, false, true), FieldKind::Other, "{name}");
        }
    }
}
