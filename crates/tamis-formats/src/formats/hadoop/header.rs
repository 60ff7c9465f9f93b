//! The header of all Hadoop filters: the version, the number of probes, the hash and the vector size.

use crate::encoding::ByteReader;
use crate::errors::DecodeError;
use crate::format::Sniff;
use crate::formats::hadoop::rule::{Hadoop, HashType, MAX_PROBES};

/// The version in the header of every file.
const VERSION: i32 = -1;

/// Decodes the header.
pub(super) fn read_header(reader: &mut ByteReader<'_>) -> Result<Hadoop, DecodeError> {
    let version = reader.i32_be("version")?;
    if version != VERSION {
        return Err(DecodeError::unexpected("version", 0, "-1", version));
    }
    let probes = reader.count_be("number of probes", 1..=MAX_PROBES, "1 to 255")?;
    let at = reader.at();
    let hash_type = match reader.u8("hash type")? {
        0 => HashType::Jenkins,
        1 => HashType::Murmur,
        found => {
            let expected = "0 (Jenkins) or 1 (Murmur)";
            return Err(DecodeError::unexpected("hash type", at, expected, found.cast_signed()));
        }
    };
    let vector_size = reader.count_be("vector size", 1.., "1 or more")?;
    Ok(Hadoop { vector_size, probes, hash_type })
}

impl Hadoop {
    /// Returns the header of a filter whose rule is `self`.
    pub(super) fn header(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_be_bytes().to_vec();
        bytes.extend(self.probes.to_be_bytes());
        bytes.push(self.hash_type as u8);
        bytes.extend(self.vector_size.to_be_bytes());
        bytes
    }
}

/// Tests whether the bytes are a header, followed by exactly `len_bytes` bytes.
pub(super) fn sniff(bytes: &[u8], len_bytes: fn(&Hadoop) -> u64) -> Sniff {
    let mut reader = ByteReader::new(bytes);
    let Ok(rule) = read_header(&mut reader) else { return Sniff::No };
    Sniff::maybe(len_bytes(&rule) == reader.left() as u64)
}
