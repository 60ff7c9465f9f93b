//! The payload of `DUMP` and `RESTORE` for a filter of RedisBloom, a string, or a filter of Tamis.
//!
//! ```text
//! | 7 | module id | opcode, value | opcode, value | ... | 0 | RDB version: u16 | CRC-64: u64 |
//!       0x81 and 8 bytes, big-endian      2: number, 4: double, 5: string
//! ```
//!
//! Numbers and lengths of strings are encoded as in RDB files. Strings may be compressed with LZF.

use std::borrow::Cow;
use std::fmt;

use tamis_redisbloom::{RedisBloom, RedisCuckoo};

use crate::rdb_encoding::crc64::crc64;
use crate::rdb_encoding::value_type::{MODULE_2 as MODULE_VALUE, STRING};
use crate::rdb_encoding::{MAX_EXPANSION, RdbReader, RdbWriter};

/// A Redis value that can hold a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum RedisValue {
    /// A scaling Bloom filter.
    Bloom(RedisBloom),
    /// A cuckoo filter.
    Cuckoo(RedisCuckoo),
    /// A string, such as a bitmap.
    String(Vec<u8>),
    /// A filter of a Tamis server, in bytes that only a Tamis server can read.
    Tamis(Vec<u8>),
}

/// Why bytes are not the payload of a filter or of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadError {
    /// The checksum is wrong or of a newer version: the bytes were changed or truncated.
    Checksum,
    /// The value is valid, but of another type.
    OtherType,
    /// No server writes this value.
    Value,
    /// The strings of the value need more memory than allowed.
    TooLarge,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PayloadError::Checksum => "the payload was changed or truncated: its checksum is wrong",
            PayloadError::OtherType => "the payload is neither a filter of RedisBloom nor a string",
            PayloadError::Value => "the payload has a filter that no server writes",
            PayloadError::TooLarge => "the payload takes more memory than allowed",
        })
    }
}

impl std::error::Error for PayloadError {}

/// The module ids of `MBbloom--` and `MBbloomCF`, both version 4. The lowest ten bits are the
/// version.
const BLOOM_ID: u64 = 0x3016_e5a2_89be_f804;
const CUCKOO_ID: u64 = 0x3016_e5a2_8982_1404;
/// The module id of `tamis-flt`, version 1.
const TAMIS_ID: u64 = 0xb5a9_a2b3_e7e5_b401;
const VERSION: u64 = 4;

/// The newest RDB version that is read, and the version that is written. A server rejects versions
/// newer than its own. A low version is enough for the values written here, because they have not
/// changed since Redis 5.
const RDB_VERSION: u16 = 12;
const WRITTEN_RDB_VERSION: u16 = 9;

