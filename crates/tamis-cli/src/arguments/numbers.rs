//! Parses and formats numbers of items in the notation of users: `10M`, `1,234,567`.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// A number of items, at least one, written with an optional `K`, `M`, `G` or `T` (powers of 1000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanCount(pub u64);

impl FromStr for HumanCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a number of items: write 1000000, 500K, 10M or 2G");
        let upper = text.trim().to_ascii_uppercase().replace(['_', ','], "");
        let digits = upper.trim_end_matches(['K', 'M', 'G', 'B', 'T']);
        let exponent = match &upper[digits.len()..] {
            "" => 0,
            "K" => 3,
            "M" => 6,
            "G" | "B" => 9,
            "T" => 12,
            _ => return Err(wrong()),
        };
        let unit = 10_u64.pow(exponent);
        let count = match digits.parse::<u64>() {
            Ok(whole) => whole.checked_mul(unit).ok_or_else(wrong)?,
            Err(_) => {
                let number: f64 = digits.parse().map_err(|_| wrong())?;
                let count = number * unit as f64;
                // Above 2⁵³ an f64 cannot represent every integer.
                if !(count >= 0.0 && count <= (1_u64 << 53) as f64) {
                    return Err(wrong());
                }
                count.round() as u64
            }
        };
        if count == 0 {
            return Err(format!("'{text}' is not a valid number of items: it must be above zero"));
        }
        Ok(HumanCount(count))
    }
}

/// Parses a whole number of at least one, such as the number of a field.
pub fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("'{text}' is not a whole number above zero, or is too large"))
}

/// Parses a number of threads.
pub fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads = text.parse().ok().filter(|threads: &NonZeroUsize| threads.get() <= MAX_THREADS);
    threads.ok_or_else(|| format!("'{text}' is not a number of threads: write 1 to {MAX_THREADS}"))
}

/// The maximum number of threads that a user may request. No machine runs more threads than this
/// maximum at once. Threads beyond this maximum would only use memory.
const MAX_THREADS: usize = 1024;

impl fmt::Display for HumanCount {
    /// Writes all digits in groups of three.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() * 4 / 3);
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

/// Parses the number of slices of a window for clap.
///
/// # Errors
///
/// A message if the number is not from 1 to 255.
pub fn slices(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(slices) if slices > 0 => Ok(slices),
        _ => Err(format!("'{text}' is not a number of slices: write 1 to 255")),
    }
}

/// An estimated number of items, displayed with four significant digits.
#[derive(Clone, Copy, Debug)]
pub struct HumanEstimate(pub f64);

impl fmt::Display for HumanEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() {
            return f.pad("an unknown number of");
        }
        if !self.0.is_finite() {
            return f.pad("an unlimited number of");
        }
        let mut unit = 1.0;
        while self.0 / unit >= 10_000.0 {
            unit *= 10.0;
        }
        HumanCount(((self.0 / unit).round() * unit) as u64).fmt(f)
    }
}

/// Returns the number with its noun: `1 item` or `2 items`.
pub fn items(count: u64) -> String {
    format!("{} item{}", HumanCount(count), if count == 1 { "" } else { "s" })
}

/// Returns an estimated number with its noun: `1 item` or `2 items`.
pub fn about(count: f64) -> String {
    let shown = HumanEstimate(count).to_string();
    let noun = if shown == "1" { "item" } else { "items" };
    format!("{shown} {noun}")
}

/// Returns a phrase with the number of items in a filter.
pub fn holds(items: f64) -> String {
    if items.is_finite() { format!("holds about {}", about(items)) } else { "is saturated".into() }
}

/// A rate, displayed with three significant digits.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.0;
        if rate == 0.0 {
            return f.pad("0");
        }
        if rate < 1e-4 {
            let text = format!("{rate:.2e}");
            let (digits, power) = text.split_once('e').expect("{:e} writes an exponent");
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            return f.pad(&format!("{digits}e{power}"));
        }
        let decimals = (2 - rate.log10().floor() as i32).max(0) as usize;
        let text = format!("{rate:.decimals$}");
        f.pad(if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1000() {
        for (text, count) in [
            ("1", 1),
            ("10k", 10_000),
            ("10M", 10_000_000),
            ("1.5M", 1_500_000),
            ("1e6", 1_000_000),
            ("2G", 2_000_000_000),
            ("2B", 2_000_000_000),
            ("1_000", 1000),
            ("1,000,000", 1_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(HumanCount(count)), "{text}");
        }
    }

    #[test]
    fn nonsense_and_nothing_are_refused() {
        for text in ["", "M", "-1", "1X", "nan", "inf", "1e300", "1KM", "99999999999G", "0", "0.1"]
        {
            assert!(text.parse::<HumanCount>().is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_shown_in_groups() {
        let shown = |count| HumanCount(count).to_string();
        assert_eq!([shown(1), shown(999), shown(1000)], ["1", "999", "1,000"]);
        assert_eq!(shown(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn estimates_show_four_digits() {
        let shown = |items| HumanEstimate(items).to_string();
        assert_eq!([shown(0.2), shown(1234.4), shown(12_345.0)], ["0", "1,234", "12,350"]);
        assert_eq!(
            [shown(9_876_543.2), shown(f64::INFINITY)],
            ["9,877,000", "an unlimited number of"]
        );
    }

    #[test]
    fn rates_show_three_digits() {
        let shown = |rate| Rate(rate).to_string();
        assert_eq!([shown(0.01), shown(0.009_876), shown(0.5)], ["0.01", "0.00988", "0.5"]);
        assert_eq!([shown(1.0), shown(0.0), shown(1.2e-7)], ["1", "0", "1.2e-7"]);
    }
}
