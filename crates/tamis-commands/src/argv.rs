//! The words of a command, and parsers that accept the same numbers as Redis.

/// A command as the client sent it: its name and its arguments.
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
    let number: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// Tests whether two words are equal, ignoring case.
pub(crate) fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// Returns the position of the first word that equals `name`, ignoring case.
pub(crate) fn position(argv: Argv<'_>, name: &str) -> Option<usize> {
    argv.iter().position(|word| is(word, name))
}
