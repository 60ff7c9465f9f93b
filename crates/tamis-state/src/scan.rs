//! The search for the last finished run and the last checkpoint in a log.

use std::fs::File;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::block::{BlockReader, DATA, MARK};
use crate::error::StateError;

/// A run that was killed after a checkpoint.
#[derive(Debug)]
pub struct KilledRun<C> {
    /// The last checkpoint of the run.
    pub checkpoint: C,
    /// The offset in the log at which the checkpoint ends.
    pub end: u64,
}

/// A finished run.
#[derive(Debug)]
pub struct FinishedRun<C> {
    /// The checkpoint at the end of the run.
    pub checkpoint: C,
    /// The offset in the log at which the run starts.
    pub start: u64,
}

/// The last finished run and the last checkpoint of a log, with their offsets.
pub(crate) struct Scan<C> {
    /// The end of the last finished run.
    pub(crate) done_end: u64,
    /// The end of the last valid block.
    pub(crate) end: u64,
    /// The killed run after the last finished run.
    pub(crate) killed: Option<KilledRun<C>>,
    /// The last finished run.
    pub(crate) last: Option<FinishedRun<C>>,
}

/// Reads the whole log. Returns the last finished run and the last checkpoint, with their offsets.
/// The first block is at `from`. All blocks before `synced` must be valid.
pub(crate) fn scan<C: DeserializeOwned>(
    file: &File,
    path: &Path,
    from: u64,
    synced: u64,
    width_bytes: u8,
) -> Result<Scan<C>, StateError> {
    let mut scan = Scan { done_end: from, end: from, killed: None, last: None };
    let damaged = |at| StateError::damaged(path, at);
    let mut blocks = BlockReader::new(file, path, (from, u64::MAX))?;
    while let Some((block, at)) = blocks.next()? {
        if block.tag == DATA {
            if !block.payload.len().is_multiple_of(usize::from(width_bytes)) {
                return Err(damaged(at));
            }
            continue;
        }
        let end = at + block.len_bytes();
        let checkpoint = serde_json::from_slice(&block.payload).map_err(|_| damaged(at))?;
        if block.tag == MARK {
            scan.killed = Some(KilledRun { checkpoint, end });
        } else {
            scan.last = Some(FinishedRun { checkpoint, start: scan.done_end });
            (scan.done_end, scan.killed) = (end, None);
        }
    }
    scan.end = blocks.at();
    if scan.end < synced {
        let len = file.metadata().map_err(StateError::io(path))?.len();
        return Err(if len < synced {
            StateError::truncated(path, len)
        } else {
            damaged(scan.end)
        });
    }
    Ok(scan)
}
