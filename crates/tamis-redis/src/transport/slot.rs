//! Computes the slot of a key in a Redis cluster. The slot is the CRC16 (XMODEM) of the hash tag,
//! modulo 16384.

/// The number of slots of a cluster.
pub(crate) const SLOTS: u32 = 16_384;

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Returns the checksum of a prefix followed by `bytes`. `crc` is the checksum of the prefix, or 0
/// without a prefix.
pub(crate) fn crc16(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, &byte| crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// Returns the hash tag of a key: the text between the first opening brace and the next closing
/// brace. Returns `None` if the key has no hash tag or an empty hash tag. The slot of a key depends
/// only on the hash tag.
pub(crate) fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|&byte| byte == b'{')?;
    let inner = &key[open + 1..];
    let len = inner.iter().position(|&byte| byte == b'}')?;
    (len > 0).then(|| &inner[..len])
}

/// Returns the slot of a key.
#[must_use]
pub fn cluster_slot(key: &[u8]) -> u16 {
    crc16(0, hash_tag(key).unwrap_or(key)) % SLOTS as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // The expected values are the check value of CRC16/XMODEM, and the replies of Redis 7.0.15
        // to `CLUSTER KEYSLOT`.
        assert_eq!(crc16(0, b"123456789"), 0x31c3);
        assert_eq!(
            (cluster_slot(b"foo"), cluster_slot(b"bar"), cluster_slot(b"")),
            (12_182, 5_061, 0)
        );
    }

    #[test]
    fn a_hash_tag_decides_the_slot() {
        assert_eq!(cluster_slot(b"a{foo}b"), cluster_slot(b"foo"));
        assert_eq!(cluster_slot(b"a{foo}{bar}"), cluster_slot(b"foo"));
        assert_eq!((hash_tag(b"a{}b{c}"), hash_tag(b"a{b"), hash_tag(b"}a{")), (None, None, None));
    }
}
