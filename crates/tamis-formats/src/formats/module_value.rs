//! Reads and writes the values that the types of RedisBloom and of Tamis store in RDB files and in the result of
//! `DUMP`. The values are numbers, doubles and strings in order.
//!
//! ```text
//! MBbloom--  items, layers, options, expansion, then for each layer: capacity, rate, probes,
//!            bits per item, bits, log2 of the bits, bit array, items
//! MBbloomCF  sub-filters, buckets, items, deletes, bucket size, max iterations, expansion, then
//!            for each sub-filter: buckets, slots
//! tamis-flt  length of the image, then the image in strings of at most 1 MiB
//! ```
//!
//! In a payload of `DUMP`, an opcode precedes each value ([`RedisValue`](crate::RedisValue)). A module uses functions
//! of its server to read and write the values without opcodes.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use tamis_redisbloom::{RedisBloom, RedisCuckoo, RedisHeaderError, RedisHeaderErrorKind};

/// The name of the type of RedisBloom's Bloom filters.
pub const BLOOM_TYPE: &str = "MBbloom--";
/// The name of the type of RedisBloom's cuckoo filters.
pub const CUCKOO_TYPE: &str = "MBbloomCF";
/// The name of the type of all filters of Tamis that have no type in RedisBloom.
pub const TAMIS_TYPE: &str = "tamis-flt";

/// The version of RedisBloom's types in written values. Tamis reads only version 4 of RedisBloom's types.
pub const VERSION: u64 = 4;
/// The version of [`TAMIS_TYPE`] in written values.
pub const TAMIS_VERSION: u64 = 2;
/// The version of [`TAMIS_TYPE`] that stores the whole image in one string.
pub(crate) const ONE_STRING_VERSION: u64 = 1;

/// The reason why values are not the values of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleValueError {
    /// No server writes the values that were read.
    Value,
    /// There is not enough memory for the filter.
    Memory,
}

impl From<RedisHeaderError> for ModuleValueError {
    fn from(error: RedisHeaderError) -> Self {
        match error.kind {
            RedisHeaderErrorKind::Memory(_) => ModuleValueError::Memory,
            _ => ModuleValueError::Value,
        }
    }
}

/// Reads the values of a module in order. A method returns `None` if the next value has a type that the method does not
/// read, or if the bytes end.
pub trait ModuleReader<'a> {
    /// Reads an unsigned number.
    fn number(&mut self) -> Option<u64>;
    /// Reads a double.
    fn double(&mut self) -> Option<f64>;
    /// Reads a string.
    fn string(&mut self) -> Option<Cow<'a, [u8]>>;
}

/// Writes the values of a module in order.
pub trait ModuleWriter {
    /// Writes an unsigned number.
    fn number(&mut self, number: u64);
    /// Writes a double.
    fn double(&mut self, number: f64);
    /// Writes a string.
    fn string(&mut self, bytes: &[u8]);
}

/// The maximum length of a string that contains a part of an image, in bytes.
const IMAGE_CHUNK_BYTES: usize = 1 << 20;

/// Writes an image of `len` bytes as a value of the type [`TAMIS_TYPE`] in version [`TAMIS_VERSION`]. `write` must
/// write the bytes of the image to its argument.
///
/// # Errors
///
/// The error of `write`, or an error if `write` does not write exactly `len` bytes.
pub fn write_image(
    to: &mut impl ModuleWriter,
    len: u64,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    to.number(len);
    let mut out = ImageWriter { to, chunk: Vec::new(), left: len };
    write(&mut out)?;
    out.write_chunk();
    if out.left == 0 { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Writes bytes as strings of [`IMAGE_CHUNK_BYTES`] bytes.
struct ImageWriter<'w, W> {
    to: &'w mut W,
    chunk: Vec<u8>,
    /// The number of bytes of the image that are not yet in `to`.
    left: u64,
}

impl<W: ModuleWriter> ImageWriter<'_, W> {
    fn write_chunk(&mut self) {
        if !self.chunk.is_empty() {
            self.to.string(&self.chunk);
            self.left = self.left.wrapping_sub(self.chunk.len() as u64);
            self.chunk.clear();
        }
    }
}

