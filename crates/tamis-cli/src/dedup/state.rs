//! The state that a run stores for the next run: a log of digests that survives a kill at any
//! moment.
//!
//! The file is append-only (`docs/formats/state.md` has the drawing):
//!
//! ```text
//! header | DATA … DATA MARK DATA … MARK DATA … DONE | DATA … DONE | DATA … MARK DATA … (torn)
//!          └────────── a finished run ────────────┘   └ another ┘   └ a run that was killed ┘
//! ```
//!
//! The order of writes makes the log safe. A checkpoint syncs the output, then appends the digests
//! of its records, then a MARK with the positions in input and output. The end of a run renames the
//! output, then appends DONE. So every record in the log is also in the output:
//!
//! * The run is killed before a MARK is on disk: the next run cuts the log to the previous MARK and
//!   the output to the length in that MARK. It reads the input from the position in that MARK.
//! * The run is killed before the first MARK, or the output is lost (`> file` empties it, and a
//!   pipe stores nothing): the next run cuts the log to the last DONE and starts over.
//! * The run is killed between the renaming of the output and DONE: the output is complete. The
//!   next run starts over and writes the same output again.
//! * The run is killed after DONE, but before the caller saw the exit status: the same command on
//!   unchanged files, with the same output file, counts as the same run. If the output still
//!   exists, the command does nothing. If `> file` has emptied the output, the command repeats the
//!   run from its start.
//!
//! A run that fails cuts the log to the position at which the run began. A process locks the file,
//! so only one process at a time uses it.

mod checkpoint;
mod header;
mod log;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use tamis::Hasher;

pub use crate::dedup::state::checkpoint::{Checkpoint, InputId};
pub use crate::dedup::state::header::Wanted;
use crate::dedup::state::header::{FIXED_BYTES, StateHeader};
use crate::dedup::state::log::{
    BUFFER_BYTES, DATA, DONE, LogBlock, MARK, MAX_DATA_BYTES, block, damaged, scan,
};
use crate::exit::Failure;
use crate::read::read_up_to;

/// An open and locked state file.
pub struct StateFile {
    file: File,
    name: String,
    width_bytes: u8,
    hasher: Hasher,
    data_from: u64,
    // A failed run cuts the file to this length.
    cut: u64,
    end: u64,
    pending: Vec<u8>,
    is_done: bool,
}

/// The contents of a state file that was opened.
pub struct OpenedState {
    /// The file, positioned at the end of its last finished run.
    pub state: StateFile,
    /// The last checkpoint of a later run that was killed, and the offset of its end.
    pub killed: Option<(Checkpoint, u64)>,
    /// The last finished run, and the offset at which its part of the log starts.
    pub last: Option<(Checkpoint, u64)>,
}

