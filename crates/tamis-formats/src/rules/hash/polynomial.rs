//! The polynomial hash `h = factor · h + unit` over the code units of a text, in 32 bits. Java's `String.hashCode` and
//! many hand-written hashes are polynomial hashes.

/// Returns the hash for each factor. Reads the units once.
pub(crate) fn polynomials<const N: usize>(
    start: u32,
    factors: [u32; N],
    units: impl Iterator<Item = u16>,
) -> [u32; N] {
    let mut hashes = [start; N];
    for unit in units {
        for (hash, factor) in hashes.iter_mut().zip(factors) {
            *hash = hash.wrapping_mul(factor).wrapping_add(unit.into());
        }
    }
    hashes
}

/// Returns the code units of a key of [`Funnel::Chars`](crate::Funnel::Chars).
pub(crate) fn units(key: &[u8]) -> impl Iterator<Item = u16> {
    // The key of a text has an even number of bytes. In a key with an odd number of bytes, which is not the key of a
    // text, the last byte is a separate unit.
    key.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit.get(1).copied().unwrap_or(0)]))
}
