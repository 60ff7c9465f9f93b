//! The state that a run stores for the next run: a log of digests. The log survives a kill at any
//! time.
//!
//! The file is append-only (`docs/formats/state.md` has the drawing):
//!
//! ```text
//! header | DATA … DATA MARK DATA … MARK DATA … DONE | DATA … DONE | DATA … MARK DATA … (torn)
//!          └────────── a finished run ────────────┘   └ another ┘   └ a run that was killed ┘
//! ```
//!
//! The order of writes makes the log safe. A checkpoint first syncs the output. After the sync of
//! the output, the checkpoint appends the digests of the written records and a MARK with the
//! positions in input and output, and syncs the log. The end of a run renames the output, then
//! appends DONE. Every record in the log is therefore also in the output. The header holds the
//! synced length of the log, which separates damage from a torn tail (`synced.rs`):
//!
//! * The run is killed before a MARK is on disk: the next run cuts the log to the previous MARK.
//!   The next run cuts the output to the length in the previous MARK, and reads the input from the
//!   position in the previous MARK.
//! * The run is killed before the first MARK, or the output is lost (`> file` empties the output,
//!   and a pipe stores nothing): the next run cuts the log to the last DONE and starts from the
//!   first input.
//! * The run is killed between the renaming of the output and DONE: the output is complete. The
//!   next run starts from the first input and writes the same output again.
//! * The run is killed after DONE, but before the caller has read the exit status. The next run
//!   counts as a repeat of the finished run if both runs read the same unmodified input files and
//!   write to the same output file. If the output file still contains the output of the finished
//!   run, a repeat of the finished run does nothing. If `> file` has emptied the output file, a
//!   repeat of the finished run cuts the log to the start of the finished run and writes the output
//!   again.
//!
//! A run that fails cuts the log to the position at which the run began. A process locks the file,
//! so only one process at a time uses the file.

mod checkpoint;
mod disk;
mod header;
mod log;
mod synced;

use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use tamis::Hasher;

use crate::commands::dedup::digest::Width;
pub use crate::commands::dedup::state::checkpoint::{Checkpoint, InputId};
use crate::commands::dedup::state::disk::DiskFile;
use crate::commands::dedup::state::header::StateHeader;
pub use crate::commands::dedup::state::header::Wanted;
use crate::commands::dedup::state::log::{
    DATA, DONE, MARK, MAX_DATA_BYTES, Scan, block, damaged, each_block, scan,
};
use crate::commands::dedup::state::synced::SYNCED_AT;
use crate::exit::Failure;
use crate::io::output::create_private;

/// An open and locked state file.
pub struct StateFile {
    /// The last checkpoint of a killed run after the last finished run, and the offset of the end
    /// of the checkpoint.
    pub killed: Option<(Checkpoint, u64)>,
    /// The last finished run, and the offset in the log at which the last finished run starts.
    pub last: Option<(Checkpoint, u64)>,
    disk: DiskFile,
    name: String,
    header: StateHeader,
    data_from: u64,
    // The length to which a failed run cuts the file.
    cut: u64,
    end: u64,
    // The synced length in the header.
    synced: u64,
    pending: Vec<u8>,
    // True if a run has begun and is not finished.
    is_running: bool,
}

