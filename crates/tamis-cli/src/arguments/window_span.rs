//! Parses and formats the spans of windows, such as `24h` and `1M-lines`.

use std::fmt;
use std::str::FromStr;
#[cfg(feature = "network")]
use std::time::Duration;

use tamis::Span;

use crate::arguments::numbers::HumanCount;

/// The span of a window, written as a time (`500ms`, `30s`, `15m`, `24h`, `7d`, `2w`) or as a
/// number (`1M-lines`, or `1M-items` for input without lines).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpan(pub Span);

/// Units of time from the longest to the shortest, in milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 604_800_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// The suffixes of a span in items.
const NOUNS: [&str; 4] = ["-lines", "-line", "-items", "-item"];

impl FromStr for WindowSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || {
            format!(
                "'{text}' is not a window: write a time such as 30s, 15m, 24h or 7d, or a number \
                 of lines such as 1M-lines"
            )
        };
        if let Some(number) = NOUNS.iter().find_map(|noun| text.strip_suffix(noun)) {
            let HumanCount(items) = number.parse().map_err(|_| wrong())?;
            return Ok(Self(Span::Items(items)));
        }
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = UNITS.iter().find(|(unit, _)| *unit == &text[number.len()..]);
        let (_, unit) = unit.ok_or_else(wrong)?;
        let millis = (number.parse::<f64>().map_err(|_| wrong())? * *unit as f64).round();
        // An f64 represents every whole number up to 2⁵³. A year has 3·10¹⁰ milliseconds.
        if !(1.0..=(1_u64 << 53) as f64).contains(&millis) {
            return Err(wrong());
        }
        Ok(Self(Span::Millis(millis as u64)))
    }
}

impl fmt::Display for WindowSpan {
    /// Writes a time as a whole number of the longest possible unit, up to days. Writes a number in
    /// groups of three digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Span::Items(1) => f.write_str("1 line"),
            Span::Items(items) => write!(f, "{} lines", HumanCount(items)),
            Span::Millis(millis) => {
                let whole = UNITS[1..].iter().find(|(_, unit)| millis.is_multiple_of(*unit));
                let (name, unit) = whole.expect("every span is a number of milliseconds");
                write!(f, "{}{name}", millis / unit)
            }
        }
    }
}

/// Parses a time such as `30s`.
#[cfg(feature = "network")]
pub fn duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(WindowSpan(Span::Millis(millis))) => Ok(Duration::from_millis(millis)),
        _ => Err(format!("'{text}' is not a time: write 500ms, 30s, 15m or 24h")),
    }
}

/// Returns the smallest sufficient number of slices for a window of `items` items, but at
/// least `slices`. With the returned number of slices, no item stays longer than the window plus
/// 1/`slices` of the window. All slices have the same length, rounded up.
pub fn even_slices(items: u64, slices: u64) -> u64 {
    let allowed = items + items / slices.max(1);
    let most = |slices: u64| (slices + 1) * items.div_ceil(slices) - 1;
    // With slices of one item each, no item stays longer than the window.
    (slices.max(1)..items).find(|&slices| most(slices) <= allowed).unwrap_or(items.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_few_items_is_divided_so_that_it_is_kept() {
        for slices in 1..=20 {
            for items in 1..2000_u64 {
                let even = even_slices(items, slices);
                let longest = (even + 1) * items.div_ceil(even) - 1;
                assert!(even * items.div_ceil(even) >= items && even <= items);
                assert!(longest <= items + items / slices, "{items} in {slices}: {even}");
            }
        }
        assert_eq!((even_slices(1_000_000, 4), even_slices(5, 4), even_slices(1, 4)), (4, 5, 1));
    }

    #[test]
    fn times_have_a_unit_and_numbers_a_noun() {
        for (text, span, shown) in [
            ("500ms", Span::Millis(500), "500ms"),
            ("30s", Span::Millis(30_000), "30s"),
            ("15m", Span::Millis(900_000), "15m"),
            ("24h", Span::Millis(86_400_000), "1d"),
            ("36h", Span::Millis(129_600_000), "36h"),
            ("1.5h", Span::Millis(5_400_000), "90m"),
            ("0.25s", Span::Millis(250), "250ms"),
            ("7d", Span::Millis(604_800_000), "7d"),
            ("2w", Span::Millis(1_209_600_000), "14d"),
            ("1M-lines", Span::Items(1_000_000), "1,000,000 lines"),
            ("500000-lines", Span::Items(500_000), "500,000 lines"),
            ("1-line", Span::Items(1), "1 line"),
            ("2.5K-items", Span::Items(2500), "2,500 lines"),
        ] {
            assert_eq!(text.parse(), Ok(WindowSpan(span)), "{text}");
            assert_eq!(WindowSpan(span).to_string(), shown);
        }
    }

    #[test]
    fn nonsense_is_refused_with_both_forms() {
        for text in [
            "",
            "24",
            "86400",
            "h",
            "-1h",
            "0s",
            "0.1ms",
            "nan s",
            "infs",
            "1e300w",
            "24H",
            "1y",
            "1M",
            "lines",
            "-lines",
            "0-lines",
            "1M lines",
            "x-lines",
            "２h",
            "24h-lines",
        ] {
            let line = text.parse::<WindowSpan>().expect_err(text);
            assert!(line.contains("24h") && line.contains("1M-lines"), "{line}");
        }
    }
}
