//! The state that a run stores for the next run: a log of digests, and the positions of the run in
//! its inputs and its output. The log survives a kill at any time.
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

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tamis::Hasher;

use crate::block::{DONE, MARK};
use crate::digest::StoredDigest;
use crate::error::StateError;
use crate::header::Requirements;
use crate::log_file::LogFile;
use crate::replay::Replay;
use crate::scan::{FinishedRun, KilledRun};

/// An open and locked state file of runs that read inputs and write an output.
///
/// `C` is the checkpoint: the identities of the inputs, and the positions in input and output. The
/// file stores a checkpoint as JSON.
///
/// # Examples
///
/// ```
/// use tamis::Hasher;
/// use tamis_state::{Requirements, StateFile};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("state");
/// let wanted = Requirements {
///     description: "lines",
///     hasher: Hasher::keyed([1, 2]),
///     is_hasher_fixed: false,
///     width_bits: 64,
///     is_width_fixed: true,
/// };
/// // The checkpoint is the number of bytes of the input that the run has read.
/// let mut state = StateFile::<u64>::open(&path, &wanted)?;
/// state.begin(None)?;
/// state.remember([state.hasher().hash(b"a line")])?;
/// state.finish(&7)?;
///
/// let mut state = StateFile::<u64>::open(&path, &wanted)?;
/// assert_eq!(state.last.as_ref().map(|last| last.checkpoint), Some(7));
/// let digest = state.hasher().hash(b"a line");
/// assert_eq!(state.replay::<u64>()?.next_batch()?, Some(&[digest][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StateFile<C> {
    /// The run that was killed after the last finished run.
    pub killed: Option<KilledRun<C>>,
    /// The last finished run.
    pub last: Option<FinishedRun<C>>,
    pub(crate) log: LogFile,
    // The length to which a failed run cuts the file.
    cut: u64,
    // True if a run has begun and is not finished.
    pub(crate) is_running: bool,
}

impl<C> StateFile<C> {
    /// Opens the state file at `path`, or creates the file. Only the owner can read a new file,
    /// because the file holds the secret key.
    ///
    /// # Errors
    ///
    /// Returns an error if another process uses the file, or if the file is damaged or not a state
    /// file. Returns an error if the file does not meet the requirements.
    ///
    /// # Panics
    ///
    /// Panics if the width is not 64 or 128 bits.
    pub fn open(path: &Path, wanted: &Requirements<'_>) -> Result<Self, StateError>
    where
        C: DeserializeOwned,
    {
        let (log, scan) = LogFile::open(path, wanted)?;
        let (killed, last) = (scan.killed, scan.last);
        Ok(StateFile { killed, last, log, cut: scan.done_end, is_running: false })
    }

    /// Returns the width of the digests in bits.
    pub fn width_bits(&self) -> u32 {
        self.log.width_bits()
    }

    /// Returns the hasher that computes the digests.
    pub fn hasher(&self) -> Hasher {
        self.log.hasher()
    }

    /// Cuts the log to the end of the last finished run, or to `end` if the run resumes at
    /// that offset.
    ///
    /// # Errors
    ///
    /// Returns I/O errors.
    pub fn begin(&mut self, end: Option<u64>) -> Result<(), StateError> {
        self.cut = end.unwrap_or(self.cut);
        self.is_running = true;
        self.log.cut_to(self.cut)
    }

    /// Returns a reader of all digests. Before [`begin`](Self::begin), the reader stops at the end
    /// of the last finished run.
    ///
    /// # Errors
    ///
    /// Returns I/O errors.
    ///
    /// # Panics
    ///
    /// Panics if the digests `D` do not have the width of the state.
    pub fn replay<D: StoredDigest>(&mut self) -> Result<Replay<'_, D>, StateError> {
        assert_eq!(D::BITS, self.width_bits(), "the digests have the width of the state");
        self.log.replay()
    }

    /// Appends digests. The digests must have the width of the state. The caller must have called
    /// [`begin`](Self::begin).
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full.
    pub fn remember<D: StoredDigest>(
        &mut self,
        digests: impl IntoIterator<Item = D>,
    ) -> Result<(), StateError> {
        self.log.append_digests(digests)
    }

    /// Appends a checkpoint. The caller guarantees that the output is on disk up to the position
    /// in `checkpoint`.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full, or if the checkpoint exceeds 16 MiB of JSON.
    pub fn checkpoint(&mut self, checkpoint: &C) -> Result<(), StateError>
    where
        C: Serialize,
    {
        self.append_checkpoint(MARK, checkpoint)
    }

    /// Appends the end of the run. The caller guarantees that the output is on disk under its final
    /// name.
    ///
    /// # Errors
    ///
    /// The errors of [`checkpoint`](Self::checkpoint).
    pub fn finish(mut self, checkpoint: &C) -> Result<(), StateError>
    where
        C: Serialize,
    {
        self.append_checkpoint(DONE, checkpoint)?;
        self.log.sync_file()?;
        self.is_running = false;
        Ok(())
    }

    fn append_checkpoint(&mut self, tag: [u8; 4], checkpoint: &C) -> Result<(), StateError>
    where
        C: Serialize,
    {
        let json = serde_json::to_vec(checkpoint)
            .map_err(|error| StateError::Checkpoint { path: self.log.path().into(), error })?;
        self.log.append_json(tag, &json)?;
        self.log.sync_blocks()
    }
}

impl<C> Drop for StateFile<C> {
    /// Cuts the log to the position at which the run began, if the run did not finish.
    fn drop(&mut self) {
        if self.is_running {
            // A failed cut does no harm, because the next run cuts the log too.
            self.log.cut_to(self.cut).ok();
        }
    }
}

#[cfg(test)]
mod tests;
