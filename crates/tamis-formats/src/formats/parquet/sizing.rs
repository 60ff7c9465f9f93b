//! Plans the size of a filter as the writers of Parquet do.

/// The size of the smallest filter that writers create: one block.
pub const MIN_BYTES: u64 = 32;

/// The size of the largest filter that writers create.
pub const MAX_BYTES: u64 = 128 << 20;

/// The default number of distinct items in pyarrow.
pub const PYARROW_ITEMS: u64 = 1 << 20;

/// The default rate in pyarrow.
pub const PYARROW_RATE: f64 = 0.05;

/// Returns the number of bits that parquet-java plans (`optimalNumOfBits`). Returns `None` for a rate that parquet-java
/// rejects. The Java code clears one bit instead of eight bits when it rounds to whole blocks. The result may not be a
/// whole number of blocks, so [`java_bytes`] rounds the result again.
///
/// # Examples
///
/// ```
/// use tamis_formats::parquet::{java_bits, java_bytes};
///
/// assert_eq!(java_bits(1_000_000, 0.01), Some(9_681_525));
/// assert_eq!(java_bytes(9_681_525 / 8), 2 << 20);
/// assert_eq!(java_bits(1_000_000, 1.0), None);
/// ```
#[must_use]
pub fn java_bits(items: u64, rate: f64) -> Option<u32> {
    if !(rate > 0.0 && rate < 1.0) {
        return None;
    }
    // As in Java, the cast to 32 signed bits saturates.
    let bits = (formula(items, rate) as i32).cast_unsigned();
    let bits = bits.min(MAX_BYTES as u32 * 8);
    Some(((bits + 255) & !256).max(MIN_BYTES as u32 * 8))
}

/// Returns the size in bytes of the filter that parquet-java creates for `bytes` planned bytes. The size is a power of
/// two from [`MIN_BYTES`] to [`MAX_BYTES`].
#[must_use]
pub fn java_bytes(bytes: i64) -> u64 {
    bytes
        .clamp(MIN_BYTES.cast_signed(), MAX_BYTES.cast_signed())
        .cast_unsigned()
        .next_power_of_two()
}

/// Returns the size in bytes of a new filter of the Rust crate, before the crate [folds](crate::formats::parquet::fold)
/// the filter. Returns `None` for a rate that the crate rejects. The Rust crate accepts a rate of 0.
#[must_use]
pub fn rust_bytes(items: u64, rate: f64) -> Option<u64> {
    if !(0.0..1.0).contains(&rate) {
        return None;
    }
    // For a rate of 0, the formula gives minus infinity. The cast converts minus infinity to 0 bits, so the filter has
    // the smallest size.
    let bytes = formula(items, rate) as u64 / 8;
    Some(bytes.clamp(MIN_BYTES, MAX_BYTES).next_power_of_two())
}

/// Returns the size in bytes of a filter of pyarrow. Returns `None` if `rate` is not above 0 and below 1. The defaults
/// of pyarrow are [`PYARROW_ITEMS`] and [`PYARROW_RATE`].
#[must_use]
pub fn pyarrow_bytes(items: u64, rate: f64) -> Option<u64> {
    if !(rate > 0.0 && rate < 1.0) {
        return None;
    }
    let bits = (formula(items, rate) as u64).clamp(MIN_BYTES * 8, MAX_BYTES * 8);
    Some(bits.next_power_of_two() / 8)
}

/// Returns the number of bits according to the formula in the specification of Parquet.
fn formula(items: u64, rate: f64) -> f64 {
    -8.0 * items as f64 / (1.0 - rate.powf(1.0 / 8.0)).ln()
}
