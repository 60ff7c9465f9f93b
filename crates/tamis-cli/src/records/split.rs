//! Splits blocks of bytes into records. A line ends with a delimiter: newline or NUL. A row of CSV
//! ends with a newline outside of quotes.
//!
//! A record is a sequence of bytes. The reader does not trim records: a carriage return before the
//! newline belongs to the record. The last record may lack its delimiter. A record of any length is
//! returned whole. For a long record, the buffer grows by a quarter at a time. After a long record,
//! the buffer shrinks.

use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

use crate::arguments::byte_size::ByteSize;
use crate::io::read::read_some;
use crate::records::csv::{CsvForm, RowScanner, count_lines};

/// The rule that determines where a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEnd {
    /// A record ends at this byte.
    Byte(u8),
    /// A record is a row of CSV.
    Csv(CsvForm),
}

impl RecordEnd {
    /// Returns the byte that ends a record.
    pub fn byte(self) -> u8 {
        match self {
            RecordEnd::Byte(byte) => byte,
            RecordEnd::Csv(_) => b'\n',
        }
    }

    /// Iterates over the ends of the records in `block`, which must start with a record. An end is
    /// the position after the delimiter. The last record may lack its delimiter.
    pub fn ends(self, block: &[u8]) -> impl Iterator<Item = usize> {
        let mut ends = match self {
            RecordEnd::Byte(byte) => Ends::Byte(memchr_iter(byte, block)),
            RecordEnd::Csv(form) => Ends::Csv(RowScanner::new(form.delimiter)),
        };
        let mut last = 0;
        std::iter::from_fn(move || {
            let found = match &mut ends {
                Ends::Byte(ends) => ends.next().map(|at| at + 1),
                Ends::Csv(scanner) => scanner.next_end(block),
            };
            last = found.or((last < block.len()).then_some(block.len()))?;
            Some(last)
        })
    }

    /// Tests whether the first record of each input is a header.
    pub fn has_header(self) -> bool {
        matches!(self, RecordEnd::Csv(CsvForm { has_header: true, .. }))
    }
}

/// The size of a read, in bytes. A block of `BLOCK_BYTES` stays in the second-level cache between
/// reading, hashing and writing.
pub const BLOCK_BYTES: usize = 256 << 10;

/// Consecutive records as bytes. The buffer is reused for the next block.
#[derive(Default)]
pub struct BlockBuffer {
    // The buffer is zeroed once, at its allocation. Only the first `len` bytes are valid.
    buffer: Vec<u8>,
    len: usize,
}

impl std::ops::Deref for BlockBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Reads complete records, one block at a time.
pub struct BlockReader<R> {
    reader: R,
    end: RecordEnd,
    block_bytes: usize,
    // The number of CSV lines before `rest`. A row may have several lines, and messages name lines.
    lines: u64,
    // Bytes that were read but not returned yet.
    rest: Vec<u8>,
    is_at_end: bool,
    // True if the last read returned less than half a block.
    may_wait: bool,
}

impl<R: Read> BlockReader<R> {
    /// Creates a reader of the records of `reader`, which end at `end`.
    pub fn new(reader: R, end: RecordEnd) -> Self {
        Self::with_block_bytes(reader, end, BLOCK_BYTES)
    }

    fn with_block_bytes(reader: R, end: RecordEnd, block_bytes: usize) -> Self {
        let rest = Vec::new();
        Self { reader, end, block_bytes, lines: 0, rest, is_at_end: false, may_wait: false }
    }

    /// Reads the next records into `block`. Each record ends with the delimiter. Only the last
    /// record of the input may have no delimiter. Returns false at the end of the input.
    ///
    /// # Errors
    ///
    /// The error of the reader. [`io::ErrorKind::OutOfMemory`] for a record that does not fit in
    /// memory. [`io::ErrorKind::InvalidData`] for a row of CSV that has no end.
    pub fn read_block(&mut self, block: &mut BlockBuffer) -> io::Result<bool> {
        let mut end = self.rest.len();
        let BlockBuffer { buffer, len } = block;
        // The read does not use the whole capacity, because the end of a block must not depend on
        // earlier blocks.
        let mut most = end.max(self.block_bytes);
        if buffer.len() > 4 * most {
            // The buffer grew for a long record. The record has ended, so the memory is released.
            *buffer = Vec::new();
        }
        grow(buffer, most)?;
        buffer[..end].copy_from_slice(&self.rest);
        self.rest.clear();
        self.rest.shrink_to(self.block_bytes);
        let mut search = Search::new(self.end);
        loop {
            if let Some(complete) = search.last_end(&buffer[..end]) {
                *len = complete;
                self.rest.extend_from_slice(&buffer[*len..end]);
                self.lines += self.count_lines(&buffer[..complete]);
                return Ok(true);
            }
            search.check(&buffer[..end], self.lines, self.is_at_end)?;
            if self.is_at_end {
                *len = end;
                self.lines += self.count_lines(&buffer[..end]);
                return Ok(end > 0);
            }
            if most - end < self.block_bytes.div_ceil(2) {
                most += (most / 4).max(self.block_bytes);
                grow(buffer, most)?;
            }
            // A read returns at most one block, because each later read copies the unused bytes
            // again.
            let until = most.min(end + self.block_bytes);
            let read = read_some(&mut self.reader, &mut buffer[end..until])?;
            self.is_at_end = read == 0;
            self.may_wait = read < self.block_bytes / 2;
            end += read;
        }
    }

