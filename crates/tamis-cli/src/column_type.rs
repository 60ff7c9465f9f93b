//! The type of a column of a Parquet table. It determines how an item becomes bytes.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;
use tamis_formats::{Charset, Funnel};

/// The type of a column and the items in it.
#[derive(Clone, Debug)]
pub struct ColumnType {
    physical: Type,
    /// True if the bytes are text in UTF-8.
    is_text: bool,
    /// The funnel of the items, unless the user gives another one.
    pub funnel: Funnel,
    /// A description of an item for this funnel.
    pub item: String,
}

impl ColumnType {
    /// Returns the type of a column by the schema. `None` for booleans: they have no filters.
    pub fn of(column: &ColumnDescriptor) -> Option<Self> {
        let physical = column.physical_type();
        let means = column.converted_type();
        let (funnel, number) = match (physical, means) {
            (Type::BOOLEAN, _) => return None,
            (Type::INT32, ConvertedType::UINT_32) => (Funnel::UnsignedInt, "from 0 on, of 32 bits"),
            (Type::INT32, _) => (Funnel::Int, "of 32 bits"),
            (Type::INT64, ConvertedType::UINT_64) => (Funnel::Unsigned, "from 0 on, of 64 bits"),
            (Type::INT64, _) => (Funnel::Long, "of 64 bits"),
            (Type::FLOAT, _) => (Funnel::Float, "as IEEE 754 in 32 bits"),
            (Type::DOUBLE, _) => (Funnel::Double, "as IEEE 754 in 64 bits"),
            (Type::BYTE_ARRAY, ConvertedType::DECIMAL) => (Funnel::Hex, ""),
            (Type::BYTE_ARRAY, _) => (Funnel::Bytes, ""),
            (Type::FIXED_LEN_BYTE_ARRAY | Type::INT96, _) => (Funnel::Hex, ""),
        };
        let is_text = physical == Type::BYTE_ARRAY
            && matches!(means, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON);
        let item = match physical {
            Type::BYTE_ARRAY => match means {
                ConvertedType::DECIMAL => {
                    format!("{UNSCALED}, as the hexadecimal digits of its bytes, the highest first")
                }
                _ if is_text => "text in UTF-8".into(),
                _ => "the bytes as they are".into(),
            },
            Type::INT96 => "12 bytes as hexadecimal digits".into(),
            Type::FIXED_LEN_BYTE_ARRAY => {
                let bytes = column.type_length();
                if means == ConvertedType::DECIMAL {
                    format!(
                        "{UNSCALED}, as the hexadecimal digits of {bytes} bytes, the highest first"
                    )
                } else {
                    format!("{bytes} bytes as hexadecimal digits")
                }
            }
            _ => match meaning(column) {
                Some(meaning) => format!("{meaning}, a decimal number {number}"),
                None => format!("a decimal number {number}"),
            },
        };
        Some(Self { physical, is_text, funnel, item })
    }

    /// Tests whether items of this funnel can be in the column. With any other funnel, the filter
    /// would report every item as absent.
    pub fn takes(&self, funnel: Funnel) -> bool {
        let is_bytes = matches!(self.physical, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
        match funnel {
            Funnel::Hex => true,
            Funnel::Bytes | Funnel::Text(Charset::Utf8 | Charset::Ascii) if self.is_text => true,
            _ if self.is_text => false,
            Funnel::Bytes | Funnel::Text(_) | Funnel::Twice(_) | Funnel::Chars => is_bytes,
            Funnel::Unsigned => self.physical == Type::INT64,
            _ => self.funnel == funnel,
        }
    }
}

/// A description of an item of type `DECIMAL`.
const UNSCALED: &str = "a decimal number without its point";

/// Returns the unit of the numbers in a column, if the schema states one.
fn meaning(column: &ColumnDescriptor) -> Option<&'static str> {
    Some(match column.converted_type() {
        ConvertedType::DATE => "days since 1970-01-01",
        ConvertedType::TIME_MILLIS => "milliseconds since midnight",
        ConvertedType::TIME_MICROS => "microseconds since midnight",
        ConvertedType::TIMESTAMP_MILLIS => "milliseconds since 1970-01-01",
        ConvertedType::TIMESTAMP_MICROS => "microseconds since 1970-01-01",
        ConvertedType::DECIMAL => "all digits without the point",
        // These types have no converted type.
        _ => match column.logical_type_ref()? {
            LogicalType::Time(time) if time.unit == TimeUnit::NANOS => "nanoseconds since midnight",
            LogicalType::Timestamp(time) if time.unit == TimeUnit::NANOS => {
                "nanoseconds since 1970-01-01"
            }
            _ => return None,
        },
    })
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
            ("int32 a (DATE)", Funnel::Int, "days since 1970-01-01, a decimal number of 32 bits"),
            (
                "int64 a (TIMESTAMP(NANOS, true))",
                Funnel::Long,
                "nanoseconds since 1970-01-01, a decimal number of 64 bits",
            ),
            ("double a", Funnel::Double, "a decimal number as IEEE 754 in 64 bits"),
            ("binary a (UTF8)", Funnel::Bytes, "text in UTF-8"),
            ("binary a", Funnel::Bytes, "the bytes as they are"),
            ("fixed_len_byte_array(16) a (UUID)", Funnel::Hex, "16 bytes as hexadecimal digits"),
            ("int96 a", Funnel::Hex, "12 bytes as hexadecimal digits"),
        ] {
            let of_column = of(column).unwrap();
            assert_eq!((of_column.funnel, &of_column.item[..]), (funnel, item), "{column}");
        }
        let decimal = of("fixed_len_byte_array(9) a (DECIMAL(20, 2))").unwrap();
        assert_eq!(decimal.funnel, Funnel::Hex);
        assert!(of("boolean a").is_none());
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
