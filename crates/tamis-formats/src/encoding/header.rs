//! Encodes and decodes the header of a Tamis file. Layout: `docs/formats/tamis.md`.

use tamis::{Geometry, Hasher, Kind, Plan};

use crate::encoding::metadata::Metadata;
use crate::encoding::reader::ByteReader;
use crate::errors::{DecodeError, DecodeErrorKind};
use xxhash_rust::xxh3::xxh3_64;

/// The magic number of a Tamis file. The magic number contains a carriage return and a line feed, as in PNG. If a file
/// transfer rewrites line ends, the magic number no longer matches.
pub(crate) const MAGIC: [u8; 8] = *b"\x89TAMIS\r\n";

/// The version in written files, and the newest version that can be read.
pub(crate) const VERSION: u16 = 1;

// Each offset is computed from the previous offset.
const VERSION_AT: usize = MAGIC.len();
const KIND_AT: usize = VERSION_AT + size_of::<u16>();
const HASHER_AT: usize = KIND_AT + size_of::<u8>();
const SHAPE_AT: usize = HASHER_AT + size_of::<u8>();
pub(crate) const BITS_AT: usize = SHAPE_AT + size_of::<u32>();
const SEED_AT: usize = BITS_AT + size_of::<u64>();
const CAPACITY_AT: usize = SEED_AT + size_of::<[u8; 16]>();
const RATE_AT: usize = CAPACITY_AT + size_of::<u64>();
const ADDED_AT: usize = RATE_AT + size_of::<f64>();
const METADATA_BYTES_AT: usize = ADDED_AT + size_of::<u64>();
const METADATA_AT: usize = METADATA_BYTES_AT + size_of::<u32>();

/// The number of bytes at the start of a header from which the length of the header can be computed.
pub(crate) const FIXED_BYTES: usize = METADATA_AT;

/// The size of the checksum, which is the last field of the header.
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// The offset of the words is a multiple of a cache line, so a mapped file can be used without a copy.
const ALIGN_BYTES: usize = 64;

/// The fields of the header.
pub(crate) struct Header {
    pub plan: Plan,
    pub hasher: Hasher,
    pub added: u64,
    pub metadata: Metadata,
    /// The length of the header, which is the offset of the words.
    pub len: usize,
    /// The checksum of the header. The checksum of the words starts from the checksum of the header, so words from
    /// another file do not match.
    pub checksum: u64,
}

/// Returns the length of a header with `metadata_bytes` bytes of metadata.
pub(crate) fn header_bytes(metadata_bytes: usize) -> usize {
    (METADATA_AT + metadata_bytes + CHECKSUM_BYTES).next_multiple_of(ALIGN_BYTES)
}

/// Returns the length of a header. `start` contains at least the first [`FIXED_BYTES`] bytes of the header.
///
/// Checks only the magic number, the version and the length.
pub(crate) fn measure(start: &[u8]) -> Result<usize, DecodeError> {
    let mut reader = ByteReader::new(start);
    let magic = start.get(..MAGIC.len()).unwrap_or(start);
    if magic != &MAGIC[..magic.len()] || magic.is_empty() {
        return Err(reader.error("magic", DecodeErrorKind::OtherFormat));
    }
    reader.bytes("magic", VERSION_AT)?;
    let version = reader.u16("version")?;
    if version != VERSION {
        let (found, newest) = (u64::from(version), u64::from(VERSION));
        let kind = match version {
            0 => DecodeErrorKind::Unknown { found },
            _ => DecodeErrorKind::Newer { found, newest },
        };
        return Err(DecodeError::new("version", VERSION_AT, kind));
    }
    reader.bytes("kind", METADATA_BYTES_AT - KIND_AT)?;
    let metadata_bytes = reader.u32("metadata length")? as usize;
    if metadata_bytes > Metadata::MAX_BYTES {
        return Err(DecodeError::invalid(
            "metadata length",
            METADATA_BYTES_AT,
            "at most a mebibyte",
        ));
    }
    Ok(header_bytes(metadata_bytes))
}

