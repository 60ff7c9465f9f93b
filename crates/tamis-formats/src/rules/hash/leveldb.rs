//! The hash of LevelDB, which RocksDB uses with one difference.
//!
//! Sources: LevelDB's documentation of table files, and hashes recorded from LevelDB.

use crate::rules::hash::murmur3::Tail;

/// The seed of the filters of LevelDB and RocksDB.
const SEED: u32 = 0xbc9f_1d34;

/// Returns the 32-bit hash. LevelDB reads the last bytes as unsigned bytes, and RocksDB as signed bytes.
#[inline]
pub(crate) fn hash(bytes: &[u8], tail: Tail) -> u32 {
    const M: u32 = 0xc6a4_a793;
    let mut h = SEED ^ (bytes.len() as u32).wrapping_mul(M);
    let (blocks, rest) = bytes.as_chunks::<4>();
    for &block in blocks {
        h = h.wrapping_add(u32::from_le_bytes(block)).wrapping_mul(M);
        h ^= h >> 16;
    }
    if !rest.is_empty() {
        for (i, &byte) in rest.iter().enumerate() {
            let byte = match tail {
                Tail::Unsigned => byte.into(),
                Tail::Signed => i32::from(byte.cast_signed()).cast_unsigned(),
            };
            h = h.wrapping_add(byte << (8 * i));
        }
        h = h.wrapping_mul(M);
        h ^= h >> 24;
    }
    h
}

/// Returns the number that is added to the hash for each next probe.
#[inline]
pub(crate) fn step(h: u32) -> u32 {
    h.rotate_right(17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        for (bytes, expected) in [
            (&b""[..], 0xbc9f_1d34),
            (b"\x62", 0xef13_45c4),
            (b"\xc3\x97", 0x5b66_3814),
            (b"\xe2\x99\xa5", 0x323c_078f),
            (b"\xe1\x80\xb9\x32", 0xed21_633a),
        ] {
            assert_eq!(hash(bytes, Tail::Unsigned), expected, "{bytes:?}");
        }
        assert_eq!(hash(b"\xc3\x97", Tail::Signed), 0x0f2b_a540);
    }
}