impl<W: ModuleWriter> Write for ImageWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(IMAGE_CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..len]);
        if self.chunk.len() == IMAGE_CHUNK_BYTES {
            self.write_chunk();
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads an image of the type [`TAMIS_TYPE`], one string after another.
pub struct ImageReader<'r, 'a, R> {
    from: &'r mut R,
    chunk: Cow<'a, [u8]>,
    /// The number of bytes of `chunk` that were read.
    at: usize,
    /// The number of bytes of the image that are not yet in `chunk`.
    left: u64,
}

impl<'r, 'a, R: ModuleReader<'a>> ImageReader<'r, 'a, R> {
    /// Reads the length of an image in the given version of [`TAMIS_TYPE`]. Returns a reader of the bytes of the image,
    /// and the length. Returns `None` if no server writes the version or the values.
    pub fn new(from: &'r mut R, version: u64) -> Option<(Self, u64)> {
        let (chunk, len) = match version {
            ONE_STRING_VERSION => {
                let image = from.string()?;
                let len = image.len() as u64;
                (image, len)
            }
            TAMIS_VERSION => (Cow::Borrowed(&[][..]), from.number()?),
            _ => return None,
        };
        let left = len - chunk.len() as u64;
        Some((Self { from, chunk, at: 0, left }, len))
    }
}

impl<'a, R: ModuleReader<'a>> Read for ImageReader<'_, 'a, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() && self.left > 0 {
            self.chunk = self.from.string().ok_or(io::ErrorKind::UnexpectedEof)?;
            self.at = 0;
            let left = self.left.checked_sub(self.chunk.len() as u64);
            self.left =
                left.filter(|_| !self.chunk.is_empty()).ok_or(io::ErrorKind::InvalidData)?;
        }
        let rest = &self.chunk[self.at..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// Decodes the values of a Bloom filter, of the type [`BLOOM_TYPE`]. Decoding takes memory of at most a few times the
/// length of the strings.
///
/// # Errors
///
/// [`ModuleValueError`] if no server writes the values, or if there is not enough memory for the filter.
pub fn read_bloom<'a>(
    from: &mut impl ModuleReader<'a>,
    version: u64,
) -> Result<RedisBloom, ModuleValueError> {
    let (header, arrays) = bloom_dump(from, version).ok_or(ModuleValueError::Value)?;
    let mut filter = RedisBloom::from_header(&header)?;
    let parts = arrays.iter().map(|(bytes, len)| &bytes[..*len]);
    let loaded = load(parts, |position, chunk| filter.load_chunk(position, chunk).is_ok());
    loaded.map(|()| filter).ok_or(ModuleValueError::Value)
}

/// The header of `BF.SCANDUMP`, and for each layer the bit array and its length.
type BloomDump<'a> = (Vec<u8>, Vec<(Cow<'a, [u8]>, usize)>);

/// Converts the values of a Bloom filter. Returns `None` if no server writes the values.
fn bloom_dump<'a>(from: &mut impl ModuleReader<'a>, version: u64) -> Option<BloomDump<'a>> {
    if version != VERSION {
        return None;
    }
    let (items, layers, options, expansion) =
        (from.number()?, from.number()?, from.number()?, from.number()?);
    let mut header = items.to_le_bytes().to_vec();
    for number in [layers, options, expansion] {
        header.extend(u32::try_from(number).ok()?.to_le_bytes());
    }
    let mut arrays = Vec::new();
    for _ in 0..layers {
        let (capacity, rate, probes, bits_per_item, bits, log2_bits) = (
            from.number()?,
            from.double()?,
            from.number()?,
            from.double()?,
            from.number()?,
            from.number()?,
        );
        let bytes = from.string()?;
        let items = from.number()?;
        // The array may be longer than the bits need.
        let len = usize::try_from(bits.div_ceil(8)).ok()?;
        (len <= bytes.len()).then_some(())?;
        arrays.push((bytes, len));
        for number in [len as u64, bits, items, rate.to_bits(), bits_per_item.to_bits()] {
            header.extend(number.to_le_bytes());
        }
        header.extend(u32::try_from(probes).ok()?.to_le_bytes());
        header.extend(capacity.to_le_bytes());
        header.push(u8::try_from(log2_bits).ok()?);
    }
    Some((header, arrays))
}

/// Splits consecutive parts into chunks and passes each chunk to `load`.
fn load<'a>(
    parts: impl Iterator<Item = &'a [u8]>,
    mut load: impl FnMut(i64, &[u8]) -> bool,
) -> Option<()> {
    let mut position = 1;
    for part in parts {
        for chunk in part.chunks(MAX_CHUNK_BYTES) {
            position += chunk.len() as i64;
            load(position, chunk).then_some(())?;
        }
    }
    Some(())
}

const MAX_CHUNK_BYTES: usize = 16 << 20;

