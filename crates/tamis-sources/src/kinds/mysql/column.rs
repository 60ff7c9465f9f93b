//! The columns of a table, and the decoding of id values.

use std::borrow::Cow;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Value};

use crate::ids::id::IdType;
use crate::kinds::mysql::charset::Charset;

/// A column in the information schema.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// The value of `DATA_TYPE`, such as `int`.
    pub(super) data_type: String,
    /// The value of `COLUMN_TYPE`, such as `int(10) unsigned`. The labels of an `ENUM` keep their case.
    pub(super) column_type: String,
    /// The character set of the column. For a column of numbers, `charset` is empty.
    pub(super) charset: String,
    /// The collation, such as `utf8mb4_general_ci`. For a column of numbers, `collation` is empty.
    pub(super) collation: String,
    /// True if the column may contain NULL.
    pub(super) is_nullable: bool,
}

/// Returns the columns of a table.
pub(super) async fn columns(
    connection: &mut Conn,
    database: &str,
    table: &str,
) -> Result<Vec<Column>, Error> {
    let sql = "SELECT COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_TYPE, \
        COALESCE(CHARACTER_SET_NAME, ''), COALESCE(COLLATION_NAME, ''), IS_NULLABLE = 'YES' FROM information_schema.COLUMNS \
        WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
    let rows: Vec<(String, String, String, String, String, bool)> =
        connection.exec(sql, (database, table)).await?;
    let column = |(name, data_type, column_type, charset, collation, is_nullable)| Column {
        name,
        data_type,
        column_type,
        charset,
        collation,
        is_nullable,
    };
    Ok(rows.into_iter().map(column).collect())
}

/// The way in which a column stores ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Signed,
    /// An unsigned integer with the given number of bits. The log contains unsigned integers as signed integers.
    Unsigned(u32),
    /// The type `DECIMAL` without a fraction, with the given number of digits.
    Decimal(usize),
    Text(Charset),
    /// A UUID in 16 bytes.
    Binary,
    /// The type `UUID` of MariaDB. Queries return the UUID as a text.
    Uuid,
}

impl ColumnKind {
    /// Returns the kind of a column. Returns `None` if the type cannot hold ids. `data` is `DATA_TYPE`, and `full` is
    /// `COLUMN_TYPE` of the information schema.
    pub(super) fn of(data: &str, full: &str, charset: &str) -> Option<Self> {
        let bits = match data {
            "tinyint" => 8,
            "smallint" => 16,
            "mediumint" => 24,
            "int" => 32,
            "bigint" => 64,
            "char" | "varchar" | "text" | "tinytext" | "mediumtext" | "longtext" => {
                return Charset::named(charset).map(Self::Text);
            }
            "decimal" => return decimal_digits(full).map(Self::Decimal),
            // A column of an older version has a comment behind the type, and stores the bytes in another order.
            "uuid" if full.eq_ignore_ascii_case("uuid") => return Some(Self::Uuid),
            "binary" | "varbinary" if full.ends_with("(16)") => return Some(Self::Binary),
            _ => return None,
        };
        Some(if full.contains("unsigned") { Self::Unsigned(bits) } else { Self::Signed })
    }

    /// Tests whether the column can hold ids of a type.
    pub(super) fn fits(self, id: &IdType) -> bool {
        match id {
            IdType::Integer { .. } => {
                matches!(self, Self::Signed | Self::Unsigned(_) | Self::Decimal(_))
            }
            IdType::Uuid => matches!(self, Self::Text(_) | Self::Binary | Self::Uuid),
            IdType::Text { .. } => !matches!(self, Self::Binary | Self::Uuid),
        }
    }

    /// Tests whether different values are always different ids. For UUIDs in a text column, a text in uppercase and a
    /// text without hyphens are the same id as the usual text.
    pub(super) fn is_one_to_one(self, id: &IdType) -> bool {
        *id != IdType::Uuid || !matches!(self, Self::Text(_))
    }

    /// Returns the text of a value of a query. Returns `None` for NULL and for values that are not ids.
    pub(super) fn text(self, value: &Value) -> Option<Cow<'_, [u8]>> {
        match (value, self) {
            (Value::Int(value), Self::Unsigned(bits)) => {
                let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                Some(Cow::Owned((*value as u64 & mask).to_string().into_bytes()))
            }
            (Value::Int(value), _) => Some(Cow::Owned(value.to_string().into_bytes())),
            (Value::UInt(value), _) => Some(Cow::Owned(value.to_string().into_bytes())),
            (Value::Bytes(bytes), Self::Binary) => Some(Cow::Owned(hex(bytes))),
            (Value::Bytes(bytes), _) => Some(Cow::Borrowed(bytes)),
            _ => None,
        }
    }
}

/// Returns the number of digits of a type such as `decimal(20,0) unsigned`. Returns `None` if the type has a fraction.
fn decimal_digits(full: &str) -> Option<usize> {
    let (digits, rest) = full.strip_prefix("decimal(")?.split_once(',')?;
    rest.starts_with("0)").then(|| digits.parse().ok())?
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_integers_are_read_as_such() {
        for (data, full, value, text) in [
            ("tinyint", "tinyint(3) unsigned", -1, "255"),
            ("mediumint", "mediumint(8) unsigned", -1, "16777215"),
            ("int", "int(10) unsigned", -1, "4294967295"),
            ("bigint", "bigint(20) unsigned", -1, "18446744073709551615"),
            ("bigint", "bigint(20)", -1, "-1"),
            ("int", "int unsigned", 7, "7"),
        ] {
            let kind = ColumnKind::of(data, full, "").unwrap();
            assert_eq!(*kind.text(&Value::Int(value)).unwrap(), *text.as_bytes(), "{full}");
        }
        let uuid = ColumnKind::of("binary", "binary(16)", "").unwrap();
        let text = uuid.text(&Value::Bytes(vec![0xab; 16])).unwrap().into_owned();
        assert_eq!(text, "ab".repeat(16).into_bytes());
        for (full, charset) in
            [("float", ""), ("varchar(9)", "sjis"), ("json", ""), ("decimal(9,2)", "")]
        {
            let data = full.split('(').next().unwrap();
            assert_eq!(ColumnKind::of(data, full, charset), None, "{full}");
        }
        let decimal = ColumnKind::of("decimal", "decimal(20,0) unsigned zerofill", "");
        assert_eq!(decimal, Some(ColumnKind::Decimal(20)));
    }
}
