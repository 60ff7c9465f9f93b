//! Records out of blocks of bytes: what stands between two delimiters, newline or NUL.
//!
//! A record is bytes. Nothing is trimmed, a carriage return before the newline belongs to the record,
//! and the last record may lack its delimiter. A record of any length is handed out whole: the buffer
//! grows by a quarter at a time for it, and shrinks again after it.

use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

/// How much is read at once: it stays in the second cache between reading, hashing and writing.
pub const BLOCK_BYTES: usize = 512 << 10;

/// Reads whole records, a block of them at a time.
pub struct Blocks<R> {
    reader: R,
    delimiter: u8,
    block_bytes: usize,
    // Invariant: `buffer[start..end]` is read and not yet handed out.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
}

impl<R: Read> Blocks<R> {
    /// Reads records of `reader` that end with `delimiter`.
    pub fn new(reader: R, delimiter: u8) -> Self {
        Self::with_block_bytes(reader, delimiter, BLOCK_BYTES)
    }

    fn with_block_bytes(reader: R, delimiter: u8, block_bytes: usize) -> Self {
        let buffer = vec![0; block_bytes];
        Self { reader, delimiter, block_bytes, buffer, start: 0, end: 0, at_end: false }
    }

    /// Returns the next records as one slice: each ends with the delimiter, but the last of all may
    /// lack it. `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// Those of the reader, and [`io::ErrorKind::OutOfMemory`] for a record that does not fit.
    pub fn next_block(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        self.shrink();
        // No delimiter stands in what is left over: only new bytes are searched.
        let mut searched = 0;
        loop {
            if self.at_end {
                self.start = self.end;
                return Ok((self.end > 0).then(|| &self.buffer[..self.end]));
            }
            if self.end == self.buffer.len() {
                self.grow()?;
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(len) => self.end += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if let Some(at) = memrchr(self.delimiter, &self.buffer[searched..self.end]) {
                self.start = searched + at + 1;
                return Ok(Some(&self.buffer[..self.start]));
            }
            searched = self.end;
        }
    }

    /// Returns what is read from.
    pub fn reader(&self) -> &R {
        &self.reader
    }

    fn grow(&mut self) -> io::Result<()> {
        let more = (self.buffer.len() / 4).max(self.block_bytes);
        self.buffer.try_reserve_exact(more).map_err(|_| {
            let len = self.buffer.len();
            let text = format!("no memory for a record of more than {len} bytes");
            io::Error::new(io::ErrorKind::OutOfMemory, text)
        })?;
        self.buffer.resize(self.buffer.len() + more, 0);
        Ok(())
    }

    /// Gives memory back after a long record.
    fn shrink(&mut self) {
        if self.buffer.len() > 4 * self.block_bytes && self.end < self.block_bytes {
            self.buffer.truncate(self.block_bytes);
            self.buffer.shrink_to_fit();
        }
    }
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

    /// Hands out at most `step` bytes a call, as a pipe does.
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
        let mut blocks = Blocks::with_block_bytes(Dribble { bytes, step }, b'\n', block_bytes);
        let mut found = Vec::new();
        while let Some(block) = blocks.next_block().unwrap() {
            found.extend(records(block, b'\n').map(<[u8]>::to_vec));
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
        let mut blocks = Blocks::with_block_bytes(&bytes[..], b'\n', 16);
        let mut longest = 0;
        while let Some(block) = blocks.next_block().unwrap() {
            longest = longest.max(block.len());
        }
        assert!(longest > 10_000 && blocks.next_block().unwrap().is_none());
        assert_eq!(blocks.buffer.len(), 16);
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
