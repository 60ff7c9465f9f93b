//! Reads times in the forms that occur in logs: Unix times, and RFC 3339 and similar forms.
//!
//! A time is a number of milliseconds since the start of the year 0, UTC, in the Gregorian
//! calendar. No valid time is therefore below zero, and each day begins at a whole multiple of a
//! day.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::io::messages;
use crate::records::calendar::days_since_1970;

/// The start of Unix time.
const UNIX: i64 = 719_528 * DAY;

const DAY: i64 = 86_400_000;

/// Returns the current time.
pub fn now() -> u64 {
    // A clock that shows a time before 1970 was never set. For a time before 1970, the function
    // returns the start of 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX as u64 + since.as_millis() as u64
}

/// Reads a time. Spaces or double quotes around the time are allowed. Returns `None` if the text is
/// not a time.
///
/// A whole number of up to 11 digits is in Unix seconds, and may have a fraction. A number of 12 to
/// 14 digits is in milliseconds, of 15 to 17 digits in microseconds, and of more digits in
/// nanoseconds. Digits that form a date, such as `20261121100000`, are read as this date. A number
/// of 14 or 17 digits that is not a date is not a time, unless its first digit is zero. Any other
/// text is a date such as `2026-11-21`. A time of day may follow after `T` or a
/// space: `10:00`, `10:00:59` or `10:00:59.123`. After the time of day, an offset from UTC may
/// follow: `Z`, `+02:00`, `+0200` or `+02`. Without an offset, the time is in UTC.
pub fn read(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
    let millis = unix(text).or_else(|| date(text))?;
    u64::try_from(millis.checked_add(UNIX)?).ok()
}

/// Reads a Unix time, and returns the time in milliseconds.
fn unix(text: &[u8]) -> Option<i64> {
    let (sign, text) = text.strip_prefix(b"-").map_or((1, text), |text| (-1, text));
    let mut rest = Rest(text);
    let whole = rest.digits();
    if whole.is_empty() {
        return None;
    }
    let fraction = if rest.skip(b".").is_some() { rest.digits() } else { &[] };
    rest.end()?;
    if sign == 1 && fraction.is_empty() && matches!(whole.len(), 8 | 12 | 14 | 17) {
        match compact(whole) {
            Some(millis) => return Some(millis),
            // As a Unix time, the digits would mean a time after the year 2286.
            None if whole.len() >= 14 && whole[0] != b'0' => return None,
            None => {}
        }
    }
    let zeros = whole.iter().take_while(|&&digit| digit == b'0').count();
    let number = value(&whole[zeros..])?;
    let (unit, millis) = match whole.len() - zeros {
        0..=11 => ("seconds", number * 1000 + thousandths(fraction)),
        12..=14 => ("milliseconds", number),
        15..=17 => ("microseconds", number / 1000),
        _ => ("nanoseconds", number / 1_000_000),
    };
    if sign == 1 && zeros == 0 && fraction.is_empty() && may_be_date(whole) {
        let start = String::from_utf8_lossy(&whole[..4]);
        messages::note_once(format!(
            "timestamps such as {start}... are read as Unix {unit}, in the year {}: write dates as \
             YYYYMMDDhhmm or YYYYMMDDhhmmss",
            1970 + millis / (365 * DAY + DAY / 4)
        ));
    }
    Some(sign * millis)
}

/// Tests whether digits may be meant as `YYYYMMDDhh` or `YYMMDDhhmmss`. The digits of the two date
/// forms are also valid Unix times: seconds after 2033, or milliseconds before 2002.
fn may_be_date(digits: &[u8]) -> bool {
    let month = match digits.len() {
        10 if digits.starts_with(b"20") => 4,
        12 => 2,
        _ => return false,
    };
    let part = |at: usize| value(&digits[at..at + 2]).unwrap_or(i64::MAX);
    (1..=12).contains(&part(month)) && (1..=31).contains(&part(month + 2)) && part(month + 4) < 24
}

/// Reads `YYYYMMDD`, `YYYYMMDDhhmm`, `YYYYMMDDhhmmss` or `YYYYMMDDhhmmssSSS` in UTC, of the years
/// 1970 to 2099. Returns the date in milliseconds of Unix time. Read as Unix times, digits in these
/// date forms would be in 1970, 1976 or 2612.
fn compact(digits: &[u8]) -> Option<i64> {
    let mut rest = Rest(digits);
    let (year, month, day) = (rest.number(4)?, rest.number(2)?, rest.number(2)?);
    let mut next = |len| if rest.0.is_empty() { Some(0) } else { rest.number(len) };
    let (hour, minute, second, millis) = (next(2)?, next(2)?, next(2)?, next(3)?);
    let day = days_since_1970(year, month, day)?;
    if !(1970..=2099).contains(&year) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let shape = &"YYYYMMDDhhmmssSSS"[..digits.len()];
    messages::note_once(format!("timestamps such as {year}... are read as {shape} in UTC"));
    let minutes = hour * 60 + minute;
    Some(day * DAY + (minutes * 60 + second) * 1000 + millis)
}

/// Reads a date, and returns the date in milliseconds of Unix time.
fn date(text: &[u8]) -> Option<i64> {
    let mut rest = Rest(text);
    let year = rest.number(4)?;
    rest.skip(b"-")?;
    let month = rest.number(2)?;
    rest.skip(b"-")?;
    let day = rest.number(2)?;
    let midnight = days_since_1970(year, month, day)? * DAY;
    if rest.0.is_empty() {
        return Some(midnight);
    }
    rest.skip(b"Tt ")?;
    let hour = rest.number(2)?;
    rest.skip(b":")?;
    let minute = rest.number(2)?;
    let (mut second, mut millis) = (0, 0);
    if rest.skip(b":").is_some() {
        second = rest.number(2)?;
        if rest.skip(b".,").is_some() {
            millis = thousandths(rest.digits());
        }
    }
    // A leap second counts as the first second of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    rest.skip(b" ");
    let minutes = hour * 60 + minute - rest.offset()?;
    Some(midnight + (minutes * 60 + second) * 1000 + millis)
}

