//! Determines how an item becomes bytes, by the type of a Parquet column.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;
use tamis_formats::{Charset, Funnel};

use crate::records::column_text::{ColumnItems, ColumnText, DecimalStorage, MOST_DIGITS};

/// The type of a column and the items in it.
#[derive(Clone, Debug)]
pub struct ColumnType {
    physical: Type,
    /// True if the bytes are text in UTF-8.
    is_text: bool,
    /// The items of the column.
    pub items: ColumnItems,
}

impl ColumnType {
    /// Returns the type of a column in the schema. Returns `None` for booleans, which have no
    /// filters.
    pub fn of(column: &ColumnDescriptor) -> Option<Self> {
        let physical = column.physical_type();
        let means = column.converted_type();
        let text = text(column);
        let (funnel, number) = match (physical, means) {
            (Type::BOOLEAN, _) => return None,
            (Type::INT32, ConvertedType::UINT_32) => (Funnel::UnsignedInt, "from 0 on, of 32 bits"),
            (Type::INT32, _) => (Funnel::Int, "of 32 bits"),
            (Type::INT64, ConvertedType::UINT_64) => (Funnel::Unsigned, "from 0 on, of 64 bits"),
            (Type::INT64, _) => (Funnel::Long, "of 64 bits"),
            (Type::FLOAT, _) => (Funnel::Float, "as IEEE 754 in 32 bits"),
            (Type::DOUBLE, _) => (Funnel::Double, "as IEEE 754 in 64 bits"),
            (Type::BYTE_ARRAY, _) if text == ColumnText::Bytes => (Funnel::Bytes, ""),
            (Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY | Type::INT96, _) => (Funnel::Hex, ""),
        };
        let is_text = physical == Type::BYTE_ARRAY
            && matches!(means, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON);
        let item = text.description().unwrap_or_else(|| match text {
            ColumnText::Bytes if is_text => "text in UTF-8".into(),
            ColumnText::Bytes => "the bytes as they are".into(),
            _ if physical == Type::FIXED_LEN_BYTE_ARRAY => {
                format!("{} bytes as hexadecimal digits", column.type_length())
            }
            _ => format!("a decimal number {number}"),
        });
        Some(Self { physical, is_text, items: ColumnItems { text, funnel, item } })
    }

