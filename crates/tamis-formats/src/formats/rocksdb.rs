//! RocksDB's full filter block in both generations: legacy, and fast local Bloom. Layout: `docs/formats/rocksdb.md`.

mod rules;

use std::io::Write;

use crate::encoding::sorted_table::TableKind;
use crate::errors::{ChangeError, CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, FilterInfo, ForeignBloom, StoredFilter, answer_each};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::items::Funnel;
use crate::rules::Rule;
pub(crate) use rules::{FastLocal, Legacy};
use tamis::Answers;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "rocksdb",
    summary: "RocksDB's full filter block, alone or in its table, Bloom of both generations",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Bytes),
    decode: |bytes, _| match TableKind::of(bytes) {
        Some(TableKind::RocksDb) => decode(TableKind::RocksDb.filter_block(bytes)?),
        _ => decode(bytes),
    },
    encode,
    create: |options| {
        let (keys, rate) = options.plan()?;
        let bits_per_key = bits_per_key(rate).ok_or_else(|| {
            CreateError::refused(format!(
                "RocksDB reaches rates from about 1e-10 to below 1 with up to 100 bits per key, \
                not {rate}, for any number of items"
            ))
        })?;
        create(keys, f64::from(bits_per_key), Generation::FastLocal).map(Contents::new)
    },
    ..Format::BASE
};

/// The number of bytes of a cache line. All probes of an item are in one cache line.
const LINE_BYTES: u64 = 64;

/// The length of the trailer after the bits.
const TRAILER_BYTES: usize = 5;

// The offsets in the trailer.
const PROBES_AT: usize = 0;
const LINES_AT: usize = 1;
const KIND_AT: usize = 1;
const SHAPE_AT: usize = 2;
const REST_AT: usize = 3;

/// A number of probes that marks a filter of a generation after the legacy generation, such as fast local Bloom.
const NEW_BLOOM: i8 = -1;

/// A number of probes that marks a Ribbon filter.
const RIBBON: i8 = -2;

/// The generation of RocksDB's filters, which depends on the `format_version` of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// The generation of tables with a `format_version` below 5.
    Legacy,
    /// The generation of tables with a `format_version` of 5 and above: fast local Bloom.
    FastLocal,
}

/// A filter block whose trailer RocksDB reserves for future releases. A RocksDB release that does not support the
/// trailer treats every item as possibly present.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserved {
    bytes: Vec<u8>,
    why: &'static str,
}

impl StoredFilter for Reserved {
    const MERGE_REFUSAL: Option<&'static str> =
        Some("RocksDB's filters belong to the data of one table: build one from the items of both");

    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        answer_each(keys, answers, |_| true);
    }

    fn insert_each(&mut self, _: &[&[u8]], _: &mut Answers) -> Result<(), ChangeError> {
        Err(ChangeError::refused(
            "a filter of a later RocksDB, whose rule is not known: build one from the items",
        ))
    }

    fn info(&self) -> FilterInfo {
        FilterInfo {
            layout: "reserved by RocksDB".into(),
            bits: (self.bytes.len() - TRAILER_BYTES) as u64 * 8,
            fill: 1.0,
            items: f64::INFINITY,
            rate_now: 1.0,
            warnings: vec![format!("{}: as in RocksDB, every item may be present", self.why)],
            ..FilterInfo::default()
        }
    }
}

/// Creates an empty filter as RocksDB's `NewBloomFilterPolicy(bits_per_key)` does for a table of `keys` keys.
/// `bits_per_key` is clamped to the range 1 to 100 and rounded to three decimals. In the legacy generation,
/// `bits_per_key` is rounded to a whole number.
///
/// # Errors
///
/// [`CreateError`] if there are no keys or too many keys.
///
/// # Examples
///
/// ```
/// use tamis_formats::rocksdb::{Generation, create};
///
/// let table = create(100, 10.0, Generation::FastLocal)?;
/// assert_eq!((table.rule().bits(), table.rule().probes()), (1024, 7));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(
    keys: u64,
    bits_per_key: f64,
    generation: Generation,
) -> Result<ForeignBloom, CreateError> {
    if keys == 0 {
        return Err(CreateError::refused("RocksDB makes no filter of 0 keys"));
    }
    let too_large = || {
        CreateError::refused(format!(
            "{keys} keys need more than the 4,294,967,295 lines that RocksDB has at most"
        ))
    };
    let bits_per_key = if bits_per_key >= 1.0 { bits_per_key.min(100.0) } else { 1.0 };
    let millibits = (bits_per_key * 1000.0 + 0.5) as u64;
    let per_line = LINE_BYTES * 8;
    let rule = match generation {
        Generation::FastLocal => {
            let bits = keys.checked_mul(millibits).ok_or_else(too_large)?.div_ceil(1000);
            let lines = u32::try_from(bits.div_ceil(per_line)).map_err(|_| too_large())?;
            let actual = u128::from(lines) * u128::from(per_line) * 1000 / u128::from(keys);
            Rule::new(FastLocal::new(lines, probes_for(actual as u64)))
        }
        Generation::Legacy => {
            let whole = (millibits + 500) / 1000;
            let bits = keys.checked_mul(whole).ok_or_else(too_large)?;
            // If the number of lines is odd, the selected line depends on all bits of the hash.
            let lines = u32::try_from(bits.div_ceil(per_line) | 1).map_err(|_| too_large())?;
            let probes = ((whole as f64 * 0.69) as u32).clamp(1, 30);
            Rule::new(Legacy::new(lines, LINE_BYTES as u32, probes))
        }
    };
    Ok(ForeignBloom::new(rule)?)
}