impl StateFile {
    /// Opens the state file at `path`, or creates the file. Only the owner can read a new file,
    /// because the file holds the secret key.
    ///
    /// # Errors
    ///
    /// Returns an error if another process uses the file, or if the file is damaged or not a state
    /// file. Returns an error if a run with other options created the file.
    pub fn open(path: &Path, wanted: &Wanted<'_>) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failure = |error: io::Error| Failure::io(&name, &error);
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::new(format!("{name}: a state must be a regular file")));
        }
        let new = StateHeader {
            width_bytes: (wanted.width_bits / 8) as u8,
            description: wanted.description.into(),
            hasher: wanted.hasher,
        };
        // A new file is created with its whole header, so a file that is shorter than a header was
        // cut.
        create_private(path, &new.to_bytes())?;
        let file = OpenOptions::new().read(true).write(true).open(path);
        let mut file = file.map_err(failure)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{name}: another process is using this state; wait for it");
                return Err(Failure::new(message));
            }
            Err(TryLockError::Error(error)) => return Err(failure(error)),
        }
        let (header, data_from, synced) = StateHeader::read(&mut file, &name)?;
        header.check(&name, wanted)?;
        let Scan { done_end, killed, last } =
            scan(&mut file, &name, data_from, synced, header.width_bytes)?;
        Ok(StateFile {
            killed,
            last,
            disk: DiskFile::new(file),
            name,
            header,
            data_from,
            cut: done_end,
            end: done_end,
            synced,
            pending: Vec::new(),
            is_running: false,
        })
    }

    /// Returns the width of the digests in bits.
    pub fn width_bits(&self) -> u32 {
        u32::from(self.header.width_bytes) * 8
    }

    /// Returns the hasher that computes the digests.
    pub fn hasher(&self) -> Hasher {
        self.header.hasher
    }

    /// Cuts the log to the end of the last finished run, or to `end` if the run resumes at
    /// that offset.
    ///
    /// # Errors
    ///
    /// Returns I/O errors.
    pub fn begin(&mut self, end: Option<u64>) -> Result<(), Failure> {
        self.cut = end.unwrap_or(self.cut);
        self.end = self.cut;
        self.is_running = true;
        self.cut_log()
    }

    /// Cuts the log to the position at which this run begins.
    fn cut_log(&mut self) -> Result<(), Failure> {
        let (cut, synced) = (self.cut, self.synced);
        self.io(|disk| {
            if cut < synced {
                disk.write_at(SYNCED_AT, &synced::encode(cut))?;
                disk.sync()?;
            }
            if disk.as_file().metadata()?.len() > cut {
                disk.set_len(cut)?;
                disk.sync()?;
            }
            Ok(())
        })?;
        self.synced = synced.min(cut);
        Ok(())
    }

    /// Calls `each` with the bytes of all digests, in batches.
    ///
    /// # Errors
    ///
    /// Returns I/O errors, and the errors of `each`.
    pub fn replay(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (name, blocks) = (&self.name, (self.data_from, self.end));
        let at = each_block(self.disk.as_file(), name, blocks, |block, _| {
            if block.tag == DATA { each(&block.payload) } else { Ok(()) }
        })?;
        if at < self.end { Err(damaged(name, at)) } else { Ok(()) }
    }

    /// Appends digests. The digests must have the width of the state.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full.
    pub fn remember<D: Width>(
        &mut self,
        digests: impl IntoIterator<Item = D>,
    ) -> Result<(), Failure> {
        for digest in digests {
            if self.pending.len() + size_of::<D>() > MAX_DATA_BYTES {
                self.write_pending()?;
            }
            self.pending.extend_from_slice(digest.to_bytes().as_ref());
        }
        Ok(())
    }

    /// Appends a checkpoint. The caller guarantees that the output is on disk up to the position
    /// in `checkpoint`.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        // The next sync puts the synced length on the disk. Until the next sync, the blocks behind
        // the old synced length count as the tail of the log.
        self.append_checkpoint(MARK, checkpoint)
    }

    /// Appends the end of the run. The caller guarantees that the output is on disk under its final
    /// name.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full.
    pub fn finish(mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.append_checkpoint(DONE, checkpoint)?;
        self.io(DiskFile::sync)?;
        self.is_running = false;
        Ok(())
    }

    fn append_checkpoint(&mut self, tag: [u8; 4], checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.write_pending()?;
        self.append(tag, &serde_json::to_vec(checkpoint).expect("plain data"))?;
        let end = self.end;
        self.io(|disk| {
            disk.sync()?;
            disk.write_at(SYNCED_AT, &synced::encode(end))
        })?;
        self.synced = end;
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
        let (at, block) = (self.end, block(tag, payload, self.end));
        self.end += block.len() as u64;
        self.io(|disk| disk.write_at(at, &block))
    }

    fn io<T>(&mut self, action: impl FnOnce(&mut DiskFile) -> io::Result<T>) -> Result<T, Failure> {
        action(&mut self.disk).map_err(|error| match Failure::io(&self.name, &error) {
            Failure::BrokenPipe => Failure::new(format!("{}: {error}", self.name)),
            failure => failure,
        })
    }
}

impl Drop for StateFile {
    /// Cuts the log to the position at which the run began, if the run did not finish.
    fn drop(&mut self) {
        if self.is_running {
            // A failed cut does no harm, because the next run cuts the log too.
            self.cut_log().ok();
        }
    }
}

#[cfg(test)]
mod tests;
