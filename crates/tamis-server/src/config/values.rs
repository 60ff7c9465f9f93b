//! Converts values of options from and to text.

use std::path::PathBuf;

/// Parses a number of bytes with an optional unit. The units are the same as in Redis: powers of
/// 1000 (`k`, `m`, `g`) or powers of 1024 (`kb`, `mb`, `gb`).
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Parses a number from 0 to `most`.
pub(super) fn parse_up_to(most: usize, text: &str) -> Option<usize> {
    text.parse().ok().filter(|&n| n <= most)
}

pub(super) fn parse_yes(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Parses a port. Returns `Some(None)` for the text `no`.
pub(super) fn parse_port(text: &str) -> Option<Option<u16>> {
    if text.eq_ignore_ascii_case("no") { Some(None) } else { text.parse().ok().map(Some) }
}

pub(super) fn shown_port(port: Option<u16>) -> String {
    port.map_or_else(|| "no".to_owned(), |port| port.to_string())
}

pub(super) fn parse_path(text: &str) -> Option<PathBuf> {
    Some(text).filter(|text| !text.is_empty()).map(PathBuf::from)
}

pub(super) fn shown_path(path: Option<&PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

pub(super) fn yes(is_yes: bool) -> String {
    if is_yes { "yes" } else { "no" }.to_owned()
}

/// Returns the name of `value` in the list `names`.
pub(super) fn name_of<T: Copy + PartialEq>(value: T, names: &[(T, &'static str)]) -> String {
    let named = names.iter().find(|(it, _)| *it == value);
    named.map(|(_, name)| (*name).to_owned()).unwrap_or_default()
}

/// Returns the value whose name in the list `names` is `text`. Ignores case.
pub(super) fn named<T: Copy>(text: &str, names: &[(T, &'static str)]) -> Option<T> {
    names.iter().find(|(_, name)| text.eq_ignore_ascii_case(name)).map(|(value, _)| *value)
}

/// Stores a parsed value in an option. Returns `None` if `value` is `None`.
pub(super) fn put<T>(option: &mut T, value: Option<T>) -> Option<()> {
    *option = value?;
    Some(())
}
