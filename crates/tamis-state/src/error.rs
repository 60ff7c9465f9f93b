//! The errors of state files.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use tamis::Hasher;

/// The reason why a state file cannot be opened, read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be read or written.
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The path names a folder, a device or a pipe.
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// This process or another process has the file open.
    Locked {
        /// The path of the file.
        path: PathBuf,
    },
    /// Another process opened the log, and this process is a fork of that process. Both processes
    /// would write to the same offsets of the file.
    OtherProcess {
        /// The path of the file.
        path: PathBuf,
        /// The id of the process that opened the log.
        opened_by: u32,
    },
    /// The file does not start with the magic bytes of a state file.
    NotAState {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file has another version of the format.
    Version {
        /// The path of the file.
        path: PathBuf,
        /// The version of the file.
        found: u8,
        /// The version that this crate reads.
        expected: u8,
    },
    /// Bytes that were on the disk have changed.
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The offset of the field or block that is invalid.
        at: u64,
    },
    /// The file has become shorter than its synced length.
    Truncated {
        /// The path of the file.
        path: PathBuf,
        /// The length of the file in bytes.
        len_bytes: u64,
    },
    /// The digests of the file were computed from other items.
    Description {
        /// The path of the file.
        path: PathBuf,
        /// The description in the file.
        found: String,
        /// The description that the caller requires.
        expected: String,
    },
    /// A header cannot store the description.
    DescriptionTooLong {
        /// The path of the file.
        path: PathBuf,
        /// The length of the description in bytes.
        len_bytes: usize,
        /// The maximum length in bytes.
        max_bytes: usize,
    },
    /// The digests of the file were computed by another hasher.
    Hasher {
        /// The path of the file.
        path: PathBuf,
        /// The hasher in the file.
        found: Hasher,
        /// The hasher that the caller requires.
        expected: Hasher,
    },
    /// The digests of the file have another width.
    Width {
        /// The path of the file.
        path: PathBuf,
        /// The width of the digests in the file, in bits.
        found_bits: u32,
        /// The width that the caller requires, in bits.
        expected_bits: u32,
    },
    /// The file contains a run of `tamis dedup` that was killed. The output of the run may lack
    /// records whose digests are in the file.
    KilledRun {
        /// The path of the file.
        path: PathBuf,
    },
    /// An earlier sync of this log failed. After a failed sync, the system may discard the bytes
    /// and report that the next sync succeeded.
    SyncFailed {
        /// The path of the file.
        path: PathBuf,
    },
    /// A checkpoint cannot be encoded as JSON.
    Checkpoint {
        /// The path of the file.
        path: PathBuf,
        /// The error of the encoder.
        error: serde_json::Error,
    },
    /// A checkpoint is too large for a block.
    CheckpointTooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The length of the encoded checkpoint in bytes.
        len_bytes: usize,
        /// The maximum length in bytes.
        max_bytes: usize,
    },
}

impl StateError {
    /// Returns a function that adds a path to an I/O error.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |error| StateError::Io { path: path.into(), error }
    }

    /// Returns the error for an invalid field or block at offset `at`.
    pub(crate) fn damaged(path: &Path, at: u64) -> Self {
        StateError::Damaged { path: path.into(), at }
    }

    /// Returns the error for a file of `len_bytes` that has become shorter.
    pub(crate) fn truncated(path: &Path, len_bytes: u64) -> Self {
        StateError::Truncated { path: path.into(), len_bytes }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        match self {
            StateError::Io { path, .. }
            | StateError::NotRegular { path }
            | StateError::Locked { path }
            | StateError::OtherProcess { path, .. }
            | StateError::NotAState { path }
            | StateError::Version { path, .. }
            | StateError::Damaged { path, .. }
            | StateError::Truncated { path, .. }
            | StateError::Description { path, .. }
            | StateError::DescriptionTooLong { path, .. }
            | StateError::Hasher { path, .. }
            | StateError::Width { path, .. }
            | StateError::KilledRun { path }
            | StateError::SyncFailed { path }
            | StateError::Checkpoint { path, .. }
            | StateError::CheckpointTooLarge { path, .. } => path,
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path().display())?;
        match self {
            StateError::Io { error, .. } => error.fmt(f),
            StateError::NotRegular { .. } => f.write_str("a state must be a regular file"),
            StateError::Locked { .. } => f.write_str(
                "the state file is already open in this or another process; close it there first",
            ),
            StateError::OtherProcess { opened_by, .. } => write!(
                f,
                "the file was opened by another process (pid {opened_by}): close it there and open \
                 it in this process, or use one file per process"
            ),
            StateError::NotAState { .. } => {
                f.write_str("is not a state file of Tamis; name another file")
            }
            StateError::Version { found, expected, .. } => write!(
                f,
                "is a state of version {found}, and this program reads version {expected}; use \
                 another tamis, or another state"
            ),
            StateError::Damaged { at, .. } => write!(
                f,
                "the state is damaged at byte {at}; restore it from a copy, or remove it to start \
                 over"
            ),
            StateError::Truncated { len_bytes, .. } => write!(
                f,
                "the state is damaged: it was truncated to {len_bytes} bytes; restore it from a \
                 copy, or remove it to start over"
            ),
            StateError::Description { found, expected, .. } => write!(
                f,
                "holds digests of '{found}', not of '{expected}'; use the options of the file, or \
                 another file"
            ),
            StateError::DescriptionTooLong { len_bytes, max_bytes, .. } => write!(
                f,
                "the description has {len_bytes} bytes, and a state stores at most {max_bytes}; \
                 use a shorter description"
            ),
            StateError::Hasher { found, expected, .. } => write!(
                f,
                "hashes by {found}, not by {expected}; use the hasher of the file, or another file"
            ),
            StateError::Width { found_bits, expected_bits, .. } => write!(
                f,
                "holds {found_bits}-bit digests, not {expected_bits}-bit ones; use the width of \
                 the file, or another file"
            ),
            StateError::KilledRun { .. } => f.write_str(
                "a run of 'tamis dedup' on this state was killed before its end; run the same \
                 command again, or use another file",
            ),
            StateError::SyncFailed { .. } => f.write_str(
                "an earlier sync failed, so the disk may lack digests; close the log, check the \
                 disk and open the file again",
            ),
            StateError::Checkpoint { error, .. } => {
                write!(f, "the checkpoint cannot be encoded as JSON: {error}")
            }
            StateError::CheckpointTooLarge { len_bytes, max_bytes, .. } => write!(
                f,
                "the checkpoint has {len_bytes} bytes, and a state stores at most {max_bytes}; \
                 use fewer inputs in one run"
            ),
        }
    }
}

impl std::error::Error for StateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StateError::Io { error, .. } => Some(error),
            StateError::Checkpoint { error, .. } => Some(error),
            _ => None,
        }
    }
}
