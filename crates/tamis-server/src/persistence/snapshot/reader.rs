//! Reads a snapshot, and can skip damaged keys.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tamis_commands::{ImageError, Value};

use crate::persistence::disk::{Disk, Sequential};
use crate::persistence::error::DurabilityError;
use crate::persistence::header::{self, FileHeader};
use crate::persistence::snapshot::{
    END, ITEM_HEADER_BYTES, KIND, SnapshotEntry, Summed, finish_sum, parse_item_header, path,
};

/// Reads a snapshot and passes each key to `each`. Returns two positions: the start of the
/// snapshot's log, and the position up to which the stream of logs was durable when the snapshot
/// was complete.
///
/// # Errors
///
/// [`DurabilityError`] if the file is not a snapshot, or is damaged.
pub(in crate::persistence) fn load(
    disk: &dyn Disk,
    number: u64,
    mut each: impl FnMut(SnapshotEntry),
) -> Result<(u64, u64), DurabilityError> {
    let mut reader = SnapshotReader::open(disk, number)?;
    let began = reader.began;
    if reader.has_damaged_header {
        return Err(reader.damaged_at(0, "its header is damaged"));
    }
    let mut keys = 0;
    loop {
        let at = reader.at;
        match reader.next()? {
            SnapshotItem::Key(entry) => {
                keys += 1;
                each(entry);
            }
            SnapshotItem::End { keys: counted, end } if counted == keys => return Ok((began, end)),
            SnapshotItem::End { .. } => return Err(reader.damaged_at(at, "keys are missing")),
        }
    }
}

/// An item of a snapshot.
pub(in crate::persistence) enum SnapshotItem {
    Key(SnapshotEntry),
    /// The end of the snapshot: the number of keys before the end, and the position up to which the
    /// stream of logs was durable.
    End {
        keys: u64,
        end: u64,
    },
}

/// The maximum length of a key, in bytes. The maximum length of a key is the maximum length of any
/// argument of a command.
const MAX_KEY_BYTES: u64 = 512 << 20;

/// Reads a snapshot key by key, and can skip damaged keys.
pub(in crate::persistence) struct SnapshotReader {
    path: PathBuf,
    file: BufReader<Sequential>,
    total: u64,
    /// The offset of the next key or of the end item.
    pub at: u64,
    /// The position at which the log of the snapshot begins.
    pub began: u64,
    /// True if the first header is damaged.
    pub has_damaged_header: bool,
    /// The secret of the snapshot, which is a part of the seed of all checks.
    secret: u64,
}

/// The length of a key item in bytes, without the key and the value.
const ENTRY_BYTES: u64 = ITEM_HEADER_BYTES as u64 + 8;

impl SnapshotReader {
    /// Opens a snapshot.
    ///
    /// # Errors
    ///
    /// [`DurabilityError`] if the file cannot be read or has an unknown version, or if both headers
    /// are damaged.
    pub fn open(disk: &dyn Disk, number: u64) -> Result<Self, DurabilityError> {
        let path = path(disk, number);
        let fail = DurabilityError::io(&path);
        let file = disk.open(&path).map_err(fail)?;
        let total = file.len().map_err(fail)?;
        let mut bytes = [0; header::BYTES];
        let len = file.read_at_most(&mut bytes, 0).map_err(fail)?;
        let first = header::parse(&bytes[..len], &KIND);
        let (began, secret) = match first {
            FileHeader::Valid { position, secret } => (position, secret),
            FileHeader::OtherVersion => return Err(DurabilityError::Version { path }),
            FileHeader::Damaged { .. } => {
                let mut copy = [0; header::BYTES];
                let at = total.saturating_sub(header::BYTES as u64);
                let len = file.read_at_most(&mut copy, at).map_err(fail)?;
                let FileHeader::Valid { position, secret } = header::parse(&copy[..len], &KIND)
                else {
                    let what = "its header is damaged, and so is the copy at its end";
                    return Err(DurabilityError::damaged(&path, 0, what));
                };
                (position, secret)
            }
        };
        let file = BufReader::with_capacity(1 << 20, Sequential::new(file));
        let mut reader = Self {
            path,
            file,
            total,
            at: header::BYTES as u64,
            began,
            has_damaged_header: matches!(first, FileHeader::Damaged { .. }),
            secret,
        };
        reader.go_to_next()?;
        Ok(reader)
    }

