//! Converts the printed text of a value to the bytes of the value, for a column of a Parquet table
//! or an ORC file.
//!
//! A filter of Parquet contains the bytes of a value in plain encoding. A filter of ORC contains
//! the hash of a value. For example, programs print a `DATE` as `2026-11-21`, but the file stores
//! the number of days since 1970.

use tamis_formats::{Funnel, OrcType};

use crate::records::calendar::days_since_1970;

/// The items of a column: all values that the column can store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnItems {
    /// The kind of text of an item.
    pub text: ColumnText,
    /// The funnel of the items, unless the user gives another funnel.
    pub funnel: Funnel,
    /// A description of the items of the column, for messages.
    pub item: String,
}

/// The kind of text in which programs print a value, in addition to the plain numbers and bytes of
/// a [`Funnel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnText {
    /// Text or bytes. A carriage return at the end belongs to the item.
    Bytes,
    /// A number or hexadecimal digits, for the funnel of the column.
    Plain,
    /// A UUID: 16 bytes, printed in five groups of hexadecimal digits.
    Uuid,
    /// A date, stored as the number of days since 1970-01-01.
    Date,
    /// A time of day, stored as a number of units.
    Time {
        /// The number of units in a second.
        per_second: i64,
    },
    /// A time, stored as a number of units since 1970-01-01.
    Timestamp {
        /// The number of units in a second.
        per_second: i64,
    },
    /// A time, stored as the nanoseconds of the day and the Julian day, in the format of Impala and
    /// Spark.
    Int96,
    /// A date of ORC, stored as the number of days since 1970-01-01.
    OrcDate,
    /// A time of ORC in milliseconds since 1970-01-01. A column may store finer times, but the hash
    /// covers only whole milliseconds.
    OrcTimestamp {
        /// True if the column stores local times, which have no offset.
        is_local: bool,
    },
    /// A decimal number with `scale` digits after the decimal point.
    Decimal {
        /// The number of digits after the decimal point.
        scale: u32,
        /// How the number is stored.
        storage: DecimalStorage,
    },
}

/// How a decimal number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalStorage {
    /// The number is stored as an integer, which the funnel of the column encodes.
    Integer,
    /// The number is stored in a fixed number of bytes, in big-endian order.
    Fixed(u32),
    /// The number is stored in as few bytes as possible, in big-endian order.
    Fewest,
    /// The number is stored as text without trailing zeros in the fraction.
    Text,
}

impl ColumnText {
    /// Describes an item. Returns `None` if the text alone does not determine the items.
    pub fn description(self) -> Option<String> {
        Some(match self {
            ColumnText::Bytes | ColumnText::Plain => return None,
            ColumnText::Uuid => "a UUID, with hyphens or without".into(),
            ColumnText::Date | ColumnText::OrcDate => {
                "a date such as 2026-11-21, or the days since 1970-01-01".into()
            }
            ColumnText::Time { per_second } => {
                format!("a time such as 10:00:59.5, or the {} since midnight", units(per_second))
            }
            ColumnText::Timestamp { per_second } => format!(
                "a time such as 2026-11-21 10:00:59.5, or the {} since 1970-01-01",
                units(per_second)
            ),
            ColumnText::OrcTimestamp { is_local } => format!(
                "a time such as 2026-11-21 10:00:59.5{}, or the milliseconds since 1970-01-01",
                if is_local { " without an offset" } else { "" }
            ),
            ColumnText::Int96 => {
                "a time such as 2026-11-21 10:00:59.5, or 12 bytes as hexadecimal digits".into()
            }
            ColumnText::Decimal { scale: 0, .. } => "a whole number".into(),
            ColumnText::Decimal { scale, .. } => {
                format!("a decimal number with {scale} digits behind the point")
            }
        })
    }

