//! MurmurHash3, and the incorrect variants in some Java programs.
//!
//! Source: Appleby, MurmurHash3 (public domain), functions `x64_128` and `x86_32`.

/// How a variant of Murmur3 interprets the bytes after the last whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The bytes are unsigned numbers, as in the reference implementation.
    Unsigned,
    /// The bytes are signed numbers, as in Cassandra, because Java's `byte` is signed. If the bytes are below 0x80, the
    /// hash equals the hash of the reference implementation.
    Signed,
}

/// Returns the two halves of the 128-bit hash in the variant for 64-bit machines.
///
/// Both halves of the hash start with `seed`. In the reference implementation, the seed has 32 bits.
#[inline]
pub(crate) fn x64_128(bytes: &[u8], seed: u64, tail: Tail) -> (u64, u64) {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        let (low, high) = block.split_at(8);
        let k1 = u64::from_le_bytes(low.try_into().expect("half a block"));
        let k2 = u64::from_le_bytes(high.try_into().expect("half a block"));
        h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (mut k1, mut k2) = (0, 0);
    for (i, &byte) in rest.iter().enumerate() {
        let byte = match tail {
            Tail::Unsigned => u64::from(byte),
            Tail::Signed => i64::from(byte.cast_signed()).cast_unsigned(),
        };
        // The operation is XOR, because a negative byte also changes the bits above its own byte.
        *(if i < 8 { &mut k1 } else { &mut k2 }) ^= byte << (i % 8 * 8);
    }
    h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = mix_64(h1);
    h2 = mix_64(h2);
    h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

#[inline]
pub(crate) fn mix_64(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// Returns the 32-bit hash.
#[inline]
pub(crate) fn x86_32(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<4>();
    let h = blocks.iter().fold(seed, |h, &block| step_32(h, u32::from_le_bytes(block)));
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    mix_32(h ^ scramble_32(u32::from_le_bytes(last)) ^ bytes.len() as u32)
}

/// Returns the 32-bit hash of Spark's implementation (`hashUnsafeBytes`). Each byte after the last whole block is a
/// separate block, read as a signed number. If the length is a multiple of 4, the hash equals the hash of the reference
/// implementation.
#[inline]
pub(crate) fn spark_32(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<4>();
    let h = blocks.iter().fold(seed, |h, &block| step_32(h, u32::from_le_bytes(block)));
    let signed = |byte: u8| i32::from(byte.cast_signed()).cast_unsigned();
    let h = rest.iter().fold(h, |h, &byte| step_32(h, signed(byte)));
    mix_32(h ^ bytes.len() as u32)
}

#[inline]
fn step_32(h: u32, k: u32) -> u32 {
    (h ^ scramble_32(k)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[inline]
pub(crate) fn scramble_32(k: u32) -> u32 {
    k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[inline]
pub(crate) fn mix_32(mut h: u32) -> u32 {
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        assert_eq!(x64_128(b"", 0, Tail::Unsigned), (0, 0));
        let hello = (0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19);
        assert_eq!(x64_128(b"hello", 0, Tail::Unsigned), hello);
        assert_eq!(
            [x86_32(b"", 0), x86_32(b"", 1), x86_32(b"hello", 0)],
            [0, 0x514e_28b7, 0x248b_fa47]
        );
    }

    #[test]
    fn spark_hashes_the_bytes_after_the_last_block_differently() {
        for (bytes, is_equal) in [(&b""[..], true), (b"hell", true), (b"hello", false)] {
            assert_eq!(spark_32(bytes, 7) == x86_32(bytes, 7), is_equal, "{bytes:?}");
        }
    }

    #[test]
    fn signed_tails_differ_only_above_0x7f() {
        for (bytes, is_equal) in [(&b"seventeen bytes!!"[..], true), (b"\xe4\xbd\xa0", false)] {
            let hashes = [Tail::Unsigned, Tail::Signed].map(|tail| x64_128(bytes, 0, tail));
            assert_eq!(hashes[0] == hashes[1], is_equal, "{bytes:?}");
        }
    }
}
