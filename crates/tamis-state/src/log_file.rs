//! An open and locked log of digests. The log appends blocks, syncs and cuts the file.

use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tamis::Hasher;

use crate::block::{BlockReader, DATA, MAX_CHECKPOINT_BYTES, MAX_DATA_BYTES, block};
use crate::create::create;
use crate::digest::StoredDigest;
use crate::disk::DiskFile;
use crate::error::StateError;
use crate::header::{Requirements, StateHeader};
use crate::replay::Replay;
use crate::scan::{Scan, scan};
use crate::synced::{self, SYNCED_AT};

/// An open and locked log.
pub(crate) struct LogFile {
    pub(crate) disk: DiskFile,
    path: PathBuf,
    header: StateHeader,
    // The offset of the first block.
    from: u64,
    // The offset of the next block.
    end: u64,
    // The synced length in the header.
    synced: u64,
    // The digests that are not yet in the file.
    pending: Vec<u8>,
}

impl LogFile {
    /// Opens the file at `path`, or creates the file. The log ends at the last finished run. The
    /// caller cuts the log to another end with [`cut_to`](Self::cut_to).
    pub(crate) fn open<C: DeserializeOwned>(
        path: &Path,
        wanted: &Requirements<'_>,
    ) -> Result<(Self, Scan<C>), StateError> {
        let failure = StateError::io(path);
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(StateError::NotRegular { path: path.into() });
        }
        if !path.try_exists().map_err(failure)? {
            create(path, &wanted.new_file(path)?)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path);
        let disk = DiskFile::lock(file.map_err(failure)?).map_err(|error| match error {
            TryLockError::WouldBlock => StateError::Locked { path: path.into() },
            TryLockError::Error(error) => failure(error),
        })?;
        let (header, from, synced) = StateHeader::read(disk.as_file(), path)?;
        header.check(path, wanted)?;
        let scan = scan(disk.as_file(), path, from, synced, header.width_bytes)?;
        let log = LogFile {
            disk,
            path: path.into(),
            header,
            from,
            end: scan.done_end,
            synced,
            pending: Vec::new(),
        };
        Ok((log, scan))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn width_bits(&self) -> u32 {
        self.header.width_bits()
    }

    pub(crate) fn hasher(&self) -> Hasher {
        self.header.hasher
    }

    /// Returns the offset of the next block.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Tests whether digests or blocks may not be on the disk.
    pub(crate) fn is_unsynced(&self) -> bool {
        !self.pending.is_empty() || self.end > self.synced
    }

    /// Cuts the log to `end`.
    pub(crate) fn cut_to(&mut self, end: u64) -> Result<(), StateError> {
        self.end = end;
        let synced = self.synced;
        self.io(|disk| {
            if end < synced {
                disk.write_at(SYNCED_AT, &synced::encode(end))?;
                disk.sync()?;
            }
            if disk.as_file().metadata()?.len() > end {
                disk.set_len(end)?;
                disk.sync()?;
            }
            Ok(())
        })?;
        self.synced = synced.min(end);
        Ok(())
    }

    /// Empties the buffer, and cuts the log to `end`.
    pub(crate) fn discard_after(&mut self, end: u64) -> Result<(), StateError> {
        self.pending.clear();
        self.cut_to(end)
    }

    /// Returns a reader of the digests in the file. The reader has the file's cursor for itself.
    pub(crate) fn replay<D: StoredDigest>(&mut self) -> Result<Replay<'_, D>, StateError> {
        let blocks = (self.from, self.end);
        Ok(Replay::new(BlockReader::new(self.disk.as_file(), &self.path, blocks)?))
    }

    /// Appends digests to the buffer, and writes the buffer to the file when the buffer is full.
    pub(crate) fn append_digests<D: StoredDigest>(
        &mut self,
        digests: impl IntoIterator<Item = D>,
    ) -> Result<(), StateError> {
        for digest in digests {
            if self.pending.len() + size_of::<D>() > MAX_DATA_BYTES {
                self.write_pending()?;
            }
            self.pending.extend_from_slice(digest.to_bytes().as_ref());
        }
        Ok(())
    }

    /// Writes the buffer to the file. After an error, the digests stay in the buffer.
    pub(crate) fn write_pending(&mut self) -> Result<(), StateError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        let appended = self.append(DATA, &pending);
        if appended.is_ok() {
            pending.clear();
        }
        self.pending = pending;
        appended
    }

    /// Writes the buffer, and appends a block with the JSON of a checkpoint.
    pub(crate) fn append_json(&mut self, tag: [u8; 4], json: &[u8]) -> Result<(), StateError> {
        let (len_bytes, max_bytes) = (json.len(), MAX_CHECKPOINT_BYTES);
        if len_bytes > max_bytes {
            let path = self.path.clone();
            return Err(StateError::CheckpointTooLarge { path, len_bytes, max_bytes });
        }
        self.write_pending()?;
        self.append(tag, json)
    }

    /// Appends a block. After an error, the next block replaces the part of the block that was
    /// written.
    fn append(&mut self, tag: [u8; 4], payload: &[u8]) -> Result<(), StateError> {
        let (at, block) = (self.end, block(tag, payload, self.end));
        self.io(|disk| disk.write_at(at, &block))?;
        self.end += block.len() as u64;
        Ok(())
    }

    /// Syncs all blocks, and raises the synced length. The next sync puts the synced length on the
    /// disk. Until the next sync, the blocks behind the old synced length count as the tail of the
    /// log.
    pub(crate) fn sync_blocks(&mut self) -> Result<(), StateError> {
        let end = self.end;
        self.io(|disk| {
            disk.sync()?;
            disk.write_at(SYNCED_AT, &synced::encode(end))
        })?;
        self.synced = end;
        Ok(())
    }

    /// Syncs the file.
    pub(crate) fn sync_file(&mut self) -> Result<(), StateError> {
        self.io(DiskFile::sync)
    }

    fn io<T>(
        &mut self,
        action: impl FnOnce(&mut DiskFile) -> io::Result<T>,
    ) -> Result<T, StateError> {
        action(&mut self.disk).map_err(StateError::io(&self.path))
    }
}