    /// Reads the next key or the end.
    ///
    /// # Errors
    ///
    /// [`DurabilityError`] if the key is damaged or cannot be read. On an error, the position of
    /// the reader is unchanged.
    pub fn next(&mut self) -> Result<SnapshotItem, DurabilityError> {
        let (item, len) = self.read_item()?;
        self.at += len;
        Ok(item)
    }

    /// Reads the item at the offset `at`, which is also the current offset of the file. Returns the
    /// item and the length of the item.
    fn read_item(&mut self) -> Result<(SnapshotItem, u64), DurabilityError> {
        let (numbers, key) = self.read_front()?;
        let [key_len, time, applied, len] = numbers;
        if key_len == END {
            return Ok((SnapshotItem::End { keys: time, end: applied }, ITEM_HEADER_BYTES as u64));
        }
        if len > self.total - self.at {
            return Err(self.damaged("a value is longer than the file"));
        }
        let (seed, path, at) = (self.seed(self.at), &self.path, self.at);
        let fail = |error| read_error(path, at, error);
        let mut image = Summed::new(&mut self.file, seed);
        let value = match Value::read_image(&mut image, len) {
            // An `UnexpectedEof` error means only that the decoder reached the end of the value too
            // early, because the file continues.
            Err(ImageError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(fail(error));
            }
            value => value,
        };
        // A wrong checksum means that the item is damaged, even if the decoder has reported a
        // different error.
        let left = len - image.len;
        io::copy(&mut (&mut image).take(left), &mut io::sink()).map_err(fail)?;
        let sum = finish_sum(image.sum, &key, &[time, applied, len]);
        if read_u64(&mut self.file).map_err(fail)? != sum {
            return Err(self.damaged("the checksum of a key is wrong"));
        }
        let value = value.map_err(|error| match error {
            ImageError::Memory => {
                fail(io::Error::other("there is not enough memory for its values"))
            }
            _ => self.damaged("a value cannot be read"),
        })?;
        let expires_millis = time.checked_sub(1);
        let item_bytes = ENTRY_BYTES + key.len() as u64 + len;
        Ok((SnapshotItem::Key(SnapshotEntry { key, value, expires_millis, applied }), item_bytes))
    }

    /// Reads an item header and the key after the header.
    fn read_front(&mut self) -> Result<([u64; 4], Vec<u8>), DurabilityError> {
        let mut header = [0; ITEM_HEADER_BYTES];
        self.file.read_exact(&mut header).map_err(|error| self.read_error(error))?;
        let (numbers, is_valid) = parse_item_header(&header, self.seed(self.at));
        if !is_valid {
            return Err(self.damaged("the check of a key's lengths is wrong"));
        }
        let key = if numbers[0] == END { Vec::new() } else { self.read_key(numbers[0])? };
        Ok((numbers, key))
    }

    /// Reads a key of this length.
    fn read_key(&mut self, len: u64) -> Result<Vec<u8>, DurabilityError> {
        if len > MAX_KEY_BYTES.min(self.total - self.at) {
            return Err(self.damaged("the length of a key exceeds the maximum"));
        }
        let mut key = vec![0; len as usize];
        self.file.read_exact(&mut key).map_err(|error| self.read_error(error))?;
        Ok(key)
    }

    fn seed(&self, at: u64) -> u64 {
        at ^ self.secret
    }

    /// Skips the damaged key at the current position. Returns the name of the key if the name is
    /// readable, and whether another key or the end item follows. The search takes time
    /// proportional to the number of skipped bytes.
    ///
    /// # Errors
    ///
    /// [`DurabilityError`] if the file cannot be read.
    pub fn skip_damaged(&mut self) -> Result<(Option<Vec<u8>>, bool), DurabilityError> {
        let skipped = self.skip()?;
        self.go_to_next()?;
        Ok(skipped)
    }