/// The upper limits of the bits per key for each number of probes. Element `i` is the largest number of thousandths of
/// a bit per key for which RocksDB uses `i + 1` probes.
const PROBES_UP_TO: [u64; 12] =
    [2_080, 3_580, 5_100, 6_640, 8_300, 10_070, 11_720, 14_001, 16_050, 18_300, 22_001, 25_501];

/// Returns the number of probes of RocksDB's fast local filter. `millibits` is the number of thousandths of a bit per
/// key.
fn probes_for(millibits: u64) -> u32 {
    match PROBES_UP_TO.iter().position(|&most| millibits <= most) {
        Some(at) => at as u32 + 1,
        // RocksDB computes eight probes at once. For more than 50 bits per key, RocksDB uses 24 probes, which is three
        // times eight.
        None if millibits > 50_000 => 24,
        None => ((millibits - 1) / 2000 - 1) as u32,
    }
}

/// Returns the smallest whole number of bits per key for which the fast local filter keeps a rate. Returns `None` if
/// 100 bits per key are not enough.
fn bits_per_key(rate: f64) -> Option<u32> {
    (rate < 1.0).then(|| (1..=100).find(|&bits| fast_local_rate(bits) <= rate)).flatten()
}

/// Returns the rate of the fast local filter, which is the mean over all lines. The number of keys in a line has a
/// Poisson distribution.
fn fast_local_rate(bits_per_key: u32) -> f64 {
    let line = LINE_BYTES as f64 * 8.0;
    let (probes, mean) =
        (f64::from(probes_for(u64::from(bits_per_key) * 1000)), line / f64::from(bits_per_key));
    let most = (mean + 20.0 * mean.sqrt() + 20.0) as u32;
    let mut chance = (-mean).exp();
    let mut rate = 0.0;
    for keys in 1..=most {
        chance *= mean / f64::from(keys);
        rate += chance * (1.0 - (1.0 - 1.0 / line).powf(probes * f64::from(keys))).powf(probes);
    }
    rate
}

