//! One file of the log: its header, and the last position that is known to be durable.
//!
//! ```text
//! | header (`header.rs`) | synced: u64 | check: u32 | synced: u64 | check: u32 | frames
//! ```
//!
//! The position in the header is how many bytes of frames all earlier logs have together. The two `synced` fields are written in turn, each
//! after a sync that succeeded, and become durable with a later one: if a crash tears one, the other is valid. The larger
//! says up to which position of the stream all bytes were durable. A log that ends before it, or is damaged before it, has
//! lost changes; what follows it may be missing after a power loss.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::disk::{Disk, DiskFile};
use super::folder::NUMBER_LIMIT;
use super::header::{self, FileHeader, Kind};

const KIND: Kind = Kind { magic: b"TAMISLOG", version: 3, old_version: 2 };

/// Bytes before the first frame of a log of this version. Older ones have fewer.
pub(super) const MAX_HEADER_BYTES: usize = header::BYTES + 2 * header::FIELD_BYTES;
/// What the checks of the `synced` fields are seeded with.
const SYNCED_SEED: u64 = 24;

/// Returns the name of a log.
pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("log-{number}.tamis"))
}

/// A file of the log.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub number: u64,
    /// The position of the first frame.
    pub began: u64,
    /// What the checks of the frames are seeded with; 0 in a log of version 2.
    pub secret: u64,
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// Which of the two fields the next sync is recorded in.
    next_field: AtomicBool,
}

/// What the header of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// The stream was durable up to this position.
    Valid { synced: u64 },
    /// It is that of another version.
    OtherVersion,
    /// It is cut or damaged. The log has the position and the secret that stand in it, which may be wrong.
    Invalid,
}

impl LogFile {
    /// Creates the log of this number: it begins at `began`, and the stream is durable up to `synced`. The file gets its
    /// name when its header is complete. Nothing is durable yet. The secret 0 makes a log of version 2.
    ///
    /// # Errors
    ///
    /// [`BeginError`] says whether the log may exist.
    pub fn begin(
        disk: &dyn Disk,
        dir: &Path,
        number: u64,
        began: u64,
        synced: u64,
        secret: u64,
    ) -> Result<Self, BeginError> {
        if number >= NUMBER_LIMIT {
            // A start would not read it.
            let error =
                io::Error::new(io::ErrorKind::InvalidInput, "the number of the log is too high");
            return Err(BeginError { error, may_exist: false });
        }
        let path = path(dir, number);
        let temporary = path.with_extension("part");
        let mut bytes = header::encode(&KIND, began, secret);
        bytes.extend(header::field(synced, SYNCED_SEED));
        bytes.extend(header::field(synced, SYNCED_SEED));
        let created = disk.create(&temporary).and_then(|file| {
            if disk.open(&path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the log exists already"));
            }
            file.write_all_at(&bytes, 0)?;
            Ok(file)
        });
        let file = created.map_err(|error| {
            _ = disk.remove(&temporary);
            BeginError { error, may_exist: false }
        })?;
        let renamed = disk.rename(&temporary, &path);
        renamed.map_err(|error| BeginError { error, may_exist: true })?;
        Ok(Self { number, began, secret, path, file, next_field: AtomicBool::new(false) })
    }

    /// Opens a log and reads its header.
    pub(super) fn open(disk: &dyn Disk, dir: &Path, number: u64) -> io::Result<(Self, Header)> {
        let path = path(dir, number);
        let file = disk.open(&path)?;
        let mut bytes = [0; MAX_HEADER_BYTES];
        let len = read_at_most(&*file, &mut bytes, 0)?;
        let (mut header, mut began, secret, next_field) = parse_header(&bytes[..len]);
        // A position is not so large that those of the frames overflow.
        if began.checked_add(file.len()?).is_none() {
            (header, began) = (Header::Invalid, 0);
        }
        let next_field = AtomicBool::new(next_field);
        Ok((Self { number, began, secret, path, file, next_field }, header))
    }

    /// Returns how many bytes are before the first frame.
    pub fn header_bytes(&self) -> u64 {
        header_bytes(self.secret)
    }

    /// Returns the byte of the file at which a position of the stream stands.
    pub fn offset_of(&self, position: u64) -> u64 {
        self.header_bytes() + (position - self.began)
    }

    /// Returns what the checks of the frame at a position are seeded with.
    pub fn seed(&self, position: u64) -> u64 {
        position ^ self.secret
    }

    /// Returns how many bytes of frames the file has.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub(super) fn frame_bytes(&self) -> io::Result<u64> {
        Ok(self.file.len()?.saturating_sub(self.header_bytes()))
    }

    /// Records up to where the stream is durable. A field whose write fails is written again the next time: the other one is
    /// valid.
    pub fn record_synced(&self, synced: u64) -> io::Result<()> {
        let field = self.next_field.load(Ordering::Relaxed);
        let at = header::bytes(self.secret) + usize::from(field) * header::FIELD_BYTES;
        self.file.write_all_at(&header::field(synced, SYNCED_SEED), at as u64)?;
        self.next_field.store(!field, Ordering::Relaxed);
        Ok(())
    }
}

/// Why a log was not begun.
#[derive(Debug)]
pub(crate) struct BeginError {
    pub error: io::Error,
    /// The log may have got its name all the same.
    pub may_exist: bool,
}

/// Returns how many bytes are before the first frame of a log with this secret.
pub(super) fn header_bytes(secret: u64) -> u64 {
    (header::bytes(secret) + 2 * header::FIELD_BYTES) as u64
}

/// Reads a header: what it says, where the log begins, its secret, and the `synced` field that is written next. That is the
/// older one, so that a crash cannot tear both.
fn parse_header(bytes: &[u8]) -> (Header, u64, u64, bool) {
    let (began, secret) = match header::parse(bytes, &KIND) {
        FileHeader::Valid { position, secret } => (position, secret),
        FileHeader::OtherVersion => return (Header::OtherVersion, 0, 0, false),
        // A crash leaves the front of the header too, and zeros behind it.
        FileHeader::Damaged { position, secret } => {
            return (Header::Invalid, position, secret, false);
        }
    };
    let fields = bytes.get(header::bytes(secret)..).unwrap_or_default();
    let field = |bytes: Option<&[u8]>| header::parse_field(bytes?, SYNCED_SEED);
    let first = field(fields.get(..header::FIELD_BYTES));
    let second = field(fields.get(header::FIELD_BYTES..2 * header::FIELD_BYTES));
    let header = first.max(second).map_or(Header::Invalid, |synced| Header::Valid { synced });
    (header, began, secret, second < first)
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_at_most(
    file: &dyn DiskFile,
    bytes: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], offset + len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
