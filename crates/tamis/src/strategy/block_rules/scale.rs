//! Scales a hash to a range.

/// Treats `hash` as a fraction of 2⁶⁴ and scales the fraction to `0..range`. Returns the high 64
/// bits of the product of `hash` and `range`.
#[inline(always)]
pub(crate) const fn scale(hash: u64, range: u64) -> u64 {
    ((hash as u128 * range as u128) >> 64) as u64
}