impl StateFile {
    /// Opens the state file at `path`, or creates it. Only the owner can read a new file, since the
    /// file holds the secret key.
    ///
    /// # Errors
    ///
    /// If another process uses the file, if it is not a state file, if it is damaged, or if a run
    /// with other options created it.
    pub fn open(path: &Path, wanted: &Wanted<'_>) -> Result<OpenedState, Failure> {
        let name = path.display().to_string();
        let failure = |error: io::Error| Failure::io(&name, &error);
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::new(format!("{name}: a state must be a regular file")));
        }
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failure)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{name}: another process is using this state; wait for it");
                return Err(Failure::new(message));
            }
            Err(TryLockError::Error(error)) => return Err(failure(error)),
        }
        let new = StateHeader {
            width_bytes: (wanted.width_bits / 8) as u8,
            description: wanted.description.into(),
            hasher: wanted.hasher,
        };
        let bytes = new.to_bytes();
        let mut found = vec![0; bytes.len()];
        let len = read_up_to(&mut file, &mut found).map_err(failure)?;
        // A run that was killed during the creation of the file left an incomplete header with
        // another key.
        let known_bytes = len.min(FIXED_BYTES + wanted.description.len());
        let is_new = len < bytes.len() && bytes.starts_with(&found[..known_bytes]);
        let (header, data_from) = if is_new {
            file.set_len(0).and_then(|()| file.rewind()).map_err(failure)?;
            // If the file existed and was empty, it still has the mode of its creator.
            #[cfg(unix)]
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .map_err(failure)?;
            file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failure)?;
            crate::output::sync_folder(path).map_err(failure)?;
            (new, bytes.len() as u64)
        } else {
            let (header, end) = StateHeader::read(&mut file, &name)?;
            header.check(&name, wanted)?;
            (header, end)
        };
        let width_bytes = header.width_bytes;
        let scan = scan(&mut file, &name, data_from, width_bytes)?;
        let end = scan.done_end;
        let state = StateFile {
            file,
            name,
            width_bytes,
            hasher: header.hasher,
            data_from,
            cut: end,
            end,
            pending: Vec::new(),
            is_done: false,
        };
        Ok(OpenedState { state, killed: scan.killed, last: scan.last })
    }

    /// Returns the width of the digests in bits.
    pub fn width_bits(&self) -> u32 {
        u32::from(self.width_bytes) * 8
    }

    /// Returns the hasher that computes the digests.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Cuts the log to the end of the last finished run, or to `end` if the run resumes at
    /// that offset.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn begin(&mut self, end: Option<u64>) -> Result<(), Failure> {
        self.cut = end.unwrap_or(self.cut);
        self.end = self.cut;
        let end = self.end;
        self.io(|file| file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end)).map(drop)))
    }

    /// Calls `each` with the bytes of all digests, in batches.
    ///
    /// # Errors
    ///
    /// I/O errors, and the errors of `each`.
    pub fn replay(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (from, end, name) = (self.data_from, self.end, self.name.clone());
        let failure = |error: io::Error| Failure::io(&name, &error);
        self.file.seek(SeekFrom::Start(from)).map_err(failure)?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &self.file);
        let mut at = from;
        let mut block = LogBlock::default();
        while at < end {
            if !block.read(&mut reader, at).map_err(failure)? {
                return Err(damaged(&name, at));
            }
            if block.tag == DATA {
                each(&block.payload)?;
            }
            at += block.len_bytes();
        }
        self.file.seek(SeekFrom::Start(end)).map(drop).map_err(failure)
    }

    /// Appends digests, given as bytes.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn remember(&mut self, digests: &[u8]) -> Result<(), Failure> {
        for digests in digests.chunks(MAX_DATA_BYTES) {
            if self.pending.len() + digests.len() > MAX_DATA_BYTES {
                self.write_pending()?;
            }
            self.pending.extend_from_slice(digests);
        }
        Ok(())
    }

    /// Appends a checkpoint. The caller guarantees that the output is on disk up to this position.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.append_checkpoint(MARK, checkpoint)?;
        self.io(|file| file.sync_data())
    }

    /// Appends the end of the run. The caller guarantees that the output is on disk under its final
    /// name.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn finish(mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.append_checkpoint(DONE, checkpoint)?;
        self.io(|file| file.sync_all())?;
        self.is_done = true;
        Ok(())
    }

    fn append_checkpoint(&mut self, tag: [u8; 4], checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.write_pending()?;
        self.append(tag, &serde_json::to_vec(checkpoint).expect("plain data"))
    }

    fn write_pending(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        let appended = self.append(DATA, &pending);
        pending.clear();
        self.pending = pending;
        appended
    }

    fn append(&mut self, tag: [u8; 4], payload: &[u8]) -> Result<(), Failure> {
        let block = block(tag, payload, self.end);
        self.end += block.len() as u64;
        self.io(|file| file.write_all(&block))
    }

    fn io<T>(&mut self, action: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T, Failure> {
        action(&mut self.file).map_err(|error| match Failure::io(&self.name, &error) {
            Failure::BrokenPipe => Failure::new(format!("{}: {error}", self.name)),
            failure => failure,
        })
    }
}

impl Drop for StateFile {
    /// Cuts the log of a run that did not finish to the position at which it began.
    fn drop(&mut self) {
        if !self.is_done {
            // An error here does no harm: the next run cuts the log itself, and ignores everything
            // after the cut.
            self.file.set_len(self.cut).ok();
        }
    }
}

#[cfg(test)]
mod tests;
