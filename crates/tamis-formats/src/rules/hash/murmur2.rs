//! MurmurHash2 of 32 bits in Hadoop's implementation.
//!
//! Source: Appleby, MurmurHash2 (public domain).

/// Returns the 32-bit hash. Hadoop reads the bytes after the last whole block as signed bytes in reverse order. The
/// reference implementation reads unsigned bytes in order.
pub(crate) fn hadoop_32(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h = seed ^ bytes.len() as u32;
    let (blocks, rest) = bytes.as_chunks::<4>();
    for &block in blocks {
        let k = u32::from_le_bytes(block).wrapping_mul(M);
        h = h.wrapping_mul(M) ^ (k ^ k >> 24).wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (i, byte) in rest.iter().rev().enumerate() {
            h ^= i32::from(byte.cast_signed()).cast_unsigned() << (8 * i);
        }
        h = h.wrapping_mul(M);
    }
    h = (h ^ h >> 13).wrapping_mul(M);
    h ^ h >> 15
}
