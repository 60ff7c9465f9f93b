//! The condition of a source on the columns of its table, and the values of these columns in the binary log.

use std::borrow::Cow;

use crate::ids::fold::Fold;
use crate::kinds::condition::{
    BoundColumn, BoundCondition, Condition, Field, FieldKind, InvalidCondition, split_quoted,
};
use crate::kinds::mysql::charset::Charset;
use crate::kinds::mysql::column::{Column, ColumnKind};
use crate::kinds::mysql::numbers::signed;
use crate::kinds::mysql::quoted::quoted;

/// A condition on the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowCondition {
    condition: BoundCondition,
    columns: Vec<TestedColumn>,
}

/// A column that a condition tests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TestedColumn {
    name: String,
    /// The index of the column in the table, starting at 0.
    index: usize,
    stored: Stored,
}

/// The way in which the log stores the values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stored {
    /// An integer. The field has the number of bits of an unsigned integer.
    Integer(Option<u32>),
    /// The type `BIT`.
    Bits,
    /// The number of a label, starting at 1. The number 0 stands for an empty text.
    Enum(Vec<String>),
    Text,
    /// A type whose values the source does not compare.
    Other,
}

impl RowCondition {
    /// Finds the columns of a condition in a table.
    pub(super) fn bind(
        condition: &Condition,
        columns: &[Column],
    ) -> Result<Self, InvalidCondition> {
        let (mut tested, mut bound) = (Vec::new(), Vec::new());
        for wanted in condition.columns() {
            let is_wanted = |column: &Column| column.name.eq_ignore_ascii_case(&wanted.name);
            let index = columns.iter().position(is_wanted);
            let index = index.ok_or_else(|| {
                let names: Vec<&str> = columns.iter().map(|it| &*it.name).collect();
                let names = names.join(", ");
                InvalidCondition::new(format!(
                    "the table has no column {}; it has: {names}",
                    wanted.name
                ))
            })?;
            let column = &columns[index];
            let (stored, kind) = stored(column);
            bound.push(BoundColumn {
                sql: quoted(&column.name),
                kind,
                is_nullable: column.is_nullable,
                full_type: format!("{} {}", column.column_type, column.collation).trim().to_owned(),
            });
            tested.push(TestedColumn { name: column.name.clone(), index, stored });
        }
        Ok(Self { condition: condition.bind(&bound)?, columns: tested })
    }

    /// Returns the condition as SQL, in parentheses.
    pub(super) fn sql(&self) -> &str {
        self.condition.sql()
    }

    /// Returns the names of the columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// Creates a row whose values are unknown.
    pub(super) fn row(&self) -> RowFields<'_> {
        RowFields { condition: self, fields: vec![Field::Unknown; self.columns.len()] }
    }
}

/// The values of a row that a condition tests.
pub(super) struct RowFields<'c> {
    condition: &'c RowCondition,
    fields: Vec<Field<'c>>,
}

impl<'c> RowFields<'c> {
    /// Sets the value of the column with an index in the table. `None` stands for NULL. `bytes` is the value in the log
    /// without its length.
    pub(super) fn set(&mut self, index: usize, bytes: Option<&'c [u8]>) {
        let columns = self.condition.columns.iter().zip(&mut self.fields);
        for (column, field) in columns.filter(|(column, _)| column.index == index) {
            *field = bytes.map_or(Field::Null, |bytes| column.stored.field(bytes));
        }
    }

    /// Returns false if the condition is certainly not true for the row.
    pub(super) fn may_hold(&self) -> bool {
        self.condition.condition.may_hold(&self.fields)
    }
}

impl Stored {
    fn field<'e>(&self, bytes: &'e [u8]) -> Field<'e> {
        match self {
            Self::Integer(unsigned) => match signed(bytes) {
                Some(value) => Field::Integer(match unsigned {
                    Some(64) => i128::from(value as u64),
                    Some(bits) => i128::from(value as u64 & ((1 << bits) - 1)),
                    None => i128::from(value),
                }),
                None => Field::Unknown,
            },
            Self::Bits if bytes.len() <= 8 => {
                let value = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
                Field::Integer(value.into())
            }
            Self::Enum(labels) => match *bytes {
                [low] => label(labels, usize::from(low)),
                [low, high] => label(labels, usize::from(u16::from_le_bytes([low, high]))),
                _ => Field::Unknown,
            },
            Self::Text => Field::Text(Cow::Borrowed(bytes)),
            Self::Other => Field::Other,
            Self::Bits => Field::Unknown,
        }
    }
}

