//! A durable set of digests, for a caller that has no inputs and no output, such as a crawler.
//!
//! The file has the format of `tamis dedup --state`. Each sync appends DONE, as if a run had
//! finished that read no input:
//!
//! ```text
//! header | DONE | DATA … DATA DONE | DATA DATA … DONE | DATA … DATA (torn)
//!          └ first open            └ a sync           └ flushed, not synced
//! ```
//!
//! * After `kill -9`, the file holds all flushed blocks, because the system writes them to the disk.
//! * After a power loss, the file holds at least all blocks before the last sync. The blocks behind
//!   the last sync end at the first invalid block, and the next open cuts the file there.
//! * An invalid block before the synced length is damage, and the open fails.
//!
//! A run of `tamis dedup` that was killed leaves blocks whose records may not be in the output of
//! the run. Those blocks follow a MARK, or a DONE of `tamis dedup`. The log refuses a file with such
//! blocks. Therefore the log appends a DONE without inputs before the first block, and keeps only
//! blocks that follow a DONE without inputs.

use std::marker::PhantomData;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tamis::Hasher;

use crate::block::DONE;
use crate::digest::StoredDigest;
use crate::error::StateError;
use crate::header::Requirements;
use crate::log_file::LogFile;
use crate::replay::Replay;
use crate::scan::Scan;

/// The JSON of a finished run of `tamis dedup` that read no input and wrote no output.
const NO_INPUTS: &[u8] =
    br#"{"inputs":[],"input":0,"at_bytes":0,"output":null,"records":0,"written":0}"#;

/// The part of a checkpoint that distinguishes this log from a run of `tamis dedup`.
#[derive(Deserialize)]
struct RunInputs {
    inputs: Vec<IgnoredAny>,
}

/// An open and locked file of the digests that a program has seen, with digests of the type `D`:
/// `u64` or `u128`.
///
/// The log stores the digests in the order of the calls, and stores a repeated digest twice. The
/// caller holds the set, for example a [`DigestSet`](tamis::DigestSet), and appends only new
/// digests.
///
/// A digest is in one of three places:
///
/// | place | after | survives |
/// | --- | --- | --- |
/// | a buffer of at most 64 KiB | [`append`](Self::append) | nothing |
/// | the file | [`write_all`](Self::write_all), [`flush`](Self::flush), or when the buffer is full | `kill -9` |
/// | the disk | [`sync`](Self::sync), [`close`](Self::close) | a power loss |
///
/// The drop of a log flushes the buffer, and ignores an error.
///
/// Only the process that opened the log uses the file. In a forked process, all reads and writes
/// fail with [`StateError::OtherProcess`], and [`close`](Self::close) and the drop write nothing. A
/// forked process does not keep the lock after the process that opened the log has closed the log.
///
/// # Examples
///
/// ```
/// use tamis::{Answers, DigestSet, Hasher};
/// use tamis_state::SeenLog;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("seen");
/// // A program takes the key from the random numbers of the system.
/// let new_file = Hasher::keyed([1, 2]);
///
/// let mut log = SeenLog::<u128>::open(&path, "request fingerprints", new_file)?;
/// let hasher = log.hasher();
/// log.append([hasher.hash128(b"https://example.org/")])?;
/// log.close()?;
///
/// let mut log = SeenLog::<u128>::open(&path, "request fingerprints", new_file)?;
/// let (mut seen, mut new) = (DigestSet::new(), Answers::new());
/// let mut replay = log.replay()?;
/// while let Some(digests) = replay.next_batch()? {
///     seen.insert_each(digests, &mut new).expect("enough memory");
/// }
/// assert!(seen.contains(log.hasher().hash128(b"https://example.org/")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SeenLog<D> {
    log: LogFile,
    // True if a sync has failed, or if the log could not be cut after a failed write.
    has_sync_failed: bool,
    digest: PhantomData<D>,
}

impl<D: StoredDigest> SeenLog<D> {
    /// Opens the file at `path`, or creates the file. Only the owner can read a new file, because
    /// the file holds the secret key of `hasher`.
    ///
    /// `description` defines the items and their encoding, in at most 65,535 bytes. An existing file
    /// must have the same description and the same width. A new file stores `hasher`. An existing
    /// file keeps its hasher, which [`hasher`](Self::hasher) returns.
    ///
    /// Reads the whole file in blocks. Cuts a torn tail, and syncs the digests that an earlier
    /// process has not synced. If the disk is full, the open succeeds without this sync, so that the
    /// digests can be read.
    ///
    /// # Errors
    ///
    /// Returns an error if another process uses the file, or if the file is damaged or not a state
    /// file. Returns an error if the file has another description or width.
    /// [`StateError::KilledRun`] if a run of `tamis dedup` on the file was killed.
    pub fn open(path: &Path, description: &str, hasher: Hasher) -> Result<Self, StateError> {
        let wanted = Requirements {
            description,
            hasher,
            is_hasher_fixed: false,
            width_bits: D::BITS,
            is_width_fixed: true,
        };
        let (log, scan) = LogFile::open(path, &wanted)?;
        let mut log = SeenLog { log, has_sync_failed: false, digest: PhantomData };
        log.recover(&scan)?;
        Ok(log)
    }