/// Decodes a filter block: the bits and their trailer. `bytes` do not include the block trailer, which contains the
/// compression type and the checksum. Returns a [`ForeignBloom`], or a [`Reserved`] if RocksDB itself would treat every
/// item as possibly present.
///
/// # Errors
///
/// [`DecodeError`] if the filter is a Ribbon filter, or if the bits do not match the trailer.
pub fn decode(bytes: &[u8]) -> Result<Contents, DecodeError> {
    let Some((data, &trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
        let kind = DecodeErrorKind::Truncated {
            expected: LINE_BYTES + TRAILER_BYTES as u64,
            found: bytes.len() as u64,
        };
        return Err(DecodeError::new("trailer", 0, kind));
    };
    let rule = match read_trailer(trailer, data.len() as u64)? {
        Trailer::Rule(rule) => rule,
        Trailer::Reserved(why) => {
            return Ok(Contents::new(Reserved { bytes: bytes.to_vec(), why }));
        }
    };
    let filter = ForeignBloom::from_bytes(rule, data).map_err(DecodeError::memory("bits", 0))?;
    Ok(Contents::new(filter))
}

enum Trailer {
    Rule(Rule),
    Reserved(&'static str),
}

fn read_trailer(trailer: [u8; TRAILER_BYTES], len: u64) -> Result<Trailer, DecodeError> {
    let unexpected = |field, at: usize, expected, found: i128| {
        DecodeError::unexpected(field, len as usize + at, expected, found)
    };
    let [_, a, b, c, d] = trailer;
    match trailer[PROBES_AT].cast_signed() {
        probes @ 1.. => {
            let lines = u32::from_le_bytes([a, b, c, d]);
            let line_bytes = len.checked_div(lines.into()).unwrap_or_default();
            let is_whole = line_bytes * u64::from(lines) == len;
            if !is_whole || line_bytes < LINE_BYTES || !line_bytes.is_power_of_two() {
                let expected =
                    "as many as the bits have lines, of 64 bytes or another power of two";
                return Err(unexpected("number of lines", LINES_AT, expected, lines.into()));
            }
            let line_bytes = u32::try_from(line_bytes)
                .map_err(|_| unexpected("number of lines", LINES_AT, "more", lines.into()))?;
            let rule = Legacy::new(lines, line_bytes, probes.cast_unsigned().into());
            Ok(Trailer::Rule(Rule::new(rule)))
        }
        0 => Ok(Trailer::Reserved("a filter of no probes")),
        NEW_BLOOM => {
            let (shape, rest) = (trailer[SHAPE_AT], &trailer[REST_AT..]);
            let (log2_line, probes) = (shape >> 5, shape & 31);
            if trailer[KIND_AT] != 0 || rest != [0, 0] {
                return Ok(Trailer::Reserved("a kind of Bloom filter from a later RocksDB"));
            }
            if log2_line != 0 || !(1..=30).contains(&probes) {
                return Ok(Trailer::Reserved("lines or probes that RocksDB reserves"));
            }
            let lines = u32::try_from(len / LINE_BYTES).unwrap_or_default();
            if lines == 0 || u64::from(lines) * LINE_BYTES != len {
                return Err(DecodeError::invalid("bits", 0, "whole lines of 64 bytes"));
            }
            Ok(Trailer::Rule(Rule::new(FastLocal::new(lines, probes.into()))))
        }
        RIBBON => {
            let expected = "a Bloom filter's: 1 or more probes, or -1. -2 is a Ribbon filter, which \
                is not read: let RocksDB write the table again with NewBloomFilterPolicy";
            Err(unexpected("number of probes", PROBES_AT, expected, RIBBON.into()))
        }
        _ => Ok(Trailer::Reserved("a kind of filter from a later RocksDB")),
    }
}

fn sniff(bytes: &[u8]) -> Sniff {
    if TableKind::of(bytes) == Some(TableKind::RocksDb) {
        return Sniff::Yes;
    }
    let Some((data, &trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
        return Sniff::No;
    };
    match read_trailer(trailer, data.len() as u64) {
        Ok(Trailer::Rule(rule)) if rule.probes() <= 30 => Sniff::Maybe,
        // Detection accepts a Ribbon filter, so that `decode` can reject the Ribbon filter with a clear error.
        Err(_) => Sniff::maybe(is_ribbon(trailer, data.len() as u64)),
        Ok(_) => Sniff::No,
    }
}

/// Tests whether a trailer belongs to a Ribbon filter. The trailer of a Ribbon filter states a number of blocks of 128
/// slots. For one number `n` per filter, each block has `n` or `n` − 1 columns of 16 bytes.
fn is_ribbon(trailer: [u8; TRAILER_BYTES], len: u64) -> bool {
    const COLUMN_BYTES: u64 = 16;
    const MAX_COLUMNS: u64 = 32;
    let [kind, _seed, a, b, c] = trailer;
    let blocks = u64::from(u32::from_le_bytes([a, b, c, 0]));
    let columns = len / COLUMN_BYTES;
    kind.cast_signed() == RIBBON
        && len.is_multiple_of(COLUMN_BYTES)
        && blocks > 0
        && (blocks..=blocks * MAX_COLUMNS).contains(&columns)
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    if let Some(reserved) = contents.downcast_ref::<Reserved>() {
        return Ok(out.write_all(&reserved.bytes)?);
    }
    let filter = ForeignBloom::of(contents, "RocksDB")?;
    let probes = filter.rule().probes() as u8;
    let trailer = if let Some(rule) = filter.rule().downcast_ref::<Legacy>() {
        let [a, b, c, d] = rule.lines().to_le_bytes();
        [probes, a, b, c, d]
    } else {
        filter.rule_of::<FastLocal>("RocksDB")?;
        [NEW_BLOOM.cast_unsigned(), 0, probes, 0, 0]
    };
    filter.write_bytes(out)?;
    Ok(out.write_all(&trailer)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_follow_the_bits_a_key() {
        for (millibits, probes) in [
            (1, 1),
            (10_070, 6),
            (10_071, 7),
            (28_000, 12),
            (28_001, 13),
            (50_000, 23),
            (50_001, 24),
        ] {
            assert_eq!(probes_for(millibits), probes, "{millibits}");
        }
    }
}
