//! Finds the ends of CSV rows (RFC 4180) and the values of columns.
//!
//! ```text
//! id,name,note\r\n             the header
//! 7,"Doe, ""J.""","two\n       a row ends at a newline outside of quotes,
//! lines"\r\n                   so this row has two lines
//! ```
//!
//! A quote opens a quoted field only at the start of the field. At any position after the start of
//! an unquoted field, a quote is a character of the field, as in the `csv` crate and in
//! spreadsheets. Rows are never changed: the output contains the rows with the bytes of the input.

mod fields;
mod output_header;
mod row_key;

use memchr::{memchr, memchr_iter, memchr2};

use crate::records::csv::fields::QUOTE;
pub use crate::records::csv::output_header::OutputHeader;
pub use crate::records::csv::row_key::{Field, RowKey, field};

/// The maximum size of a row in bytes, without `--memory`. A quote that is never closed makes one
/// row of the rest of the file, so a limit is needed.
const MAX_ROW_BYTES: usize = 64 << 20;

/// The format of the CSV inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvForm {
    /// The byte between two fields.
    pub delimiter: u8,
    /// True if the first row of each input contains the names of the columns.
    pub has_header: bool,
    /// The maximum size of a row in bytes. A longer row is rejected.
    pub max_row_bytes: usize,
}

impl CsvForm {
    /// Creates the form of files whose fields are separated by `delimiter`.
    pub fn new(delimiter: u8, has_header: bool) -> Self {
        Self { delimiter, has_header, max_row_bytes: MAX_ROW_BYTES }
    }

    /// Returns the form for a command that may use `memory_bytes`. A row may use at most an eighth
    /// of this memory, because several blocks of rows are in memory at once.
    #[must_use]
    pub fn within(self, memory_bytes: u64) -> Self {
        let max_row_bytes = usize::try_from(memory_bytes / 8).unwrap_or(usize::MAX);
        Self { max_row_bytes: max_row_bytes.min(MAX_ROW_BYTES), ..self }
    }
}

/// Finds the ends of rows in bytes that arrive in parts. No byte is scanned twice.
#[derive(Clone, Copy, Debug)]
pub struct RowScanner {
    delimiter: u8,
    // The position of the next byte to scan.
    at: usize,
    row_start: usize,
    // The position of the quote that opened the current field, if the field is not closed.
    opened: Option<usize>,
}

impl RowScanner {
    /// Creates a scanner of bytes that start with a row.
    pub fn new(delimiter: u8) -> Self {
        Self { delimiter, at: 0, row_start: 0, opened: None }
    }

    /// Returns the end of the next row in `bytes`, after its newline. `bytes` must contain the
    /// bytes of all earlier calls, followed by the new bytes.
    pub fn next_end(&mut self, bytes: &[u8]) -> Option<usize> {
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            if self.opened.is_some() {
                self.at += memchr(QUOTE, rest).unwrap_or(rest.len());
                match bytes.get(self.at + 1) {
                    // In a quoted field, two quotes stand for one quote of the text.
                    Some(&QUOTE) => self.at += 2,
                    Some(_) => {
                        self.at += 1;
                        self.opened = None;
                    }
                    // The quote closes the field unless the next byte is also a quote.
                    None => return None,
                }
                continue;
            }
            let Some(found) = memchr2(QUOTE, b'\n', rest) else {
                self.at = bytes.len();
                return None;
            };
            let found = self.at + found;
            self.at = found + 1;
            if bytes[found] == b'\n' {
                self.row_start = self.at;
                return Some(self.at);
            }
            if found == self.row_start || bytes[found - 1] == self.delimiter {
                self.opened = Some(found);
            }
        }
        None
    }

    /// Returns the position of a quote that is never closed. `bytes` must be all bytes of the
    /// input.
    pub fn unclosed(&self, bytes: &[u8]) -> Option<usize> {
        self.opened.filter(|_| self.at >= bytes.len())
    }

    /// Returns the position of the quote that opened the current field. If no quote is open,
    /// returns the start of the current row.
    pub fn current(&self) -> usize {
        self.opened.unwrap_or(self.row_start)
    }
}

