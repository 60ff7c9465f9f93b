//! The blocks of a state file after its header: digests, checkpoints and ends of runs.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek as _, SeekFrom};
use std::path::Path;

use tamis::Hasher;

use crate::error::StateError;

/// The number of bytes of tag, payload length and checksum.
const BLOCK_HEADER_BYTES: usize = 16;
/// The maximum number of bytes of digests in a block.
pub(crate) const MAX_DATA_BYTES: usize = 64 << 10;
/// The maximum number of bytes of a checkpoint.
pub(crate) const MAX_CHECKPOINT_BYTES: usize = 16 << 20;

/// The size of the read buffer.
const BUFFER_BYTES: usize = 128 << 10;

pub(crate) const DATA: [u8; 4] = *b"DATA";
pub(crate) const MARK: [u8; 4] = *b"MARK";
pub(crate) const DONE: [u8; 4] = *b"DONE";

/// Encodes a block that starts at byte `at`.
pub(crate) fn block(tag: [u8; 4], payload: &[u8], at: u64) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("payloads are small");
    let mut block = Vec::with_capacity(BLOCK_HEADER_BYTES + payload.len());
    block.extend_from_slice(&tag);
    block.extend_from_slice(&len.to_le_bytes());
    block.extend_from_slice(&checksum(tag, payload, at).to_le_bytes());
    block.extend_from_slice(payload);
    block
}

/// Returns the checksum of a block. The offset of the block is part of the seed, so a block is
/// valid only at its own offset.
fn checksum(tag: [u8; 4], payload: &[u8], at: u64) -> u64 {
    Hasher::xxh3(at ^ u64::from(u32::from_le_bytes(tag)) << 32).hash(payload)
}

/// A block read from the log.
#[derive(Default)]
pub(crate) struct LogBlock {
    pub(crate) tag: [u8; 4],
    pub(crate) payload: Vec<u8>,
}

impl LogBlock {
    /// Reads the block at offset `at`. Returns false if there is no valid block at the offset `at`.
    pub(crate) fn read(&mut self, reader: &mut impl Read, at: u64) -> io::Result<bool> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        match reader.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        self.tag = header[..4].try_into().expect("four bytes");
        let len = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
        let is_possible = match self.tag {
            DATA => len <= MAX_DATA_BYTES,
            MARK | DONE => len <= MAX_CHECKPOINT_BYTES,
            _ => false,
        };
        if !is_possible {
            return Ok(false);
        }
        // The buffer grows with the bytes in the file, so a wrong length allocates nothing.
        self.payload.clear();
        let read_bytes = reader.take(len as u64).read_to_end(&mut self.payload)?;
        Ok(read_bytes == len && checksum(self.tag, &self.payload, at).to_le_bytes() == header[8..])
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        (BLOCK_HEADER_BYTES + self.payload.len()) as u64
    }
}

/// Reads the blocks of a log, from an offset up to another offset.
pub(crate) struct BlockReader<'f> {
    reader: BufReader<&'f File>,
    path: &'f Path,
    block: LogBlock,
    // The offset of the next block.
    at: u64,
    end: u64,
}

impl<'f> BlockReader<'f> {
    /// Creates a reader of the blocks from the offset `from` up to `end`.
    pub(crate) fn new(
        mut file: &'f File,
        path: &'f Path,
        (from, end): (u64, u64),
    ) -> Result<Self, StateError> {
        file.seek(SeekFrom::Start(from)).map_err(StateError::io(path))?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Self { reader, path, block: LogBlock::default(), at: from, end })
    }

    /// Returns the next block and its offset. Returns `None` at the end, or at the first invalid
    /// block.
    pub(crate) fn next(&mut self) -> Result<Option<(&LogBlock, u64)>, StateError> {
        let at = self.at;
        let read = at < self.end && {
            let read = self.block.read(&mut self.reader, at);
            read.map_err(StateError::io(self.path))?
        };
        if !read {
            return Ok(None);
        }
        self.at += self.block.len_bytes();
        Ok(Some((&self.block, at)))
    }

    /// Returns the end of the last block that was read.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Returns an error if the reader has stopped at an invalid block before the end.
    pub(crate) fn check_end(&self) -> Result<(), StateError> {
        if self.at < self.end { Err(StateError::damaged(self.path, self.at)) } else { Ok(()) }
    }
}
