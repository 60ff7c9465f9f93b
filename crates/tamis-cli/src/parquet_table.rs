//! Reads the Bloom filters of a Parquet table's columns. Each row group may have a filter for each
//! column.

pub(crate) mod column_text;
pub(crate) mod column_type;
mod thrift;

use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::ColumnPath;
use tamis_formats::{Contents, DecodeOptions, Format, Funnel, parquet as format};

use crate::exit::Failure;
use crate::input;
use crate::open_filter::{FilterContents, NoFilter, OpenFilter};
use crate::parquet_table::column_type::ColumnType;

/// The magic bytes at the start and the end of a table.
const MAGIC: &[u8] = b"PAR1";

/// Tests whether `bytes` are a Parquet table.
pub fn is_table(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC) && bytes.len() > 2 * MAGIC.len()
}

/// Reads the filters of `column`, or of all columns, in the order of the row groups. The data of
/// the table are not read.
///
/// # Errors
///
/// A message for a damaged table, a table without a filter of that column, or a funnel that
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
    let column = column.map(|column| full_name(&metadata, column));
    let (mut filters, mut filter_bytes) = (Vec::new(), 0);
    let (mut columns, mut with_filters) = (Vec::new(), Vec::new());
    let mut contradicted = None;
    for (group, row_group) in metadata.row_groups().iter().enumerate() {
        for chunk in row_group.columns() {
            let of_chunk = column_name(chunk.column_path());
            if group == 0 {
                columns.push(of_chunk.clone());
            }
            let of_group = format!("{name}[{group}].{of_chunk}");
            let is_asked = column.as_deref().is_none_or(|column| column == of_chunk);
            match chunk.bloom_filter_offset() {
                None if is_asked && row_group.num_rows() > 0 => {
                    filters.push((of_chunk, Err(NoFilter { name: of_group })));
                }
                None => {}
                Some(at) => {
                    if !with_filters.contains(&of_chunk) {
                        with_filters.push(of_chunk.clone());
                    }
                    if !is_asked {
                        continue;
                    }
                    let (contents, len_bytes) = match read(&of_group, bytes, at, options) {
                        Err(_) if is_encrypted(footer) => return Err(failure(&ENCRYPTED)),
                        read => read?,
                    };
                    // Each filter has its own bytes. A damaged footer may refer to one filter
                    // several times.
                    filter_bytes += len_bytes;
                    if filter_bytes > bytes.len() as u64 {
                        return Err(failure(&"damaged: its filters are larger than the file"));
                    }
                    let of_column = ColumnType::of(chunk.column_descr());
                    if let Some(of_column) = &of_column
                        && funnel.is_some_and(|funnel| !of_column.takes(funnel))
                    {
                        contradicted.get_or_insert((of_chunk.clone(), of_column.item.clone()));
                    }
                    let filter = OpenFilter {
                        name: of_group,
                        format: Format::named("parquet").expect("a row"),
                        options: options.clone(),
                        funnel: funnel.or(of_column.as_ref().map(|column| column.funnel)),
                        column: of_column.filter(|_| funnel.is_none()),
                        len_bytes: bytes.len() as u64,
                        is_whole_file: false,
                        ..OpenFilter::new(path, FilterContents::Decoded(contents))
                    };
                    filters.push((of_chunk, Ok(filter)));
                }
            }
        }
    }
    // A column without a filter in any row group is left out.
    filters.retain(|(column, _)| with_filters.contains(column));
    let filters: Vec<_> = filters.into_iter().map(|(_, filter)| filter).collect();
    // If several columns have filters and the user names none, the error that requests --column
    // comes first.
    if let Some((of_chunk, item)) =
        contradicted.filter(|_| column.is_some() || with_filters.len() == 1)
    {
        return Err(failure(&format!(
            "an item of its column {of_chunk} is {item}: leave out --funnel, or use --funnel hex \
             and write items as hexadecimal bytes"
        )));
    }
    match column.as_deref() {
        _ if !filters.is_empty() => Ok(filters),
        Some(column) if !columns.iter().any(|it| it == column) => {
            Err(failure(&format!("has no column {column}; its columns: {}", columns.join(", "))))
        }
        Some(column) if !with_filters.is_empty() => Err(failure(&format!(
            "its column {column} has no Bloom filter; columns that have one: {}",
            with_filters.join(", ")
        ))),
        _ if is_encrypted(footer) => Err(failure(&ENCRYPTED)),
        _ => Err(failure(&"none of its columns has a Bloom filter: write it with one")),
    }
}

/// The message about an encrypted table whose footer is plain.
const ENCRYPTED: &str =
    "some of its columns are encrypted, and their filters too: decrypt the table first";

/// Tests whether columns of a table are encrypted. The footer then names the algorithm.
fn is_encrypted(footer: &[u8]) -> bool {
    const ENCRYPTION_ALGORITHM: i64 = 8;
    thrift::has_field(footer, ENCRYPTION_ALGORITHM) == Some(true)
}

/// Returns the path of a column, with a point between a struct and its member. A name that contains a
/// point or a quote is in quotes, as in SQL: `"a.b"` is a column, and `a.b` the member `b` of `a`.
fn column_name(path: &ColumnPath) -> String {
    let part = |part: &String| {
        if part.contains(['.', '"']) {
            format!("\"{}\"", part.replace('"', "\"\""))
        } else {
            part.clone()
        }
    };
    path.parts().iter().map(part).collect::<Vec<_>>().join(".")
}

/// Returns the name of the column that the user means. A name with a point needs no quotes if only one
/// column has it.
fn full_name(metadata: &ParquetMetaData, asked: &str) -> String {
    let columns = metadata.file_metadata().schema_descr().columns();
    let is_full = columns.iter().any(|column| column_name(column.path()) == asked);
    let mut found = columns.iter().filter(|column| column.path().string() == asked);
    match (is_full, found.next(), found.next()) {
        (false, Some(column), None) => column_name(column.path()),
        _ => asked.to_owned(),
    }
}

/// Returns the footer: the metadata of the table. It precedes the last eight bytes, which store its
/// length.
fn footer(bytes: &[u8]) -> Result<&[u8], ParquetError> {
    let (before, tail) = bytes.split_last_chunk().expect("a table has the magic twice");
    let len = FooterTail::try_new(tail)?.metadata_length();
    let at = before.len().checked_sub(len).ok_or_else(|| {
        let larger = format!("damaged: its footer has a length of {len} bytes, more than the file");
        ParquetError::General(larger)
    })?;
    Ok(&before[at..])
}

/// Reads the filter at byte `at`. Returns it with its length in bytes.
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

/// Rejects filters of several columns, and asks for `--column`.
///
/// # Errors
///
/// A message if several columns have filters.
pub fn check_one_column(filters: &[Result<OpenFilter, NoFilter>]) -> Result<(), Failure> {
    let filters = filters.iter().filter_map(|filter| filter.as_ref().ok());
    let names = filters.filter_map(|filter| filter.name.rsplit_once("].").zip(Some(&filter.name)));
    let mut columns: Vec<_> = names.clone().map(|((_, column), _)| column).collect();
    columns.sort_unstable();
    columns.dedup();
    match (&columns[..], names.clone().next()) {
        ([_, _, ..], Some((_, name))) => Err(Failure::new(format!(
            "{}: several columns have filters: choose one with --column ({})",
            name.rsplit_once('[').map_or(&name[..], |(table, _)| table),
            columns.join(", ")
        ))),
        _ => Ok(()),
    }
}