    /// Returns the bytes of `item`, the printed text of a value. `funnel` is the funnel of the
    /// column. Returns a message if the column cannot store the value.
    pub fn key<'a>(
        self,
        funnel: Funnel,
        item: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], String> {
        // A line of Windows ends with a carriage return, which is never part of a number.
        let item = match self {
            ColumnText::Bytes => item,
            _ => item.strip_suffix(b"\r").unwrap_or(item),
        };
        let text = std::str::from_utf8(item).unwrap_or_default();
        let is_real = matches!(
            funnel,
            Funnel::Float | Funnel::Double | Funnel::Orc(OrcType::Float | OrcType::Double)
        );
        if is_real && text.parse().is_ok_and(f64::is_nan) {
            return Err("NaN has many bit patterns, and a filter answers for one of them only: \
                        look into the table itself"
                .into());
        }
        let integer = match self {
            ColumnText::Bytes | ColumnText::Plain => None,
            ColumnText::Uuid => match uuid(text) {
                Some(digits) => return by(funnel, digits.as_bytes(), scratch),
                None if text.len() == 32 => None,
                None => return Err("not a UUID".into()),
            },
            ColumnText::Int96 => match timestamp(text, NANOS) {
                Some(nanos) => {
                    scratch.clear();
                    let (day, nanos) =
                        (nanos.div_euclid(DAY * NANOS), nanos.rem_euclid(DAY * NANOS));
                    let julian = u32::try_from(day + JULIAN_1970).map_err(|_| OUT_OF_RANGE)?;
                    scratch.extend(nanos.to_le_bytes());
                    scratch.extend(julian.to_le_bytes());
                    return Ok(scratch);
                }
                None => None,
            },
            ColumnText::Date => date(text),
            ColumnText::Time { per_second } => time_of_day(text, per_second),
            ColumnText::Timestamp { per_second } => timestamp(text, per_second),
            ColumnText::OrcDate => date(text).map(gregorian_day).transpose()?,
            ColumnText::OrcTimestamp { is_local } => orc_millis(text, is_local)?,
            ColumnText::Decimal { scale, storage } => {
                let digits = unscaled(text, scale)?;
                if storage == DecimalStorage::Integer {
                    return by(funnel, digits.as_bytes(), scratch);
                }
                if storage == DecimalStorage::Text {
                    let text = shortest_decimal(&digits, scale);
                    return by(funnel, text.as_bytes(), scratch);
                }
                scratch.clear();
                twos_complement(&digits, storage, scratch)?;
                return Ok(scratch);
            }
        };
        match integer {
            Some(integer) => by(funnel, integer.to_string().as_bytes(), scratch),
            // The item may also be the stored number. The funnel rejects a text that is not a
            // number.
            None => funnel.key(item, scratch).map_err(|error| error.to_string()),
        }
    }
}

const OUT_OF_RANGE: &str = "out of the range of the column";

/// Returns the bytes of `digits`. The result does not borrow `digits`.
fn by<'a>(funnel: Funnel, digits: &[u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], String> {
    let mut own = Vec::new();
    let key = funnel.key(digits, &mut own).map_err(|error| error.to_string())?;
    scratch.clear();
    scratch.extend_from_slice(key);
    Ok(scratch)
}

/// Returns the name of the unit. A second has `per_second` units.
fn units(per_second: i64) -> &'static str {
    match per_second {
        1000 => "milliseconds",
        1_000_000 => "microseconds",
        _ => "nanoseconds",
    }
}

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;
/// The Julian day of 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;

/// Returns the digits of a UUID without its hyphens.
fn uuid(text: &str) -> Option<String> {
    let groups: Vec<&str> = text.split('-').collect();
    let lens: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    (lens == [8, 4, 4, 4, 12]).then(|| groups.concat())
}

/// Parses a date, such as `2026-11-21`. Returns the days since 1970-01-01.
fn date(text: &str) -> Option<i64> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let is_form = (4..=6).contains(&year.len()) && month.len() == 2 && day.len() == 2;
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    if is_form { days_since_1970(year, month, day) } else { None }
}

/// Parses a time of day, such as `10:00:59.123`. Returns the units since midnight. Digits that the
/// unit cannot represent must be zeros.
fn time_of_day(text: &str, per_second: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<&str> = whole.split(':').collect();
    if !(2..=3).contains(&parts.len()) || parts.iter().any(|part| part.len() != 2) {
        return None;
    }
    let (hour, minute) = (number(parts[0])?, number(parts[1])?);
    let second = parts.get(2).map_or(Some(0), |second| number(second))?;
    if hour > 23 || minute > 59 || second > 59 || whole.len() < text.len() && fraction.is_empty() {
        return None;
    }
    let nanos = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<9}"))? };
    let per_unit = NANOS / per_second;
    if fraction.len() > 9 || nanos % per_unit != 0 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * per_second + nanos / per_unit)
}

/// Parses a date, or a date and a time of day with or without an offset. Returns the units since
/// 1970-01-01 in UTC.
fn timestamp(text: &str, per_second: i64) -> Option<i64> {
    let (nanos, per_unit) = (instant(text)?.nanos, i128::from(NANOS / per_second));
    (nanos % per_unit == 0).then(|| i64::try_from(nanos / per_unit).ok()).flatten()
}

