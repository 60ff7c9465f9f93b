//! A snapshot: every key with its value, written while the server works.
//!
//! ```text
//! | "TAMISNAP" | version: u32 | position of its log: u64 |
//! | length of key: u64 | key | time + 1: u64 | position: u64 | length of image: u64 | image | checksum: u64 |  each key
//! | 2⁶⁴ − 1: u64 | number of keys: u64 | end: u64 | checksum: u64 |
//! ```
//!
//! The stream of logs was durable up to `end` when the snapshot was complete: no value in it has later changes.

use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tamis_commands::Value;
use xxhash_rust::xxh3::Xxh3;

use super::disk::{Disk, Sequential};
use super::error::DurabilityError;
use super::log::Log;
use crate::keyspace::Keyspace;

const MAGIC: &[u8; 8] = b"TAMISNAP";
const VERSION: u32 = 2;

/// What stands where a key's length would, behind the last.
const END: u64 = u64::MAX;

/// Returns the name of a snapshot.
pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("snapshot-{number}.tamis"))
}

/// Writes a snapshot that goes with the log of this number, which begins at `position`; it is there whole or not at
/// all.
///
/// # Errors
///
/// [`DurabilityError::Io`]; nothing stays behind.
pub(crate) fn save(
    disk: &dyn Disk,
    keyspace: &Keyspace,
    log: &Log,
    dir: &Path,
    number: u64,
    position: u64,
) -> Result<(), DurabilityError> {
    let write = || -> io::Result<()> {
        let mut out = SnapshotWriter::new(disk, dir, number, position)?;
        for part in 0..keyspace.parts() {
            // A transaction has no position before it ends: a value is read before one or after it.
            let is_settled = || log.group_bytes().is_none();
            for entry in keyspace.entries(part) {
                if log.is_closing() {
                    return Err(io::Error::other("the server ends"));
                }
                // Later changes stand behind this position in the log, and are counted when they are replayed.
                let note = |value: &Value| (log.end(), value.counted_items());
                let written = entry.read(is_settled, note, |value, expires_millis, noted| {
                    let write = |out: &mut dyn Out| {
                        write_entry(out, &entry.key, value, expires_millis, noted)
                    };
                    if value.memory_bytes() > SMALL_BYTES {
                        return write(&mut out.file).map(|()| Vec::new());
                    }
                    let mut copy = Cursor::new(Vec::new());
                    write(&mut copy).map(|()| copy.into_inner())
                });
                if let Some(copy) = written.transpose()? {
                    // The disk may take its time now.
                    out.file.write_all(&copy)?;
                    out.keys += 1;
                }
            }
        }
        // The values have changes that the log may not have written yet. Without them, a start would pass over the changes
        // that get their positions.
        let end = log.sync()?;
        out.finish(end)
    };
    write().map_err(|error| {
        let path = path(dir, number);
        _ = disk.remove(&path.with_extension("part"));
        DurabilityError::Io { path, error }
    })
}

/// A snapshot that is written, under a temporary name.
pub(super) struct SnapshotWriter<'d> {
    disk: &'d dyn Disk,
    dir: PathBuf,
    path: PathBuf,
    file: BufWriter<Sequential>,
    keys: u64,
}

impl<'d> SnapshotWriter<'d> {
    pub fn new(disk: &'d dyn Disk, dir: &Path, number: u64, position: u64) -> io::Result<Self> {
        let path = path(dir, number);
        let file = disk.create(&path.with_extension("part"))?;
        let mut file = BufWriter::with_capacity(1 << 20, Sequential::new(file));
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        file.write_all(&position.to_le_bytes())?;
        Ok(Self { disk, dir: dir.to_owned(), path, file, keys: 0 })
    }

    /// Appends a key whose value has all changes before a position, and counted this many items then.
    pub fn entry(
        &mut self,
        key: &[u8],
        value: &Value,
        expires_millis: Option<u64>,
        noted: (u64, Option<u64>),
    ) -> io::Result<()> {
        self.keys += 1;
        write_entry(&mut self.file, key, value, expires_millis, noted)
    }

    /// Completes the snapshot and gives it its name, once the stream of logs is durable up to `end`.
    pub fn finish(mut self, end: u64) -> io::Result<()> {
        self.file.write_all(&END.to_le_bytes())?;
        self.file.write_all(&self.keys.to_le_bytes())?;
        self.file.write_all(&end.to_le_bytes())?;
        self.file.write_all(&sum_of_end(self.keys, end).to_le_bytes())?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.file.sync()?;
        self.disk.rename(&self.path.with_extension("part"), &self.path)?;
        self.disk.sync_dir(&self.dir)
    }
}

fn sum_of_end(keys: u64, end: u64) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(&keys.to_le_bytes());
    sum.update(&end.to_le_bytes());
    sum.digest()
}

/// Values up to this are copied in memory before they are written, so that nobody waits for the disk who waits for them.
const SMALL_BYTES: u64 = 256 << 10;

/// What an entry is written to.
trait Out: Write + Seek {}

impl<W: Write + Seek> Out for W {}

