//! Tests the splitting of any bytes into records. The reference implementation splits a slice at the delimiter. The
//! tested code reads the bytes in pieces. For CSV, the rows must be the same in one block and in several blocks.

use std::io::{self, Read};

use tamis_cli::csv::CsvForm;
use tamis_cli::split::{BlockBuffer, BlockReader, RecordEnd, records};

/// A reader that returns at most `step` bytes per call, like a pipe. The fuzzer chooses `step`.
struct Dribble<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.step.min(buffer.len()).min(self.bytes.len());
        buffer[..len].copy_from_slice(&self.bytes[..len]);
        self.bytes = &self.bytes[len..];
        Ok(len)
    }
}

pub(crate) fn run(data: (u8, bool, bool, &[u8])) {
    let (step, null, csv, bytes) = data;
    if csv {
        return rows(bytes, usize::from(step) + 1);
    }
    let delimiter = if null { 0 } else { b'\n' };
    let mut expected: Vec<&[u8]> = bytes.split(|&byte| byte == delimiter).collect();
    // A delimiter ends a record. So an empty slice after the last delimiter is not a record.
    if expected.last().is_some_and(|last| last.is_empty()) {
        expected.pop();
    }
    let mut expected = expected.into_iter();
    let mut blocks = BlockReader::new(
        Dribble { bytes, step: usize::from(step) + 1 },
        RecordEnd::Byte(delimiter),
    );
    let mut block = BlockBuffer::default();
    while blocks.read_block(&mut block).expect("a slice can be read") {
        for record in records(&block, RecordEnd::Byte(delimiter)) {
            assert_eq!(Some(record), expected.next());
        }
    }
    assert_eq!(expected.next(), None);
}

/// Compares the CSV rows from pieces with the CSV rows from one block.
fn rows(bytes: &[u8], step: usize) {
    let form = CsvForm { max_row_bytes: 1 << 20, ..CsvForm::new(b',', true) };
    let end = RecordEnd::Csv(form);
    let mut expected = records(bytes, end);
    let mut blocks = BlockReader::new(Dribble { bytes, step }, end);
    let mut block = BlockBuffer::default();
    while let Ok(true) = blocks.read_block(&mut block) {
        for row in records(&block, end) {
            assert_eq!(Some(row), expected.next());
        }
    }
    // If a quote is not closed, the last row is an error. So at most one expected row remains.
    assert!(expected.count() <= 1);
}
