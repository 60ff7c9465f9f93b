//! The column of ids, and its values in rows of the binary log.

use std::borrow::Cow;

use mysql_async::Value;
use mysql_async::binlog::row::BinlogRow;
use mysql_async::binlog::value::BinlogValue;

/// What the log does not say about the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) database: String,
    pub(super) name: String,
    /// `TABLE_TYPE` of the information schema.
    pub(super) table_type: String,
    /// The name of the column of ids.
    pub(super) column: String,
    /// True if an index begins with this column.
    pub(super) has_index: bool,
    /// True if no two rows have the same id.
    pub(super) is_unique: bool,
    /// The number of columns.
    pub(super) columns: usize,
    /// The place of the id among them, from 0.
    pub(super) id: usize,
    pub(super) kind: ColumnKind,
    /// True for `BINARY(16)`: the log leaves out the zeros at the end of a value.
    pub(super) is_trimmed: bool,
    /// What the meaning of a row in the log depends on: the names and types of all columns, and
    /// whether no two rows have the same id.
    pub(super) shape: String,
}

/// How a column stores ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Signed,
    /// The number of bits. The log writes unsigned integers as signed ones.
    Unsigned(u32),
    Text,
    /// 16 bytes.
    Uuid,
}

impl ColumnKind {
    /// Returns the kind of a column; `None` for a type that cannot hold ids. `data` and `full` are
    /// `DATA_TYPE` and `COLUMN_TYPE` of the information schema.
    pub(super) fn of(data: &str, full: &str, charset: &str) -> Option<Self> {
        let bits = match data {
            "tinyint" => 8,
            "smallint" => 16,
            "mediumint" => 24,
            "int" => 32,
            "bigint" => 64,
            "char" | "varchar" | "text" | "tinytext" | "mediumtext" | "longtext" => {
                // In these, the log and the queries have the same bytes.
                let is_utf8 = ["utf8", "utf8mb3", "utf8mb4", "ascii"].contains(&charset);
                return is_utf8.then_some(Self::Text);
            }
            "binary" | "varbinary" if full.ends_with("(16)") => return Some(Self::Uuid),
            _ => return None,
        };
        Some(if full.contains("unsigned") { Self::Unsigned(bits) } else { Self::Signed })
    }

    /// Returns the text of a value; `None` for NULL and for values that are no ids.
    pub(super) fn text(self, value: &Value) -> Option<Cow<'_, [u8]>> {
        match (value, self) {
            (Value::Int(value), Self::Unsigned(bits)) => {
                let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                Some(Cow::Owned((*value as u64 & mask).to_string().into_bytes()))
            }
            (Value::Int(value), _) => Some(Cow::Owned(value.to_string().into_bytes())),
            (Value::UInt(value), _) => Some(Cow::Owned(value.to_string().into_bytes())),
            (Value::Bytes(bytes), Self::Uuid) => {
                let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                Some(Cow::Owned(hex.into_bytes()))
            }
            (Value::Bytes(bytes), _) => Some(Cow::Borrowed(bytes)),
            _ => None,
        }
    }
}

/// The length of a UUID.
const UUID_BYTES: usize = 16;

/// A row without the column of ids: the table has changed, or the log has not all columns.
#[derive(Debug)]
pub(super) struct NoColumn;

impl Table {
    /// Returns the name of the table as SQL writes it.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.name))
    }

    /// Returns the text of the id in a row; `None` for NULL.
    pub(super) fn id_of(&self, row: &BinlogRow) -> Result<Option<Vec<u8>>, NoColumn> {
        if row.len() != self.columns {
            return Err(NoColumn);
        }
        match row.as_ref(self.id) {
            Some(BinlogValue::Value(Value::Bytes(bytes))) if self.is_trimmed => {
                let mut bytes = bytes.clone();
                bytes.resize(bytes.len().max(UUID_BYTES), 0);
                Ok(self.kind.text(&Value::Bytes(bytes)).map(Cow::into_owned))
            }
            Some(BinlogValue::Value(value)) => Ok(self.kind.text(value).map(Cow::into_owned)),
            Some(_) => Err(NoColumn),
            None => Ok(None),
        }
    }
}

/// Returns a name as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
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
        for (data, charset) in [("float", ""), ("varchar", "gbk"), ("uuid", ""), ("json", "")] {
            assert_eq!(ColumnKind::of(data, data, charset), None, "{data}");
        }
    }
}
