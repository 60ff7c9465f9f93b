//! Writes floating-point numbers like Redis 7: with the fewest digits that parse to the same
//! number.

use std::io::Write as _;

use crate::integer;

/// Appends the text of a number.
///
/// ```text
/// nan, inf, -inf, -0      special values and negative zero
/// 42, 10000000000         integers up to half of 2⁶³, in full
/// 0.0001, 12.5            numbers with up to six decimals, or with a leading digit from 10⁻³ to 10³
/// 1.5e-7, 1e+30           all other numbers
/// ```
pub(crate) fn push(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"nan");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else if value == 0.0 {
        out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    } else if value.abs() <= MAX_WHOLE && value.trunc() == value {
        integer::push(out, value as i64);
    } else {
        push_shortest(out, value);
    }
}

/// Appends a finite number other than zero.
fn push_shortest(out: &mut Vec<u8>, value: f64) {
    // The format is `d.ddde±x`. The standard library finds the fewest digits.
    let mut text = [0; MAX_TEXT];
    let mut rest = &mut text[..];
    write!(rest, "{:e}", value.abs()).expect("17 digits, a point and an exponent fit");
    let len = MAX_TEXT - rest.len();
    let split = text[..len].iter().position(|&byte| byte == b'e').expect("{:e} writes an exponent");
    let exponent =
        std::str::from_utf8(&text[split + 1..len]).ok().and_then(|text| text.parse().ok());
    let exponent: i64 = exponent.expect("the exponent after `e` is a number");
    let mut digits = [0; MAX_TEXT];
    let mut count = 0;
    for &digit in text[..split].iter().filter(|byte| byte.is_ascii_digit()) {
        digits[count] = digit;
        count += 1;
    }
    let digits = &digits[..count];

    if value < 0.0 {
        out.push(b'-');
    }
    // The value of the number is digits × 10^scale.
    let scale = exponent - (count as i64 - 1);
    if scale >= 0 && exponent < count as i64 + 7 {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', scale as usize));
    } else if scale < 0 && (scale > -7 || exponent.abs() < 4) {
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
            out.extend_from_slice(digits);
        } else {
            let (whole, fraction) = digits.split_at(exponent as usize + 1);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    } else {
        out.push(digits[0]);
        if count > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        integer::push(out, exponent.abs());
    }
}

/// Parses a number in any notation that a Redis server writes.
pub(crate) fn parse(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Half of 2⁶³. [`push`] writes integers up to `MAX_WHOLE` with all digits.
const MAX_WHOLE: f64 = (1_u64 << 62) as f64;

/// The buffer size for 17 digits, a point, `e-` and 3 digits, with some spare bytes.
const MAX_TEXT: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushed(value: f64) -> String {
        let mut out = Vec::new();
        push(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_look_as_redis_prints_them() {
        for (value, text) in [
            (f64::NAN, "nan"),
            (-f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-3.0, "-3"),
            (1e10, "10000000000"),
            (4.611_686_018_427_388e18, "4611686018427387904"),
            (9.2e18, "9.2e+18"),
            (-1e19, "-1e+19"),
            (1e300, "1e+300"),
            (0.1, "0.1"),
            (1.5, "1.5"),
            (-0.01, "-0.01"),
            (0.000_001, "0.000001"),
            (0.000_000_1, "1e-7"),
            (0.000_000_15, "1.5e-7"),
            (0.000_123_4, "1.234e-4"),
            (0.001_234_567, "0.001234567"),
            (123.456_789_012, "123.456789012"),
            (12_345.678_901_2, "1.23456789012e+4"),
            (1.0 / 3.0, "0.3333333333333333"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        ] {
            assert_eq!(pushed(value), text);
        }
    }

    proptest! {
        #[test]
        fn any_number_reads_back(bits: u64, small in -1e6..1e6, whole: i64) {
            for value in [f64::from_bits(bits), small, whole as f64] {
                let text = pushed(value);
                let read = parse(text.as_bytes()).unwrap();
                prop_assert!(read.to_bits() == value.to_bits() || value.is_nan() && read.is_nan(), "{}", text);
            }
        }
    }
}
