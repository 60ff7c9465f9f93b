//! Opens a filter with a Tamis layout from the result of `DUMP`, or from a snapshot of the module.

use std::path::Path;

use tamis_commands::Value;
use tamis_formats::{DecodeOptions, Format, TamisFile, server_image};

use crate::arguments::decode_options::DecodeArgs;
use crate::exit::Failure;
use crate::filters::open_filter::{FilterContents, OpenFilter};
use crate::io::input;

/// Opens the filter in `bytes`. Returns `None` if `bytes` contain no filter of a Tamis server.
///
/// # Errors
///
/// A message if the filter is damaged, or does not fit in memory.
pub fn open(
    path: &Path,
    bytes: &[u8],
    options: &DecodeOptions,
    decode: &DecodeArgs,
) -> Result<Option<OpenFilter>, Failure> {
    let Some(image) = server_image(bytes, options) else { return Ok(None) };
    let failure = |why: &str| Failure::new(format!("{}: {why}", input::name(path)));
    let len = image.len() as u64;
    let value = Value::read_dump(&mut &image[..], len, None)
        .map_err(|error| failure(&format!("a filter of a Tamis server: {error}")))?;
    if matches!(value, Value::PartialLoad(_)) {
        return Err(failure("a filter whose load with BF.LOADCHUNK has not ended"));
    }
    let contents = value.into_contents().ok_or_else(|| failure("not enough memory"))?;
    // A filter that has only one part is handled as a Tamis file.
    let is_file = contents.downcast_ref::<TamisFile>().is_some();
    let format = Format::named(if is_file { "tamis" } else { "redisbloom" }).expect("a row");
    Ok(Some(OpenFilter {
        format,
        options: options.clone(),
        funnel: decode.funnel()?,
        len_bytes: bytes.len() as u64,
        is_whole_file: false,
        ..OpenFilter::new(path, FilterContents::Decoded(contents))
    }))
}