impl Header {
    /// Decodes a header at the start of `bytes`. Checks the checksum before using any value.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let len = measure(bytes)?;
        let mut reader = ByteReader::new(bytes);
        let header = reader.bytes("head", len)?;
        let (header, checksum) = header.split_at(len - CHECKSUM_BYTES);
        let checksum = u64::from_le_bytes(checksum.try_into().expect("a checksum is 8 bytes"));
        if xxh3_64(header) != checksum {
            let (field, kind) = ("head checksum", DecodeErrorKind::Checksum);
            return Err(DecodeError::new(field, header.len(), kind));
        }
        Self::fields(header, len, checksum)
    }

    /// Decodes the fields of a header whose checksum matches. Checks every field, because a hostile writer can compute
    /// a valid checksum.
    fn fields(header: &[u8], len: usize, checksum: u64) -> Result<Self, DecodeError> {
        let error = DecodeError::new;
        let mut reader = ByteReader::new(header);
        reader.bytes("version", KIND_AT)?;
        let number = reader.u8("kind")?;
        let unknown = DecodeErrorKind::Unknown { found: u64::from(number) };
        let kind = Kind::from_number(number).ok_or(error("kind", KIND_AT, unknown))?;
        let hash = reader.u8("hash")?;
        let number = reader.u32("shape")?;
        let unknown = DecodeErrorKind::Unknown { found: u64::from(number) };
        let geometry =
            Geometry::from_number(kind, number).ok_or(error("shape", SHAPE_AT, unknown))?;
        let bits = reader.u64("bits")?;
        let seed = reader.array("seed")?;
        let unknown = DecodeErrorKind::Unknown { found: u64::from(hash) };
        let hasher = Hasher::from_parts(hash, seed).ok_or(error("hash", HASHER_AT, unknown))?;
        let capacity = reader.u64("capacity")?;
        let rate = f64::from_bits(reader.u64("rate")?);
        let plan = Plan::from_parts(kind, capacity, rate, bits, geometry)
            .map_err(|plan| error("bits", BITS_AT, DecodeErrorKind::Plan(plan)))?;
        if capacity == 0 {
            return Err(DecodeError::invalid("capacity", CAPACITY_AT, "above zero"));
        }
        let added = reader.u64("added")?;
        let metadata_bytes = reader.u32("metadata length")? as usize;
        let metadata = Metadata::decode(reader.bytes("metadata", metadata_bytes)?, METADATA_AT)?;
        let padding = &header[reader.at()..];
        if padding.iter().any(|&byte| byte != 0) {
            return Err(reader.error("zeros", DecodeErrorKind::NotZero));
        }
        Ok(Self { plan, hasher, added, metadata, len, checksum })
    }

    /// Returns the bytes of a header, and the checksum of the header. `bits` is the number of bits that the words of
    /// the file contain. For a growing filter, `bits` differs from the size in the plan.
    pub(crate) fn encode(
        plan: &Plan,
        bits: u64,
        hasher: Hasher,
        added: u64,
        metadata: &Metadata,
    ) -> (Vec<u8>, u64) {
        let len = header_bytes(metadata.len_bytes());
        let (hash, seed) = hasher.to_parts();
        let mut header = Vec::with_capacity(len);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.push(plan.kind() as u8);
        header.push(hash);
        header.extend_from_slice(&plan.geometry().to_number().to_le_bytes());
        header.extend_from_slice(&bits.to_le_bytes());
        header.extend_from_slice(&seed);
        header.extend_from_slice(&plan.items().to_le_bytes());
        header.extend_from_slice(&plan.rate().to_bits().to_le_bytes());
        header.extend_from_slice(&added.to_le_bytes());
        let metadata_bytes =
            u32::try_from(metadata.len_bytes()).expect("metadata are at most a mebibyte");
        header.extend_from_slice(&metadata_bytes.to_le_bytes());
        debug_assert_eq!(header.len(), METADATA_AT);
        metadata.encode(&mut header);
        header.resize(len - CHECKSUM_BYTES, 0);
        let checksum = xxh3_64(&header);
        header.extend_from_slice(&checksum.to_le_bytes());
        (header, checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offsets_are_those_of_the_page() {
        assert_eq!(
            [VERSION_AT, KIND_AT, HASHER_AT, SHAPE_AT, BITS_AT, SEED_AT, CAPACITY_AT, RATE_AT],
            [8, 10, 11, 12, 16, 24, 40, 48]
        );
        assert_eq!([ADDED_AT, METADATA_BYTES_AT, METADATA_AT], [56, 64, 68]);
        assert_eq!([header_bytes(0), header_bytes(52), header_bytes(53)], [128, 128, 192]);
    }

    #[test]
    fn the_version_is_checked_before_anything_else() {
        let mut start = MAGIC.to_vec();
        start.extend([9, 0]);
        let error = measure(&start).unwrap_err();
        assert_eq!((error.field, error.at), ("version", 8));
        assert_eq!(error.kind, DecodeErrorKind::Newer { found: 9, newest: 1 });
    }

    #[test]
    fn a_part_of_the_magic_number_is_a_truncated_file() {
        let error = measure(&MAGIC[..5]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Truncated { expected: 8, found: 5 });
        assert_eq!(measure(b"").unwrap_err().kind, DecodeErrorKind::OtherFormat);
        assert_eq!(measure(b"plain").unwrap_err().kind, DecodeErrorKind::OtherFormat);
    }
}
