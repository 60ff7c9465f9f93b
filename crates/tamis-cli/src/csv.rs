//! Rows of CSV (RFC 4180): where a row ends, and the value of a column.
//!
//! ```text
//! id,name,note\r\n             the header
//! 7,"Doe, ""J.""","two\n       a row ends at a newline outside of quotes,
//! lines"\r\n                   so this row has two lines
//! ```
//!
//! A quote opens a quoted field only at the start of the field. In other places, a quote is a
//! character of the field, as in the `csv` crate and in spreadsheets. Rows are never changed: the
//! output has the bytes of the input.

use std::num::NonZeroUsize;

use memchr::{memchr, memchr_iter, memchr2};

const QUOTE: u8 = b'"';

/// The most bytes of a row without `--memory`. A quote that is never closed makes one row of the
/// rest of the file, so a limit is needed.
const MAX_ROW_BYTES: usize = 64 << 20;

/// How a file of CSV is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvForm {
    /// The byte between two fields.
    pub delimiter: u8,
    /// If true, the first row of each input has the names of the columns.
    pub has_header: bool,
    /// A longer row is rejected.
    pub max_row_bytes: usize,
}

impl CsvForm {
    /// Creates the form of files whose fields are separated by `delimiter`.
    pub fn new(delimiter: u8, has_header: bool) -> Self {
        Self { delimiter, has_header, max_row_bytes: MAX_ROW_BYTES }
    }

    /// Returns the form for a command that may use `memory_bytes`. A row takes an eighth of this
    /// memory at most, because several blocks of rows are in memory at once.
    #[must_use]
    pub fn within(self, memory_bytes: u64) -> Self {
        let max_row_bytes = usize::try_from(memory_bytes / 8).unwrap_or(usize::MAX);
        Self { max_row_bytes: max_row_bytes.min(MAX_ROW_BYTES), ..self }
    }