    /// Tests whether the column can contain items of this funnel. With a funnel whose items the
    /// column cannot contain, the filter would report every item as absent.
    pub fn takes(&self, funnel: Funnel) -> bool {
        let is_bytes = matches!(self.physical, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
        match funnel {
            Funnel::Hex => true,
            Funnel::Bytes | Funnel::Text(Charset::Utf8 | Charset::Ascii) if self.is_text => true,
            _ if self.is_text => false,
            Funnel::Bytes | Funnel::Text(_) | Funnel::Twice(_) | Funnel::Chars => is_bytes,
            Funnel::Unsigned => self.physical == Type::INT64,
            _ => self.items.funnel == funnel,
        }
    }
}

/// Returns the kind of text in which programs print the values of a column.
fn text(column: &ColumnDescriptor) -> ColumnText {
    let physical = column.physical_type();
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    };
    let decimal = |storage| ColumnText::Decimal {
        // The schema has no negative scale.
        scale: u32::try_from(column.type_scale()).unwrap_or(0),
        storage,
    };
    // A crafted schema may request millions of digits or bytes per item. For a column with more
    // than `MOST_DIGITS` digits, items are hexadecimal.
    let is_small = |number: i32| usize::try_from(number).is_ok_and(|number| number <= MOST_DIGITS);
    let is_decimal = (column.converted_type() == ConvertedType::DECIMAL
        || matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_))))
        && is_small(column.type_scale())
        && (physical != Type::FIXED_LEN_BYTE_ARRAY || is_small(column.type_length()));
    match physical {
        Type::INT32 | Type::INT64 if is_decimal => decimal(DecimalStorage::Integer),
        Type::BYTE_ARRAY if is_decimal => decimal(DecimalStorage::Fewest),
        Type::FIXED_LEN_BYTE_ARRAY if is_decimal => {
            decimal(DecimalStorage::Fixed(u32::try_from(column.type_length()).unwrap_or(0)))
        }
        Type::BYTE_ARRAY => ColumnText::Bytes,
        Type::INT96 => ColumnText::Int96,
        _ => match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Uuid), _) => ColumnText::Uuid,
            (Some(LogicalType::Time(time)), _) => {
                ColumnText::Time { per_second: per_second(&time.unit) }
            }
            (Some(LogicalType::Timestamp(time)), _) => {
                ColumnText::Timestamp { per_second: per_second(&time.unit) }
            }
            (_, ConvertedType::DATE) => ColumnText::Date,
            (_, ConvertedType::TIME_MILLIS) => ColumnText::Time { per_second: 1000 },
            (_, ConvertedType::TIME_MICROS) => ColumnText::Time { per_second: 1_000_000 },
            (_, ConvertedType::TIMESTAMP_MILLIS) => ColumnText::Timestamp { per_second: 1000 },
            (_, ConvertedType::TIMESTAMP_MICROS) => ColumnText::Timestamp { per_second: 1_000_000 },
            _ => ColumnText::Plain,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    fn of(column: &str) -> Option<ColumnType> {
        let schema = parse_message_type(&format!("message t {{ required {column}; }}")).unwrap();
        ColumnType::of(&SchemaDescriptor::new(Arc::new(schema)).column(0))
    }

    #[test]
    fn the_type_says_what_an_item_is() {
        for (column, funnel, item) in [
            ("int32 a", Funnel::Int, "a decimal number of 32 bits"),
            ("int32 a (UINT_32)", Funnel::UnsignedInt, "a decimal number from 0 on, of 32 bits"),
            ("int32 a (UINT_8)", Funnel::Int, "a decimal number of 32 bits"),
            (
                "int64 a (INTEGER(64, false))",
                Funnel::Unsigned,
                "a decimal number from 0 on, of 64 bits",
            ),
            (
                "int32 a (DATE)",
                Funnel::Int,
                "a date such as 2026-11-21, or the days since 1970-01-01",
            ),
            (
                "int64 a (TIMESTAMP(NANOS, true))",
                Funnel::Long,
                "a time such as 2026-11-21 10:00:59.5, or the nanoseconds since 1970-01-01",
            ),
            ("double a", Funnel::Double, "a decimal number as IEEE 754 in 64 bits"),
            ("binary a (UTF8)", Funnel::Bytes, "text in UTF-8"),
            ("binary a", Funnel::Bytes, "the bytes as they are"),
            ("fixed_len_byte_array(16) a (UUID)", Funnel::Hex, "a UUID, with hyphens or without"),
            ("fixed_len_byte_array(3) a", Funnel::Hex, "3 bytes as hexadecimal digits"),
            (
                "int96 a",
                Funnel::Hex,
                "a time such as 2026-11-21 10:00:59.5, or 12 bytes as hexadecimal digits",
            ),
        ] {
            let items = of(column).unwrap().items;
            assert_eq!((items.funnel, &items.item[..]), (funnel, item), "{column}");
        }
        let decimal = of("fixed_len_byte_array(9) a (DECIMAL(20, 2))").unwrap().items;
        assert_eq!(decimal.funnel, Funnel::Hex);
        assert_eq!(decimal.item, "a decimal number with 2 digits behind the point");
        assert!(of("boolean a").is_none());
        // One item of each column in this test would take megabytes.
        for column in [
            "binary a (DECIMAL(70000, 70000))",
            "fixed_len_byte_array(268435455) a (DECIMAL(9, 2))",
        ] {
            assert!(
                !matches!(of(column).unwrap().items.text, ColumnText::Decimal { .. }),
                "{column}"
            );
        }
    }

    #[test]
    fn a_funnel_of_another_type_is_not_taken() {
        use tamis_formats::Charset;
        let takes = |column: &str, funnel| of(column).unwrap().takes(funnel);
        for column in ["int32 a", "int64 a", "float a", "binary a", "int96 a", "int32 a (UINT_32)"]
        {
            assert!(takes(column, Funnel::Hex), "{column}");
            assert_eq!(takes(column, Funnel::Text(Charset::Gbk)), column == "binary a", "{column}");
            assert_eq!(takes(column, Funnel::Int), column == "int32 a", "{column}");
            assert_eq!(takes(column, Funnel::Unsigned), column == "int64 a", "{column}");
        }
        assert!(takes("int64 a (UINT_64)", Funnel::Unsigned));
        assert!(!takes("int64 a (UINT_64)", Funnel::Long), "a sign");
    }
}