    fn skip(&mut self) -> Result<(Option<Vec<u8>>, bool), DurabilityError> {
        let from = self.at;
        self.at += 1;
        let mut key = None;
        if let Some(([key_len, _, _, len], is_valid)) = self.item_header_at(from)? {
            let entry_bytes = ENTRY_BYTES.checked_add(key_len).and_then(|it| it.checked_add(len));
            let next = entry_bytes.and_then(|bytes| from.checked_add(bytes));
            if let Some(next) = next.filter(|next| *next <= self.total && key_len <= MAX_KEY_BYTES)
                && (is_valid || self.item_header_at(next)?.is_some_and(|(_, is_valid)| is_valid))
            {
                let mut name = vec![0; key_len as usize];
                self.read_at(&mut name, from + ITEM_HEADER_BYTES as u64)?;
                key = Some(name);
                self.at = next;
            }
        }
        Ok((key, self.find_item_header()?))
    }

    /// Moves to the next valid item header. Returns false if no valid item header follows in the
    /// file.
    fn find_item_header(&mut self) -> Result<bool, DurabilityError> {
        let mut piece = vec![0; 64 << 10];
        loop {
            let (start, read) = (self.at, self.read_at(&mut piece, self.at)?);
            for bytes in piece[..read].windows(ITEM_HEADER_BYTES) {
                let header = bytes.first_chunk().expect("as long as a header");
                if parse_item_header(header, self.seed(self.at)).1 {
                    return Ok(true);
                }
                self.at += 1;
            }
            if self.at == start {
                self.at = self.total;
                return Ok(false);
            }
        }
    }

    /// Reads the item header at an offset. Returns the header, and whether the header is valid.
    /// Returns `None` if the file ends before the end of the header.
    fn item_header_at(&self, at: u64) -> Result<Option<([u64; 4], bool)>, DurabilityError> {
        let mut header = [0; ITEM_HEADER_BYTES];
        let read = self.read_at(&mut header, at)?;
        Ok((read == header.len()).then(|| parse_item_header(&header, self.seed(at))))
    }

    /// Moves the file offset to `at`.
    fn go_to_next(&mut self) -> Result<(), DurabilityError> {
        let sought = self.file.seek(SeekFrom::Start(self.at));
        sought.map(drop).map_err(|error| self.read_error(error))
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<usize, DurabilityError> {
        let file = &self.file.get_ref().file;
        file.read_at_most(bytes, at).map_err(DurabilityError::io(&self.path))
    }

    fn damaged(&self, what: &str) -> DurabilityError {
        self.damaged_at(self.at, what)
    }

    fn damaged_at(&self, at: u64, what: &str) -> DurabilityError {
        DurabilityError::damaged(&self.path, at, what)
    }

    fn read_error(&self, error: io::Error) -> DurabilityError {
        read_error(&self.path, self.at, error)
    }
}

fn read_u64(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_error(path: &Path, at: u64, error: io::Error) -> DurabilityError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return DurabilityError::damaged(path, at, "the file is truncated");
    }
    DurabilityError::io(path)(error)
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        self.add(&bytes[..len]);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::item_header;
    use super::*;
    use crate::persistence::sim_disk::SimDisk;
    use crate::persistence::test_files::write_snapshot;

    /// Returns a disk with a snapshot of string values, which has the number 1.
    fn snapshot_of(values: &[&[u8]]) -> (SimDisk, PathBuf) {
        let disk = SimDisk::default();
        let items: Vec<_> =
            ["key0", "key1", "key2"].into_iter().zip(values.iter().copied()).collect();
        write_snapshot(&disk, 1, (7, 9), &items);
        let path = path(&disk, 1);
        (disk, path)
    }