    /// Shortens the last block to its first `len_bytes`, which must be complete records. The next
    /// read returns the bytes after the first `len_bytes` again.
    pub fn take_back(&mut self, block: &mut BlockBuffer, len_bytes: usize) {
        // In the buffer, the bytes that were read beyond the block still follow the block.
        let end = block.len + self.rest.len();
        self.rest.clear();
        self.rest.extend_from_slice(&block.buffer[len_bytes..end]);
        self.lines -= self.count_lines(&block.buffer[len_bytes..block.len]);
        block.len = len_bytes;
    }

    /// Skips bytes after the last block. Returns the number of skipped bytes, which is smaller
    /// than `len_bytes` only at the end of the input.
    ///
    /// # Errors
    ///
    /// The error of the reader.
    pub fn skip(&mut self, len_bytes: u64) -> io::Result<u64> {
        let mut buffer = vec![0; self.block_bytes];
        let mut left = len_bytes;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let skipped = if self.rest.is_empty() {
                let most = most.min(buffer.len());
                let len = read_some(&mut self.reader, &mut buffer[..most])?;
                self.lines += self.count_lines(&buffer[..len]);
                len
            } else {
                let len = most.min(self.rest.len());
                self.lines += self.count_lines(&self.rest[..len]);
                self.rest.drain(..len);
                len
            };
            if skipped == 0 {
                break;
            }
            left -= skipped as u64;
        }
        Ok(len_bytes - left)
    }

    /// Counts the lines in `bytes` if records may have several lines.
    fn count_lines(&self, bytes: &[u8]) -> u64 {
        match self.end {
            RecordEnd::Byte(_) => 0,
            RecordEnd::Csv(_) => count_lines(bytes),
        }
    }

    /// Returns the rule that determines where records end.
    pub fn end(&self) -> RecordEnd {
        self.end
    }

    /// Returns the number of lines of CSV up to the end of the last block.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Tests whether the next read may block, as on a pipe. If the next read may block, the caller
    /// should write its results before the read.
    pub fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Returns the underlying reader.
    pub fn reader(&self) -> &R {
        &self.reader
    }
}

/// The search for the last end of a record in a buffer that grows.
enum Search {
    Byte { byte: u8, searched: usize },
    Csv { form: CsvForm, scanner: RowScanner },
}

impl Search {
    fn new(end: RecordEnd) -> Self {
        match end {
            RecordEnd::Byte(byte) => Search::Byte { byte, searched: 0 },
            RecordEnd::Csv(form) => Search::Csv { form, scanner: RowScanner::new(form.delimiter) },
        }
    }

    /// Returns the end of the last complete record in `bytes`. The method searches only bytes that
    /// earlier calls did not search.
    fn last_end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Search::Byte { byte, searched } => {
                let from = std::mem::replace(searched, bytes.len());
                memrchr(*byte, &bytes[from..]).map(|at| from + at + 1)
            }
            Search::Csv { scanner, .. } => {
                let mut last = None;
                while let Some(end) = scanner.next_end(bytes) {
                    last = Some(end);
                }
                last
            }
        }
    }

    /// Rejects a row without an end. `bytes` contain no complete record. `lines` is the number of
    /// lines before `bytes`.
    fn check(&self, bytes: &[u8], lines: u64, is_at_end: bool) -> io::Result<()> {
        let Search::Csv { form, scanner } = self else { return Ok(()) };
        let line_of = |at: usize| lines + 1 + count_lines(&bytes[..at]);
        let invalid = |text: String| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        if is_at_end && let Some(quote) = scanner.unclosed(bytes) {
            return invalid(format!(
                "line {}: a quote opens a field that no quote closes; close it, or leave out --csv if quotes have no meaning",
                line_of(quote)
            ));
        }
        if bytes.len() > form.max_row_bytes {
            let most = ByteSize { bytes: form.max_row_bytes as u64 };
            return invalid(format!(
                "line {}: a row of more than {most}: a quote is probably not closed; else leave out --csv or give more --memory",
                line_of(scanner.current())
            ));
        }
        Ok(())
    }
}

