//! The Bloom filter of one column of a Parquet file: its header and its bits. Drawn in `docs/formats/parquet.md`.
//!
//! The bits are those of [`Bloom<Parquet>`](tamis::Parquet) with XXH64, seed 0, of an item in plain encoding, so that its
//! kernels answer, and a file of `tamis` holds the same filter.
//!
//! Source: Apache Parquet format, `BloomFilter.md` and `parquet.thrift`.

use std::io;

use tamis::{AnyFilter, Bits as _, Bloom, Geometry, Hasher, Kind, OutOfMemory, Parquet, Plan};

use crate::contents::Contents;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::format::{Format, Items, Sniff, Takes};
use crate::guava::write_words;
use crate::reader::Reader;
use crate::tamis_file::TamisFile;
use crate::told::{Fact, Told};

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "parquet",
    extensions: &["sbbf"],
    summary: "the Bloom filter of a column of a Parquet file: header and bits",
    sniff: Some(sniff),
    items: Items::Asked,
    takes: Takes::Bytes,
    asks: &[],
    reads_with: &[Fact::Items],
    writes_with: &[],
    versions: None,
    decode: |bytes, told| decode(bytes, told).map(Contents::Parquet),
    encode,
    create: |told| {
        let (items, rate) = told.plan()?;
        let bits = java_bits(items, rate).ok_or_else(|| {
            let why = format!("rates are between 0 and 1, not {rate}: {items} items need another");
            EncodeError::NoPlace(why.into())
        })?;
        let filter = empty(java_bytes(i64::from(bits / 8)), told);
        filter
            .map(Contents::Parquet)
            .map_err(|error| EncodeError::NoPlace(error.to_string().into()))
    },
};

/// The smallest filter that a writer makes, one block.
pub const MIN_BYTES: u64 = 32;

/// The largest filter that a writer makes.
pub const MAX_BYTES: u64 = 128 << 20;

/// How many distinct items pyarrow plans for unless told.
pub const PYARROW_ITEMS: u64 = 1 << 20;

/// Which rate pyarrow plans unless told.
pub const PYARROW_RATE: f64 = 0.05;

/// The rate of parquet-java unless told: at which a filter that does not say what it was planned for is judged here.
pub const JAVA_RATE: f64 = 0.01;

const SIZE: &str = "number of bytes";

/// What follows the number of bytes: three unions of one empty struct, and the end.
const CHOICES: [(&str, &str); 3] =
    [("algorithm", "1 (BLOCK)"), ("hash", "1 (XXHASH)"), ("compression", "1 (UNCOMPRESSED)")];

/// Thrift's compact protocol: the field after the last one, a struct.
const NEXT_STRUCT: u8 = 0x1c;

/// Thrift's compact protocol: the field after the last one, 32 bits.
const NEXT_I32: u8 = 0x15;

/// Returns how many bits parquet-java plans (`optimalNumOfBits`), or `None` for a rate that it refuses. Its rounding to
/// blocks clears one bit instead of eight, so this is no whole number of them; [`java_bytes`] makes it one.
///
/// # Examples
///
/// ```
/// use tamis_formats::parquet::{java_bits, java_bytes};
///
/// assert_eq!(java_bits(1_000_000, 0.01), Some(9_681_525));
/// assert_eq!(java_bytes(9_681_525 / 8), 2 << 20);
/// assert_eq!(java_bits(1_000_000, 1.0), None);
/// ```
#[must_use]
pub fn java_bits(items: u64, rate: f64) -> Option<u32> {
    if !(rate > 0.0 && rate < 1.0) {
        return None;
    }
    // As in Java: to 32 bits with a sign, cut off at the largest.
    let bits = (formula(items, rate) as i32).cast_unsigned();
    let bits = bits.min(MAX_BYTES as u32 * 8);
    Some(((bits + 255) & !256).max(MIN_BYTES as u32 * 8))
}

/// Returns how many bytes parquet-java gives a filter that shall have `bytes`: a power of two, within the limits.
#[must_use]
pub fn java_bytes(bytes: i64) -> u64 {
    bytes
        .clamp(MIN_BYTES.cast_signed(), MAX_BYTES.cast_signed())
        .cast_unsigned()
        .next_power_of_two()
}

/// Returns how many bytes the Rust crate gives a new filter, before it [folds](fold) the filter; `None` for a rate that it
/// refuses. It takes a rate of 0.
#[must_use]
pub fn rust_bytes(items: u64, rate: f64) -> Option<u64> {
    if !(0.0..1.0).contains(&rate) {
        return None;
    }
    // A rate of 0 gives minus infinity, which as a number of bits is 0: the smallest filter.
    let bytes = formula(items, rate) as u64 / 8;
    Some(bytes.clamp(MIN_BYTES, MAX_BYTES).next_power_of_two())
}