impl RedisValue {
    /// Reads a payload. All strings together may expand to at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] unless a server writes such a payload. Compression reduces up to 88 bytes
    /// to one, so the length of the payload does not limit the memory. `max_bytes` does: the memory
    /// stays within a small multiple of it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_redisbloom::{RedisBloom, RedisBloomOptions};
    /// use tamis_formats::RedisValue;
    ///
    /// let mut seen = RedisBloom::new(&RedisBloomOptions::default())?;
    /// seen.insert("tamis")?;
    /// let filter = RedisValue::Bloom(seen);
    /// assert_eq!(RedisValue::from_payload(&filter.to_payload(), 1 << 20)?, filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_payload(payload: &[u8], max_bytes: u64) -> Result<Self, PayloadError> {
        let (summed, checksum) = payload.split_last_chunk().ok_or(PayloadError::Checksum)?;
        let (body, version) = summed.split_last_chunk().ok_or(PayloadError::Checksum)?;
        let (version, checksum) = (u16::from_le_bytes(*version), u64::from_le_bytes(*checksum));
        // A checksum of zero means that the server did not compute it.
        let is_sound = checksum == 0 || checksum == crc64(summed);
        if version > RDB_VERSION || !is_sound {
            return Err(PayloadError::Checksum);
        }
        let (&kind, value) = body.split_first().ok_or(PayloadError::OtherType)?;
        Self::read(kind, RdbReader::new(value, max_bytes))
    }

    /// Returns the string in the result of `DUMP`. Accepts the trailing line feed of `redis-cli
    /// --raw`. Returns `None` unless the checksum matches.
    #[must_use]
    pub fn string_of(bytes: &[u8]) -> Option<Vec<u8>> {
        if bytes.first() != Some(&STRING) {
            return None;
        }
        [bytes, bytes.strip_suffix(b"\n").unwrap_or_default()].into_iter().find_map(|payload| {
            // A checksum of zero proves nothing, because a bitmap may end in zeros.
            payload.last_chunk::<8>().filter(|&&checksum| checksum != [0; 8])?;
            match Self::from_payload(payload, MAX_EXPANSION * payload.len() as u64) {
                Ok(RedisValue::String(string)) => Some(string),
                _ => None,
            }
        })
    }

    /// Reads a value of type `kind`. Rejects trailing bytes.
    pub(crate) fn read(kind: u8, mut from: RdbReader<'_>) -> Result<Self, PayloadError> {
        if kind == STRING {
            let bytes = from.bytes().filter(|_| from.is_empty());
            let bytes = bytes.map(Cow::into_owned);
            return bytes.map(RedisValue::String).ok_or_else(|| why_none(&from));
        }
        if kind != MODULE_VALUE {
            return Err(PayloadError::OtherType);
        }
        let id = from.length().ok_or(PayloadError::Value)?;
        let version = id & 0x3ff;
        let filter = match id >> 10 {
            name if name == BLOOM_ID >> 10 => read_bloom(&mut from, version),
            name if name == CUCKOO_ID >> 10 => read_cuckoo(&mut from, version),
            _ if id == TAMIS_ID => from.string().map(|image| RedisValue::Tamis(image.into_owned())),
            _ => return Err(PayloadError::OtherType),
        };
        let error = why_none(&from);
        let is_whole = from.end();
        filter.filter(|_| is_whole).ok_or(error)
    }

    /// Tests whether a value of type `kind` is a filter of RedisBloom or of Tamis.
    pub(crate) fn is_filter(kind: u8, value: &[u8]) -> bool {
        kind == MODULE_VALUE && Self::filter_name(value).is_some()
    }

    /// Returns the name that `TYPE` has for a module's value, if it is a filter of RedisBloom or of
    /// Tamis.
    pub(crate) fn filter_name(value: &[u8]) -> Option<&'static str> {
        match RdbReader::new(value, 0).length()? >> 10 {
            name if name == BLOOM_ID >> 10 => Some("MBbloom--"),
            name if name == CUCKOO_ID >> 10 => Some("MBbloomCF"),
            name if name == TAMIS_ID >> 10 => Some("tamis-flt"),
            _ => None,
        }
    }

    /// Writes a payload, without compression.
    #[must_use]
    pub fn to_payload(&self) -> Vec<u8> {
        let mut payload = match self {
            RedisValue::Bloom(filter) => {
                let mut to = RdbWriter::new(MODULE_VALUE);
                to.length(BLOOM_ID);
                write_bloom(&mut to, filter);
                to.end()
            }
            RedisValue::Cuckoo(filter) => {
                let mut to = RdbWriter::new(MODULE_VALUE);
                to.length(CUCKOO_ID);
                write_cuckoo(&mut to, filter);
                to.end()
            }
            RedisValue::Tamis(image) => {
                let mut to = RdbWriter::new(MODULE_VALUE);
                to.length(TAMIS_ID);
                to.string(image);
                to.end()
            }
            RedisValue::String(bytes) => {
                let mut to = RdbWriter::new(STRING);
                to.bytes(bytes);
                to.into_bytes()
            }
        };
        payload.extend(WRITTEN_RDB_VERSION.to_le_bytes());
        payload.extend(crc64(&payload).to_le_bytes());
        payload
    }
}

fn why_none(from: &RdbReader<'_>) -> PayloadError {
    if from.is_over() { PayloadError::TooLarge } else { PayloadError::Value }
}

/// Reads a Bloom filter by converting it to the header and chunks of `BF.SCANDUMP`.
fn read_bloom(from: &mut RdbReader<'_>, version: u64) -> Option<RedisValue> {
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
        // The array may be longer than its bits.
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
    let mut filter = RedisBloom::from_header(&header).ok()?;
    let parts = arrays.iter().map(|(bytes, len)| &bytes[..*len]);
    load(parts, |position, chunk| filter.load_chunk(position, chunk).is_ok())?;
    Some(RedisValue::Bloom(filter))
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

fn write_bloom(to: &mut RdbWriter, filter: &RedisBloom) {
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

/// Joins the chunks of a part of `len` bytes. Returns the part and the position after it.
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

fn read_cuckoo(from: &mut RdbReader<'_>, version: u64) -> Option<RedisValue> {
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
    let mut filter = RedisCuckoo::from_header(&header).ok()?;
    let parts = parts.iter().map(|slots| &slots[..]);
    load(parts, |position, chunk| filter.load_chunk(position, chunk).is_ok())?;
    Some(RedisValue::Cuckoo(filter))
}

fn write_cuckoo(to: &mut RdbWriter, filter: &RedisCuckoo) {
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