/// Grows a buffer to at least `len` bytes, without spare capacity.
fn grow(buffer: &mut Vec<u8>, len: usize) -> io::Result<()> {
    let more = len.saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| {
        let text = format!("not enough memory for a record of more than {} bytes", buffer.len());
        io::Error::new(io::ErrorKind::OutOfMemory, text)
    })?;
    buffer.resize(buffer.len() + more, 0);
    Ok(())
}

/// Iterates over the records of a block, without their delimiters.
pub fn records(block: &[u8], end: RecordEnd) -> impl Iterator<Item = &[u8]> {
    let (byte, mut start) = (end.byte(), 0);
    end.ends(block).map(move |end| {
        let record = &block[std::mem::replace(&mut start, end)..end];
        record.strip_suffix(&[byte]).unwrap_or(record)
    })
}

enum Ends<'a> {
    Byte(memchr::Memchr<'a>),
    Csv(RowScanner),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lies_behind_a_long_record_is_no_more_than_a_block() {
        let bytes = [vec![b'a'; 1 << 16], b"\nb".repeat(1 << 15)].concat();
        let mut blocks = BlockReader::with_block_bytes(&bytes[..], LINES, 64);
        let mut block = BlockBuffer::default();
        let mut read = 0;
        while blocks.read_block(&mut block).unwrap() {
            // In this test, the caller takes one record at a time.
            let first = memchr::memchr(b'\n', &block).map_or(block.len(), |at| at + 1);
            blocks.take_back(&mut block, first);
            assert!(blocks.rest.len() <= 64, "{} bytes wait", blocks.rest.len());
            read += block.len();
        }
        assert_eq!(read, bytes.len());
    }

    /// A reader that returns at most `step` bytes per call, like a pipe.
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

    const LINES: RecordEnd = RecordEnd::Byte(b'\n');

    fn read_all(bytes: &[u8], step: usize, block_bytes: usize) -> Vec<Vec<u8>> {
        read_to(LINES, bytes, step, block_bytes)
    }

    fn read_to(end: RecordEnd, bytes: &[u8], step: usize, block_bytes: usize) -> Vec<Vec<u8>> {
        let mut blocks = BlockReader::with_block_bytes(Dribble { bytes, step }, end, block_bytes);
        let (mut block, mut found) = (BlockBuffer::default(), Vec::new());
        while blocks.read_block(&mut block).unwrap() {
            found.extend(records(&block, end).map(<[u8]>::to_vec));
        }
        found
    }

    #[test]
    fn the_buffer_shrinks_after_a_long_record() {
        let mut bytes = vec![b'x'; 10_000];
        bytes.extend_from_slice(b"\na\nb\n");
        let mut blocks = BlockReader::with_block_bytes(&bytes[..], LINES, 16);
        let (mut block, mut longest) = (BlockBuffer::default(), 0);
        while blocks.read_block(&mut block).unwrap() {
            longest = longest.max(block.len());
        }
        assert!(longest > 10_000 && !blocks.read_block(&mut block).unwrap());
        assert_eq!(block.buffer.len(), 16);
    }

    #[test]
    fn rows_of_csv_are_never_cut() {
        let csv = RecordEnd::Csv(CsvForm::new(b',', true));
        let text = b"a,\"1\n2\"\"\n\"\r\nb,\"\"\n\"c\nd\"";
        let expected = [&b"a,\"1\n2\"\"\n\"\r"[..], b"b,\"\"", b"\"c\nd\""];
        for step in 1..text.len() {
            for block_bytes in [1, 2, 7, 100] {
                assert_eq!(read_to(csv, text, step, block_bytes), expected, "{step} {block_bytes}");
            }
        }
    }

    #[test]
    fn an_error_of_csv_names_the_line_of_the_quote() {
        let form = CsvForm { max_row_bytes: 1000, ..CsvForm::new(b',', true) };
        let error_of = |bytes: &[u8]| {
            let mut blocks = BlockReader::with_block_bytes(bytes, RecordEnd::Csv(form), 16);
            let mut block = BlockBuffer::default();
            loop {
                match blocks.read_block(&mut block) {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some(error.to_string()),
                }
            }
        };
        let before = b"\"1\n2\"\n".repeat(10);
        let unclosed = [&before[..], b"x\ny,\"z\n\n"].concat();
        assert!(error_of(&unclosed).unwrap().starts_with("line 22: a quote opens a field"));
        let long = [&before[..], b"x,\"\n", &b"long\n".repeat(1000)].concat();
        assert!(error_of(&long).unwrap().starts_with("line 21: a row of more than 1000"));
        assert_eq!(error_of(&before), None);
    }

    proptest! {
        #[test]
        fn blocks_hold_the_records_that_a_split_finds(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>(), Just(b'a')], 0..300),
            step in 1_usize..40,
            block_bytes in 1_usize..40,
        ) {
            let mut expected: Vec<_> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            prop_assert_eq!(read_all(&bytes, step, block_bytes), expected);
        }
    }
}
