//! A snapshot: every key with its value, written while the server works.
//!
//! ```text
//! | head (`head.rs`), with the position of its log |
//! | length of key: u64 | key | time + 1: u64 | position: u64 | length of image: u64 | image | checksum: u64 |  each key
//! | 2⁶⁴ − 1: u64 | number of keys: u64 | end: u64 | checksum: u64 |
//! ```
//!
//! The stream of logs was durable up to `end` when the snapshot was complete: no value in it has later changes.

use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tamis_commands::{ImageError, Value};
use xxhash_rust::xxh3::Xxh3;

use super::disk::{Disk, Sequential};
use super::error::DurabilityError;
use super::head::{self, Head};
use super::log::Log;
use super::log_file::read_at_most;
use crate::keyspace::Keyspace;

const MAGIC: &[u8; 8] = b"TAMISNAP";
const VERSION: u32 = 3;

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
        file.write_all(&head::encode(MAGIC, VERSION, position))?;
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
    let (mut reader, began) = SnapshotReader::open(disk, path)?;
    let began = began.ok_or_else(|| DurabilityError::damaged(path, 0, "its head is damaged"))?;
    let mut keys = 0;
    loop {
        let at = reader.at();
        match reader.next()? {
            Item::Key(entry) => {
                keys += 1;
                each(entry);
            }
            Item::End { keys: counted, end } if counted == keys => {
                return Ok(Positions { began, end });
            }
            Item::End { .. } => return Err(DurabilityError::damaged(path, at, "keys are missing")),
        }
    }
}

/// What a snapshot has, one after the other.
pub(super) enum Item {
    Key(Entry),
    /// The end, the number of keys before it, and up to where the stream of logs was durable.
    End {
        keys: u64,
        end: u64,
    },
}

/// The longest key, as that of any word of a command.
const MAX_KEY_BYTES: u64 = 512 << 20;

/// Reads a snapshot key by key, and can pass over damaged ones.
pub(super) struct SnapshotReader {
    path: PathBuf,
    file: BufReader<Sequential>,
    total: u64,
    /// Where the next key begins, or the end.
    at: u64,
}