/// A time that was parsed from a printed text.
struct Instant {
    /// Nanoseconds since 1970-01-01.
    nanos: i128,
    has_offset: bool,
}

/// Parses a date, or a date and a time of day with or without an offset.
fn instant(text: &str) -> Option<Instant> {
    let (day, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, "00:00"),
    };
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], Some(offset(&time[at..])?)),
        None => (time, None),
    };
    let seconds = i128::from(date(day)? * DAY - offset.unwrap_or(0));
    let of_day = time_of_day(time.trim_end(), NANOS)?;
    let nanos = seconds * i128::from(NANOS) + i128::from(of_day);
    Some(Instant { nanos, has_offset: offset.is_some() })
}

/// The first day of the Gregorian calendar, 1582-10-15, in days since 1970-01-01.
const GREGORIAN: i64 = -141_427;

/// Returns `day` if all writers of ORC store the same number for this day. For days before the
/// Gregorian calendar, some writers use the Julian calendar.
fn gregorian_day(day: i64) -> Result<i64, String> {
    if day >= GREGORIAN {
        return Ok(day);
    }
    Err("before 1582-10-15, and writers of ORC count these days by different calendars: give the \
         number since 1970-01-01"
        .into())
}

/// Parses a time of an ORC column. Returns the milliseconds, or `Ok(None)` if the text is not a
/// time.
fn orc_millis(text: &str, is_local: bool) -> Result<Option<i64>, String> {
    const NANOS_OF_MILLI: i128 = 1_000_000;
    let Some(Instant { nanos, has_offset }) = instant(text) else { return Ok(None) };
    if is_local && has_offset {
        return Err("has an offset, and the column holds local times: give the local time".into());
    }
    gregorian_day(nanos.div_euclid(i128::from(DAY * NANOS)) as i64)?;
    if nanos < 0 && nanos % NANOS_OF_MILLI != 0 {
        return Err(
            "before 1970 and finer than a millisecond, and writers of ORC round such times \
                    in different ways: give the milliseconds since 1970-01-01"
                .into(),
        );
    }
    // The year of a date has at most six digits.
    Ok(i64::try_from(nanos.div_euclid(NANOS_OF_MILLI)).ok())
}

/// Parses an offset: `Z`, `+02:00`, `+0200` or `+02`. Returns the seconds.
fn offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.strip_prefix(['+', '-'])?.replacen(':', "", 1);
    // The function `number` accepts only ASCII digits, so the length of `digits` in bytes is the
    // number of digits.
    let number_of_all = number(&digits)?;
    let (hours, minutes) = match digits.len() {
        2 => (number_of_all, 0),
        4 => (number_of_all / 100, number_of_all % 100),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60)
}

/// Parses decimal digits without a sign.
fn number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the digits of a decimal number without its decimal point, for a column with `scale`
/// digits after the decimal point.
fn unscaled(text: &str, scale: u32) -> Result<String, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { "-" } else { "" };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number =
        !whole.is_empty() && (whole.bytes().chain(fraction.bytes())).all(|it| it.is_ascii_digit());
    let scale = scale as usize;
    if !is_number || digits.len() > MOST_DIGITS {
        return Err("not a decimal number".into());
    }
    if scale > 0 && !digits.contains('.') {
        // A number without a decimal point is ambiguous: `12` could mean `12.00` or `0.12`.
        return Err(format!("has no point: write all {scale} digits behind the point"));
    }
    let fraction = if fraction.len() > scale {
        fraction
            .strip_suffix(&"0".repeat(fraction.len() - scale))
            .ok_or_else(|| format!("has more than {scale} digits behind the point"))?
    } else {
        fraction
    };
    let all = format!("{whole}{fraction:0<scale$}");
    let significant = all.trim_start_matches('0');
    Ok(if significant.is_empty() { "0".into() } else { format!("{sign}{significant}") })
}

/// Returns a decimal number with `scale` of its `digits` after the decimal point, without trailing
/// zeros in the fraction.
fn shortest_decimal(digits: &str, scale: u32) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let scale = scale as usize;
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// The maximum number of digits of a decimal number. Parquet has no limit, and the widest type of
/// Arrow has 76 digits.
pub const MOST_DIGITS: usize = 100;