/// Counts the lines that end in `bytes`.
pub fn count_lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use csv_core::{ReadFieldResult, ReaderBuilder, Terminator};
    use proptest::prelude::*;

    use super::*;
    use crate::records::split::RecordEnd;

    fn rows(text: &[u8]) -> Vec<&[u8]> {
        let mut from = 0;
        let ends = RecordEnd::Csv(CsvForm::new(b',', false)).ends(text);
        ends.map(|end| &text[std::mem::replace(&mut from, end)..end]).collect()
    }

    fn key(column: Field, row: &[u8]) -> Option<String> {
        let mut scratch = Vec::new();
        let key = RowKey::new(b",", Some(column));
        key.of(row, &mut scratch).map(|key| String::from_utf8_lossy(key).into_owned())
    }

    fn number(number: usize) -> Field {
        Field::Number(NonZeroUsize::new(number).unwrap())
    }

    #[test]
    fn a_newline_in_quotes_does_not_end_a_row() {
        assert_eq!(rows(b"a,\"x\ny\"\r\nb\n"), [&b"a,\"x\ny\"\r\n"[..], b"b\n"]);
        assert_eq!(rows(b"a\"b,c\nd"), [&b"a\"b,c\n"[..], b"d"]);
        assert_eq!(rows(b"\"a\"\"\n\"\n\"\"\nx"), [&b"\"a\"\"\n\"\n"[..], b"\"\"\n", b"x"]);
        assert_eq!(rows(b"\n\n"), [b"\n", b"\n"]);
        assert_eq!(rows(b""), [b""; 0]);
    }

    #[test]
    fn fields_are_read_without_their_quotes() {
        let row = b"7,\"Doe, \"\"J.\"\"\",\"two\nlines\",,x\"y\r";
        let fields = ["7", "Doe, \"J.\"", "two\nlines", "", "x\"y"];
        for (i, field) in fields.into_iter().enumerate() {
            assert_eq!(key(number(i + 1), row).as_deref(), Some(field));
        }
        assert_eq!(key(number(6), row), None);
        assert_eq!(key(number(1), b""), None);
        assert_eq!(key(number(1), b"\"\"").as_deref(), Some(""));
        assert_eq!(key(number(2), b"a,").as_deref(), Some(""));
    }

    #[test]
    fn columns_are_found_by_their_name() {
        let mut by_name = RowKey::new(b",", Some(Field::Name("the, id".into())));
        by_name.set_header(b"name,\"the, id\"\r").unwrap();
        assert_eq!(by_name.of(b"x,7", &mut Vec::new()), Some(&b"7"[..]));
        by_name.set_header(b"\"the, id\",name").unwrap();
        assert_eq!(by_name.of(b"8,x", &mut Vec::new()), Some(&b"8"[..]));
    }

    #[test]
    fn an_unclosed_quote_is_found_at_the_end() {
        for (text, expected) in [
            (&b"a\nb,\"c\nd"[..], Some(4)),
            (b"a,\"b\"", None),
            (b"a,\"b\"\"", Some(2)),
            (b"a", None),
            (b"\"", Some(0)),
        ] {
            let mut scanner = RowScanner::new(b',');
            while scanner.next_end(text).is_some() {}
            assert_eq!(scanner.unclosed(text), expected, "{}", text.escape_ascii());
        }
    }

    proptest! {
        /// The `csv` crate finds the same rows and fields. The bytes may arrive in parts.
        #[test]
        fn another_reader_finds_the_same_rows_and_fields(
            bytes in prop::collection::vec(prop_oneof![Just(b'"'), Just(b','), Just(b'\n'), Just(b'a')], 0..60),
            part in 1_usize..9,
        ) {
            let mut scanner = RowScanner::new(b',');
            while scanner.next_end(&bytes).is_some() {}
            prop_assume!(scanner.unclosed(&bytes).is_none());
            let rule = RowKey::new(b",", None);
            let found: Vec<Vec<Vec<u8>>> = rows(&bytes)
                .into_iter()
                .map(|row| rule.names(row.strip_suffix(b"\n").unwrap_or(row)))
                .filter(|row| !row.is_empty())
                .collect();
            let mut reader = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
            let (mut expected, mut rest, mut row) = (Vec::new(), &bytes[..], Vec::new());
            let mut field = Vec::new();
            loop {
                let mut out = [0; 64];
                let (result, read, written) = reader.read_field(rest, &mut out);
                rest = &rest[read..];
                field.extend_from_slice(&out[..written]);
                match result {
                    ReadFieldResult::Field { record_end } => {
                        row.push(std::mem::take(&mut field));
                        if record_end {
                            expected.push(std::mem::take(&mut row));
                        }
                    }
                    ReadFieldResult::End => break,
                    ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                }
            }
            prop_assert_eq!(found, expected);

            let (mut scanner, mut in_parts) = (RowScanner::new(b','), Vec::new());
            for len in (part..bytes.len() + part).step_by(part) {
                let so_far = &bytes[..len.min(bytes.len())];
                while let Some(end) = scanner.next_end(so_far) {
                    in_parts.push(end);
                }
            }
            let form = CsvForm::new(b',', false);
            let ends: Vec<usize> = RecordEnd::Csv(form).ends(&bytes).collect();
            if in_parts.last().is_none_or(|&last| last < bytes.len()) && !bytes.is_empty() {
                in_parts.push(bytes.len());
            }
            prop_assert_eq!(in_parts, ends);
        }
    }
}