/// Returns the text of a value of the type `ENUM`.
fn label<'e>(labels: &[String], number: usize) -> Field<'e> {
    match number.checked_sub(1).map(|index| labels.get(index)) {
        None => Field::Text(Cow::Borrowed(b"")),
        Some(Some(label)) => Field::Text(Cow::Owned(label.clone().into_bytes())),
        Some(None) => Field::Unknown,
    }
}

/// Collations of other character sets than UTF-8 that compare ASCII texts as `general_ci` does.
const ASCII_LIKE_GENERAL: [&str; 4] =
    ["latin1_swedish_ci", "latin1_general_ci", "gbk_chinese_ci", "gb2312_chinese_ci"];

/// Returns how the log stores a column, and how the database compares its values.
fn stored(column: &Column) -> (Stored, FieldKind) {
    let Column { data_type, column_type, charset, collation, .. } = column;
    let is_utf8 = Charset::named(charset) == Some(Charset::Utf8);
    let fold = Fold::of_collation(collation).filter(|_| is_utf8);
    if data_type == "enum" {
        return match (labels(column_type), fold) {
            (Some(labels), Some(fold)) => (Stored::Enum(labels), FieldKind::Text(fold)),
            _ => (Stored::Other, FieldKind::Other),
        };
    }
    if data_type == "bit" {
        return (Stored::Bits, FieldKind::Integer);
    }
    match (ColumnKind::of(data_type, column_type, charset), fold) {
        (Some(ColumnKind::Signed), _) => (Stored::Integer(None), FieldKind::Integer),
        (Some(ColumnKind::Unsigned(bits)), _) => (Stored::Integer(Some(bits)), FieldKind::Integer),
        (Some(ColumnKind::Text(Charset::Utf8)), Some(fold)) => {
            (Stored::Text, FieldKind::Text(fold))
        }
        // For ASCII texts, these character sets have the rules of `general_ci` and `bin`.
        (Some(ColumnKind::Text(_)), _) => match collation.rsplit('_').next() {
            Some("ci") if ASCII_LIKE_GENERAL.contains(&&**collation) => {
                (Stored::Text, FieldKind::Ascii(Fold::General))
            }
            Some("bin") if !collation.contains("nopad") => {
                (Stored::Text, FieldKind::Ascii(Fold::Padded))
            }
            _ => (Stored::Other, FieldKind::Other),
        },
        _ => (Stored::Other, FieldKind::Other),
    }
}