/// Returns how many bytes pyarrow gives a filter; `None` for a rate that is none. Its defaults are [`PYARROW_ITEMS`] and
/// [`PYARROW_RATE`].
#[must_use]
pub fn pyarrow_bytes(items: u64, rate: f64) -> Option<u64> {
    if !(rate > 0.0 && rate < 1.0) {
        return None;
    }
    let bits = (formula(items, rate) as u64).clamp(MIN_BYTES * 8, MAX_BYTES * 8);
    Some(bits.next_power_of_two() / 8)
}

/// The number of bits by the text of the format.
fn formula(items: u64, rate: f64) -> f64 {
    -8.0 * items as f64 / (1.0 - rate.powf(1.0 / 8.0)).ln()
}

/// Halves a filter as often as it stays at or below `max_rate`, as the Rust crate does before it writes one: neighbouring
/// blocks become one. It estimates the rate by the share of bits that are set, to the power of eight.
///
/// # Errors
///
/// If the memory is not there.
///
/// # Examples
///
/// ```
/// use tamis_formats::{Told, parquet};
///
/// let mut column = parquet::empty(2048, &Told::default())?;
/// column.insert("one value");
/// let small = parquet::fold(&column, 0.01)?;
/// assert!(small.plan().bytes() == 32 && small.contains("one value"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fold(filter: &Bloom<Parquet>, max_rate: f64) -> Result<Bloom<Parquet>, OutOfMemory> {
    let mut words = filter.bits().words().to_vec();
    while words.len() >= 2 * BLOCK_WORDS && words.len().is_multiple_of(2 * BLOCK_WORDS) {
        let pairs = words.as_chunks::<{ 2 * BLOCK_WORDS }>().0;
        let half: Vec<u64> = pairs
            .iter()
            .flat_map(|pair| (0..BLOCK_WORDS).map(|i| pair[i] | pair[i + BLOCK_WORDS]))
            .collect();
        if crate::rule::fill(&half, half.len() as u64 * 64).powi(8) > max_rate {
            break;
        }
        words = half;
    }
    let mut folded = empty(words.len() as u64 * 8, &Told::default())?;
    folded.words_mut().copy_from_slice(&words);
    Ok(folded)
}

const BLOCK_WORDS: usize = MIN_BYTES as usize / 8;

/// Makes an empty filter of so many bytes, a multiple of 32 that is not 0; others are rounded up.
///
/// Neither bits nor header say for how many items it was planned and at which rate: it is what was told, else as many as
/// keep [`JAVA_RATE`].
///
/// # Errors
///
/// If the memory is not there.
pub fn empty(bytes: u64, told: &Told) -> Result<Bloom<Parquet>, OutOfMemory> {
    let bits = bytes.max(1).div_ceil(MIN_BYTES).saturating_mul(MIN_BYTES * 8);
    let of = |items, rate| Plan::from_parts(Kind::Parquet, items, rate, bits, Geometry::Probes(8));
    let rate = told.rate.filter(|&rate| rate > 0.0 && rate < 1.0).unwrap_or(JAVA_RATE);
    let out_of_memory = |_| OutOfMemory { bytes };
    let plan = of(1, rate).map_err(out_of_memory)?;
    let items = told.items.unwrap_or_else(|| plan.items_at(rate));
    let plan = of(items, rate).map_err(out_of_memory)?;
    Bloom::new(&plan, Hasher::xxh64(0)).map_err(out_of_memory)
}

/// Reads a filter: its header and its bits, and nothing behind them. In a Parquet file it starts at the column's
/// `bloom_filter_offset`, and [`decode_start`] finds its end.
///
/// # Errors
///
/// [`DecodeError`] for another algorithm, hash or compression, and if there are not just as many bytes as the header says.
///
/// # Examples
///
/// ```
/// use tamis::Filter;
/// use tamis_formats::{Told, parquet};
///
/// let header = b"\x15\x40\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0";
/// let column = parquet::decode(&[&header[..], &[0xff; 32]].concat(), &Told::default())?;
/// assert!(column.contains(&42_u32), "all bits are set");
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8], told: &Told) -> Result<Bloom<Parquet>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let filter = read(&mut reader, told)?;
    reader.end("bits")?;
    Ok(filter)
}

/// Reads a filter at the start of `bytes`; returns it with the bytes that follow.
///
/// # Errors
///
/// As for [`decode`], but for bytes that follow.
pub fn decode_start<'a>(
    bytes: &'a [u8],
    told: &Told,
) -> Result<(Bloom<Parquet>, &'a [u8]), DecodeError> {
    let mut reader = Reader::new(bytes);
    let filter = read(&mut reader, told)?;
    Ok((filter, reader.rest()))
}

