//! Reads the Bloom filters of the columns of an ORC file. In each stripe, each row group has one
//! filter for each column with filters.

mod column_type;

use std::collections::BTreeMap;
use std::path::Path;

use tamis_formats::orc::RowGroups;
use tamis_formats::{Contents, DecodeOptions, Format, Funnel};

use crate::exit::Failure;
use crate::filters::open_filter::{FilterContents, NoFilter, OpenFilter};
use crate::filters::orc_file::error::OrcError;
use crate::filters::orc_file::schema::Column;
use crate::filters::orc_file::{FilterStream, MOST_ROW_GROUPS, OrcFile, too_many};
use crate::filters::orc_table::column_type::items_of;
use crate::filters::table_filters::{NO_FILTER, TableFilters};
use crate::io::input;
use crate::records::column_name::{ColumnName, check_unique, full_name};
use crate::records::column_text::ColumnItems;

/// Reads the filters of `column`, or of all columns, in the order of the stripes and their row
/// groups. The function does not read the data of the file.
///
/// # Errors
///
/// A message for a damaged file, a file without a readable filter of `column`, or a funnel that
/// contradicts the type of the column.
pub fn filters(
    path: &Path,
    bytes: &[u8],
    column: Option<&str>,
    options: &DecodeOptions,
    funnel: Option<Funnel>,
) -> Result<Vec<Result<OpenFilter, NoFilter>>, Failure> {
    let name = input::name(path);
    let failure =
        |error: &dyn std::fmt::Display| Failure::new(format!("{name}: as an ORC file: {error}"));
    let (mut file, columns) = columns(bytes).map_err(|error| failure(&error))?;
    let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
    let mut found = TableFilters::new(column.map(|column| full_name(&names, column)));
    let (mut wanted, mut unread) = (Vec::new(), Vec::new());
    for column in columns.iter().filter(|column| !column.streams.is_empty()) {
        match &column.items {
            Ok(items) if found.wants(&column.name) => wanted.push((column, items)),
            Err(why) if found.is_asked(&column.name) => {
                unread.push(format!("its column {} {why}", column.name));
            }
            _ => {}
        }
    }
    for (column, _) in &wanted {
        check_unique(&names, &column.name).map_err(|error| failure(&error))?;
    }
    if wanted.is_empty()
        && let Some(why) = unread.first()
    {
        return Err(failure(why));
    }
    for why in unread {
        note!("{name}: {why}: tamis leaves the column out");
    }
    let stripes = file.stripes.clone();
    let stripes = stripes.iter().enumerate().filter(|(_, stripe)| stripe.rows > 0);
    if stripes.clone().count().saturating_mul(wanted.len()) > MOST_ROW_GROUPS {
        return Err(failure(&too_many()));
    }
    let mut count = 0;
    for (index, stripe) in stripes {
        for (column, items) in &wanted {
            let of_stripe = format!("{name}[{index}].{}", column.name);
            let Some(stream) = column.streams.get(&index) else {
                found.push_missing(&column.name, of_stripe);
                continue;
            };
            let row_groups = file.row_groups(stripe).map_err(|error| failure(&error))?;
            if row_groups > MOST_ROW_GROUPS as u64 {
                return Err(failure(&too_many()));
            }
            let stream_bytes = file.read(stream).map_err(|error| failure(&error))?;
            let filters = read(&of_stripe, &stream_bytes, stream.is_utf8, row_groups)?;
            count += filters.filters().len();
            if count > MOST_ROW_GROUPS {
                return Err(failure(&too_many()));
            }
            for (group, filter) in filters.into_each().enumerate() {
                let filter = OpenFilter {
                    name: format!("{name}[{index}.{group}].{}", column.name),
                    format: Format::named("orc").expect("a row"),
                    options: options.clone(),
                    funnel: funnel.or(Some(items.funnel)),
                    column: Some((*items).clone())
                        .filter(|_| funnel.is_none_or(|funnel| funnel == items.funnel)),
                    len_bytes: bytes.len() as u64,
                    is_whole_file: false,
                    ..OpenFilter::new(path, FilterContents::Decoded(Contents::new(filter)))
                };
                found.push(&column.name, filter);
            }
            if funnel.is_some_and(|funnel| funnel != items.funnel) {
                found.contradict(&column.name, items, "leave out --funnel");
            }
        }
    }
    found.finish(&names, NO_FILTER).map_err(|error| failure(&error))
}

/// Reads the filters of a column in a stripe: one filter for each row group.
fn read(name: &str, bytes: &[u8], is_utf8: bool, row_groups: u64) -> Result<RowGroups, Failure> {
    let filters = RowGroups::decode_at_most(bytes, is_utf8, row_groups)
        .map_err(|error| Failure::new(format!("{name}: its stream of filters: {error}")))?;
    let count = filters.filters().len();
    // Without the check of the count, an item of a row group without a filter would be reported as
    // absent.
    if count as u64 != row_groups {
        return Err(Failure::new(format!(
            "{name}: damaged: its {row_groups} row groups have {count} filters"
        )));
    }
    Ok(filters)
}

/// A column and its filters.
struct ColumnStreams {
    name: ColumnName,
    /// The filters of each stripe that has filters.
    streams: BTreeMap<usize, FilterStream>,
    /// The items, or the reason why the filters are not read.
    items: Result<ColumnItems, String>,
}

/// Reads the footers of a file. Returns the columns with values, in the order of the file.
fn columns(bytes: &[u8]) -> Result<(OrcFile<'_>, Vec<ColumnStreams>), OrcError> {
    let mut file = OrcFile::open(bytes)?;
    let encrypted = file.encrypted_columns();
    let mut streams = BTreeMap::<u32, BTreeMap<usize, FilterStream>>::new();
    for stream in file.filter_streams()? {
        let of_column = streams.entry(stream.column).or_default();
        let old = of_column.get(&stream.stripe);
        if old.is_some_and(|old| old.is_utf8 == stream.is_utf8) {
            return Err(OrcError::Damaged("a stripe has two streams of filters for one column"));
        }
        // A writer may store a BLOOM_FILTER stream and a BLOOM_FILTER_UTF8 stream for the same
        // column. Only BLOOM_FILTER_UTF8 has a fixed charset for the hashes of text.
        if old.is_none_or(|old| !old.is_utf8) {
            of_column.insert(stream.stripe, stream);
        }
    }
    let (writer, has_wrong_hashes) = (file.writer, file.has_wrong_hashes);
    let columns = file.schema.columns()?.into_iter().map(|Column { id, kind, path }| {
        let streams = streams.remove(&id).unwrap_or_default();
        let mut items = Err("has no filter".to_owned());
        for stream in streams.values() {
            items = items_of(kind, stream, writer);
            if items.is_err() {
                break;
            }
        }
        if has_wrong_hashes {
            let why = "was written by a release of ORC's C++ writer that hashes numbers in another \
                       way (ORC-1024), and its filters are not read";
            items = Err(why.into());
        }
        if encrypted[id as usize] {
            items = Err("is encrypted, and its filters too: decrypt the file first".into());
        }
        ColumnStreams { name: ColumnName::of(&path), streams, items }
    });
    let columns = columns.collect();
    Ok((file, columns))
}
