//! The locked file of a state, and the file operations. The order of the operations keeps the file
//! valid after a power loss.
//!
//! Between two syncs, a disk may execute writes in any order. In tests, a journal records the
//! operations, so that a test can build every file that a power loss may leave.

use std::fs::{File, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::process;

/// The file of a state, which this process has locked.
///
/// A forked process shares the offset and the lock of the file. Only the process that has locked
/// the file may use the operations.
pub(crate) struct DiskFile {
    file: File,
    /// The id of the process that has locked the file.
    pub(crate) locked_by: u32,
    #[cfg(test)]
    pub(crate) journal: Option<journal::Journal>,
    #[cfg(test)]
    pub(crate) faults: journal::Faults,
}

impl DiskFile {
    /// Locks a file.
    pub(crate) fn lock(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self {
            file,
            locked_by: process::id(),
            #[cfg(test)]
            journal: journal::of_this_thread(),
            #[cfg(test)]
            faults: journal::Faults::default(),
        })
    }

    /// Tests whether this process has locked the file. A forked process has not.
    pub(crate) fn is_own(&self) -> bool {
        self.locked_by == process::id()
    }

    /// Returns the file for reading.
    pub(crate) fn as_file(&self) -> &File {
        &self.file
    }

    /// Writes `bytes` at offset `at`.
    pub(crate) fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.record(|| journal::DiskOp::Write(at, bytes.to_vec()));
        self.file.seek(SeekFrom::Start(at))?;
        #[cfg(test)]
        self.faults.write(&mut self.file, at, bytes)?;
        self.file.write_all(bytes)
    }

    /// Cuts the file to `len_bytes`.
    pub(crate) fn set_len(&mut self, len_bytes: u64) -> io::Result<()> {
        #[cfg(test)]
        self.record(|| journal::DiskOp::SetLen(len_bytes));
        self.file.set_len(len_bytes)
    }

    /// Waits until all earlier operations are on the disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        #[cfg(test)]
        self.faults.sync()?;
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

impl Drop for DiskFile {
    /// Unlocks the file. The end of the file's handle is not enough: a forked process that lives on
    /// holds the lock too. The drop in a forked process keeps the lock of the other process.
    fn drop(&mut self) {
        if self.is_own() {
            self.file.unlock().ok();
        }
    }
}

#[cfg(test)]
pub(crate) mod journal {
    use std::cell::RefCell;
    use std::fs::File;
    use std::io::{self, ErrorKind, Write as _};
    use std::sync::Arc;

    use parking_lot::Mutex;

    /// The operations on a file since the test began to record them.
    pub type Journal = Arc<Mutex<Vec<DiskOp>>>;

    thread_local! {
        static JOURNAL: RefCell<Option<Journal>> = const { RefCell::new(None) };
    }

    /// Records the operations of the files that `open` opens.
    pub fn record<R>(journal: &Journal, open: impl FnOnce() -> R) -> R {
        JOURNAL.set(Some(Arc::clone(journal)));
        let opened = open();
        JOURNAL.set(None);
        opened
    }

    pub fn of_this_thread() -> Option<Journal> {
        JOURNAL.with_borrow(Clone::clone)
    }

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

    /// The errors of the disk in a test.
    #[derive(Default)]
    pub struct Faults {
        /// The length of the file at which the disk is full.
        pub full_at_bytes: Option<u64>,
        /// True if a sync fails.
        pub is_sync_failing: bool,
    }

    impl Faults {
        /// Writes the bytes that the disk still takes, and fails, if `bytes` exceed a full disk.
        pub fn write(&self, file: &mut File, at: u64, bytes: &[u8]) -> io::Result<()> {
            let Some(full_at) = self.full_at_bytes else { return Ok(()) };
            if at + bytes.len() as u64 <= full_at {
                return Ok(());
            }
            file.write_all(&bytes[..full_at.saturating_sub(at) as usize])?;
            Err(ErrorKind::StorageFull.into())
        }

        pub fn sync(&self) -> io::Result<()> {
            if self.is_sync_failing { Err(io::Error::other("a sync failed")) } else { Ok(()) }
        }
    }
}
