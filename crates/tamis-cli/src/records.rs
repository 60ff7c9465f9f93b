//! Records out of blocks of bytes: what stands between two delimiters, newline or NUL.
//!
//! A record is bytes. Nothing is trimmed, a carriage return before the newline belongs to the record,
//! and the last record may lack its delimiter. A record of any length is handed out whole: the buffer
//! grows by a quarter at a time for it, and shrinks again after it.

use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

use crate::input::read_some;

/// How much is read at once: it stays in the second cache between reading, hashing and writing.
pub const BLOCK_BYTES: usize = 256 << 10;

/// Neighbouring records as bytes, in room that one block after the other uses.
#[derive(Default)]
pub struct Block {
    // Cleared once, when it is made: only what comes before `len` means something.
    room: Vec<u8>,
    len: usize,
}

impl std::ops::Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.room[..self.len]
    }
}

/// Reads whole records, a block of them at a time.
pub struct Blocks<R> {
    reader: R,
    delimiter: u8,
    block_bytes: usize,
    // What was read and not yet handed out.
    rest: Vec<u8>,
    own: Block,
    is_at_end: bool,
    // The last read gave less than it might have.
    may_wait: bool,
}

impl<R: Read> Blocks<R> {
    /// Reads records of `reader` that end with `delimiter`.
    pub fn new(reader: R, delimiter: u8) -> Self {
        Self::with_block_bytes(reader, delimiter, BLOCK_BYTES)
    }

    fn with_block_bytes(reader: R, delimiter: u8, block_bytes: usize) -> Self {
        let (rest, own) = (Vec::new(), Block::default());
        Self { reader, delimiter, block_bytes, rest, own, is_at_end: false, may_wait: false }
    }

    /// Returns the next records as one slice: each ends with the delimiter, but the last of all may
    /// lack it. `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// Those of the reader, and [`io::ErrorKind::OutOfMemory`] for a record that does not fit.
    pub fn next_block(&mut self) -> io::Result<Option<&[u8]>> {
        let mut block = std::mem::take(&mut self.own);
        let is_there = self.read_block(&mut block);
        self.own = block;
        Ok(is_there?.then_some(&self.own))
    }

    /// As [`next_block`](Self::next_block), into a block of the caller's: false at the end.
    ///
    /// # Errors
    ///
    /// As for [`next_block`](Self::next_block).
    pub fn read_block(&mut self, block: &mut Block) -> io::Result<bool> {
        let mut end = self.rest.len();
        let Block { room, len } = block;
        // Not as much as there is room for: where a block ends is not to depend on those before it.
        let mut most = end.max(self.block_bytes);
        if room.len() > 4 * most {
            // A long record is over.
            *room = Vec::new();
        }
        make_room(room, most)?;
        room[..end].copy_from_slice(&self.rest);
        self.rest.clear();
        self.rest.shrink_to(self.block_bytes);
        let mut searched = 0;
        loop {
            if let Some(at) = memrchr(self.delimiter, &room[searched..end]) {
                *len = searched + at + 1;
                self.rest.extend_from_slice(&room[*len..end]);
                return Ok(true);
            }
            if self.is_at_end {
                *len = end;
                return Ok(end > 0);
            }
            // The bytes so far hold no delimiter: only new bytes are searched.
            searched = end;
            if most - end < self.block_bytes.div_ceil(2) {
                most += (most / 4).max(self.block_bytes);
                make_room(room, most)?;
            }
            // No more than a block: what lies behind a long record is copied until it is used.
            let until = most.min(end + self.block_bytes);
            let read = read_some(&mut self.reader, &mut room[end..until])?;
            self.is_at_end = read == 0;
            self.may_wait = read < self.block_bytes / 2;
            end += read;
        }
    }

    /// Keeps the first `len_bytes` of the block read last, whole records, and takes back the others.
    pub fn take_back(&mut self, block: &mut Block, len_bytes: usize) {
        // What was read beyond the block lies behind it still.
        let end = block.len + self.rest.len();
        self.rest.clear();
        self.rest.extend_from_slice(&block.room[len_bytes..end]);
        block.len = len_bytes;
    }

    /// Returns whether the source may block before it gives more bytes, as a pipe does, so that results should be shown now.
    pub fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Returns what is read from.
    pub fn reader(&self) -> &R {
        &self.reader
    }
}

/// Makes a buffer at least so long, without more memory than that.
fn make_room(room: &mut Vec<u8>, len: usize) -> io::Result<()> {
    let more = len.saturating_sub(room.len());
    room.try_reserve_exact(more).map_err(|_| {
        let text = format!("no memory for a record of more than {} bytes", room.len());
        io::Error::new(io::ErrorKind::OutOfMemory, text)
    })?;
    room.resize(room.len() + more, 0);
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
        let mut blocks = Blocks::with_block_bytes(&bytes[..], b'\n', 64);
        let mut block = Block::default();
        let mut read = 0;
        while blocks.read_block(&mut block).unwrap() {
            // As one who takes record after record.
            let first = memchr::memchr(b'\n', &block).map_or(block.len(), |at| at + 1);
            blocks.take_back(&mut block, first);
            assert!(blocks.rest.len() <= 64, "{} bytes wait", blocks.rest.len());
            read += block.len();
        }
        assert_eq!(read, bytes.len());
    }

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
        assert_eq!(blocks.own.room.len(), 16);
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
