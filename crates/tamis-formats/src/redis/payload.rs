//! Encodes and decodes the payload of `DUMP` and `RESTORE`: a filter of RedisBloom, a string, or a filter of Tamis.
//!
//! ```text
//! | 7 | module id | opcode, value | opcode, value | ... | 0 | RDB version: u16 | CRC-64: u64 |
//!       0x81 and 8 bytes, big-endian      2: number, 4: double, 5: string
//! ```
//!
//! Numbers and lengths of strings are encoded as in RDB files. Strings may be compressed with LZF.

use std::borrow::Cow;
use std::fmt;
use std::io::Read as _;

use tamis_redisbloom::{RedisBloom, RedisCuckoo};

use crate::formats::module_value::{
    BLOOM_TYPE, CUCKOO_TYPE, ImageReader, ModuleValueError, TAMIS_TYPE, TAMIS_VERSION, VERSION,
    read_bloom, read_cuckoo, write_bloom, write_cuckoo, write_image,
};
use crate::redis::rdb_encoding::crc64::crc64;
use crate::redis::rdb_encoding::value_type::{MODULE_2 as MODULE_VALUE, STRING};
use crate::redis::rdb_encoding::{
    MAX_EXPANSION, MAX_RDB_VERSION, MAX_VALKEY_VERSION, MIN_VALKEY_VERSION, RdbReader, RdbWriter,
};

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

/// The reason why bytes are not the payload of a filter or of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadError {
    /// The checksum is wrong: the bytes were changed or truncated.
    Checksum,
    /// The RDB version of the payload is newer than all known versions, and the value cannot be read.
    Newer {
        /// The RDB version of the payload.
        version: u16,
    },
    /// The value is valid but is neither a string nor a known filter.
    OtherType,
    /// No server writes a value with the given bytes.
    Value,
    /// The strings of the value need more memory than allowed, or the filter needs more memory than available.
    TooLarge,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            PayloadError::Checksum => "the payload was changed or truncated: its checksum is wrong",
            PayloadError::OtherType => "the payload is neither a filter of RedisBloom nor a string",
            PayloadError::Value => "the payload has a filter that no server writes",
            PayloadError::TooLarge => "the payload takes more memory than is allowed or free",
            PayloadError::Newer { version } => {
                return write!(
                    f,
                    "the payload has an unknown value of RDB version {version}, newer than \
                    {MAX_RDB_VERSION} of Redis and {MAX_VALKEY_VERSION} of Valkey: use a newer tamis"
                );
            }
        };
        f.write_str(text)
    }
}

impl std::error::Error for PayloadError {}

/// Returns the id of a type. The id contains the name, and the version in the lowest ten bits.
const fn type_id(name: &str, version: u64) -> u64 {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (name, mut id, mut at) = (name.as_bytes(), 0, 0);
    while at < name.len() {
        let mut digit = 0;
        while LETTERS[digit] != name[at] {
            digit += 1;
        }
        id = id << 6 | digit as u64;
        at += 1;
    }
    id << 10 | version
}

const BLOOM_ID: u64 = type_id(BLOOM_TYPE, VERSION);
const CUCKOO_ID: u64 = type_id(CUCKOO_TYPE, VERSION);
const TAMIS_ID: u64 = type_id(TAMIS_TYPE, TAMIS_VERSION);

/// The RDB version in written payloads. A server rejects a version that is newer than its own version. The encoding of
/// strings and filters has not changed since Redis 5, so an old RDB version is enough.
const WRITTEN_RDB_VERSION: u16 = 9;