/// The part of the text that is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn skip(&mut self, any_of: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        any_of.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }

    fn digits(&mut self) -> &'a [u8] {
        let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        digits
    }

    /// Reads a number of exactly `len` digits.
    fn number(&mut self, len: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        value(digits)
    }

    /// Reads the offset from UTC in minutes, up to the end of the text.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.skip(b"Zz+-") {
            None | Some(b'Z' | b'z') => return self.end().map(|()| 0),
            Some(b'+') => 1,
            Some(_) => -1,
        };
        let hours = self.number(2)?;
        self.skip(b":");
        let minutes = if self.0.is_empty() { 0 } else { self.number(2)? };
        self.end()?;
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Returns the value of decimal digits. Returns `None` if a byte is not a digit, or if the value
/// does not fit an `i64`.
fn value(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// Returns the value of the digits after the decimal point in thousandths, rounded down.
fn thousandths(digits: &[u8]) -> i64 {
    let digit = |i: usize| digits.get(i).map_or(0, |digit| i64::from(digit - b'0'));
    digit(0) * 100 + digit(1) * 10 + digit(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_date_are_that_date_and_never_a_far_year() {
        for (digits, date) in [
            ("20261101", "2026-11-01"),
            ("202611011005", "2026-11-01T10:05"),
            ("20261101100509", "2026-11-01T10:05:09"),
            ("20261101100509123", "2026-11-01T10:05:09.123"),
        ] {
            assert_eq!(read(digits.as_bytes()), read(date.as_bytes()), "{digits}");
        }
        // The digits in this list are not dates. As Unix times, the digits would mean times after
        // the year 2286.
        for digits in ["20261301100000", "99999999999999", "20260230100000000"] {
            assert_eq!(read(digits.as_bytes()), None, "{digits}");
        }
        assert_eq!(unix_millis("2026110110"), Some(2_026_110_110_000), "seconds");
        for (digits, is_date) in [
            ("2026110110", true),
            ("261101100000", true),
            ("1795255200", false),
            ("946684800000", false),
            ("20261101", false),
        ] {
            assert_eq!(may_be_date(digits.as_bytes()), is_date, "{digits}");
        }
        assert_eq!(unix_millis("1795255200250"), Some(1_795_255_200_250));
        assert_eq!(unix_millis("1795255200250123"), Some(1_795_255_200_250));
    }

    fn unix_millis(text: &str) -> Option<i64> {
        read(text.as_bytes()).map(|time| time as i64 - UNIX)
    }

    #[test]
    fn one_moment_is_read_in_every_form() {
        for text in [
            "1795255200",
            "01795255200.0",
            "1795255200000",
            "1795255200000000",
            "1795255200000000000",
            "2026-11-21T10:00:00Z",
            "2026-11-21t10:00:00z",
            "2026-11-21 10:00:00",
            "2026-11-21T10:00",
            "2026-11-21T12:00:00+02:00",
            "2026-11-21 04:30:00.000 -0530",
            "2026-11-22T00:00:00,0+14",
            "2026-11-21T09:59:60Z",
            " \"2026-11-21T10:00:00Z\"\r",
        ] {
            assert_eq!(unix_millis(text), Some(1_795_255_200_000), "{text}");
        }
    }

    #[test]
    fn fractions_are_kept_to_the_millisecond() {
        assert_eq!(unix_millis("0.5"), Some(500));
        assert_eq!(unix_millis("1.0019999"), Some(1001));
        assert_eq!(unix_millis("-1.25"), Some(-1250));
        assert_eq!(unix_millis("1970-01-01T00:00:01.234567Z"), Some(1234));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(read(b"0000-01-01"), Some(0));
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29T12:34:56Z", 951_827_696),
            ("2100-02-28T23:59:59Z", 4_107_542_399),
            ("2100-03-01", 4_107_542_400),
            ("1969-12-31", -86_400),
            ("9999-12-31", 253_402_214_400),
        ] {
            assert_eq!(unix_millis(text), Some(seconds * 1000), "{text}");
        }
        let mut before = None;
        for year in 0..2401 {
            for (month, last) in [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].iter().enumerate()
            {
                for day in 1..=31 {
                    let time = read(format!("{year:04}-{:02}-{day:02}", month + 1).as_bytes());
                    let is_leap_day = (month, day) == (1, 29) && time.is_some();
                    assert_eq!(time.is_some(), day <= *last || is_leap_day, "{year} {month} {day}");
                    let Some(time) = time else { continue };
                    assert!(
                        before.is_none_or(|before| time == before + DAY as u64),
                        "{year} {month} {day}"
                    );
                    before = Some(time);
                }
            }
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "-",
            "now",
            "12x",
            "1.2.3",
            ".5",
            "1e9",
            "+5",
            "2026-13-01",
            "2026-02-29",
            "2026-00-10",
            "2026-1-1",
            "2026-11-21T",
            "2026-11-21T25:00:00Z",
            "2026-11-21T10:60",
            "2026-11-21T10:00:61Z",
            "2026-11-21T10:00:00+24:00",
            "2026-11-21T10:00:00Zz",
            "2026-11-21T10:00:00 UTC",
            "2026-11-21T10",
            "-99999999999",
            "99999999999999999999999999",
            "0000-01-01T00:00:00+00:01",
            "é",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
