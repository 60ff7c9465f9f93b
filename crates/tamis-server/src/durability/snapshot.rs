//! A snapshot: every key with its value, written while the server works.
//!
//! ```text
//! | "TAMISNAP" | version: u32 | position of its log: u64 |
//! | length of key: u64 | key | time + 1: u64 | position: u64 | length of image: u64 | image | checksum: u64 |  each key
//! | 2⁶⁴ − 1: u64 | number of keys: u64 |
//! ```

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tamis_commands::Value;
use xxhash_rust::xxh3::Xxh3;

use super::error::DurabilityError;
use super::log::Log;
use crate::keyspace::Keyspace;

const MAGIC: &[u8; 8] = b"TAMISNAP";
const VERSION: u32 = 1;

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
    keyspace: &Keyspace,
    log: &Log,
    dir: &Path,
    number: u64,
    position: u64,
) -> Result<(), DurabilityError> {
    let path = path(dir, number);
    let temporary = path.with_extension("part");
    let write = || -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&temporary)?);
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&position.to_le_bytes())?;
        let mut keys = 0_u64;
        for part in 0..keyspace.parts() {
            // A transaction has no position before it ends: a value is read before one or after it.
            let is_settled = || !log.has_group();
            for entry in keyspace.entries(part) {
                if log.is_ending() {
                    return Err(io::Error::other("the server ends"));
                }
                // What comes later is in the log behind this, whether or not its bits are in the image, and is
                // counted when it is done again.
                let note = |value: &Value| (log.end(), value.counted_items());
                let written = entry.read(is_settled, note, |value, expires_millis, noted| {
                    let write = |out: &mut dyn Out| {
                        write_entry(out, &entry.key, value, expires_millis, noted)
                    };
                    if value.memory_bytes() > SMALL_BYTES {
                        return write(&mut out).map(|()| Vec::new());
                    }
                    let mut copy = Cursor::new(Vec::new());
                    write(&mut copy).map(|()| copy.into_inner())
                });
                if let Some(copy) = written.transpose()? {
                    keys += 1;
                    // The disk may take its time now.
                    out.write_all(&copy)?;
                }
            }
        }
        out.write_all(&END.to_le_bytes())?;
        out.write_all(&keys.to_le_bytes())?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        // The values have changes that the log may not have written yet. If it never came to, later ones would
        // stand where those should, and be passed over.
        log.sync()?;
        std::fs::rename(&temporary, &path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|error| {
        _ = std::fs::remove_file(&temporary);
        DurabilityError::Io { path, error }
    })
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

/// Reads a snapshot; returns the position at which its log begins.
///
/// # Errors
///
/// [`DurabilityError`] if it is none, or damaged.
pub(super) fn load(path: &Path, mut each: impl FnMut(Entry)) -> Result<u64, DurabilityError> {
    let fail = |error| DurabilityError::Io { path: path.to_owned(), error };
    let file = File::open(path).map_err(fail)?;
    let total = file.metadata().map_err(fail)?.len();
    let mut from = BufReader::with_capacity(1 << 20, file);
    let mut head = [0; 20];
    from.read_exact(&mut head).map_err(|error| read_error(path, 0, error))?;
    if &head[..8] != MAGIC || head[8..12] != VERSION.to_le_bytes() {
        return Err(DurabilityError::Version { path: path.to_owned() });
    }
    let position = u64::from_le_bytes(head[12..].try_into().expect("eight bytes"));
    let (mut at, mut keys) = (20, 0);
    loop {
        let damaged = |what| DurabilityError::Damaged { path: path.to_owned(), at, what };
        let number = |from: &mut BufReader<File>| -> Result<u64, DurabilityError> {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes).map_err(|error| read_error(path, at, error))?;
            Ok(u64::from_le_bytes(bytes))
        };
        let key_len = number(&mut from)?;
        if key_len == END {
            let told = number(&mut from)?;
            return if told == keys { Ok(position) } else { Err(damaged("keys are missing")) };
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
        return DurabilityError::Damaged { path: path.to_owned(), at, what: "the file is cut" };
    }
    DurabilityError::Io { path: path.to_owned(), error }
}
