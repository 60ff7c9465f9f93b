//! Hadoop's `util.bloom` filters in the format of the method `write`. Layout: `docs/formats/hadoop.md`.

mod counting;
mod dynamic;
mod header;
mod rule;

use std::io::Write;

pub use counting::CountingFilter;
pub(crate) use counting::FORMAT as COUNTING_FORMAT;
pub use dynamic::DynamicFilter;
pub(crate) use dynamic::FORMAT as DYNAMIC_FORMAT;
pub use rule::{HashType, MAX_PROBES};

use crate::encoding::ByteReader;
use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format};
use crate::formats::hadoop::header::{read_header, sniff};
use crate::formats::hadoop::rule::{Hadoop, plan, rule};
use crate::rules::Rule;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "hadoop",
    summary: "Hadoop's util.bloom.BloomFilter, by write",
    detection: Detection::ByBytes(|bytes| sniff(bytes, |rule| rule.vector_size.div_ceil(8).into())),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| {
        let (bits, probes) = plan(options)?;
        create(bits, probes, HashType::Murmur).map(Contents::new)
    },
    ..Format::BASE
};

/// Creates an empty filter, as `new BloomFilter(vectorSize, nbHash, hashType)` does.
///
/// # Errors
///
/// [`CreateError`] if Hadoop does not support the given sizes.
///
/// # Examples
///
/// ```
/// use tamis_formats::hadoop::{HashType, create};
///
/// let mut rows = create(1024, 7, HashType::Murmur)?;
/// assert!(rows.insert(b"row1") && rows.contains(b"row1"));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(
    vector_size: u32,
    probes: u32,
    hash_type: HashType,
) -> Result<ForeignBloom, CreateError> {
    let rule = rule(vector_size, probes, hash_type)?;
    Ok(ForeignBloom::new(Rule::new(rule))?)
}

/// Decodes the output of `write`. Rejects trailing bytes.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let rule = read_header(&mut reader)?;
    let filter = ForeignBloom::read_bytes(Rule::new(rule), &mut reader)?;
    reader.end("bits")?;
    Ok(filter)
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let filter = ForeignBloom::of(contents, "Hadoop")?;
    out.write_all(&filter.rule_of::<Hadoop>("Hadoop")?.header())?;
    Ok(filter.write_bytes(out)?)
}