/// Writes the values of a Bloom filter, of the type [`BLOOM_TYPE`] in version [`VERSION`].
#[expect(clippy::missing_panics_doc, reason = "a header is longer than its numbers")]
pub fn write_bloom(to: &mut impl ModuleWriter, filter: &RedisBloom) {
    // Only the header contains the options and the expansion in their stored form.
    let header = filter.header();
    let number = |at: usize| {
        u64::from(u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes")))
    };
    to.number(filter.len());
    to.number(filter.layers().len() as u64);
    to.number(number(12));
    to.number(number(16));
    let mut position = 1;
    for layer in filter.layers() {
        to.number(layer.capacity);
        to.double(layer.rate);
        to.number(u64::from(layer.probes));
        to.double(layer.bits_per_item);
        to.number(layer.bits);
        to.number(u64::from(layer.log2_bits));
        let (bytes, next) = part(position, layer.bytes, |position| filter.chunk(position));
        to.string(&bytes);
        to.number(layer.items);
        position = next;
    }
}

/// Joins the chunks of a part of `len` bytes. Returns the part, and the position of the chunk after the part.
fn part(
    mut position: i64,
    len: u64,
    chunk: impl Fn(i64) -> Option<(i64, Vec<u8>)>,
) -> (Vec<u8>, i64) {
    let mut bytes = Vec::with_capacity(len as usize);
    while (bytes.len() as u64) < len {
        let Some((next, more)) = chunk(position) else {
            // A cuckoo filter without items has no chunks: all of its slots are empty.
            bytes.resize(len as usize, 0);
            break;
        };
        bytes.extend(more);
        position = next;
    }
    (bytes, position)
}

/// Decodes the values of a cuckoo filter, of the type [`CUCKOO_TYPE`]. Decoding takes memory of at most a few times the
/// length of the strings.
///
/// # Errors
///
/// [`ModuleValueError`] if no server writes the values, or if there is not enough memory for the filter.
pub fn read_cuckoo<'a>(
    from: &mut impl ModuleReader<'a>,
    version: u64,
) -> Result<RedisCuckoo, ModuleValueError> {
    let (header, parts) = cuckoo_dump(from, version).ok_or(ModuleValueError::Value)?;
    let mut filter = RedisCuckoo::from_header(&header)?;
    let parts = parts.iter().map(|slots| &slots[..]);
    let loaded = load(parts, |position, chunk| filter.load_chunk(position, chunk).is_ok());
    loaded.map(|()| filter).ok_or(ModuleValueError::Value)
}

/// The header of `CF.SCANDUMP`, and the slots of each sub-filter.
type CuckooDump<'a> = (Vec<u8>, Vec<Cow<'a, [u8]>>);

/// Converts the values of a cuckoo filter. Returns `None` if no server writes the values.
fn cuckoo_dump<'a>(from: &mut impl ModuleReader<'a>, version: u64) -> Option<CuckooDump<'a>> {
    if version != VERSION {
        return None;
    }
    let (sub_filters, buckets, items, deletes) =
        (from.number()?, from.number()?, from.number()?, from.number()?);
    let (bucket_size, max_iterations, expansion) = (from.number()?, from.number()?, from.number()?);
    let mut header = Vec::new();
    for number in [items, buckets, deletes, sub_filters] {
        header.extend(number.to_le_bytes());
    }
    for number in [bucket_size, max_iterations, expansion] {
        header.extend(u16::try_from(number).ok()?.to_le_bytes());
    }
    let (mut parts, mut expected) = (Vec::new(), buckets);
    for _ in 0..sub_filters {
        let buckets = from.number()?;
        let slots = from.string()?;
        let is_whole = buckets.checked_mul(bucket_size) == Some(slots.len() as u64);
        // The size in the header must equal the size of the data.
        (is_whole && buckets == expected).then_some(())?;
        parts.push(slots);
        expected = expected.saturating_mul(expansion.max(1));
    }
    Some((header, parts))
}

/// Writes the values of a cuckoo filter, of the type [`CUCKOO_TYPE`] in version [`VERSION`].
pub fn write_cuckoo(to: &mut impl ModuleWriter, filter: &RedisCuckoo) {
    let (sub_filters, expansion) = (filter.sub_filters() as u64, u64::from(filter.expansion()));
    to.number(sub_filters);
    for number in [filter.buckets(), filter.len(), filter.removed()] {
        to.number(number);
    }
    to.number(u64::from(filter.bucket_size()));
    to.number(u64::from(filter.max_iterations()));
    to.number(expansion);
    let (mut position, mut buckets) = (1, filter.buckets());
    for _ in 0..sub_filters {
        to.number(buckets);
        let len = buckets * u64::from(filter.bucket_size());
        let (slots, next) = part(position, len, |position| filter.chunk(position));
        to.string(&slots);
        position = next;
        // A filter that does not grow has no second sub-filter.
        buckets = buckets.saturating_mul(expansion.max(1));
    }
}
