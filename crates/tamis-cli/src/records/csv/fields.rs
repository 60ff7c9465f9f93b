//! The fields of a row of CSV, and their text without quotes.

use memchr::memchr;

pub(super) const QUOTE: u8 = b'"';

/// Iterates over the fields of a row, including quotes. An empty row has no fields.
pub(super) fn fields(row: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = (!row.is_empty()).then_some(row);
    std::iter::from_fn(move || {
        let bytes = rest?;
        // A delimiter in quotes does not end the field.
        let quoted = quoted_len(bytes);
        let end = memchr(delimiter, &bytes[quoted..]).map(|at| quoted + at);
        rest = end.map(|end| &bytes[end + 1..]);
        Some(&bytes[..end.unwrap_or(bytes.len())])
    })
}

/// Returns the length of the text in quotes at the start of a field, including the opening and the
/// closing quote.
fn quoted_len(bytes: &[u8]) -> usize {
    if bytes.first() != Some(&QUOTE) {
        return 0;
    }
    let mut at = 1;
    while let Some(found) = memchr(QUOTE, &bytes[at..]) {
        at += found + 1;
        if bytes.get(at) != Some(&QUOTE) {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Returns the text of a field. `scratch` is a buffer that may hold the text.
pub(super) fn unquoted<'a>(field: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let len = quoted_len(field);
    if len == 0 {
        return field;
    }
    let text = &field[1..len];
    let mut text = text.strip_suffix(&[QUOTE]).unwrap_or(text);
    if len == field.len() && memchr(QUOTE, text).is_none() {
        return text;
    }
    scratch.clear();
    while let Some(at) = memchr(QUOTE, text) {
        // Two quotes stand for one quote of the text.
        scratch.extend_from_slice(&text[..=at]);
        text = text.get(at + 2..).unwrap_or_default();
    }
    scratch.extend_from_slice(text);
    // Text after the closing quote belongs to the field.
    scratch.extend_from_slice(&field[len..]);
    scratch
}

/// Returns the row without the carriage return of its line end.
pub(super) fn without_return(row: &[u8]) -> &[u8] {
    row.strip_suffix(b"\r").unwrap_or(row)
}
