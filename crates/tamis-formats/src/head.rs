//! All of a Tamis file before its words. Drawn in `docs/formats/tamis.md`.

use tamis::{Geometry, Hasher, Kind, Plan};

use crate::error::{DecodeError, DecodeErrorKind};
use crate::metadata::Metadata;
use crate::reader::Reader;
use xxhash_rust::xxh3::xxh3_64;

/// A carriage return and a line feed, as in PNG: a transfer that rewrites line ends shows.
pub(crate) const MAGIC: [u8; 8] = *b"\x89TAMIS\r\n";

/// The version written, and the newest read.
pub(crate) const VERSION: u16 = 1;

// Each offset from the one before.
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

/// How many bytes tell how long the head is.
pub(crate) const FIXED_BYTES: usize = METADATA_AT;

/// The checksum ends the head, right before the words.
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// The words start on a cache line of the file, so that a mapped file needs no copy.
const ALIGN_BYTES: usize = 64;

/// What the head says.
pub(crate) struct Head {
    pub plan: Plan,
    pub hasher: Hasher,
    pub added: u64,
    pub metadata: Metadata,
    /// Where the words start.
    pub len: usize,
    /// Seeds the checksum of the words, so that words of another file do not pass.
    pub checksum: u64,
}

/// The length of a head with so many bytes of metadata.
pub(crate) fn head_bytes(metadata_bytes: usize) -> usize {
    (METADATA_AT + metadata_bytes + CHECKSUM_BYTES).next_multiple_of(ALIGN_BYTES)
}

/// Returns the length of the head that starts with these bytes, at least [`FIXED_BYTES`] of them.
///
/// Only the magic, the version and the length have been checked then.
pub(crate) fn measure(start: &[u8]) -> Result<usize, DecodeError> {
    let mut reader = Reader::new(start);
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
        return Err(DecodeError { field: "version", at: VERSION_AT as u64, kind });
    }
    reader.bytes("kind", METADATA_BYTES_AT - KIND_AT)?;
    let metadata_bytes = reader.u32("metadata length")? as usize;
    if metadata_bytes > Metadata::MAX_BYTES {
        let kind = DecodeErrorKind::Invalid { reason: "at most a mebibyte" };
        return Err(DecodeError { field: "metadata length", at: METADATA_BYTES_AT as u64, kind });
    }
    Ok(head_bytes(metadata_bytes))
}

impl Head {
    /// Reads a head from the start of `bytes`; the checksum is tested before any value is believed.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let len = measure(bytes)?;
        let mut reader = Reader::new(bytes);
        let head = reader.bytes("head", len)?;
        let (head, checksum) = head.split_at(len - CHECKSUM_BYTES);
        let checksum = u64::from_le_bytes(checksum.try_into().expect("split at eight bytes"));
        if xxh3_64(head) != checksum {
            let at = head.len() as u64;
            return Err(DecodeError {
                field: "head checksum",
                at,
                kind: DecodeErrorKind::Checksum,
            });
        }
        Self::fields(head, len, checksum)
    }

    /// Takes the fields of a head that is as it was written; a hostile writer's checksum is right too.
    fn fields(head: &[u8], len: usize, checksum: u64) -> Result<Self, DecodeError> {
        let error = |field, at: usize, kind| DecodeError { field, at: at as u64, kind };
        let mut reader = Reader::new(head);
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
            let kind = DecodeErrorKind::Invalid { reason: "above zero" };
            return Err(error("capacity", CAPACITY_AT, kind));
        }
        let added = reader.u64("added")?;
        let metadata_bytes = reader.u32("metadata length")? as usize;
        let metadata = Metadata::decode(reader.bytes("metadata", metadata_bytes)?, METADATA_AT)?;
        let padding = &head[reader.at()..];
        if padding.iter().any(|&byte| byte != 0) {
            return Err(reader.error("zeros", DecodeErrorKind::NotZero));
        }
        Ok(Self { plan, hasher, added, metadata, len, checksum })
    }

    /// Returns the bytes of a head and its checksum. `bits` are those of the words: a filter that grows has
    /// others than its plan.
    pub(crate) fn encode(
        plan: &Plan,
        bits: u64,
        hasher: Hasher,
        added: u64,
        metadata: &Metadata,
    ) -> (Vec<u8>, u64) {
        let len = head_bytes(metadata.len_bytes());
        let (hash, seed) = hasher.to_parts();
        let mut head = Vec::with_capacity(len);
        head.extend_from_slice(&MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.push(plan.kind() as u8);
        head.push(hash);
        head.extend_from_slice(&plan.geometry().to_number().to_le_bytes());
        head.extend_from_slice(&bits.to_le_bytes());
        head.extend_from_slice(&seed);
        head.extend_from_slice(&plan.items().to_le_bytes());
        head.extend_from_slice(&plan.rate().to_bits().to_le_bytes());
        head.extend_from_slice(&added.to_le_bytes());
        let metadata_bytes =
            u32::try_from(metadata.len_bytes()).expect("metadata are at most a mebibyte");
        head.extend_from_slice(&metadata_bytes.to_le_bytes());
        debug_assert_eq!(head.len(), METADATA_AT);
        metadata.encode(&mut head);
        head.resize(len - CHECKSUM_BYTES, 0);
        let checksum = xxh3_64(&head);
        head.extend_from_slice(&checksum.to_le_bytes());
        (head, checksum)
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
        assert_eq!([head_bytes(0), head_bytes(52), head_bytes(53)], [128, 128, 192]);
    }

    #[test]
    fn the_version_is_told_before_anything_else() {
        let mut start = MAGIC.to_vec();
        start.extend([9, 0]);
        let error = measure(&start).unwrap_err();
        assert_eq!((error.field, error.at), ("version", 8));
        assert_eq!(error.kind, DecodeErrorKind::Newer { found: 9, newest: 1 });
    }

    #[test]
    fn a_part_of_the_magic_is_cut_short_and_not_another_format() {
        let error = measure(&MAGIC[..5]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Truncated { expected: 8, found: 5 });
        assert_eq!(measure(b"").unwrap_err().kind, DecodeErrorKind::OtherFormat);
        assert_eq!(measure(b"plain").unwrap_err().kind, DecodeErrorKind::OtherFormat);
    }
}
