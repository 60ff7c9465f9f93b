//! The Bloom filter of one column of a Parquet file: the header and the bits. Layout: `docs/formats/parquet.md`.
//!
//! The bits are a [`ParquetBloom`](tamis::ParquetBloom). The hash is XXH64 with seed 0, over the plain encoding of an
//! item. The crate `tamis` can test the items of a Parquet filter, and a Tamis file can contain the filter.
//!
//! Source: Apache Parquet format, `BloomFilter.md` and `parquet.thrift`.

mod sizing;

use std::io::Write;

use tamis::{
    AnyFilter, Bits as _, Filter as _, Geometry, Hasher, Insert as _, Kind, OutOfMemory,
    ParquetBloom, Plan,
};

use crate::encoding::{ByteReader, write_words};
use crate::errors::{ChangeError, CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, FilterInfo, StoredFilter, hash_each};
use crate::format::{DecodeOptions, Detection, Format, Parameter, Parameters, Sniff};
use crate::formats::tamis_file::TamisFile;
use crate::rules::chance;
use tamis::Answers;

pub use sizing::{
    MAX_BYTES, MIN_BYTES, PYARROW_ITEMS, PYARROW_RATE, java_bits, java_bytes, pyarrow_bytes,
    rust_bytes,
};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "parquet",
    extensions: &["sbbf"],
    summary: "the Bloom filter of a column of a Parquet file: header and bits",
    detection: Detection::ByBytes(sniff),
    parameters: Parameters { reading: &[Parameter::Items], ..Parameters::NONE },
    decode: |bytes, options| decode(bytes, options).map(Contents::new),
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        let bits = java_bits(items, rate).ok_or_else(|| {
            CreateError::refused(format!(
                "rates are above 0 and below 1, not {rate}, for any number of items"
            ))
        })?;
        Ok(Contents::new(empty(java_bytes(i64::from(bits / 8)), options)?))
    },
    ..Format::BASE
};

/// The default rate of parquet-java. If a filter has no planned rate, the present rate of the filter is compared with
/// the default rate of parquet-java.
pub const JAVA_RATE: f64 = 0.01;

const SIZE: &str = "number of bytes";

/// The fields after the number of bytes: three unions, each with one empty struct.
const CHOICES: [(&str, &str); 3] =
    [("algorithm", "1 (BLOCK)"), ("hash", "1 (XXHASH)"), ("compression", "1 (UNCOMPRESSED)")];

/// Thrift's compact protocol: the header of the next field, which is a struct.
const NEXT_STRUCT: u8 = 0x1c;

/// Thrift's compact protocol: the header of the next field, which is a 32-bit integer.
const NEXT_I32: u8 = 0x15;

/// Halves a filter as long as its estimated rate stays at or below `max_rate`. Before writing a filter, the Rust crate
/// for Parquet halves the filter as this function does. Each halving merges two neighboring blocks into one block. The
/// estimated rate is the share of set bits to the power of eight.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails.
///
/// # Examples
///
/// ```
/// use tamis_formats::{DecodeOptions, parquet};
///
/// let mut column = parquet::empty(2048, &DecodeOptions::default())?;
/// column.insert("one value");
/// let small = parquet::fold(&column, 0.01)?;
/// assert!(small.plan().bytes() == 32 && small.contains("one value"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fold(filter: &ParquetBloom, max_rate: f64) -> Result<ParquetBloom, OutOfMemory> {
    let mut words = filter.bits().words().to_vec();
    while words.len() >= 2 * BLOCK_WORDS && words.len().is_multiple_of(2 * BLOCK_WORDS) {
        let pairs = words.as_chunks::<{ 2 * BLOCK_WORDS }>().0;
        let half: Vec<u64> = pairs
            .iter()
            .flat_map(|pair| (0..BLOCK_WORDS).map(|i| pair[i] | pair[i + BLOCK_WORDS]))
            .collect();
        if crate::rules::fill(&half, half.len() as u64 * 64).powi(8) > max_rate {
            break;
        }
        words = half;
    }
    let mut folded = empty(words.len() as u64 * 8, &DecodeOptions::default())?;
    folded.words_mut().copy_from_slice(&words);
    Ok(folded)
}

const BLOCK_WORDS: usize = MIN_BYTES as usize / 8;

/// Creates an empty filter of `bytes` bytes, rounded up to a multiple of 32 and to at least 32.
///
/// The file does not store the plan, so the plan comes from the options. Without a planned rate, the rate is
/// [`JAVA_RATE`]. Without planned items, the plan has the largest number of items that keeps the rate.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails.
pub fn empty(bytes: u64, options: &DecodeOptions) -> Result<ParquetBloom, OutOfMemory> {
    let bits = bytes.max(1).div_ceil(MIN_BYTES).saturating_mul(MIN_BYTES * 8);
    let of = |items, rate| Plan::from_parts(Kind::Parquet, items, rate, bits, Geometry::Probes(8));
    let rate = options.rate.filter(|&rate| rate > 0.0 && rate < 1.0).unwrap_or(JAVA_RATE);
    let out_of_memory = |_| OutOfMemory { bytes };
    let plan = of(1, rate).map_err(out_of_memory)?;
    let items = options.items.unwrap_or_else(|| plan.items_at(rate));
    let plan = of(items, rate).map_err(out_of_memory)?;
    ParquetBloom::from_plan(&plan, Hasher::xxh64(0)).map_err(out_of_memory)
}

