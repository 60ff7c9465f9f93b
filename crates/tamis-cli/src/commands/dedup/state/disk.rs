//! The file of a state, and the file operations. The order of the operations keeps the file valid
//! after a power loss.
//!
//! Between two syncs, a disk may execute writes in any order. In tests, a journal records the
//! operations, so that a test can build every file that a power loss may leave.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

/// The file of a state.
pub(super) struct DiskFile {
    file: File,
    #[cfg(test)]
    pub(super) journal: Option<journal::Journal>,
}

impl DiskFile {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            #[cfg(test)]
            journal: None,
        }
    }

    /// Returns the file for reading.
    pub(super) fn as_file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Writes `bytes` at offset `at`.
    pub(super) fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.record(|| journal::DiskOp::Write(at, bytes.to_vec()));
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)
    }

    /// Cuts the file to `len_bytes`.
    pub(super) fn set_len(&mut self, len_bytes: u64) -> io::Result<()> {
        #[cfg(test)]
        self.record(|| journal::DiskOp::SetLen(len_bytes));
        self.file.set_len(len_bytes)
    }

    /// Waits until all earlier operations are on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        #[cfg(test)]
        self.record(|| journal::DiskOp::Sync);
        Ok(())
    }

    #[cfg(test)]
    fn record(&self, op: impl FnOnce() -> journal::DiskOp) {
        if let Some(journal) = &self.journal {
            journal.lock().push(op());
        }
    }
}

#[cfg(test)]
pub(super) mod journal {
    use std::sync::Arc;

    use parking_lot::Mutex;

    /// The operations on a file since the test began to record them.
    pub type Journal = Arc<Mutex<Vec<DiskOp>>>;

    /// An operation on a file.
    #[derive(Clone, Debug, PartialEq)]
    pub enum DiskOp {
        /// Bytes were written at an offset.
        Write(u64, Vec<u8>),
        /// The file was cut to a length.
        SetLen(u64),
        /// All earlier operations are on the disk.
        Sync,
    }
}