    /// Iterates over the ends of the rows in `rows`, which starts with a row. The end of a row is
    /// behind its newline. The last row may lack its newline.
    pub fn ends(self, rows: &[u8]) -> impl Iterator<Item = usize> {
        let mut scanner = RowScanner::new(self.delimiter);
        let mut last = 0;
        std::iter::from_fn(move || {
            let end = scanner.next_end(rows).or((last < rows.len()).then_some(rows.len()))?;
            last = end;
            Some(end)
        })
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

    /// Returns the end of the next row in `bytes`, behind its newline. `bytes` are the bytes of the
    /// earlier calls and those that have arrived since.
    pub fn next_end(&mut self, bytes: &[u8]) -> Option<usize> {
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            if self.opened.is_some() {
                self.at += memchr(QUOTE, rest).unwrap_or(rest.len());
                match bytes.get(self.at + 1) {
                    // Two quotes in a quoted field are one quote of its text.
                    Some(&QUOTE) => self.at += 2,
                    Some(_) => {
                        self.at += 1;
                        self.opened = None;
                    }
                    // The quote closes the field unless another quote arrives.
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

    /// Returns the position of a quote that is not closed, if `bytes` are all bytes of the input.
    pub fn unclosed(&self, bytes: &[u8]) -> Option<usize> {
        self.opened.filter(|_| self.at >= bytes.len())
    }

    /// Returns the position of the quote that opened the current field, or else the start of the
    /// current row.
    pub fn current(&self) -> usize {
        self.opened.unwrap_or(self.row_start)
    }
}

/// Counts the lines that end in `bytes`.
pub fn count_lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// Which field of a record is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The field with this number, counted from 1.
    Number(NonZeroUsize),
    /// The column of CSV with this name.
    Name(Box<str>),
}

/// Parses the number of a field or the name of a column. For clap.
///
/// # Errors
///
/// A message with the correct syntax.
pub fn field(text: &str) -> Result<Field, String> {
    let is_number = text.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        crate::numbers::at_least_one(text).map(Field::Number)
    } else {
        Ok(Field::Name(text.into()))
    }
}

/// The part of a row that is its key: a column, or the whole row.
#[derive(Clone, Debug)]
pub struct RowKey {
    delimiter: Box<[u8]>,
    column: Option<Field>,
    // The number of the column; zero if no header has the name yet.
    number: usize,
}

impl RowKey {
    /// Creates the rule for a column, or for whole rows.
    pub fn new(delimiter: &[u8], column: Option<Field>) -> Self {
        let number = match column {
            Some(Field::Number(number)) => number.get(),
            _ => 0,
        };
        Self { delimiter: delimiter.into(), column, number }
    }

    /// Rejects a delimiter that CSV cannot have, and a name without a header.
    ///
    /// # Errors
    ///
    /// A message with the correction.
    pub fn check(&self, has_header: bool) -> Result<(), String> {
        if self.delimiter.len() != 1 || b"\"\r\n".contains(&self.delimiter[0]) {
            return Err(format!(
                "-d '{}': fields of CSV are separated by one byte, such as ',' or ';' or '\\t', and not by a quote or a line end",
                self.delimiter.escape_ascii()
            ));
        }
        match &self.column {
            Some(Field::Name(name)) if !has_header => Err(format!(
                "'{name}': the names of the columns are in the header, and --no-header says that there is none: give the number \
                 of the column"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the message about a column of records that are not CSV.
    pub fn without_csv(&self) -> String {
        let name = match &self.column {
            Some(Field::Name(name)) => &**name,
            _ => "",
        };
        format!(
            "'{name}' is not a whole number above zero: only the columns of --csv have names; give the number of the field"
        )
    }

    /// Finds the column in the header of an input.
    ///
    /// # Errors
    ///
    /// A message with the columns if the header has no such column, or more than one.
    pub fn set_header(&mut self, header: &[u8]) -> Result<(), String> {
        let Some(column) = &self.column else { return Ok(()) };
        let names = self.names(header);
        self.number = match column {
            Field::Number(number) if number.get() <= names.len() => number.get(),
            Field::Number(number) => {
                return Err(format!("no column {number}: {}", self.columns(&names)));
            }
            Field::Name(name) => {
                let mut found =
                    names.iter().enumerate().filter(|(_, it)| ***it == *name.as_bytes());
                match (found.next(), found.next()) {
                    (Some((at, _)), None) => at + 1,
                    (None, _) => {
                        return Err(format!("no column '{name}': {}", self.columns(&names)));
                    }
                    (Some((one, _)), Some((other, _))) => {
                        return Err(format!(
                            "columns {} and {} are both named '{name}': give the number of the column",
                            one + 1,
                            other + 1
                        ));
                    }
                }
            }
        };
        Ok(())
    }

    /// Returns the key of `row`. Returns `None` if the row has too few fields. `scratch` may hold
    /// the key.
    pub fn of<'a>(&self, row: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let row = without_return(row);
        if self.column.is_none() {
            return Some(row);
        }
        let field = fields(row, self.delimiter[0]).nth(self.number.checked_sub(1)?)?;
        Some(unquoted(field, scratch))
    }

    fn names(&self, header: &[u8]) -> Vec<Vec<u8>> {
        let fields = fields(without_return(header), self.delimiter[0]);
        fields.map(|field| unquoted(field, &mut Vec::new()).to_vec()).collect()
    }

    /// Returns a list of the columns for a message.
    fn columns(&self, names: &[Vec<u8>]) -> String {
        const SHOWN: usize = 20;
        let shown: Vec<String> = names
            .iter()
            .take(SHOWN)
            .map(|name| format!("'{}'", String::from_utf8_lossy(name)))
            .collect();
        let more = if names.len() > SHOWN { ", ..." } else { "" };
        let first = names.first().map_or(&[][..], Vec::as_slice);
        let other = [b';', b'\t', b'|', b','].into_iter().find(|byte| first.contains(byte));
        let advice = match other {
            Some(byte) if names.len() == 1 => {
                format!("; if '{}' separates the fields, give it with -d", byte.escape_ascii())
            }
            _ => String::new(),
        };
        let columns = if names.len() == 1 { "the column is" } else { "the columns are" };
        format!("{columns} {}{more}{advice}", shown.join(", "))
    }

    /// Returns a text that is equal for equal rules.
    pub fn describe(&self) -> String {
        let by = self.delimiter.escape_ascii();
        match &self.column {
            None => format!("row of CSV by '{by}'"),
            Some(Field::Number(number)) => format!("column {number} of CSV by '{by}'"),
            Some(Field::Name(name)) => format!("column '{name}' of CSV by '{by}'"),
        }
    }
}

/// Iterates over the fields of a row, as they are written. An empty row has no fields.
fn fields(row: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
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

/// Returns the length of the text in quotes at the start of a field, including both quotes.
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

/// Returns the text of a field. `scratch` may hold the text.
fn unquoted<'a>(field: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
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
        // Two quotes are one quote of the text.
        scratch.extend_from_slice(&text[..=at]);
        text = text.get(at + 2..).unwrap_or_default();
    }
    scratch.extend_from_slice(text);
    // Text behind the quotes belongs to the field.
    scratch.extend_from_slice(&field[len..]);
    scratch
}

/// Returns the row without the carriage return of its line end.
fn without_return(row: &[u8]) -> &[u8] {
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// The header of the output, which is the header of the first input.
#[derive(Debug, Default)]
pub struct OutputHeader(Option<Vec<u8>>);

impl OutputHeader {
    /// Tests whether `header` is the first one, which the caller then writes.
    ///
    /// # Errors
    ///
    /// A message if the header differs from the first one: rows of this input do not fit under the
    /// first header.
    pub fn is_first(&mut self, header: &[u8]) -> Result<bool, String> {
        let header = without_return(header.strip_suffix(b"\n").unwrap_or(header));
        match &self.0 {
            None => {
                self.0 = Some(header.to_vec());
                Ok(true)
            }
            Some(first) if first == header => Ok(false),
            Some(_) => Err("the header differs from the header of the first input: use inputs with the same columns, or process each \
                            input separately"
                .into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use csv_core::{ReadFieldResult, ReaderBuilder, Terminator};
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &[u8]) -> Vec<&[u8]> {
        let mut from = 0;
        let ends = CsvForm::new(b',', false).ends(text);
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
        let unknown = by_name.set_header(b"a,b").unwrap_err();
        assert_eq!(unknown, "no column 'the, id': the columns are 'a', 'b'");
        let wrong_delimiter = by_name.set_header(b"a;b").unwrap_err();
        assert!(
            wrong_delimiter.ends_with("if ';' separates the fields, give it with -d"),
            "{wrong_delimiter}"
        );
        assert!(
            by_name
                .set_header(b"\"the, id\",\"the, id\"")
                .unwrap_err()
                .contains("columns 1 and 2 are both")
        );
        assert!(
            RowKey::new(b",", Some(number(3)))
                .set_header(b"a,b")
                .unwrap_err()
                .starts_with("no column 3")
        );
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
        /// The rows and fields are those of the `csv` crate, also if the bytes arrive in parts.
        #[test]
        fn rows_and_fields_are_those_of_another_reader(
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
            let ends: Vec<usize> = CsvForm::new(b',', false).ends(&bytes).collect();
            if in_parts.last().is_none_or(|&last| last < bytes.len()) && !bytes.is_empty() {
                in_parts.push(bytes.len());
            }
            prop_assert_eq!(in_parts, ends);
        }
    }
}
