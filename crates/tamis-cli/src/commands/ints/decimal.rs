//! Reads decimal integers, several digits at a time.
//!
//! The parser reads eight bytes as one word. The parser finds the first byte that is not a digit,
//! and computes the value of the digits before this byte. For each word, the parser executes a
//! dozen instructions without a loop. `parse_token` reads byte by byte, and handles signs, more
//! than fifteen digits, and the end of the block.

use std::fmt;

/// A token that is not an integer from 0 to 2⁶⁴ − 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadToken {
    /// The offset of the token in the block.
    pub at: usize,
    /// The error with the text of the token. The text is shortened, and has escapes for bytes that
    /// are not printable.
    pub message: String,
}

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The maximum number of bytes of a bad token in a message.
const SHOWN_BYTES: usize = 40;

/// Appends every integer of `block` to `values`. Any ASCII white space separates integers. A plus
/// sign and leading zeros are allowed.
///
/// # Errors
///
/// Returns the first token that is not an integer from 0 to 2⁶⁴ − 1. After an error, `values`
/// contains the integers before this token.
pub fn parse(block: &[u8], values: &mut Vec<u64>) -> Result<(), BadToken> {
    let mut at = 0;
    while at < block.len() {
        match parse_words(&block[at..]) {
            Some((value, len)) => {
                values.push(value);
                at += len;
            }
            None if is_space(block[at]) => at += 1,
            None => {
                let rest = &block[at..];
                let len = rest.iter().position(|&byte| is_space(byte)).unwrap_or(rest.len());
                let token = &rest[..len];
                values.push(parse_token(token).map_err(|message| BadToken { at, message })?);
                at += len;
            }
        }
    }
    Ok(())
}

/// Tests whether `byte` separates integers.
#[inline]
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads up to fifteen digits and the white-space byte that follows. Returns the value and the
/// number of bytes read. Returns `None` for any other text.
#[inline]
fn parse_words(bytes: &[u8]) -> Option<(u64, usize)> {
    let head: &[u8; 16] = bytes.first_chunk()?;
    let (first, second) = head.split_at(8);
    let first = u64::from_le_bytes(first.try_into().ok()?);
    let digits = leading_digits(first);
    if digits < 8 {
        let is_number = digits > 0 && is_space(head[digits]);
        return is_number.then(|| (eight_digits(first << (64 - 8 * digits)), digits + 1));
    }
    let second = u64::from_le_bytes(second.try_into().ok()?);
    let more = leading_digits(second);
    if more == 8 || !is_space(head[8 + more]) {
        return None;
    }
    // If the second word starts with no digit, the shift removes all bits of the word.
    let low = eight_digits(second.unbounded_shl(64 - 8 * more as u32));
    Some((eight_digits(first) * POWERS_OF_TEN[more] + low, 9 + more))
}

const POWERS_OF_TEN: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Counts the digits before the first byte that is not a digit. The first character is in the
/// lowest byte.
#[inline]
fn leading_digits(word: u64) -> usize {
    // The XOR maps the digits `0` to `9` to the values 0 to 9. The addition of 0x76 carries into
    // the top bit of each byte above 9.
    let values = word ^ 0x3030_3030_3030_3030;
    let carried = (values & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676;
    let others = (carried | values) & 0x8080_8080_8080_8080;
    (others.trailing_zeros() / 8) as usize
}

/// Returns the value of eight digits. The first digit is in the lowest byte, and a zero byte counts
/// as `0`.
#[inline]
fn eight_digits(word: u64) -> u64 {
    let digits = word & 0x0f0f_0f0f_0f0f_0f0f;
    // The first step combines neighbouring digits into pairs, in every other byte. Each of the two
    // multiplications after this step weights two pairs, and adds the two results in the upper half
    // of the word.
    let pairs = digits * 10 + (digits >> 8);
    let odd = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(1_000_000 << 32 | 100);
    let even = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(10_000 << 32 | 1);
    odd.wrapping_add(even) >> 32
}

/// Reads one token, byte by byte.
fn parse_token(token: &[u8]) -> Result<u64, String> {
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if token.strip_prefix(b"-").is_some_and(is_digits) {
        let token = show(token);
        return Err(format!(
            "{token} is negative: integers from 0 to 18446744073709551615 are read"
        ));
    }
    let digits = token.strip_prefix(b"+").unwrap_or(token);
    if !is_digits(digits) {
        return Err(not_an_integer(token));
    }
    let digits = std::str::from_utf8(digits).expect("digits are ASCII");
    digits.parse().map_err(|_| format!("{} is above 18446744073709551615", show(token)))
}

/// Returns the message about a token that is not an integer.
pub fn not_an_integer(token: &[u8]) -> String {
    format!("'{}' is not an integer", show(token))
}

/// Returns the text of a token for a message.
fn show(token: &[u8]) -> String {
    let shown = token[..token.len().min(SHOWN_BYTES)].escape_ascii();
    if token.len() > SHOWN_BYTES { format!("{shown}...") } else { shown.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Result<Vec<u64>, BadToken> {
        let mut values = Vec::new();
        parse(text.as_bytes(), &mut values).map(|()| values)
    }

    #[test]
    fn signs_and_leading_zeros_are_understood() {
        let text = format!("+7 007 {}5 18446744073709551615 +0", "0".repeat(100));
        assert_eq!(all(&text).unwrap(), [7, 7, 5, u64::MAX, 0]);
    }

    #[test]
    fn what_is_no_integer_is_named_with_its_place() {
        for (text, at, words) in [
            ("1 2 x", 4, "is not an integer"),
            ("12345678\n1234x678 1 1 1 1 1", 9, "is not an integer"),
            ("123456789012x45 1 1 1 1 1 1", 0, "is not an integer"),
            ("1.5", 0, "is not an integer"),
            ("1,2", 0, "is not an integer"),
            ("+", 0, "is not an integer"),
            ("-", 0, "is not an integer"),
            ("--1", 0, "is not an integer"),
            ("0x10", 0, "is not an integer"),
            ("１", 0, "is not an integer"),
            ("5 -1", 2, "is negative"),
            ("18446744073709551616", 0, "is above"),
            ("99999999999999999999999999999999999", 0, "is above"),
        ] {
            let error = all(text).expect_err(text);
            assert!(error.at == at && error.message.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn every_integer_is_read_as_the_library_reads_it(
            values in prop::collection::vec((any::<u64>(), 0_u32..64), 0..50),
            separator in prop::sample::select(vec!["\n", "\r\n", " ", "\n\n"]),
        ) {
            let values: Vec<u64> = values.iter().map(|(value, shift)| value >> shift).collect();
            let text: String = values.iter().map(|value| format!("{value}{separator}")).collect();
            prop_assert_eq!(all(&text).unwrap(), values.clone());
            prop_assert_eq!(all(text.trim_end()).unwrap(), values);
        }

        #[test]
        fn any_bytes_are_read_as_the_library_reads_each_token(
            text in "[0-9 +x\\n-]{0,60}",
        ) {
            let expected: Option<Vec<u64>> =
                text.split_ascii_whitespace().map(|token| token.parse().ok()).collect();
            prop_assert_eq!(all(&text).ok(), expected);
        }
    }
}