/// Decodes a filter: the header and the bits. Rejects trailing bytes. In a Parquet file, the filter starts at the
/// column's `bloom_filter_offset`. [`decode_start`] finds the end of the filter.
///
/// # Errors
///
/// [`DecodeError`] if the algorithm, hash or compression is not supported, or if the number of bytes differs from the
/// header.
///
/// # Examples
///
/// ```
/// use tamis::Filter;
/// use tamis_formats::{DecodeOptions, parquet};
///
/// let header = b"\x15\x40\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0";
/// let column = parquet::decode(&[&header[..], &[0xff; 32]].concat(), &DecodeOptions::default())?;
/// assert!(column.contains(&42_u32), "all bits are set");
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<ParquetBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let filter = read(&mut reader, options)?;
    reader.end("bits")?;
    Ok(filter)
}

/// Decodes a filter at the start of `bytes`. Returns the filter and the remaining bytes.
///
/// # Errors
///
/// The errors of [`decode`], except for trailing bytes.
pub fn decode_start<'a>(
    bytes: &'a [u8],
    options: &DecodeOptions,
) -> Result<(ParquetBloom, &'a [u8]), DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let filter = read(&mut reader, options)?;
    Ok((filter, reader.rest()))
}

fn read(reader: &mut ByteReader<'_>, options: &DecodeOptions) -> Result<ParquetBloom, DecodeError> {
    let len = header(reader)?;
    let at = reader.at();
    let data = reader.bytes("bits", len as usize)?;
    let mut filter = empty(len, options).map_err(DecodeError::memory("bits", at))?;
    for (word, &bytes) in filter.words_mut().iter_mut().zip(data.as_chunks().0) {
        *word = u64::from_le_bytes(bytes);
    }
    Ok(filter)
}

/// Reads the header. Returns the size of the bits in bytes.
fn header(reader: &mut ByteReader<'_>) -> Result<u64, DecodeError> {
    expect(reader, SIZE, NEXT_I32, "field 1 as an i32 of Thrift's compact protocol, 21")?;
    let at = reader.at();
    let len = zig_zag(reader)?;
    if len <= 0 || len % MIN_BYTES.cast_signed() != 0 {
        let expected = "a multiple of 32, the size of a block, and at least one";
        return Err(DecodeError::unexpected(SIZE, at, expected, len));
    }
    for (field, expected) in CHOICES {
        expect(reader, field, NEXT_STRUCT, "the next field as a struct, 28")?;
        let at = reader.at();
        match reader.u8(field)? {
            NEXT_STRUCT => {}
            // The short form of a field header: the difference from the previous field number, and the type.
            found => return Err(DecodeError::unexpected(field, at, expected, found >> 4)),
        }
        expect(reader, field, 0, "the end of an empty struct, 0")?;
        expect(reader, field, 0, "the end of a union, 0")?;
    }
    expect(reader, "end of the header", 0, "0")?;
    Ok(len.cast_unsigned())
}

fn expect(
    reader: &mut ByteReader<'_>,
    field: &'static str,
    byte: u8,
    expected: &'static str,
) -> Result<(), DecodeError> {
    let at = reader.at();
    let found = reader.u8(field)?;
    if found == byte {
        return Ok(());
    }
    Err(DecodeError::unexpected(field, at, expected, found))
}

/// Reads a number of 32 bits in zigzag encoding. Each byte contains seven bits of the number; the lowest bit of the
/// number is the sign.
fn zig_zag(reader: &mut ByteReader<'_>) -> Result<i64, DecodeError> {
    let at = reader.at();
    let mut number = 0;
    for shift in (0..5).map(|byte| byte * 7) {
        let byte = reader.u8(SIZE)?;
        number |= u64::from(byte & 0x7f) << shift;
        // A last byte of 0 would be a second encoding of the number without this byte.
        if byte < 0x80 && number <= u32::MAX.into() && (byte != 0 || shift == 0) {
            return Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
        }
        if byte < 0x80 {
            break;
        }
    }
    Err(DecodeError::invalid(SIZE, at, "a number of 32 bits in its shortest form"))
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
    match header(&mut ByteReader::new(bytes)) {
        Ok(_) => Sniff::Yes,
        Err(_) => Sniff::No,
    }
}

impl StoredFilter for ParquetBloom {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        let hashes = hash_each(self.hasher(), keys);
        self.contains_hashes(&hashes, answers.reset(keys.len()));
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        let hashes = hash_each(self.hasher(), keys);
        self.insert_hashes(&hashes, answers.reset(keys.len()));
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        Ok(tamis::Merge::merge(self, other).is_ok())
    }

    fn info(&self) -> FilterInfo {
        let (fill, plan) = (self.fill(), self.plan());
        FilterInfo {
            layout: "split blocks of Parquet, xxh64 seed 0".into(),
            bits: plan.bits(),
            probes: Some(plan.probes()),
            fill,
            items: self.estimate_items(),
            rate_now: self.estimate_rate(),
            rate_std_error: chance(fill, plan.bits(), plan.probes()),
            ..FilterInfo::default()
        }
    }
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let filter = match contents.downcast_ref::<TamisFile>().map(|file| &file.filter) {
        Some(AnyFilter::Parquet(filter)) => Some(filter),
        Some(_) => None,
        None => contents.downcast_ref(),
    };
    let Some(filter) = filter else {
        let rule = contents.info().layout;
        return Err(EncodeError::needs_items(format!(
            "Parquet sets other bits for an item than {rule}"
        )));
    };
    if filter.hasher() != Hasher::xxh64(0) {
        return Err(EncodeError::needs_items(format!(
            "Parquet hashes items with xxh64 and seed 0, not with {}",
            filter.hasher()
        )));
    }
    let len = filter.plan().bytes();
    if len > i32::MAX as u64 {
        return Err(EncodeError::refused(format!(
            "Parquet stores at most 2,147,483,647 bytes, not {len}"
        )));
    }
    out.write_all(&header_bytes(len))?;
    Ok(write_words(filter.bits().words(), out, u64::to_le_bytes)?)
}
