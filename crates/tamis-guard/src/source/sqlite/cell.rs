//! A value of a row.

use std::borrow::Cow;
use std::cmp::Ordering;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde_json::{Value, json};

/// A value as the database stores it. A text may be any bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(value) => Self::Integer(value),
            ValueRef::Real(value) => Self::Real(value),
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Cell {
    /// Returns the value as a snapshot keeps it.
    pub(super) fn encode(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Integer(value) => json!({ "integer": value }),
            // Exactly, also infinite ones.
            Self::Real(value) => json!({ "real": value.to_bits() }),
            Self::Text(text) => json!({ "text": text }),
            Self::Blob(bytes) => json!({ "blob": bytes }),
        }
    }

    /// Reads what `encode` has returned.
    pub(super) fn decode(value: &Value) -> Option<Self> {
        let Value::Object(fields) = value else { return value.is_null().then_some(Self::Null) };
        let (kind, value) = fields.iter().next()?;
        let bytes = || {
            let bytes = value.as_array()?.iter();
            bytes.map(|byte| u8::try_from(byte.as_u64()?).ok()).collect::<Option<Vec<u8>>>()
        };
        match &**kind {
            "integer" => value.as_i64().map(Self::Integer),
            "real" => value.as_u64().map(f64::from_bits).map(Self::Real),
            "text" => bytes().map(Self::Text),
            "blob" => bytes().map(Self::Blob),
            _ => None,
        }
    }

    /// Compares two values in the order of the database, for columns with the collation `BINARY`.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let rank = |cell: &Self| match cell {
            Self::Null => 0,
            Self::Integer(_) | Self::Real(_) => 1,
            Self::Text(_) => 2,
            Self::Blob(_) => 3,
        };
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(other),
            (Self::Real(one), Self::Real(other)) => one.total_cmp(other),
            (Self::Integer(one), Self::Real(other)) => (*one as f64).total_cmp(other),
            (Self::Real(one), Self::Integer(other)) => one.total_cmp(&(*other as f64)),
            (Self::Text(one), Self::Text(other)) | (Self::Blob(one), Self::Blob(other)) => {
                one.cmp(other)
            }
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

/// Returns the text of an id. `is_uuid` reads 16 bytes as a UUID.
pub(super) fn id_text(value: ValueRef<'_>, is_uuid: bool) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Null => Cow::Borrowed(b""),
        ValueRef::Integer(value) => Cow::Owned(value.to_string().into_bytes()),
        // Displays 7.0 as `7`.
        ValueRef::Real(value) => Cow::Owned(value.to_string().into_bytes()),
        ValueRef::Blob(bytes) if is_uuid && bytes.len() == 16 => {
            Cow::Owned(bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect())
        }
        ValueRef::Text(text) | ValueRef::Blob(text) => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_of_the_database_has_a_text() {
        let uuid = [0x67, 0xe5, 0x50, 0x44, 0x10, 0xb1, 0x42, 0x6f, 0x92, 0x47, 0, 1, 2, 3, 4, 5];
        for (value, is_uuid, text) in [
            (ValueRef::Null, false, &b""[..]),
            (ValueRef::Integer(-7), false, b"-7"),
            (ValueRef::Real(7.0), false, b"7"),
            (ValueRef::Real(7.5), false, b"7.5"),
            (ValueRef::Text(b"\xff"), false, b"\xff"),
            (ValueRef::Blob(&uuid), true, b"67e5504410b1426f9247000102030405"),
            (ValueRef::Blob(&uuid), false, &uuid),
        ] {
            assert_eq!(*id_text(value, is_uuid), *text, "{value:?}");
        }
    }

    #[test]
    fn values_have_the_order_of_the_database() {
        let text = |text: &str| Cell::Text(text.into());
        let sorted = [
            Cell::Null,
            Cell::Real(-0.5),
            Cell::Integer(3),
            Cell::Real(3.5),
            text("2024"),
            text("2025"),
            Cell::Blob(vec![0]),
        ];
        for (i, one) in sorted.iter().enumerate() {
            assert_eq!(Cell::decode(&one.encode()).as_ref(), Some(one));
            for (j, other) in sorted.iter().enumerate() {
                assert_eq!(one.order(other), i.cmp(&j), "{one:?} {other:?}");
            }
        }
    }
}
