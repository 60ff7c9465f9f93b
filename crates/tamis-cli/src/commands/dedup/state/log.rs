//! The blocks of a state file after its header: digests, checkpoints and ends of runs.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use tamis::Hasher;

use crate::commands::dedup::state::checkpoint::Checkpoint;
use crate::exit::Failure;
use crate::io::read::read_up_to;

/// The number of bytes of tag, payload length and checksum.
const BLOCK_HEADER_BYTES: usize = 16;
pub(super) const MAX_DATA_BYTES: usize = 64 << 10;
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// The size of the read buffer.
const BUFFER_BYTES: usize = 128 << 10;

pub(super) const DATA: [u8; 4] = *b"DATA";
pub(super) const MARK: [u8; 4] = *b"MARK";
pub(super) const DONE: [u8; 4] = *b"DONE";

/// Encodes a block that starts at byte `at`.
pub(super) fn block(tag: [u8; 4], payload: &[u8], at: u64) -> Vec<u8> {
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
pub(super) struct LogBlock {
    pub(super) tag: [u8; 4],
    pub(super) payload: Vec<u8>,
}

impl LogBlock {
    /// Reads the block at offset `at`. Returns false if there is no valid block at the offset `at`.
    pub(super) fn read(&mut self, reader: &mut impl Read, at: u64) -> io::Result<bool> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        if read_up_to(reader, &mut header)? < BLOCK_HEADER_BYTES {
            return Ok(false);
        }
        self.tag = header[..4].try_into().expect("four bytes");
        let len = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
        let is_possible = match self.tag {
            DATA => len <= MAX_DATA_BYTES,
            MARK | DONE => len <= MAX_PAYLOAD_BYTES,
            _ => false,
        };
        if !is_possible {
            return Ok(false);
        }
        self.payload.resize(len, 0);
        let is_whole = read_up_to(reader, &mut self.payload)? == len;
        Ok(is_whole && checksum(self.tag, &self.payload, at).to_le_bytes() == header[8..])
    }

    pub(super) fn len_bytes(&self) -> u64 {
        (BLOCK_HEADER_BYTES + self.payload.len()) as u64
    }
}

/// Reads the blocks from the offset `from` up to `end`, and calls `each` with each block and its
/// offset. Returns the offset of the first invalid block. If all blocks are valid, returns the end
/// of the last block.
pub(super) fn each_block(
    file: &mut File,
    name: &str,
    (from, end): (u64, u64),
    mut each: impl FnMut(&LogBlock, u64) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let failure = |error: io::Error| Failure::io(name, &error);
    file.seek(SeekFrom::Start(from)).map_err(failure)?;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, &*file);
    let (mut block, mut at) = (LogBlock::default(), from);
    while at < end && block.read(&mut reader, at).map_err(failure)? {
        each(&block, at)?;
        at += block.len_bytes();
    }
    Ok(at)
}

/// The last finished run and the last checkpoint of a log, with their offsets.
pub(super) struct Scan {
    pub(super) done_end: u64,
    pub(super) killed: Option<(Checkpoint, u64)>,
    pub(super) last: Option<(Checkpoint, u64)>,
}

/// Reads the whole log. Returns the last finished run and the last checkpoint, with their offsets.
/// The first block is at `from`. All blocks before `synced` must be valid.
pub(super) fn scan(
    file: &mut File,
    name: &str,
    from: u64,
    synced: u64,
    width_bytes: u8,
) -> Result<Scan, Failure> {
    let mut scan = Scan { done_end: from, killed: None, last: None };
    let at = each_block(file, name, (from, u64::MAX), |block, at| {
        let end = at + block.len_bytes();
        if block.tag == DATA {
            let is_whole = block.payload.len().is_multiple_of(usize::from(width_bytes));
            return if is_whole { Ok(()) } else { Err(damaged(name, at)) };
        }
        let checkpoint = serde_json::from_slice(&block.payload).map_err(|_| damaged(name, at))?;
        if block.tag == MARK {
            scan.killed = Some((checkpoint, end));
        } else {
            scan.last = Some((checkpoint, scan.done_end));
            (scan.done_end, scan.killed) = (end, None);
        }
        Ok(())
    })?;
    if at < synced {
        let len = file.metadata().map_err(|error| Failure::io(name, &error))?.len();
        return Err(if len < synced { cut(name, len) } else { damaged(name, at) });
    }
    Ok(scan)
}

/// Returns the failure for a damaged state file.
pub(super) fn damaged(name: &str, at: u64) -> Failure {
    Failure::new(format!(
        "{name}: the state is damaged at byte {at}; restore it from a copy, or remove it to start \
         over"
    ))
}

/// Returns the failure for a state file that has become shorter.
pub(super) fn cut(name: &str, len_bytes: u64) -> Failure {
    Failure::new(format!(
        "{name}: the state is damaged: it was cut short to {len_bytes} bytes; restore it from a \
         copy, or remove it to start over"
    ))
}
