//! Determines how an item becomes a hash, by the type of an ORC column.

use tamis_formats::{Funnel, OrcType};

use crate::filters::orc_file::schema::TypeKind;
use crate::filters::orc_file::{FilterStream, OrcWriter};
use crate::records::column_text::{ColumnItems, ColumnText, DecimalStorage, MOST_DIGITS};

/// Returns the items of a column of this type. `stream` contains filters of the column. If the
/// results of the filters could be wrong, returns an error: a clause that states the reason.
pub fn items_of(
    kind: TypeKind,
    stream: &FilterStream,
    writer: OrcWriter,
) -> Result<ColumnItems, String> {
    let (name, of, text) = hashed_as(kind, writer)?;
    let is_time = matches!(text, ColumnText::OrcTimestamp { .. });
    let is_decimal = matches!(text, ColumnText::Decimal { .. });
    if let OrcWriter::Other(number) = writer
        && (is_time || is_decimal || of == OrcType::Float)
    {
        let why = format!(
            "whose hashes tamis knows only for the two writers of the ORC project: another program \
             wrote the file (writer {number})"
        );
        return refused(name, &why);
    }
    if !stream.is_utf8 && of == OrcType::Bytes {
        return refused(
            name,
            "and has only the older stream BLOOM_FILTER, whose text is in the charset of the \
             machine that wrote it",
        );
    }
    if is_time && !(stream.is_utf8 && stream.is_utc) {
        return refused(
            name,
            "and its filters hold times in the time zone of the machine that wrote them, as before \
             ORC-135",
        );
    }
    let item = text.description().unwrap_or_else(|| match kind {
        TypeKind::Integer(bits) => format!("a decimal number of {bits} bits"),
        TypeKind::Float => "a decimal number as IEEE 754 in 32 bits".into(),
        TypeKind::Double => "a decimal number as IEEE 754 in 64 bits".into(),
        TypeKind::Binary => "the bytes as they are".into(),
        _ => "text in UTF-8".into(),
    });
    Ok(ColumnItems { text, funnel: Funnel::Orc(of), item })
}

fn refused<T>(name: &str, why: &str) -> Result<T, String> {
    Err(format!("is of the type {name}, {why}"))
}

/// Returns the name of a type, the type that the writer hashes, and how a text becomes a value.
fn hashed_as(
    kind: TypeKind,
    writer: OrcWriter,
) -> Result<(&'static str, OrcType, ColumnText), String> {
    Ok(match kind {
        // Filters that pyarrow 26.0.1 (ORC 2.2.2) wrote lack the first values of each batch of
        // rows.
        TypeKind::Integer(8) if writer == OrcWriter::Cpp => {
            return refused("BYTE", "of which ORC's C++ writer leaves values out of its filters");
        }
        // The writer stores a FLOAT, and hashes the double that the program gave.
        TypeKind::Float if writer == OrcWriter::Cpp => {
            return refused(
                "FLOAT",
                "of which ORC's C++ writer hashes numbers that it does not store",
            );
        }
        TypeKind::Integer(_) => ("", OrcType::Long, ColumnText::Plain),
        TypeKind::Date => ("DATE", OrcType::Long, ColumnText::OrcDate),
        TypeKind::Timestamp => {
            ("TIMESTAMP", OrcType::Long, ColumnText::OrcTimestamp { is_local: true })
        }
        TypeKind::TimestampInstant => {
            ("TIMESTAMP_INSTANT", OrcType::Long, ColumnText::OrcTimestamp { is_local: false })
        }
        TypeKind::Float => ("FLOAT", OrcType::Float, ColumnText::Plain),
        TypeKind::Double => ("DOUBLE", OrcType::Double, ColumnText::Plain),
        TypeKind::String => ("STRING", OrcType::Bytes, ColumnText::Bytes),
        TypeKind::Varchar => ("VARCHAR", OrcType::Bytes, ColumnText::Bytes),
        TypeKind::Binary => ("BINARY", OrcType::Bytes, ColumnText::Bytes),
        // A crafted schema may request millions of digits per item.
        TypeKind::Decimal { scale } if scale as usize <= MOST_DIGITS => {
            let text = ColumnText::Decimal { scale, storage: DecimalStorage::Text };
            ("DECIMAL", OrcType::Bytes, text)
        }
        TypeKind::Decimal { .. } => return refused("DECIMAL", "with more than 100 digits"),
        TypeKind::Boolean => {
            return refused(
                "BOOLEAN",
                "whose values ORC's Java writer does not add to its filters",
            );
        }
        TypeKind::Char => return refused("CHAR", "which writers of ORC hash in different ways"),
        TypeKind::Other(number) => {
            return refused(&format!("number {number}"), "whose hashes are not known");
        }
        TypeKind::List | TypeKind::Map | TypeKind::Struct | TypeKind::Union => {
            return refused("STRUCT, LIST, MAP or UNION", "which has no values of its own");
        }
    })
}
