//! Reads the ids from one column of a Parquet file, and skips all other columns.
//!
//! A Parquet file has its footer at the end, so the reader reads each part by its position in the opened file. The
//! reader holds one page in memory at a time. The file may declare a page size of up to 2 GiB.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader as _, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;

use crate::errors::source_error::SourceError;

/// The number of rows that are decoded at a time.
const ROWS: usize = 1024;

/// Returns the number of rows, limited to a plausible number for the size of the file. If the file contains more rows
/// than the returned number, the filter grows.
pub(super) fn count_rows(file: &File) -> Result<u64, SourceError> {
    /// Limits the memory that a damaged row count can allocate.
    const ROWS_PER_BYTE: u64 = 64;

    guarded(|| {
        let table = open(file)?;
        let rows = u64::try_from(table.metadata().file_metadata().num_rows()).unwrap_or(0);
        let len_bytes = file.metadata().map_err(ParquetError::from)?.len();
        Ok(rows.min(len_bytes.saturating_mul(ROWS_PER_BYTE)))
    })
}

/// Passes each value of a column to `row` as text. The function skips nulls.
pub(super) fn each_value(
    file: &File,
    column: &str,
    is_stopped: &dyn Fn() -> bool,
    mut row: impl FnMut(&[u8]) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    guarded(|| {
        let table = open(file)?;
        let schema = table.metadata().file_metadata().schema_descr();
        let is_column = |found: &ColumnDescriptor| {
            found.path().string() == column || (found.path().parts()[0] == column)
        };
        let mut found = schema.columns().iter().enumerate().filter(|(_, it)| is_column(it));
        let (index, descriptor) = match (found.next(), found.next()) {
            (Some(found), None) => found,
            (Some(_), Some(_)) => {
                return Err(wrong(format!("the column {column:?} has several fields: name one")));
            }
            (None, _) => return Err(SourceError::NoColumn(column.to_owned())),
        };
        let kind = Kind::of(descriptor).ok_or_else(|| {
            wrong(format!(
                "the column {column:?} has the type {}; ids are whole numbers, texts, UUIDs or \
                 bytes",
                type_name(descriptor)
            ))
        })?;
        for group in 0..table.num_row_groups() {
            let group = table.get_row_group(group)?;
            match group.get_column_reader(index)? {
                ColumnReader::Int32ColumnReader(it) => {
                    each(it, is_stopped, |value| kind.integer(i64::from(*value), &mut row))?;
                }
                ColumnReader::Int64ColumnReader(it) => {
                    each(it, is_stopped, |value| kind.integer(*value, &mut row))?;
                }
                ColumnReader::ByteArrayColumnReader(it) => {
                    each(it, is_stopped, |value| row(value.data()))?;
                }
                ColumnReader::FixedLenByteArrayColumnReader(it) => {
                    each(it, is_stopped, |value| kind.bytes(value.data(), &mut row))?;
                }
                _ => return Err(wrong("the row groups have different types".to_owned())),
            }
        }
        Ok(())
    })
}

/// The conversion of the values of a column to texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned32,
    Unsigned64,
    Bytes,
    Uuid,
}

impl Kind {
    /// Returns the conversion for a column. Returns `None` if values of the column type cannot be ids.
    fn of(column: &ColumnDescriptor) -> Option<Self> {
        // Old writers set only the converted type. New writers set the converted type and the logical type.
        let (logical, converted) = (column.logical_type_ref(), column.converted_type());
        let is_plain = logical.is_none() && converted == ConvertedType::NONE;
        let is_integer = |types: [ConvertedType; 4], is_signed: bool| match logical {
            Some(LogicalType::Integer(found)) => found.is_signed == is_signed,
            Some(_) => false,
            None => types.contains(&converted),
        };
        let is_signed = is_integer(
            [
                ConvertedType::INT_8,
                ConvertedType::INT_16,
                ConvertedType::INT_32,
                ConvertedType::INT_64,
            ],
            true,
        );
        let is_unsigned = is_integer(
            [
                ConvertedType::UINT_8,
                ConvertedType::UINT_16,
                ConvertedType::UINT_32,
                ConvertedType::UINT_64,
            ],
            false,
        );
        let is_text = matches!(converted, ConvertedType::UTF8 | ConvertedType::ENUM)
            || matches!(logical, Some(LogicalType::String | LogicalType::Enum));
        match column.physical_type() {
            Type::INT32 | Type::INT64 if is_plain || is_signed => Some(Self::Signed),
            Type::INT32 if is_unsigned => Some(Self::Unsigned32),
            Type::INT64 if is_unsigned => Some(Self::Unsigned64),
            Type::BYTE_ARRAY if is_plain || is_text => Some(Self::Bytes),
            Type::FIXED_LEN_BYTE_ARRAY if column.type_length() == 16 => {
                (is_plain || matches!(logical, Some(LogicalType::Uuid))).then_some(Self::Uuid)
            }
            Type::FIXED_LEN_BYTE_ARRAY if is_plain => Some(Self::Bytes),
            _ => None,
        }
    }

