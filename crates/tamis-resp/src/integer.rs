//! Parses and writes integers in the protocol's notation. Each integer has exactly one valid
//! notation.

/// Parses an integer in the protocol's notation. Returns `None` for a plus sign, leading zeros, a
/// negative zero or surrounding bytes.
pub(crate) fn parse(digits: &[u8]) -> Option<i64> {
    match digits {
        [b'0'] => return Some(0),
        [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // The match above has rejected all other notations that `str::parse` accepts.
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Appends `prefix`, the number and the end of the line.
pub(crate) fn push_line(out: &mut Vec<u8>, prefix: u8, value: i64) {
    // Most numbers that a server sends have one digit: short lengths, 0 and 1.
    if let Ok(digit @ 0..=9) = u8::try_from(value) {
        out.extend_from_slice(&[prefix, b'0' + digit, b'\r', b'\n']);
        return;
    }
    out.push(prefix);
    push(out, value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the digits of a number.
pub(crate) fn push(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0; MAX_DIGITS];
    let mut start = MAX_DIGITS;
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        // A remainder by 10 is below 10, so the cast is lossless.
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

/// The number of digits of 2⁶³.
const MAX_DIGITS: usize = 19;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushed(value: i64) -> String {
        let mut out = Vec::new();
        push(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_the_canonical_notation_is_parsed() {
        for (digits, value) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(parse(digits.as_bytes()), value, "{digits}");
        }
        for other in ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1a", "--1", "1\r", "0x1", "00"]
        {
            assert_eq!(parse(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn the_smallest_and_largest_integers_are_written() {
        assert_eq!(pushed(i64::MIN), "-9223372036854775808");
        assert_eq!(pushed(i64::MAX), "9223372036854775807");
    }

    proptest! {
        #[test]
        fn every_number_is_written_as_std_does(value: i64, shift in 0..64) {
            let value = value >> shift;
            prop_assert_eq!(pushed(value), value.to_string());
            prop_assert_eq!(parse(value.to_string().as_bytes()), Some(value));
            let mut line = Vec::new();
            push_line(&mut line, b':', value);
            prop_assert_eq!(line, format!(":{value}\r\n").into_bytes());
        }
    }
}