fn read(reader: &mut Reader<'_>, told: &Told) -> Result<Bloom<Parquet>, DecodeError> {
    let len = header(reader)?;
    let at = reader.at() as u64;
    // The length is tested before there is memory for the words.
    let data = reader.bytes("bits", len as usize)?;
    let mut filter = empty(len, told).map_err(|memory| DecodeError {
        field: "bits",
        at,
        kind: DecodeErrorKind::Memory(memory),
    })?;
    for (word, &bytes) in filter.words_mut().iter_mut().zip(data.as_chunks().0) {
        *word = u64::from_le_bytes(bytes);
    }
    Ok(filter)
}

/// Reads the header; returns the number of bytes that follow it.
fn header(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    expect(reader, SIZE, NEXT_I32, "field 1 as an i32 of Thrift's compact protocol, 21")?;
    let at = reader.at() as u64;
    let len = zig_zag(reader)?;
    if len <= 0 || len % MIN_BYTES.cast_signed() != 0 {
        let kind = DecodeErrorKind::Unexpected {
            expected: "a multiple of 32, the size of a block, and at least one",
            found: len.into(),
        };
        return Err(DecodeError { field: SIZE, at, kind });
    }
    for (field, expected) in CHOICES {
        expect(reader, field, NEXT_STRUCT, "the next field as a struct, 28")?;
        let at = reader.at() as u64;
        match reader.u8(field)? {
            NEXT_STRUCT => {}
            // Short form of a field of a union: how far behind field 0, and its type.
            found => {
                let found = (found >> 4).into();
                let kind = DecodeErrorKind::Unexpected { expected, found };
                return Err(DecodeError { field, at, kind });
            }
        }
        expect(reader, field, 0, "the end of an empty struct, 0")?;
        expect(reader, field, 0, "the end of a union, 0")?;
    }
    expect(reader, "end of the header", 0, "0")?;
    Ok(len.cast_unsigned())
}

fn expect(
    reader: &mut Reader<'_>,
    field: &'static str,
    byte: u8,
    expected: &'static str,
) -> Result<(), DecodeError> {
    let at = reader.at() as u64;
    let found = reader.u8(field)?;
    if found == byte {
        return Ok(());
    }
    let kind = DecodeErrorKind::Unexpected { expected, found: found.into() };
    Err(DecodeError { field, at, kind })
}

/// Reads a number of 32 bits: seven bits a byte, the sign in the lowest.
fn zig_zag(reader: &mut Reader<'_>) -> Result<i64, DecodeError> {
    let at = reader.at() as u64;
    let mut number = 0;
    for shift in (0..5).map(|byte| byte * 7) {
        let byte = reader.u8(SIZE)?;
        number |= u64::from(byte & 0x7f) << shift;
        // A last byte of 0 would be another way to write the same.
        if byte < 0x80 && number <= u32::MAX.into() && (byte != 0 || shift == 0) {
            return Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
        }
        if byte < 0x80 {
            break;
        }
    }
    let kind = DecodeErrorKind::Invalid { reason: "a number of 32 bits in the fewest bytes" };
    Err(DecodeError { field: SIZE, at, kind })
}

fn header_bytes(len: u64) -> Vec<u8> {
    let mut bytes = vec![NEXT_I32];
    let mut number = len << 1;
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    for _ in CHOICES {
        bytes.extend([NEXT_STRUCT, NEXT_STRUCT, 0, 0]);
    }
    bytes.push(0);
    bytes
}

fn sniff(bytes: &[u8]) -> Sniff {
    match header(&mut Reader::new(bytes)) {
        Ok(_) => Sniff::Yes,
        Err(_) => Sniff::No,
    }
}

fn encode(contents: &Contents, _: &Told, out: &mut dyn io::Write) -> Result<(), EncodeError> {
    let no_place = |why: String| Err(EncodeError::NoPlace(why.into()));
    let filter = match contents {
        Contents::Parquet(filter) => filter,
        Contents::Tamis(TamisFile { filter: AnyFilter::Parquet(filter), .. }) => filter,
        other => {
            let rule = other.facts().rule;
            return no_place(format!(
                "Parquet places items otherwise than {rule}: build one from the items"
            ));
        }
    };
    if filter.hasher() != Hasher::xxh64(0) {
        return no_place(format!(
            "Parquet hashes items by xxh64 seed 0, not by {}: build one from the items",
            filter.hasher()
        ));
    }
    let len = filter.plan().bytes();
    if len > i32::MAX as u64 {
        return no_place(format!("Parquet has no place for {len} bytes: 2,147,483,647 at most"));
    }
    out.write_all(&header_bytes(len))?;
    write_words(filter.bits().words(), out, u64::to_le_bytes)
}