impl RedisValue {
    /// Decodes a payload. All strings together may expand to at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] unless the payload has the form that a server writes. Compression reduces up to 88 bytes to one
    /// byte, so the length of the payload does not limit the memory. The memory is limited to a small multiple of
    /// `max_bytes`.
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
        // The checksum is zero if the server did not compute the checksum.
        if checksum != 0 && checksum != crc64(summed) {
            return Err(PayloadError::Checksum);
        }
        let (&kind, value) = body.split_first().ok_or(PayloadError::OtherType)?;
        // A value of an RDB version that is newer than all known versions is read if the type of the value is known.
        Self::read(kind, RdbReader::new(value, max_bytes)).map_err(|error| match error {
            PayloadError::OtherType | PayloadError::Value if is_newer(version) => {
                PayloadError::Newer { version }
            }
            error => error,
        })
    }

    /// Returns the string in the result of `DUMP`. Accepts the trailing line feed of `redis-cli --raw`. Returns `None`
    /// unless the checksum matches.
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
            name if name == BLOOM_ID >> 10 => read_bloom(&mut from, version).map(RedisValue::Bloom),
            name if name == CUCKOO_ID >> 10 => {
                read_cuckoo(&mut from, version).map(RedisValue::Cuckoo)
            }
            name if name == TAMIS_ID >> 10 => {
                let image = read_image(&mut from, version).map(RedisValue::Tamis);
                image.ok_or(ModuleValueError::Value)
            }
            _ => return Err(PayloadError::OtherType),
        };
        let error = why_none(&from);
        let is_whole = from.end();
        match filter {
            Ok(filter) if is_whole => Ok(filter),
            Err(ModuleValueError::Memory) => Err(PayloadError::TooLarge),
            _ => Err(error),
        }
    }

    /// Tests whether a value of type `kind` is a filter of RedisBloom or of Tamis.
    pub(crate) fn is_filter(kind: u8, value: &[u8]) -> bool {
        kind == MODULE_VALUE && Self::filter_name(value).is_some()
    }

    /// Tests whether a value of type `kind` is a filter of Tamis that RedisBloom cannot read.
    pub(crate) fn is_of_tamis(kind: u8, value: &[u8]) -> bool {
        kind == MODULE_VALUE && Self::filter_name(value) == Some(TAMIS_TYPE)
    }

    /// Returns the reply of `TYPE` for the value of a module. Returns `None` if the value is not a filter of RedisBloom
    /// or of Tamis.
    pub(crate) fn filter_name(value: &[u8]) -> Option<&'static str> {
        match RdbReader::new(value, 0).length()? >> 10 {
            name if name == BLOOM_ID >> 10 => Some(BLOOM_TYPE),
            name if name == CUCKOO_ID >> 10 => Some(CUCKOO_TYPE),
            name if name == TAMIS_ID >> 10 => Some(TAMIS_TYPE),
            _ => None,
        }
    }

    /// Writes a payload, without compression.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "writing to memory never fails")]
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
                let written = write_image(&mut to, image.len() as u64, |out| out.write_all(image));
                written.expect("writing to memory never fails");
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

/// Tests whether an RDB version is newer than the versions whose types are all known.
fn is_newer(version: u16) -> bool {
    let known = if u32::from(version) < MIN_VALKEY_VERSION {
        ..=MAX_RDB_VERSION
    } else {
        ..=MAX_VALKEY_VERSION
    };
    !known.contains(&version.into())
}

fn why_none(from: &RdbReader<'_>) -> PayloadError {
    if from.is_over() { PayloadError::TooLarge } else { PayloadError::Value }
}

fn read_image(from: &mut RdbReader<'_>, version: u64) -> Option<Vec<u8>> {
    let (mut reader, len) = ImageReader::new(from, version)?;
    let mut image = Vec::new();
    reader.read_to_end(&mut image).ok()?;
    (image.len() as u64 == len).then_some(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::module_value::ModuleWriter as _;

    #[test]
    fn type_ids_are_those_of_redis() {
        assert_eq!(BLOOM_ID, 0x3016_e5a2_89be_f804);
        assert_eq!(CUCKOO_ID, 0x3016_e5a2_8982_1404);
        assert_eq!(TAMIS_ID, 0xb5a9_a2b3_e7e5_b402);
    }

    #[test]
    fn an_image_comes_back_from_one_string_and_from_many() {
        for len in [0, 1, 1 << 20, (1 << 20) + 1, 3 << 20] {
            let image: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let value = RedisValue::Tamis(image.clone());
            assert_eq!(RedisValue::from_payload(&value.to_payload(), u64::MAX), Ok(value));
            let mut one = RdbWriter::new(MODULE_VALUE);
            one.string(&image);
            let bytes = one.end();
            let read = read_image(&mut RdbReader::new(&bytes[1..], u64::MAX), 1);
            assert_eq!(read, Some(image));
        }
    }

    #[test]
    fn an_image_with_a_wrong_length_is_no_payload() {
        for (len, strings) in [(3, &[&b"ab"[..]][..]), (1, &[b"ab"]), (2, &[b"", b"ab"]), (1, &[])]
        {
            let mut to = RdbWriter::new(MODULE_VALUE);
            to.number(len);
            strings.iter().for_each(|string| to.string(string));
            let bytes = to.end();
            let mut from = RdbReader::new(&bytes[1..], u64::MAX);
            assert_eq!(read_image(&mut from, TAMIS_VERSION), None, "{len}");
        }
        let mut empty = RdbReader::new(&[], u64::MAX);
        assert_eq!(read_image(&mut empty, 3), None, "an unknown version");
    }
}
