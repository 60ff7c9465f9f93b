//! The 64-bit hashes of Python's abloom. Text and bytes are hashed by XXH64. A number has Python's own hash. Equal
//! numbers of different types have the same hash.
//!
//! Source of the hash of numbers: Python's documentation, "Built-in Types", "Hashing of numeric
//! types".

use xxhash_rust::xxh64::xxh64;

use crate::rules::hash::murmur3::mix_64;

/// The prime 2⁶¹ − 1. Python's hash reduces numbers modulo 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;

/// Returns the hash of UTF-8 text or of bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

/// Returns the hash of a decimal whole number of any length. Returns `None` if the text is not a decimal whole number.
pub(crate) fn of_int(text: &[u8]) -> Option<u64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let residue = digits.iter().try_fold(0, |residue, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some((residue * 10 + u128::from(digit)) % u128::from(PRIME))
    })?;
    Some(of_residue(residue as u64, is_negative))
}

/// Returns the hash of a floating point number. Returns `None` for NaN: in Python, each NaN object has a different
/// hash.
pub(crate) fn of_float(number: f64) -> Option<u64> {
    const INFINITY: u64 = 314_159;
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    /// The exponent of the lowest bit of a number with the exponent field 1.
    const LOWEST: i64 = f64::MIN_EXP as i64 - f64::MANTISSA_DIGITS as i64;
    if number.is_nan() {
        return None;
    }
    if number.is_infinite() {
        return Some(of_residue(INFINITY, number < 0.0));
    }
    let bits = number.to_bits();
    let (fraction, field) =
        (bits & ((1 << FRACTION_BITS) - 1), (bits >> FRACTION_BITS & 0x7ff).cast_signed());
    let integer = if field == 0 { fraction } else { fraction | 1 << FRACTION_BITS };
    // 2 to the power of 61 is 1 modulo the prime 2⁶¹ − 1.
    let shift = (LOWEST + field.max(1) - 1).rem_euclid(61);
    let residue = (u128::from(integer) << shift) % u128::from(PRIME);
    Some(of_residue(residue as u64, number < 0.0))
}

fn of_residue(residue: u64, is_negative: bool) -> u64 {
    let residue = residue.cast_signed();
    let hash = match if is_negative { -residue } else { residue } {
        // Python reserves -1 for errors, so a hash of -1 becomes -2.
        -1 => -2,
        hash => hash,
    };
    mix_64(hash.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_equal_hashes() {
        for (int, float) in [
            ("0", -0.0),
            ("-1", -1.0),
            ("-2", -1.0),
            ("15", 15.0),
            ("2305843009213693952", 1.0),
            ("1000000000000000019884624838656", 1e30),
            ("314159", f64::INFINITY),
            ("+00000000000000000000007", 7.0),
        ] {
            assert_eq!(of_int(int.as_bytes()), of_float(float), "{int}");
        }
        // In Python, hash(0.5) == 2**60, and hash(5e-324) == 2**(-1074 mod 61).
        assert_eq!(of_float(0.5), Some(mix_64(1 << 60)));
        assert_eq!(of_float(5e-324), Some(mix_64(1 << 24)));
        assert_eq!(of_float(f64::NAN), None);
        for text in ["", "-", "1.0", "1_0", " 1", "--1", "0x1"] {
            assert_eq!(of_int(text.as_bytes()), None, "{text}");
        }
    }
}
