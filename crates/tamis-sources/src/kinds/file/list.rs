//! Reads the ids of a text file or a CSV file.

use std::io::{self, BufRead as _, BufReader, Read};

use crate::errors::source_error::SourceError;

/// A column of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CsvColumn {
    /// The column with this name in the header row.
    Name(String),
    /// The column with this number, starting at 0. The file has no header row, so the first row contains an id.
    Number(usize),
}

/// The maximum length of a line in bytes. A longer line is not an id.
const MAX_LINE_BYTES: u64 = 64 << 10;

const BUFFER_BYTES: usize = 64 << 10;

/// Returns the number of line ends.
pub(super) fn count_lines(mut file: impl Read) -> io::Result<u64> {
    let (mut count, mut buffer) = (0, vec![0; BUFFER_BYTES]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        count += buffer[..read].iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
    Ok(count)
}

/// Passes each non-empty line to `row`, without its line end. For a line that is too long, passes an empty text.
pub(super) fn each_line(
    file: impl Read,
    io: impl Fn(io::Error) -> SourceError,
    mut row: impl FnMut(&[u8]) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut line = Vec::new();
    let (mut is_first, mut is_too_long) = (true, false);
    loop {
        line.clear();
        file.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(&io)?;
        let Some(last) = line.last() else { return Ok(()) };
        let is_complete = *last == b'\n' || (line.len() as u64) < MAX_LINE_BYTES;
        if is_too_long || !is_complete {
            if !is_too_long {
                row(b"")?;
            }
            is_too_long = !is_complete;
            continue;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // The first line may start with a byte order mark.
        let text = if is_first { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
        is_first = false;
        if !text.is_empty() {
            row(text)?;
        }
    }
}

/// Passes the field of each record of a CSV file to `row`. For a record without the column, passes an empty text.
pub(super) fn each_field(
    file: impl Read,
    column: &CsvColumn,
    delimiter: u8,
    mut row: impl FnMut(&[u8]) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let mut csv = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(matches!(column, CsvColumn::Name(_)))
        .buffer_capacity(BUFFER_BYTES)
        .from_reader(file);
    let number = match column {
        CsvColumn::Number(number) => *number,
        CsvColumn::Name(name) => {
            let headers = csv.byte_headers()?;
            let found = headers.iter().position(|header| header == name.as_bytes());
            found.ok_or_else(|| SourceError::NoColumn(name.clone()))?
        }
    };
    let mut record = csv::ByteRecord::new();
    while csv.read_byte_record(&mut record)? {
        row(record.get(number).unwrap_or_default())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let io = |error| SourceError::Io { path: "list".into(), error };
        each_line(text, io, |line| {
            lines.push(line.to_vec());
            Ok(())
        })
        .unwrap();
        lines
    }

    fn fields(text: &str, column: &CsvColumn) -> Result<Vec<String>, SourceError> {
        let mut fields = Vec::new();
        each_field(text.as_bytes(), column, b',', |field| {
            fields.push(String::from_utf8(field.to_vec()).unwrap());
            Ok(())
        })?;
        Ok(fields)
    }

    #[test]
    fn lines_have_any_end_and_a_bounded_length() {
        assert_eq!(lines(b"\xef\xbb\xbf1\r\n\n2\n3"), [b"1", b"2", b"3"]);
        assert!(lines(b"").is_empty());
        for len in [MAX_LINE_BYTES as usize, 200_000, 3 * MAX_LINE_BYTES as usize] {
            let long = vec![b'7'; len];
            assert_eq!(lines(&[&long, &b"\n8\n"[..]].concat()), [&b""[..], b"8"], "{len}");
            assert_eq!(lines(&long), [b""], "{len}");
        }
        let longest = vec![b'7'; MAX_LINE_BYTES as usize - 1];
        assert_eq!(lines(&[&longest, &b"\n8"[..]].concat()), [&longest[..], b"8"]);
    }

    #[test]
    fn a_column_is_found_by_name_or_number() {
        let text = "name,\"the id\"\r\n\"a, \"\"b\"\"\nc\",7\nx\ny,8,more\n";
        let name = CsvColumn::Name("the id".to_owned());
        assert_eq!(fields(text, &name).unwrap(), ["7", "", "8"]);
        assert_eq!(fields("1,2\n3,4", &CsvColumn::Number(1)).unwrap(), ["2", "4"]);
        let none = CsvColumn::Name("none".to_owned());
        assert!(matches!(fields(text, &none), Err(SourceError::NoColumn(_))));
        assert!(matches!(fields("", &none), Err(SourceError::NoColumn(_))));
    }
}
