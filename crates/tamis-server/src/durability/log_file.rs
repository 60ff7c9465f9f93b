//! One file of the log: its header, and the last position that is known to be durable.
//!
//! ```text
//! | head (`head.rs`) | synced: u64 | check: u32 | synced: u64 | check: u32 | frames
//! ```
//!
//! The position in the head is how many bytes of frames all earlier logs have together. The two `synced` fields are written in turn, each
//! after a sync that succeeded, and become durable with a later one: if a crash tears one, the other is valid. The larger
//! says up to which position of the stream all bytes were durable. A log that ends before it, or is damaged before it, has
//! lost changes; what follows it may be missing after a power loss.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::disk::{Disk, DiskFile};
use super::head::{self, Head};

const MAGIC: &[u8; 8] = b"TAMISLOG";
const VERSION: u32 = 2;

/// Where the first frame begins.
pub(super) const HEAD_BYTES: u64 = SYNCED_AT + 2 * SYNCED_BYTES;
const SYNCED_AT: u64 = head::BYTES as u64;
const SYNCED_BYTES: u64 = 12;

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
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// Which of the two fields the next sync is recorded in.
    next_field: AtomicBool,
}

/// What the header of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// The positions of the first frame and of the end of what was durable, and which field does not say that: it is the
    /// next to be written, so that a crash cannot tear both.
    Valid { began: u64, synced: u64, next_field: bool },
    /// It is that of another version.
    OtherVersion,
    /// It is cut or damaged. The log may begin at this position.
    Invalid { began: u64 },
}

impl LogFile {
    /// Creates the log of this number: it begins at `began`, and the stream is durable up to `synced`. The file gets its
    /// name when its header is complete. Nothing is durable yet.
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
    ) -> Result<Self, BeginError> {
        let path = path(dir, number);
        let temporary = path.with_extension("part");
        let mut head = head::encode(MAGIC, VERSION, began).to_vec();
        head.extend(synced_field(synced));
        head.extend(synced_field(synced));
        debug_assert_eq!(head.len() as u64, HEAD_BYTES);
        let created = disk.create(&temporary).and_then(|file| {
            if disk.open(&path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the log exists already"));
            }
            file.write_all_at(&head, 0)?;
            Ok(file)
        });
        let file = created.map_err(|error| {
            _ = disk.remove(&temporary);
            BeginError { error, may_exist: false }
        })?;
        let renamed = disk.rename(&temporary, &path);
        renamed.map_err(|error| BeginError { error, may_exist: true })?;
        Ok(Self { number, began, path, file, next_field: AtomicBool::new(false) })
    }

    /// Opens a log and reads its header.
    pub(super) fn open(disk: &dyn Disk, dir: &Path, number: u64) -> io::Result<(Self, Header)> {
        let path = path(dir, number);
        let file = disk.open(&path)?;
        let mut head = [0; HEAD_BYTES as usize];
        let len = read_at_most(&*file, &mut head, 0)?;
        let mut header = read_header(&head[..len]);
        // A position is not so large that those of the frames overflow.
        let fits = |began: u64, len| began.checked_add(len).is_some();
        let len = file.len()?;
        if let Header::Valid { began, .. } = header
            && !fits(began, len)
        {
            header = Header::Invalid { began };
        }
        let (began, next_field) = match header {
            Header::Valid { began, next_field, .. } => (began, next_field),
            Header::Invalid { began } if fits(began, len) => (began, false),
            _ => (0, false),
        };
        Ok((Self { number, began, path, file, next_field: AtomicBool::new(next_field) }, header))
    }

    /// Returns the byte of the file at which a position of the stream stands.
    pub fn offset_of(&self, position: u64) -> u64 {
        HEAD_BYTES + (position - self.began)
    }

    /// Records up to where the stream is durable. A field whose write fails is written again the next time: the other one is
    /// valid.
    pub fn record_synced(&self, synced: u64) -> io::Result<()> {
        let field = self.next_field.load(Ordering::Relaxed);
        let at = SYNCED_AT + u64::from(field) * SYNCED_BYTES;
        self.file.write_all_at(&synced_field(synced), at)?;
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

fn synced_field(synced: u64) -> [u8; SYNCED_BYTES as usize] {
    let mut field = [0; SYNCED_BYTES as usize];
    field[..8].copy_from_slice(&synced.to_le_bytes());
    let check = xxh3_64_with_seed(&field[..8], SYNCED_AT) as u32;
    field[8..].copy_from_slice(&check.to_le_bytes());
    field
}

fn read_header(bytes: &[u8]) -> Header {
    let Some((fixed, fields)) = bytes.split_first_chunk::<{ head::BYTES }>() else {
        return Header::Invalid { began: 0 };
    };
    let began = match head::read(fixed, MAGIC, VERSION) {
        Head::Valid(began) => began,
        Head::OtherVersion => return Header::OtherVersion,
        // A crash leaves the front of the header too, and zeros behind it.
        Head::Damaged(began) => return Header::Invalid { began },
    };
    let (first, second) = fields.split_at_checked(SYNCED_BYTES as usize).unwrap_or_default();
    let (first, second) = (read_synced(first), read_synced(second));
    match first.max(second) {
        Some(synced) => Header::Valid { began, synced, next_field: second < first },
        None => Header::Invalid { began },
    }
}

/// Reads a field; `None` if a crash has torn it.
fn read_synced(field: &[u8]) -> Option<u64> {
    let synced = u64::from_le_bytes(*field.first_chunk()?);
    (field == synced_field(synced)).then_some(synced)
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