fn write_entry(
    out: &mut dyn Out,
    key: &[u8],
    value: &Value,
    expires_millis: Option<u64>,
    (applied, counted_items): (u64, Option<u64>),
) -> io::Result<()> {
    out.write_all(&(key.len() as u64).to_le_bytes())?;
    out.write_all(key)?;
    out.write_all(&expires_millis.map_or(0, |at| at.saturating_add(1)).to_le_bytes())?;
    out.write_all(&applied.to_le_bytes())?;
    // The length is known behind the image, and written before it.
    let length_at = out.stream_position()?;
    out.write_all(&[0; 8])?;
    let mut image = Summed { out: &mut *out, sum: Xxh3::new(), len: 0 };
    value.write_image_counting(counted_items, &mut image)?;
    let (mut sum, len) = (image.sum, image.len);
    let end = out.stream_position()?;
    out.seek(SeekFrom::Start(length_at))?;
    out.write_all(&len.to_le_bytes())?;
    out.seek(SeekFrom::Start(end))?;
    sum_head(&mut sum, key, expires_millis, applied, len);
    out.write_all(&sum.digest().to_le_bytes())
}

fn sum_head(sum: &mut Xxh3, key: &[u8], expires_millis: Option<u64>, applied: u64, len: u64) {
    sum.update(key);
    for number in [expires_millis.map_or(0, |at| at.saturating_add(1)), applied, len] {
        sum.update(&number.to_le_bytes());
    }
}

/// Hands bytes on, and knows their checksum.
struct Summed<W> {
    out: W,
    sum: Xxh3,
    len: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        self.sum.update(&bytes[..len]);
        self.len += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.out.read(bytes)?;
        self.sum.update(&bytes[..len]);
        self.len += len as u64;
        Ok(len)
    }
}

/// A key of a snapshot.
pub(super) struct Entry {
    pub key: Vec<u8>,
    pub value: Value,
    pub expires_millis: Option<u64>,
    /// Changes before this position of the log are in the value.
    pub applied: u64,
}

/// What a snapshot says of the logs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positions {
    /// Where its log begins.
    pub began: u64,
    /// Up to where the stream was durable when the snapshot was complete.
    pub end: u64,
}

/// Reads a snapshot.
///
/// # Errors
///
/// [`DurabilityError`] if it is none, or damaged.
pub(super) fn load(
    disk: &dyn Disk,
    path: &Path,
    mut each: impl FnMut(Entry),
) -> Result<Positions, DurabilityError> {
    let fail = |error| DurabilityError::Io { path: path.to_owned(), error };
    let file = disk.open(path).map_err(fail)?;
    let total = file.len().map_err(fail)?;
    let mut from = BufReader::with_capacity(1 << 20, Sequential::new(file));
    let mut head = [0; 20];
    from.read_exact(&mut head).map_err(|error| read_error(path, 0, error))?;
    if &head[..8] != MAGIC || head[8..12] != VERSION.to_le_bytes() {
        return Err(DurabilityError::Version { path: path.to_owned() });
    }
    let began = u64::from_le_bytes(head[12..].try_into().expect("eight bytes"));
    let (mut at, mut keys) = (20, 0);
    loop {
        let damaged = |what| DurabilityError::damaged(path, at, what);
        let number = |from: &mut BufReader<Sequential>| -> Result<u64, DurabilityError> {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes).map_err(|error| read_error(path, at, error))?;
            Ok(u64::from_le_bytes(bytes))
        };
        let key_len = number(&mut from)?;
        if key_len == END {
            let (counted, end) = (number(&mut from)?, number(&mut from)?);
            if number(&mut from)? != sum_of_end(counted, end) {
                return Err(damaged("the checksum of its end is wrong"));
            }
            let is_whole = counted == keys;
            return if is_whole {
                Ok(Positions { began, end })
            } else {
                Err(damaged("keys are missing"))
            };
        }
        if key_len > total - at {
            return Err(damaged("a key is longer than the file"));
        }
        let mut key = vec![0; key_len as usize];
        from.read_exact(&mut key).map_err(|error| read_error(path, at, error))?;
        let expires_millis = number(&mut from)?.checked_sub(1);
        let (applied, len) = (number(&mut from)?, number(&mut from)?);
        if len > total - at {
            return Err(damaged("a value is longer than the file"));
        }
        let mut image = Summed { out: &mut from, sum: Xxh3::new(), len: 0 };
        let value = Value::read_image(&mut image, len).map_err(|error| match error {
            tamis_commands::ImageError::Memory => DurabilityError::Io {
                path: path.to_owned(),
                error: io::Error::other("there is not enough memory for its values"),
            },
            _ => damaged("a value cannot be read"),
        })?;
        let mut sum = image.sum;
        sum_head(&mut sum, &key, expires_millis, applied, len);
        if number(&mut from)? != sum.digest() {
            return Err(damaged("the checksum of a key is wrong"));
        }
        at += 8 + key_len + 24 + len + 8;
        keys += 1;
        each(Entry { key, value, expires_millis, applied });
    }
}

fn read_error(path: &Path, at: u64, error: io::Error) -> DurabilityError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return DurabilityError::damaged(path, at, "the file is cut");
    }
    DurabilityError::Io { path: path.to_owned(), error }
}
