//! `h = factor · h + unit` over the code units of text, in 32 bits: `String.hashCode` and many hashes by hand.

/// Returns the hashes by several factors in one pass.
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

/// Returns the code units that a key of [`Funnel::Chars`](crate::Funnel::Chars) is made of.
pub(crate) fn units(key: &[u8]) -> impl Iterator<Item = u16> {
    // No text has half a unit; bytes that are none keep their last one.
    key.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit.get(1).copied().unwrap_or(0)]))
}