    fn integer(
        self,
        value: i64,
        row: &mut impl FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let mut text = Text::default();
        match self {
            Self::Unsigned32 => write!(text, "{}", value as u32),
            Self::Unsigned64 => write!(text, "{}", value as u64),
            _ => write!(text, "{value}"),
        }
        .expect("the text is long enough");
        row(text.bytes())
    }

    fn bytes(
        self,
        value: &[u8],
        row: &mut impl FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        if self != Self::Uuid {
            return row(value);
        }
        let mut text = Text::default();
        for byte in value {
            write!(text, "{byte:02x}").expect("the text is long enough");
        }
        row(text.bytes())
    }
}

/// A short text on the stack.
#[derive(Default)]
struct Text {
    bytes: [u8; 32],
    len: usize,
}

impl Text {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Passes each value of a column chunk to `value`.
fn each<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    is_stopped: &dyn Fn() -> bool,
    mut value: impl FnMut(&T::T) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        if is_stopped() {
            return Err(SourceError::Stopped);
        }
        definitions.clear();
        repetitions.clear();
        values.clear();
        let (rows, _, levels) = column.read_records(
            ROWS,
            Some(&mut definitions),
            Some(&mut repetitions),
            &mut values,
        )?;
        for one in &values {
            value(one)?;
        }
        if rows == 0 && levels == 0 {
            return Ok(());
        }
    }
}

/// The opened file. Each part is limited to the length of the file, even if the footer declares a longer part.
struct Parts {
    file: File,
    len_bytes: u64,
}

impl Parts {
    fn at(&self, start: u64) -> Result<(File, u64), ParquetError> {
        let left = self.len_bytes.checked_sub(start);
        let left = left.ok_or_else(|| ParquetError::EOF(format!("no byte at {start}")))?;
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok((file, left))
    }
}

impl Length for Parts {
    fn len(&self) -> u64 {
        self.len_bytes
    }
}

impl ChunkReader for Parts {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(self.at(start)?.0))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let (mut file, left) = self.at(start)?;
        if length as u64 > left {
            return Err(ParquetError::EOF(format!("no {length} bytes at {start}")));
        }
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

fn open(file: &File) -> Result<SerializedFileReader<Parts>, SourceError> {
    let open = || -> Result<_, ParquetError> {
        let len_bytes = file.metadata()?.len();
        SerializedFileReader::new(Parts { file: file.try_clone()?, len_bytes })
    };
    Ok(open()?)
}

/// Converts a panic of the decoder to an error, so that a damaged file does not end the source.
fn guarded<T>(read: impl FnOnce() -> Result<T, SourceError>) -> Result<T, SourceError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(wrong("the file is damaged".to_owned())))
}

fn wrong(message: String) -> SourceError {
    SourceError::Parquet(ParquetError::General(message))
}

fn type_name(column: &ColumnDescriptor) -> String {
    match column.logical_type_ref() {
        Some(logical) => format!("{logical:?}"),
        None => column.physical_type().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::Int64Type;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    #[test]
    fn a_column_of_nulls_is_left_when_the_source_is_stopped() {
        let schema = parse_message_type("message ids { optional int64 id; }").unwrap();
        let file = tempfile::tempfile().unwrap();
        let clone = file.try_clone().unwrap();
        let mut writer =
            SerializedFileWriter::new(clone, Arc::new(schema), Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let levels = [0; 10 * ROWS];
        column.typed::<Int64Type>().write_batch(&[], Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        let tests = std::cell::Cell::new(0);
        let is_stopped = || tests.replace(tests.get() + 1) == 5;
        let stopped = each_value(&file, "id", &is_stopped, |_| Ok(()));
        assert!(matches!(stopped, Err(SourceError::Stopped)), "{stopped:?}");
        assert!(each_value(&file, "id", &|| false, |_| Ok(())).is_ok());
    }
}
