//! One file of the log: its header, and the last position that the log has recorded as durable.
//!
//! ```text
//! | header (`header.rs`) | synced: u64 | check: u32 | synced: u64 | check: u32 | frames
//! ```
//!
//! The position in the header is the total length of the frames in all logs before this log, in
//! bytes. The log writes the two `synced` fields in turn, each after a successful sync. A later
//! sync makes the written field durable. If a crash tears one field, the other field is valid. All
//! bytes of the stream were durable up to the larger of the two fields. If a log ends before the
//! larger field's position, or is damaged before this position, changes are lost. Bytes after the
//! larger field's position may be missing after a power loss.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::persistence::disk::{Disk, DiskFile};
use crate::persistence::error::DurabilityError;
use crate::persistence::header::{self, FileHeader, Kind};

const KIND: Kind = Kind { magic: b"TAMISLOG", version: 1 };

/// The number of bytes before the first frame of a log.
pub(crate) const HEADER_BYTES: usize = header::BYTES + 2 * header::FIELD_BYTES;
/// The seed for the checks of the `synced` fields.
const SYNCED_SEED: u64 = 24;

/// The numbers of logs and snapshots are below this limit. If a server began a new log every
/// second, the server would reach the limit after 68 years.
pub(crate) const NUMBER_LIMIT: u64 = 1 << 31;

/// Returns the path of a log.
pub(crate) fn path(disk: &dyn Disk, number: u64) -> PathBuf {
    disk.dir().join(format!("log-{number}.tamis"))
}

/// A file of the log.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub number: u64,
    /// The position of the first frame.
    pub began: u64,
    /// The secret in the seed of the frame checks. The value is 0 if the damaged header does not
    /// contain the secret.
    pub secret: u64,
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// Selects the `synced` field that the next sync writes.
    next_field: AtomicBool,
}

/// The content of a log header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// The stream was durable up to this position.
    Valid { synced: u64 },
    /// The header has a version that this program does not read.
    OtherVersion,
    /// The header is incomplete or damaged. The log uses the position and the secret from the
    /// header, but both may be wrong.
    Invalid,
}

impl LogFile {
    /// Creates a log that begins at position `began` of the stream. The stream is durable up to
    /// `synced`. The file gets its final name after its header is written. When the function
    /// returns, neither the name nor the header is durable yet. The file gets disk space up to
    /// position `reserved`. If `reserved` is `u64::MAX`, no disk space is reserved.
    ///
    /// # Errors
    ///
    /// [`BeginError`] contains whether the file may exist.
    pub fn begin(
        disk: &dyn Disk,
        number: u64,
        began: u64,
        synced: u64,
        reserved: u64,
        secret: u64,
    ) -> Result<Self, BeginError> {
        let path = path(disk, number);
        let temporary = path.with_extension("part");
        let create = || {
            if number >= NUMBER_LIMIT {
                // A server that starts does not read a log whose number is not below the limit.
                let what = "the number of the log is too high";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            let file = disk.create(&temporary)?;
            if disk.open(&path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the log exists already"));
            }
            let mut bytes = header::encode(&KIND, began, secret);
            bytes.extend([header::field(synced, SYNCED_SEED); 2].as_flattened());
            file.write_all_at(&bytes, 0)?;
            if reserved > began && reserved < u64::MAX {
                file.reserve(HEADER_BYTES as u64, reserved - began)?;
            }
            Ok(file)
        };
        let file = create().map_err(|error| {
            _ = disk.remove(&temporary);
            BeginError { error, may_exist: false }
        })?;
        let renamed = disk.rename(&temporary, &path);
        renamed.map_err(|error| BeginError { error, may_exist: true })?;
        Ok(Self { number, began, secret, path, file, next_field: AtomicBool::new(false) })
    }

    /// Opens a log and reads its header.
    ///
    /// # Errors
    ///
    /// [`DurabilityError::Io`] if the file cannot be read.
    pub(crate) fn open(disk: &dyn Disk, number: u64) -> Result<(Self, Header), DurabilityError> {
        let path = path(disk, number);
        let fail = DurabilityError::io(&path);
        let file = disk.open(&path).map_err(fail)?;
        let mut bytes = [0; HEADER_BYTES];
        let len = file.read_at_most(&mut bytes, 0).map_err(fail)?;
        let (mut header, mut began, secret, next_field) = match header::parse(&bytes[..len], &KIND)
        {
            FileHeader::Valid { position, secret } => {
                let mut fields = bytes[header::BYTES..len].chunks(header::FIELD_BYTES);
                let [first, second] =
                    [(); 2].map(|()| header::parse_field(fields.next()?, SYNCED_SEED));
                let synced = first.max(second);
                let header = synced.map_or(Header::Invalid, |synced| Header::Valid { synced });
                // The next sync writes the older field, so that a crash cannot tear both fields.
                (header, position, secret, second < first)
            }
            FileHeader::OtherVersion => (Header::OtherVersion, 0, 0, false),
            // After a crash, the file may contain the first part of the header, followed by zeros.
            FileHeader::Damaged { position, secret } => (Header::Invalid, position, secret, false),
        };
        // A valid position is small enough that the positions of the frames do not overflow.
        if began.checked_add(file.len().map_err(fail)?).is_none() {
            (header, began) = (Header::Invalid, 0);
        }
        let next_field = AtomicBool::new(next_field);
        Ok((Self { number, began, secret, path, file, next_field }, header))
    }

    /// Returns the file offset of a position of the stream.
    pub fn offset_of(&self, position: u64) -> u64 {
        HEADER_BYTES as u64 + (position - self.began)
    }

    /// Returns the seed for the checks of the frame at a position.
    pub fn seed(&self, position: u64) -> u64 {
        position ^ self.secret
    }

    /// Reserves disk space for the frames between two positions of the stream.
    pub fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        let from = from.max(self.began);
        self.file.reserve(self.offset_of(from), to.saturating_sub(from).max(1))
    }

    /// Frees the blocks after the end of the file. No write to the file may run at the same time.
    pub fn trim(&self) -> io::Result<()> {
        self.file.set_len(self.file.len()?)
    }

    /// Returns the length of the frames in the file, in bytes.
    pub(crate) fn frame_bytes(&self) -> io::Result<u64> {
        Ok(self.file.len()?.saturating_sub(HEADER_BYTES as u64))
    }

    /// Records the position up to which the stream is durable. If the write of a field fails, the
    /// other field remains valid, and the next call writes the failed field.
    pub fn record_synced(&self, synced: u64) -> io::Result<()> {
        let field = self.next_field.load(Ordering::Relaxed);
        let at = header::BYTES + usize::from(field) * header::FIELD_BYTES;
        self.file.write_all_at(&header::field(synced, SYNCED_SEED), at as u64)?;
        self.next_field.store(!field, Ordering::Relaxed);
        Ok(())
    }

    /// Records the position up to which the stream is durable. If the write of the position fails,
    /// logs a warning and no error, because the next sync records a later position.
    pub fn try_record_synced(&self, synced: u64) {
        if let Err(error) = self.record_synced(synced) {
            tracing::warn!(%error, "cannot record the position of the last fsync");
        }
    }
}

/// The reason why a log was not created.
#[derive(Debug)]
pub(crate) struct BeginError {
    pub error: io::Error,
    /// True if the file may have its final name despite the error.
    pub may_exist: bool,
}
