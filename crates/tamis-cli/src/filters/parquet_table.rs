//! Reads the Bloom filters of the columns of a Parquet table. Each row group may have one filter
//! for each column.

mod column_type;
mod thrift;

use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::metadata::{FooterTail, ParquetMetaDataReader};
use tamis_formats::{Contents, DecodeOptions, Format, Funnel, parquet as format};

use crate::exit::Failure;
use crate::filters::open_filter::{FilterContents, NoFilter, OpenFilter};
use crate::filters::parquet_table::column_type::ColumnType;
use crate::filters::table_filters::{NO_FILTER, TableFilters};
use crate::io::input;
use crate::records::column_name::{ColumnName, check_unique, full_name};

/// The magic bytes at the start and the end of a table.
const MAGIC: &[u8] = b"PAR1";

/// Tests whether `bytes` are a Parquet table.
pub fn is_table(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC) && bytes.len() > 2 * MAGIC.len()
}

/// Reads the filters of `column`, or of all columns, in the order of the row groups. The function
/// does not read the data of the table.
///
/// # Errors
///
/// A message for a damaged table, a table without a filter of `column`, or a funnel that
/// contradicts the type of the column.
pub fn filters(
    path: &Path,
    bytes: &[u8],
    column: Option<&str>,
    options: &DecodeOptions,
    funnel: Option<Funnel>,
) -> Result<Vec<Result<OpenFilter, NoFilter>>, Failure> {
    let name = input::name(path);
    let failure = |error: &dyn std::fmt::Display| {
        Failure::new(format!("{name}: as a Parquet table: {error}"))
    };
    let footer = footer(bytes).map_err(|error| failure(&error))?;
    let metadata =
        ParquetMetaDataReader::decode_metadata(footer).map_err(|error| failure(&error))?;
    let columns = metadata.file_metadata().schema_descr().columns();
    let columns: Vec<_> = columns.iter().map(|it| ColumnName::of(it.path().parts())).collect();
    let column = column.map(|column| full_name(&columns, column));
    let mut found = TableFilters::new(column);
    let mut filter_bytes = 0;
    for (group, row_group) in metadata.row_groups().iter().enumerate() {
        for (chunk, of_chunk) in row_group.columns().iter().zip(&columns) {
            let of_group = format!("{name}[{group}].{of_chunk}");
            let Some(at) = chunk.bloom_filter_offset() else {
                if row_group.num_rows() > 0 {
                    found.push_missing(of_chunk, of_group);
                }
                continue;
            };
            if !found.wants(of_chunk) {
                continue;
            }
            check_unique(&columns, of_chunk).map_err(|error| failure(&error))?;
            let (contents, len_bytes) = match read(&of_group, bytes, at, options) {
                Err(_) if is_encrypted(footer) => return Err(failure(&ENCRYPTED)),
                read => read?,
            };
            // Filters do not share bytes, but a damaged footer may refer to the same filter several
            // times.
            filter_bytes += len_bytes;
            if filter_bytes > bytes.len() as u64 {
                return Err(failure(&"damaged: its filters are larger than the file"));
            }
            let of_column = ColumnType::of(chunk.column_descr());
            let is_taken = |of_column: &ColumnType| funnel.is_none_or(|it| of_column.takes(it));
            let takes_funnel = of_column.as_ref().is_none_or(is_taken);
            let items = of_column.map(|of_column| of_column.items);
            let filter = OpenFilter {
                name: of_group,
                format: Format::named("parquet").expect("a row"),
                options: options.clone(),
                funnel: funnel.or(items.as_ref().map(|items| items.funnel)),
                column: items.clone().filter(|_| funnel.is_none()),
                len_bytes: bytes.len() as u64,
                is_whole_file: false,
                ..OpenFilter::new(path, FilterContents::Decoded(contents))
            };
            found.push(of_chunk, filter);
            if let Some(items) = items.filter(|_| !takes_funnel) {
                found.contradict(of_chunk, &items, HEX);
            }
        }
    }
    let without = if is_encrypted(footer) { ENCRYPTED } else { NO_FILTER };
    found.finish(&columns, without).map_err(|error| failure(&error))
}

/// The advice for a funnel that contradicts the type of a column.
const HEX: &str = "leave out --funnel, or use --funnel hex and write items as hexadecimal bytes";

/// The message about an encrypted table whose footer is not encrypted.
const ENCRYPTED: &str =
    "some of its columns are encrypted, and their filters too: decrypt the table first";

/// Tests whether some columns of a table are encrypted. If some columns are encrypted, the footer
/// names the algorithm.
fn is_encrypted(footer: &[u8]) -> bool {
    const ENCRYPTION_ALGORITHM: i64 = 8;
    thrift::has_field(footer, ENCRYPTION_ALGORITHM) == Some(true)
}

/// Returns the footer: the metadata of the table. The footer ends before the last eight bytes,
/// which contain the length of the footer.
fn footer(bytes: &[u8]) -> Result<&[u8], ParquetError> {
    let (before, tail) = bytes.split_last_chunk().expect("a table has the magic twice");
    let len = FooterTail::try_new(tail)?.metadata_length();
    let at = before.len().checked_sub(len).ok_or_else(|| {
        let larger = format!("damaged: its footer has a length of {len} bytes, more than the file");
        ParquetError::General(larger)
    })?;
    Ok(&before[at..])
}

/// Reads the filter at byte `at`. Returns the filter and its length in bytes.
fn read(
    name: &str,
    bytes: &[u8],
    at: i64,
    options: &DecodeOptions,
) -> Result<(Contents, u64), Failure> {
    let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
    let Some(from) = from else {
        return Err(Failure::new(format!(
            "{name}: damaged: its filter is at byte {at}, behind the end"
        )));
    };
    let (filter, rest) = format::decode_start(from, options)
        .map_err(|error| Failure::new(format!("{name}: its filter, from byte {at} on: {error}")))?;
    Ok((Contents::new(filter), (from.len() - rest.len()) as u64))
}