    fn assert_next(reader: &mut SnapshotReader, key: &[u8]) {
        assert!(matches!(reader.next(), Ok(SnapshotItem::Key(entry)) if entry.key == key));
    }

    #[test]
    fn a_read_error_is_not_reported_as_damage() {
        let random = |i: u32| i.wrapping_mul(0x9e37_79b9) as u8 | 1;
        let (disk, _) = snapshot_of(&[&(0..3 << 20).map(random).collect::<Vec<_>>()]);
        let mut keys = 0;
        let positions = load(&disk, 1, |_| keys += 1).unwrap();
        assert_eq!((keys, positions), (1, (7, 9)));
        for from in [0, 10, 1 << 20, 2 << 20, 3 << 20] {
            disk.fail_reads_from(from);
            match load(&disk, 1, drop) {
                Err(DurabilityError::Io { error, .. }) => assert_eq!(error.raw_os_error(), Some(5)),
                other => panic!("{from}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_next_key_behind_a_damaged_one_is_found_in_linear_time() {
        // One value consists of numbers that could all be lengths. A second value consists mostly
        // of zeros.
        let lengths: Vec<u8> = (0..64 << 10).flat_map(|_| 0x2000_u64.to_le_bytes()).collect();
        let mut zeros = vec![0; 512 << 10];
        zeros[300 << 10] = 1;
        let (disk, path) = snapshot_of(&[&lengths, &zeros, b"last"]);
        let mut reader = SnapshotReader::open(&disk, 1).unwrap();
        let first = reader.at;
        assert_next(&mut reader, b"key0");
        let second = reader.at;
        assert!(second > 512 << 10);
        // Damage the lengths of the keys, so that no length leads to the next item.
        for at in [first, second] {
            disk.flip(&path, at + 1);
            disk.flip(&path, at + 25);
        }
        let total = reader.total;
        let before = disk.bytes_read();
        let mut reader = SnapshotReader::open(&disk, 1).unwrap();
        assert!(reader.next().is_err());
        assert_eq!(reader.skip_damaged().unwrap(), (None, true));
        assert!(reader.at > second, "the header of the second key is damaged too");
        assert_next(&mut reader, b"key2");
        assert!(matches!(reader.next(), Ok(SnapshotItem::End { keys: 3, end: 9 })));
        let read = disk.bytes_read() - before;
        // After each jump in the file, the reader reads one part of the buffer twice.
        assert!(read < 2 * total + (4 << 20), "{read} of {total} bytes");
    }

    #[test]
    fn an_item_that_a_client_planted_is_not_found() {
        // The client knows the position of the value in the snapshot, but not the secret of the
        // snapshot.
        let at = header::BYTES as u64;
        let mut value = b"value".to_vec();
        for start in at..at + 300 {
            value.extend(item_header([END, 0, u64::MAX, 0], start + value.len() as u64));
        }
        let (disk, path) = snapshot_of(&[&value, b"last"]);
        disk.flip(&path, at);
        disk.flip(&path, at + 26);
        let mut reader = SnapshotReader::open(&disk, 1).unwrap();
        assert_eq!(reader.skip_damaged().unwrap(), (None, true));
        assert_next(&mut reader, b"key1");
    }

    #[test]
    fn the_second_header_stands_for_a_damaged_first_one() {
        let (disk, path) = snapshot_of(&[b"value"]);
        let file = disk.open(&path).unwrap();
        file.write_all_at(&[0; header::BYTES], 0).unwrap();
        assert!(load(&disk, 1, drop).is_err(), "damage is reported");
        let mut reader = SnapshotReader::open(&disk, 1).unwrap();
        assert!(reader.has_damaged_header);
        assert_eq!(reader.began, 7);
        assert_next(&mut reader, b"key0");
        file.write_all_at(&[0; 4], file.len().unwrap() - 4).unwrap();
        let Err(error) = SnapshotReader::open(&disk, 1) else { panic!("no secret is left") };
        assert!(error.to_string().contains("and so is the copy at its end"), "{error}");
    }
}