impl SnapshotReader {
    /// Opens a snapshot; returns the position in its head too, unless that is damaged.
    ///
    /// # Errors
    ///
    /// [`DurabilityError`] if it cannot be read, or is of another version.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<(Self, Option<u64>), DurabilityError> {
        let fail = |error| DurabilityError::Io { path: path.to_owned(), error };
        let file = disk.open(path).map_err(fail)?;
        let total = file.len().map_err(fail)?;
        let mut file = BufReader::with_capacity(1 << 20, Sequential::new(file));
        let mut head = [0; head::BYTES];
        file.read_exact(&mut head).map_err(|error| read_error(path, 0, error))?;
        let began = match head::read(&head, MAGIC, VERSION) {
            Head::Valid(began) => Some(began),
            Head::OtherVersion => return Err(DurabilityError::Version { path: path.to_owned() }),
            Head::Damaged(_) => None,
        };
        let at = head::BYTES as u64;
        Ok((Self { path: path.to_owned(), file, total, at }, began))
    }

    /// Returns where the next key begins, or the end.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Reads the next key.
    ///
    /// # Errors
    ///
    /// [`DurabilityError`] if it is damaged or cannot be read: the reader stays before it.
    pub fn next(&mut self) -> Result<Item, DurabilityError> {
        let (item, len) = self.read_item()?;
        self.at += len;
        Ok(item)
    }

    /// Reads what begins at `at`, where the file is read; returns how long it is.
    fn read_item(&mut self) -> Result<(Item, u64), DurabilityError> {
        let (file, path, at) = (&mut self.file, &self.path, self.at);
        let damaged = |what| DurabilityError::damaged(path, at, what);
        let fail = |error| read_error(path, at, error);
        let key_len = read_u64(file).map_err(fail)?;
        if key_len == END {
            let (keys, end) = (read_u64(file).map_err(fail)?, read_u64(file).map_err(fail)?);
            if read_u64(file).map_err(fail)? != sum_of_end(keys, end) {
                return Err(damaged("the checksum of its end is wrong"));
            }
            return Ok((Item::End { keys, end }, END_BYTES));
        }
        if key_len > MAX_KEY_BYTES.min(self.total - at) {
            return Err(damaged("a key is longer than it can be"));
        }
        let mut key = vec![0; key_len as usize];
        file.read_exact(&mut key).map_err(fail)?;
        let expires_millis = read_u64(file).map_err(fail)?.checked_sub(1);
        let (applied, len) = (read_u64(file).map_err(fail)?, read_u64(file).map_err(fail)?);
        if len > self.total - at {
            return Err(damaged("a value is longer than the file"));
        }
        let mut image = Summed { out: &mut *file, sum: Xxh3::new(), len: 0 };
        let value = match Value::read_image(&mut image, len) {
            // The end of the image, if not that of the file.
            Err(ImageError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(fail(error));
            }
            value => value,
        };
        // Whatever cannot be read in it, an image with a wrong checksum is damaged.
        let left = len - image.len;
        io::copy(&mut (&mut image).take(left), &mut io::sink()).map_err(fail)?;
        let mut sum = image.sum;
        sum_head(&mut sum, &key, expires_millis, applied, len);
        if read_u64(file).map_err(fail)? != sum.digest() {
            return Err(damaged("the checksum of a key is wrong"));
        }
        let value = value.map_err(|error| match error {
            ImageError::Memory => {
                fail(io::Error::other("there is not enough memory for its values"))
            }
            _ => damaged("a value cannot be read"),
        })?;
        let item = Item::Key(Entry { key, value, expires_millis, applied });
        Ok((item, ENTRY_BYTES + key_len + len))
    }

    /// Passes over the key that is damaged; returns its name, if that can still be read, and whether another key or the end
    /// follows.
    ///
    /// # Errors
    ///
    /// [`DurabilityError`] if the file cannot be read.
    pub fn skip_damaged(&mut self) -> Result<(Option<Vec<u8>>, bool), DurabilityError> {
        let from = self.at;
        // By its lengths, if something valid stands where they lead.
        if let Some((key_len, len)) = self.lengths(from)? {
            self.at = from + ENTRY_BYTES + key_len + len;
            if self.is_valid()? {
                let mut key = vec![0; key_len as usize];
                self.read_at(&mut key, from + 8)?;
                return Ok((Some(key), true));
            }
        }
        self.at = from + 1;
        while self.find_candidate()? {
            if self.is_valid()? {
                return Ok((None, true));
            }
            self.at += 1;
        }
        Ok((None, false))
    }

    /// Moves on to where a key or the end may stand; false if there is no such place.
    fn find_candidate(&mut self) -> Result<bool, DurabilityError> {
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = self.read_at(&mut piece, self.at)?;
            let Some(last) = read.checked_sub(8) else { return Ok(false) };
            let start = self.at;
            for offset in 0..=last {
                self.at = start + offset as u64;
                let number = number_at(&piece[..read], offset).expect("eight bytes");
                if number == END {
                    return Ok(true);
                }
                if number > MAX_KEY_BYTES {
                    continue;
                }
                // Most often in this piece.
                let len = number_at(&piece[..read], offset + 24 + number as usize);
                if len != Some(0) && self.lengths(self.at)?.is_some() {
                    return Ok(true);
                }
            }
            self.at += 1;
        }
    }

    /// Reads the lengths of the key at a byte and of its value; `None` if they cannot be those.
    fn lengths(&self, at: u64) -> Result<Option<(u64, u64)>, DurabilityError> {
        let left = self.total.saturating_sub(at + ENTRY_BYTES);
        let mut number = [0; 8];
        self.read_at(&mut number, at)?;
        let key_len = u64::from_le_bytes(number);
        if key_len > left.min(MAX_KEY_BYTES) {
            return Ok(None);
        }
        self.read_at(&mut number, at + 24 + key_len)?;
        let len = u64::from_le_bytes(number);
        Ok((1..=left - key_len).contains(&len).then_some((key_len, len)))
    }

    /// Tells whether a valid key or the end begins here.
    fn is_valid(&mut self) -> Result<bool, DurabilityError> {
        let path = self.path.clone();
        let at = SeekFrom::Start(self.at);
        self.file.seek(at).map_err(DurabilityError::io(&path))?;
        let read = self.read_item();
        self.file.seek(at).map_err(DurabilityError::io(&path))?;
        match read {
            Ok(_) => Ok(true),
            Err(DurabilityError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<usize, DurabilityError> {
        let file = &self.file.get_ref().file;
        read_at_most(&**file, bytes, at).map_err(DurabilityError::io(&self.path))
    }
}

/// Bytes of a key besides its name and its image, and of the end.
const ENTRY_BYTES: u64 = 5 * 8;
const END_BYTES: u64 = 4 * 8;

fn read_u64(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn number_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_error(path: &Path, at: u64, error: io::Error) -> DurabilityError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return DurabilityError::damaged(path, at, "the file is cut");
    }
    DurabilityError::Io { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::super::sim_disk::SimDisk;
    use super::*;

    #[test]
    fn a_disk_that_cannot_read_is_not_taken_for_damage() {
        let (disk, dir) = (SimDisk::default(), Path::new("/data"));
        let mut writer = SnapshotWriter::new(&disk, dir, 1, 7).unwrap();
        let random = |i: u32| i.wrapping_mul(0x9e37_79b9) as u8 | 1;
        let value = Value::Bytes((0..3 << 20).map(random).collect::<Vec<u8>>().into());
        writer.entry(b"key", &value, None, (9, None)).unwrap();
        writer.finish(9).unwrap();
        let path = path(dir, 1);
        let mut keys = 0;
        let positions = load(&disk, &path, |_| keys += 1).unwrap();
        assert_eq!((keys, positions.began, positions.end), (1, 7, 9));
        for from in [0, 10, 1 << 20, 2 << 20, 3 << 20] {
            disk.fail_reads_from(from);
            match load(&disk, &path, drop) {
                Err(DurabilityError::Io { error, .. }) => assert_eq!(error.raw_os_error(), Some(5)),
                other => panic!("{from}: {other:?}"),
            }
        }
    }
}
