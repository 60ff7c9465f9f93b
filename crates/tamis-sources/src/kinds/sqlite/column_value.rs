//! Converts values of SQLite.

use std::borrow::Cow;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::kinds::poll::ColumnValue;

impl From<ValueRef<'_>> for ColumnValue {
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

impl ToSql for ColumnValue {
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

/// Returns the text of an id. If `is_uuid` is true, a blob of 16 bytes is converted to a UUID.
pub(super) fn id_text(value: ValueRef<'_>, is_uuid: bool) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Null => Cow::Borrowed(b""),
        ValueRef::Integer(value) => Cow::Owned(value.to_string().into_bytes()),
        // `to_string` formats 7.0 as `7`.
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
}
