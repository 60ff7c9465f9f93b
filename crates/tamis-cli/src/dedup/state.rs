//! The state that a run leaves for the next: a log of digests that survives a kill at any moment.
//!
//! The file is append-only (`docs/formats/state.md` has the drawing):
//!
//! ```text
//! header | DATA … DATA MARK DATA … MARK DATA … DONE | DATA … DONE | DATA … MARK DATA … (torn)
//!          └────────── a finished run ────────────┘   └ another ┘   └ a run that was killed ┘
//! ```
//!
//! The order of writes is the whole protocol. A checkpoint syncs the output, then appends the digests of its records, then a
//! MARK with the positions in input and output. The end of a run renames the output, then appends DONE. So the records of the log
//! are always a part of those of the output:
//!
//! * Killed before a MARK is on disk: the next run cuts the log to the MARK before it and the output to the length in that MARK,
//!   and reads the input from there.
//! * Killed before the first MARK, or the output is lost (`> file` empties it, and a pipe keeps nothing): the next run cuts the
//!   log to the last DONE and starts over.
//! * Killed between the renaming of the output and DONE: the output is complete; the next run starts over and writes the same
//!   output again.
//! * Killed after DONE but before the caller saw the exit status: the same command on unchanged files, with the same output file,
//!   is the same run. If the output still exists, nothing is done. If `> file` has emptied it, the run is repeated from its start.
//!
//! A run that fails cuts the log to the position at which it began. One process at a time holds the lock of the file.

mod header;
mod log;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tamis::Hasher;

use self::header::{FIXED_BYTES, Header};
use self::log::{BUFFER_BYTES, Block, DATA, DONE, MARK, MAX_DATA_BYTES, block, read_up_to, scan};
use crate::exit::Failure;
use crate::output::Mark;

/// The identity of an input, by which a later run recognises it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputId {
    /// Its path as typed.
    pub name: String,
    /// Size in bytes and time of the last change in nanoseconds, if it is a file.
    pub file: Option<(u64, u64)>,
}

/// The position of a run when its output and its digests were last on disk together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The inputs.
    pub inputs: Vec<InputId>,
    /// The index of the input that was being read.
    pub input: usize,
    /// The number of its bytes, after decompression, that were processed.
    pub at_bytes: u64,
    /// Where the output ended.
    pub output: Option<Mark>,
    /// Records read and written so far.
    pub records: u64,
    /// Of these, written.
    pub written: u64,
}

/// What a run requires of a state.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The description of the keys and records behind the digests.
    pub description: &'a str,
    /// The hasher of a new file.
    pub hasher: Hasher,
    /// Whether an existing file must have that hasher.
    pub is_hasher_fixed: bool,
    /// The width of the digests of a new file.
    pub width_bits: u32,
    /// Whether an existing file must have that width.
    pub is_width_fixed: bool,
}

/// An open state file, locked.
pub struct State {
    file: File,
    name: String,
    width_bytes: u8,
    hasher: Hasher,
    data_from: u64,
    // The length to which a failed run cuts the file.
    cut: u64,
    end: u64,
    pending: Vec<u8>,
    is_done: bool,
}

/// A state file as it was found.
pub struct Found {
    /// The file, at the end of its last finished run.
    pub state: State,
    /// A later run that was killed, with the offset at which its last checkpoint ends.
    pub killed: Option<(Checkpoint, u64)>,
    /// The last finished run, with the offset at which its part of the log starts.
    pub last: Option<(Checkpoint, u64)>,
}

impl State {
    /// Opens the state file at `path`, or creates it. Only the owner can read a new file, since it holds the key.
    ///
    /// # Errors
    ///
    /// A file that another process uses, that is not a state file, that is damaged, or that was made with other options.
    pub fn open(path: &Path, wanted: &Wanted<'_>) -> Result<Found, Failure> {
        let name = path.display().to_string();
        let failure = |error: io::Error| Failure::io(&name, &error);
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::new(format!("{name}: is not a regular file, so no state")));
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
        let new = Header {
            width_bytes: (wanted.width_bits / 8) as u8,
            description: wanted.description.into(),
            hasher: wanted.hasher,
        };
        let bytes = new.to_bytes();
        let mut found = vec![0; bytes.len()];
        let len = read_up_to(&mut file, &mut found).map_err(failure)?;
        // A run that was killed while it created the file has left an incomplete header with another key.
        let known_bytes = len.min(FIXED_BYTES + wanted.description.len());
        let is_new = len < bytes.len() && bytes.starts_with(&found[..known_bytes]);
        let (header, data_from) = if is_new {
            file.set_len(0).and_then(|()| file.rewind()).map_err(failure)?;
            // An empty file that existed keeps the mode of its creator.
            #[cfg(unix)]
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .map_err(failure)?;
            file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failure)?;
            crate::output::sync_folder(path).map_err(failure)?;
            (new, bytes.len() as u64)
        } else {
            let (header, end) = Header::read(&mut file, &name)?;
            header.check(&name, wanted)?;
            (header, end)
        };
        let width_bytes = header.width_bytes;
        let scan = scan(&mut file, &name, data_from, width_bytes)?;
        let end = scan.done_end;
        let state = State {
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
        Ok(Found { state, killed: scan.killed, last: scan.last })
    }

    /// Returns the width of the digests in bits.
    pub fn width_bits(&self) -> u32 {
        u32::from(self.width_bytes) * 8
    }

    /// Returns the hasher that makes the digests.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Cuts the log to the end of the last finished run, or to `end` if the run resumes from there.
    ///
    /// # Errors
    ///
    /// Those of the system.
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
    /// Those of the system and of `each`.
    pub fn replay(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (from, end, name) = (self.data_from, self.end, self.name.clone());
        let failure = |error: io::Error| Failure::io(&name, &error);
        self.file.seek(SeekFrom::Start(from)).map_err(failure)?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &self.file);
        let mut at = from;
        let mut block = Block::default();
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

    /// Appends a checkpoint: the output is on disk up to this position.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.write_pending()?;
        let payload = serde_json::to_vec(checkpoint).expect("plain data");
        self.append(MARK, &payload)?;
        self.io(|file| file.sync_data())
    }

    /// Appends the end of the run: its output is on disk under its final name.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn finish(mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.write_pending()?;
        let payload = serde_json::to_vec(checkpoint).expect("plain data");
        self.append(DONE, &payload)?;
        self.io(|file| file.sync_all())?;
        self.is_done = true;
        Ok(())
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

impl Drop for State {
    /// Cuts the log of a run that did not finish to the position at which it began.
    fn drop(&mut self) {
        if !self.is_done {
            // If this fails, the next run cuts the log: it ignores everything behind the cut.
            self.file.set_len(self.cut).ok();
        }
    }
}

fn damaged(name: &str, at: u64) -> Failure {
    Failure::new(format!(
        "{name}: the state is damaged at byte {at}; restore it from a copy, or remove it to start over"
    ))
}

#[cfg(test)]
mod tests;