/// Appends an integer in two's complement and big-endian order.
fn twos_complement(digits: &str, storage: DecimalStorage, out: &mut Vec<u8>) -> Result<(), String> {
    let is_negative = digits.starts_with('-');
    // The lowest byte is first.
    let mut bytes = vec![0_u8];
    for digit in digits.trim_start_matches('-').bytes() {
        let mut carry = u32::from(digit - b'0');
        for byte in &mut bytes {
            carry += u32::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            bytes.push(carry as u8);
        }
    }
    if bytes.last().is_some_and(|&highest| highest >= 0x80) {
        // The highest bit is the sign bit.
        bytes.push(0);
    }
    if is_negative {
        let mut carry = true;
        for byte in &mut bytes {
            let (sum, next) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, next);
        }
        // The number -128 takes one byte, but 128 takes two bytes.
        while matches!(bytes[..], [.., low, 0xff] if low >= 0x80) {
            bytes.pop();
        }
    }
    if let DecimalStorage::Fixed(len) = storage {
        let len = len as usize;
        if bytes.len() > len {
            return Err(OUT_OF_RANGE.into());
        }
        bytes.resize(len, if is_negative { 0xff } else { 0 });
    }
    out.extend(bytes.iter().rev());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: ColumnText, funnel: Funnel, item: &str) -> Result<Vec<u8>, String> {
        text.key(funnel, item.as_bytes(), &mut Vec::new()).map(<[u8]>::to_vec)
    }

    fn long(text: ColumnText, item: &str) -> Option<i64> {
        let bytes = key(text, Funnel::Long, item).ok()?;
        Some(i64::from_le_bytes(bytes.try_into().unwrap()))
    }

    #[test]
    fn dates_and_times_are_units_since_1970() {
        for (item, days) in [
            ("1970-01-01", Some(0)),
            ("1969-12-31", Some(-1)),
            ("0001-01-01", Some(-719_162)),
            ("20000\r", Some(20_000)),
            ("-7", Some(-7)),
            ("2023-02-29", None),
            ("2023-1-1", None),
            ("", None),
        ] {
            assert_eq!(long(ColumnText::Date, item), days, "{item}");
        }
        let micros = ColumnText::Timestamp { per_second: 1_000_000 };
        for (item, expected) in [
            ("1970-01-01", Some(0)),
            ("1970-01-01 00:00:01", Some(1_000_000)),
            ("1970-01-01T00:00:01.5Z", Some(1_500_000)),
            ("1970-01-01 02:00:00.000001+02:00", Some(1)),
            ("1969-12-31T23:59:59.999999-0000", Some(-1)),
            ("1970-01-01 00:00:00.0000001", None),
            ("1970-01-01 24:00:00", None),
            ("1970-01-01 1:00", None),
            ("1970-01-01 00:00:01+a\u{e9}b", None),
            ("1970-01-01 02:00:00Z02", None),
            ("1970-01-01 02:00:00+24:00", None),
            ("1970-01-01 02:00:00+00:60", None),
            ("1970-01-01 02:00:00+", None),
            ("300000-01-01", None),
        ] {
            assert_eq!(long(micros, item), expected, "{item}");
        }
        assert_eq!(long(ColumnText::Time { per_second: 1000 }, "10:00:59.123"), Some(36_059_123));
        assert_eq!(long(ColumnText::Time { per_second: 1000 }, "10:00:59."), None);
        let int96 = key(ColumnText::Int96, Funnel::Hex, "1970-01-01 00:00:00.000000001").unwrap();
        assert_eq!(int96, [1, 0, 0, 0, 0, 0, 0, 0, 0x8c, 0x3d, 0x25, 0]);
    }

    #[test]
    fn decimal_numbers_are_integers_without_their_point() {
        let integer = ColumnText::Decimal { scale: 2, storage: DecimalStorage::Integer };
        for (item, expected) in [
            ("12.34", Some(1234)),
            ("-0.05\r", Some(-5)),
            ("+7.5", Some(750)),
            ("1.2300", Some(123)),
            ("-0.00", Some(0)),
            ("007.00", Some(700)),
            ("1.234", None),
            ("12", None),
            ("1e3", None),
            (".5", None),
            ("", None),
        ] {
            assert_eq!(long(integer, item), expected, "{item}");
        }
        assert!(key(integer, Funnel::Long, "12").unwrap_err().contains("has no point"));
        let of =
            |storage, item: &str| key(ColumnText::Decimal { scale: 0, storage }, Funnel::Hex, item);
        for number in
            [0, 1, -1, 127, 128, -128, -129, 255, 256, -32_768, 32_768, i64::MIN, i64::MAX]
        {
            let expected = number.to_be_bytes();
            assert_eq!(of(DecimalStorage::Fixed(8), &number.to_string()).unwrap(), expected);
            // The shortest encoding omits each byte that only repeats the sign.
            let skip = (0..7).take_while(|&i| {
                let sign = if expected[i + 1] >= 0x80 { 0xff } else { 0 };
                expected[i] == sign
            });
            let fewest = &expected[skip.count()..];
            assert_eq!(
                of(DecimalStorage::Fewest, &number.to_string()).unwrap(),
                fewest,
                "{number}"
            );
        }
        assert_eq!(of(DecimalStorage::Fixed(1), "128").unwrap_err(), OUT_OF_RANGE);
        assert_eq!(of(DecimalStorage::Fixed(2), "-128").unwrap(), [0xff, 0x80]);
    }

    #[test]
    fn times_of_orc_are_milliseconds_that_every_writer_hashes() {
        let utc = ColumnText::OrcTimestamp { is_local: false };
        for (item, expected) in [
            ("1970-01-01 00:00:01.0019999", 1001),
            ("1970-01-01T02:00:00+02:00", 0),
            ("1969-12-31 23:59:59.999000", -1),
            ("1582-10-15", GREGORIAN * DAY * 1000),
            ("999999-12-31", 31_494_784_694_400_000),
            ("-62135596800000", -62_135_596_800_000),
        ] {
            assert_eq!(long(utc, item), Some(expected), "{item}");
        }
        let local = ColumnText::OrcTimestamp { is_local: true };
        assert_eq!(long(local, "2024-03-10 02:30:00"), long(utc, "2024-03-10 02:30:00Z"));
        for (text, item, words) in [
            (local, "2024-03-10 02:30:00Z", "has an offset"),
            (utc, "1969-12-31 23:59:59.9991", "finer than a millisecond"),
            (utc, "1582-10-14 23:59:59", "before 1582-10-15"),
            (ColumnText::OrcDate, "1582-10-14", "before 1582-10-15"),
            (utc, "2024-03-10 2:30", "not a decimal number"),
        ] {
            let error = key(text, Funnel::Long, item).unwrap_err();
            assert!(error.contains(words), "{item}: {error}");
        }
        assert_eq!(long(ColumnText::OrcDate, "1582-10-15"), Some(GREGORIAN));
        assert_eq!(long(ColumnText::OrcDate, "-200000"), Some(-200_000));
    }

    #[test]
    fn decimals_of_orc_have_no_zeros_at_the_end() {
        let of = |scale, item| {
            let text = ColumnText::Decimal { scale, storage: DecimalStorage::Text };
            key(text, Funnel::Bytes, item).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        for (scale, item, expected) in [
            (2, "12.30", "12.3"),
            (2, "-0.05", "-0.05"),
            (2, "-0.00", "0"),
            (2, "100.00", "100"),
            (0, "-1200", "-1200"),
            (4, "007.5", "7.5"),
        ] {
            assert_eq!(of(scale, item).unwrap(), expected, "{item}");
        }
        assert!(of(2, "1.234").is_err() && of(2, "12").is_err());
    }

    #[test]
    fn a_nan_is_no_item_because_it_has_many_bit_patterns() {
        let reals = [Funnel::Orc(OrcType::Float), Funnel::Orc(OrcType::Double)];
        for funnel in [Funnel::Float, Funnel::Double].into_iter().chain(reals) {
            for item in ["NaN", "-nan", "nan\r"] {
                let error = key(ColumnText::Plain, funnel, item).unwrap_err();
                assert!(error.contains("many bit patterns"), "{item}: {error}");
            }
            assert!(key(ColumnText::Plain, funnel, "inf").is_ok());
        }
        assert_eq!(key(ColumnText::Bytes, Funnel::Bytes, "NaN").unwrap(), b"NaN");
    }

    #[test]
    fn a_uuid_may_have_hyphens() {
        let with = "00000001-2345-6789-abcd-EF0123456789";
        let bytes = key(ColumnText::Uuid, Funnel::Hex, with).unwrap();
        assert_eq!(key(ColumnText::Uuid, Funnel::Hex, &with.replace('-', "")).unwrap(), bytes);
        assert!(key(ColumnText::Uuid, Funnel::Hex, "0000-00012345").is_err());
        assert_eq!(key(ColumnText::Bytes, Funnel::Bytes, "a\r").unwrap(), b"a\r");
    }
}