/// Returns the labels of a type such as `enum('a','it''s')`. Returns `None` if the type cannot be read, or if a label has
/// an escape: the server writes a line end in a label as `\n`.
fn labels(column_type: &str) -> Option<Vec<String>> {
    if column_type.contains('\\') {
        return None;
    }
    let mut rest = column_type.strip_prefix("enum(")?;
    let mut labels = Vec::new();
    loop {
        let (label, after) = split_quoted(rest)?;
        labels.push(label);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return (after == ")").then_some(labels),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, data_type: &str, column_type: &str, collation: &str) -> Column {
        Column {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
            column_type: column_type.to_owned(),
            charset: collation.split_once('_').map_or("", |(charset, _)| charset).to_owned(),
            collation: collation.to_owned(),
            is_nullable: true,
        }
    }

    fn columns() -> Vec<Column> {
        vec![
            column("id", "bigint", "bigint(20)", ""),
            column("stock", "int", "int(10) unsigned", ""),
            column("flag", "bit", "bit(9)", ""),
            column("status", "enum", "enum('On sale','it''s','')", "utf8mb4_general_ci"),
            column("kind", "varchar", "varchar(9)", "utf8mb4_bin"),
            column("old", "varchar", "varchar(9)", "latin1_german2_ci"),
            column("gone", "datetime", "datetime", ""),
            column("latin", "varchar", "varchar(9)", "latin1_swedish_ci"),
            column("chinese", "varchar", "varchar(9)", "gbk_bin"),
            column("chinese_ci", "varchar", "varchar(9)", "gbk_chinese_ci"),
        ]
    }

    fn may_hold(text: &str, values: &[(usize, Option<&[u8]>)]) -> bool {
        let condition = Condition::parse(text).unwrap();
        let condition = RowCondition::bind(&condition, &columns()).unwrap();
        let mut row = condition.row();
        values.iter().for_each(|(index, bytes)| row.set(*index, *bytes));
        row.may_hold()
    }

    #[test]
    fn values_of_the_log_are_compared_as_the_server_compares_them() {
        let minus_one = [0xff; 4];
        for (text, index, bytes, expected) in [
            ("stock = 4294967295", 1, &minus_one[..], true),
            ("STOCK < 0", 1, &minus_one, false),
            ("id = -1", 0, &[0xff; 8], true),
            ("flag", 2, &[1, 0], true),
            ("flag = 256", 2, &[1, 0], true),
            ("NOT flag", 2, &[0, 0], true),
            ("status = 'on SALE'", 3, &[1], true),
            ("status = 'it''s'", 3, &[2, 0], true),
            ("status <> 'it''s'", 3, &[2], false),
            // The number 0 is the value that the server stores instead of an unknown label.
            ("status = ''", 3, &[0], true),
            ("status = 'it''s'", 3, &[9], true),
            ("kind = 'a'", 4, b"a", true),
            ("kind = 'a'", 4, b"a  ", true),
            ("kind = 'a'", 4, b"A", false),
            ("gone IS NOT NULL", 6, &[1, 2, 3, 4, 5], true),
            ("gone IS NULL", 6, &[1, 2, 3, 4, 5], false),
            ("latin = 'active'", 7, b"Active ", true),
            ("latin = 'active'", 7, b"actives", false),
            // The text may be equal to the literal under the collation.
            ("latin = 'active'", 7, b"\xE4ctive", true),
            ("latin <> 'active'", 7, b"\xE4ctive", true),
            ("chinese = 'active'", 8, b"Active", false),
            // In the collation of the column, the tilde is equal to Y.
            ("chinese_ci = 'y'", 9, b"~", true),
            ("chinese_ci = '~'", 9, b"Y", true),
            ("chinese_ci <> 'y'", 9, b"~", true),
            ("chinese_ci = 'n'", 9, b"y", false),
            ("chinese = 'active'", 8, b"active", true),
        ] {
            assert_eq!(may_hold(text, &[(index, Some(bytes))]), expected, "{text} {bytes:?}");
        }
        assert!(may_hold("gone IS NULL", &[(6, None)]) && !may_hold("kind = 'a'", &[(4, None)]));
        // The log does not contain the value.
        assert!(
            may_hold("kind = 'a'", &[]) && !may_hold("kind = 'a' AND flag", &[(4, Some(b"b"))])
        );
    }

    #[test]
    fn columns_that_cannot_be_compared_are_refused() {
        for (text, message) in [
            ("missing = 1", "the table has no column missing; it has: id, stock, flag,"),
            (
                "old = 'a'",
                "the column `old` is varchar(9) latin1_german2_ci, and a condition can only test it with",
            ),
            ("gone = '2026-01-01'", "the column `gone` is datetime, and a condition can only"),
            (
                "latin = 'é'",
                "the column `latin` is varchar(9) latin1_swedish_ci: write ASCII texts",
            ),
            ("kind = 0", "the column `kind` is varchar(9) utf8mb4_bin: write its values as texts"),
        ] {
            let condition = Condition::parse(text).unwrap();
            let error = RowCondition::bind(&condition, &columns()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn labels_that_cannot_be_read_are_not_compared() {
        let labels = |text| labels(text).map(|it| it.join("|"));
        assert_eq!(labels("enum('a','b,''c')").as_deref(), Some("a|b,'c"));
        for text in [
            "enum(",
            "enum()",
            "enum('a'",
            "enum('a',)",
            "enum('a') x",
            "set('a')",
            "enum('a\\nb')",
        ] {
            assert_eq!(labels(text), None, "{text}");
        }
    }
}
