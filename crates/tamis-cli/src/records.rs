//! Splits blocks of bytes into records, which end with a delimiter: newline or NUL.
//!
//! A record is a sequence of bytes. Nothing is trimmed: a carriage return before the newline
//! belongs to the record. The last record may lack its delimiter. A record of any length is
//! returned whole: the buffer grows by a quarter at a time for it and shrinks after it.

use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

use crate::read::read_some;

/// Bytes per read. A block of this size stays in the second-level cache between reading, hashing
/// and writing.
pub const BLOCK_BYTES: usize = 256 << 10;

/// Consecutive records as bytes. The buffer is reused for the next block.
#[derive(Default)]
pub struct BlockBuffer {
    // Zeroed once, when it is allocated. Only the first `len` bytes are valid.
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
    delimiter: u8,
    block_bytes: usize,
    // Bytes that were read but not returned yet.
    rest: Vec<u8>,
    is_at_end: bool,
    // The last read returned less than half a block.
    may_wait: bool,
}

impl<R: Read> BlockReader<R> {
    /// Creates a source of the records of `reader`. Each record ends with `delimiter`.
    pub fn new(reader: R, delimiter: u8) -> Self {
        Self::with_block_bytes(reader, delimiter, BLOCK_BYTES)
    }

    fn with_block_bytes(reader: R, delimiter: u8, block_bytes: usize) -> Self {
        let rest = Vec::new();
        Self { reader, delimiter, block_bytes, rest, is_at_end: false, may_wait: false }
    }

    /// Reads the next records into `block`. Each record ends with the delimiter; only the last
    /// record of the input may lack it. Returns false at the end of the input.
    ///
    /// # Errors
    ///
    /// The error of the reader, or [`io::ErrorKind::OutOfMemory`] for a record that does not fit in
    /// memory.
    pub fn read_block(&mut self, block: &mut BlockBuffer) -> io::Result<bool> {
        let mut end = self.rest.len();
        let BlockBuffer { buffer, len } = block;
        // Not the whole capacity: the end of a block must not depend on earlier blocks.
        let mut most = end.max(self.block_bytes);
        if buffer.len() > 4 * most {
            // The buffer grew for a long record that has ended, so its memory is released.
            *buffer = Vec::new();
        }
        grow(buffer, most)?;
        buffer[..end].copy_from_slice(&self.rest);
        self.rest.clear();
        self.rest.shrink_to(self.block_bytes);
        let mut searched = 0;
        loop {
            if let Some(at) = memrchr(self.delimiter, &buffer[searched..end]) {
                *len = searched + at + 1;
                self.rest.extend_from_slice(&buffer[*len..end]);
                return Ok(true);
            }
            if self.is_at_end {
                *len = end;
                return Ok(end > 0);
            }
            // The bytes so far contain no delimiter, so only new bytes are searched.
            searched = end;
            if most - end < self.block_bytes.div_ceil(2) {
                most += (most / 4).max(self.block_bytes);
                grow(buffer, most)?;
            }
            // At most one block: bytes after a long record are copied until they are used.
            let until = most.min(end + self.block_bytes);
            let read = read_some(&mut self.reader, &mut buffer[end..until])?;
            self.is_at_end = read == 0;
            self.may_wait = read < self.block_bytes / 2;
            end += read;
        }
    }

    /// Keeps the first `len_bytes` of the last block read, which must be complete records. The
    /// other bytes are returned again by the next read.
    pub fn take_back(&mut self, block: &mut BlockBuffer, len_bytes: usize) {
        // The bytes that were read beyond the block still follow it in the buffer.
        let end = block.len + self.rest.len();
        self.rest.clear();
        self.rest.extend_from_slice(&block.buffer[len_bytes..end]);
        block.len = len_bytes;
    }

    /// Tests whether the source may block before its next bytes, as a pipe does. The caller should
    /// then write its results.
    pub fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Returns the underlying reader.
    pub fn reader(&self) -> &R {
        &self.reader
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
pub fn records(block: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut ends = memchr_iter(delimiter, block);
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = match ends.next() {
            Some(end) => end,
            None if start < block.len() => block.len(),
            None => return None,
        };
        let record = &block[start..end];
        start = end + 1;
        Some(record)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lies_behind_a_long_record_is_no_more_than_a_block() {
        let bytes = [vec![b'a'; 1 << 16], b"\nb".repeat(1 << 15)].concat();
        let mut blocks = BlockReader::with_block_bytes(&bytes[..], b'\n', 64);
        let mut block = BlockBuffer::default();
        let mut read = 0;
        while blocks.read_block(&mut block).unwrap() {
            // This caller takes one record at a time.
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

    fn read_all(bytes: &[u8], step: usize, block_bytes: usize) -> Vec<Vec<u8>> {
        let mut blocks = BlockReader::with_block_bytes(Dribble { bytes, step }, b'\n', block_bytes);
        let (mut block, mut found) = (BlockBuffer::default(), Vec::new());
        while blocks.read_block(&mut block).unwrap() {
            found.extend(records(&block, b'\n').map(<[u8]>::to_vec));
        }
        found
    }

    #[test]
    fn a_last_record_needs_no_delimiter() {
        assert_eq!(read_all(b"a\nb", 10, 10), [b"a", b"b"]);
        assert_eq!(read_all(b"a\nb\n", 10, 10), [b"a", b"b"]);
        assert_eq!(read_all(b"", 10, 10), [] as [&[u8]; 0]);
        assert_eq!(read_all(b"\n", 10, 10), [b""]);
    }

    #[test]
    fn carriage_returns_belong_to_the_record() {
        assert_eq!(read_all(b"a\r\nb\r\n", 10, 10), [b"a\r", b"b\r"]);
    }

    #[test]
    fn the_buffer_shrinks_after_a_long_record() {
        let mut bytes = vec![b'x'; 10_000];
        bytes.extend_from_slice(b"\na\nb\n");
        let mut blocks = BlockReader::with_block_bytes(&bytes[..], b'\n', 16);
        let (mut block, mut longest) = (BlockBuffer::default(), 0);
        while blocks.read_block(&mut block).unwrap() {
            longest = longest.max(block.len());
        }
        assert!(longest > 10_000 && !blocks.read_block(&mut block).unwrap());
        assert_eq!(block.buffer.len(), 16);
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