    /// Adopts the blocks of an earlier process.
    fn recover(&mut self, scan: &Scan<RunInputs>) -> Result<(), StateError> {
        let is_own = scan.last.as_ref().is_some_and(|last| last.checkpoint.inputs.is_empty());
        let has_tail = scan.end > scan.done_end;
        if scan.killed.is_some() || has_tail && !is_own {
            return Err(StateError::KilledRun { path: self.log.path().into() });
        }
        self.log.cut_to(scan.end)?;
        if is_own && !self.log.is_unsynced() {
            return Ok(());
        }
        let done = self.append_done();
        if done.is_ok() || self.has_sync_failed {
            return done;
        }
        // The disk is full. The digests can be read, and the next sync appends DONE.
        self.discard_after(scan.end);
        if is_own { Ok(()) } else { done }
    }

    /// Returns the hasher that computes the digests.
    pub fn hasher(&self) -> Hasher {
        self.log.hasher()
    }

    /// Tests whether the log accepts digests.
    ///
    /// # Errors
    ///
    /// [`StateError::OtherProcess`] in a forked process. [`StateError::SyncFailed`] after a failed
    /// sync, or if the log could not be cut after a failed write.
    pub fn check(&self) -> Result<(), StateError> {
        self.check_process()?;
        if self.has_sync_failed {
            return Err(StateError::SyncFailed { path: self.log.path().into() });
        }
        Ok(())
    }

    /// Returns a reader of the digests in the file. The reader does not return digests in the
    /// buffer.
    ///
    /// # Errors
    ///
    /// Returns I/O errors. [`StateError::OtherProcess`] in a forked process.
    pub fn replay(&mut self) -> Result<Replay<'_, D>, StateError> {
        self.check_process()?;
        self.log.replay()
    }

    /// Appends digests to the buffer. Writes a full buffer to the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full. The log then holds an unknown part of the digests of
    /// this call, and all digests of earlier calls. The caller may append the same digests again
    /// after the disk has free space.
    ///
    /// The errors of [`check`](Self::check).
    pub fn append(&mut self, digests: impl IntoIterator<Item = D>) -> Result<(), StateError> {
        self.check()?;
        self.log.append_digests(digests)
    }

    /// Appends digests and writes the digests to the file. The digests then survive `kill -9`.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full. The log then holds no digest of this call, and all
    /// digests of earlier calls. The errors of [`check`](Self::check).
    ///
    /// After an error, `write_all` cuts the file to its length before the call. If the disk rejects
    /// the cut, every later call of `append`, `write_all`, `flush` and `sync` fails with
    /// [`StateError::SyncFailed`].
    pub fn write_all(&mut self, digests: impl IntoIterator<Item = D>) -> Result<(), StateError> {
        self.flush()?;
        let end = self.log.end();
        let written = self.log.append_digests(digests).and_then(|()| self.log.write_pending());
        if written.is_err() {
            self.discard_after(end);
        }
        written
    }

    /// Writes the buffer to the file. The digests then survive `kill -9`.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full. The digests then stay in the buffer, and the caller
    /// may call `flush` again. The errors of [`check`](Self::check).
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.check()?;
        self.log.write_pending()
    }

    /// Writes the buffer to the file and waits until the disk has the file. The digests then survive
    /// a power loss. Returns immediately if the disk has all digests.
    ///
    /// # Errors
    ///
    /// The errors of [`flush`](Self::flush). If the disk rejects the sync, the error is
    /// [`StateError::Io`]. Every later call of `append`, `write_all`, `flush` and `sync` then
    /// fails, because a second sync may report success although the disk lacks bytes.
    pub fn sync(&mut self) -> Result<(), StateError> {
        self.check()?;
        if self.log.is_unsynced() { self.append_done() } else { Ok(()) }
    }

    /// Syncs and closes the file. After the return, another process may open the file. In a forked
    /// process, drops the log, and the process that opened the log keeps the file open.
    ///
    /// # Errors
    ///
    /// The errors of [`sync`](Self::sync), except [`StateError::OtherProcess`]. The file is closed
    /// also after an error.
    pub fn close(mut self) -> Result<(), StateError> {
        if !self.log.disk.is_own() {
            return Ok(());
        }
        self.sync()?;
        // The last sync was before the last change of the synced length.
        self.log.sync_file()
    }

    fn append_done(&mut self) -> Result<(), StateError> {
        self.log.append_json(DONE, NO_INPUTS)?;
        let synced = self.log.sync_blocks();
        self.has_sync_failed = synced.is_err();
        synced
    }

    /// Removes the blocks of a failed write from the file.
    fn discard_after(&mut self, end: u64) {
        self.has_sync_failed |= self.log.discard_after(end).is_err();
    }

    fn check_process(&self) -> Result<(), StateError> {
        if self.log.disk.is_own() {
            return Ok(());
        }
        let (path, opened_by) = (self.log.path().into(), self.log.disk.locked_by);
        Err(StateError::OtherProcess { path, opened_by })
    }
}

impl<D> Drop for SeenLog<D> {
    fn drop(&mut self) {
        // In a forked process, the buffer is a copy of the buffer of the other process.
        if self.log.disk.is_own() {
            // The caller of `flush`, `sync` or `close` gets the error.
            self.log.write_pending().ok();
        }
    }
}

#[cfg(test)]
mod tests;
