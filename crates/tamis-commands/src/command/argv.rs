//! The words of a command, and parsers that accept the same numbers as Redis.

/// The words of a command as the client sent them: the name, then the arguments.
pub type Argv<'a> = &'a [&'a [u8]];

/// Parses an integer. Rejects a plus sign, leading zeros and spaces.
///
/// # Examples
///
/// ```
/// use tamis_commands::parse_integer;
///
/// assert_eq!(parse_integer(b"-12"), Some(-12));
/// assert!([&b"+12"[..], b"012", b""].iter().all(|word| parse_integer(word).is_none()));
/// ```
#[must_use]
pub fn parse_integer(word: &[u8]) -> Option<i64> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let is_plain = match digits {
        [] => false,
        [b'0'] => word.len() == 1,
        [first, rest @ ..] => (b'1'..=b'9').contains(first) && rest.iter().all(u8::is_ascii_digit),
    };
    if is_plain { std::str::from_utf8(word).ok()?.parse().ok() } else { None }
}

/// Parses a floating-point number, infinities included. Returns `None` for any other text and for
/// `nan`.
///
/// # Examples
///
/// ```
/// use tamis_commands::parse_double;
///
/// assert_eq!(parse_double(b"1e-3"), Some(0.001));
/// assert_eq!(parse_double(b"-inf"), Some(f64::NEG_INFINITY));
/// assert_eq!((parse_double(b"nan"), parse_double(b" 1"), parse_double(b"")), (None, None, None));
/// ```
#[must_use]
pub fn parse_double(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let number: f64 = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => sign * parse_hexadecimal(hexadecimal)?,
        None => text.parse().ok()?,
    };
    // Redis rejects a number that is too large or too small for a double.
    let mut mantissa = digits.bytes().take_while(|c| !matches!(c, b'e' | b'E' | b'p' | b'P'));
    let is_rounded_to_zero = number == 0.0 && mantissa.any(|c| matches!(c, b'1'..=b'9'));
    let is_too_large = number.is_infinite() && digits.starts_with(|c: char| c.is_ascii_digit());
    (!number.is_nan() && !is_rounded_to_zero && !is_too_large).then_some(number)
}

/// Parses the part of a hexadecimal number after `0x`. For example, `1.8p-7` is 1.5 · 2⁻⁷.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut number, mut places) = (0_u64, 0_i32);
    for (digit, is_fraction) in
        whole.chars().map(|c| (c, false)).chain(fraction.chars().map(|c| (c, true)))
    {
        let digit = u64::from(digit.to_digit(16)?);
        if number >> 60 == 0 {
            number = number << 4 | digit;
            places -= i32::from(is_fraction);
        } else {
            // If the number has more digits than a double can store, the extra digits affect only the rounding.
            number |= u64::from(digit > 0);
            places += i32::from(!is_fraction);
        }
    }
    let mut exponent = exponent.saturating_add(places.checked_mul(4)?);
    let mut value = number as f64;
    // A double cannot represent every power of two, so apply a large exponent in steps.
    while exponent.abs() > 1000 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-1000, 1000);
        value *= 2_f64.powi(step);
        exponent -= step;
    }
    Some(value * 2_f64.powi(exponent.clamp(-1000, 1000)))
}

/// Tests whether `word` equals `name`, ignoring case.
pub(crate) fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// Returns the position of the first word that equals `name`, ignoring case.
pub(crate) fn position(argv: Argv<'_>, name: &str) -> Option<usize> {
    argv.iter().position(|word| is(word, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_parsed_as_by_redis() {
        for (word, number) in [
            ("0.01", 0.01),
            ("1e-2", 0.01),
            (".5", 0.5),
            ("0x1p-7", 1.0 / 128.0),
            ("0X.8p0", 0.5),
            ("-0x1P-7", -1.0 / 128.0),
            ("+0x1.8", 1.5),
            ("0x1p+3", 8.0),
            ("0x123456789abcdef01", 0x1234_5678_9abc_def0_u64 as f64 * 16.0),
            ("0x0.00000000000000000001p80", 1.0),
            ("0x0p9999", 0.0),
            ("inf", f64::INFINITY),
            ("0", 0.0),
            ("0e9", 0.0),
        ] {
            assert_eq!(parse_double(word.as_bytes()), Some(number), "{word}");
        }
        let wrong = "0x 0x. 0xg 0x1p 0x1p-2000 0x1p2000 0x-1 1d nan 1e-400 1e400 - 0x1p99999999999";
        for word in wrong.split(' ').chain(["", " 0x1", "0x1 "]) {
            assert_eq!(parse_double(word.as_bytes()), None, "{word}");
        }
    }
}
