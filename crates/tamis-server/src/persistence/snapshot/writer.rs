//! Writes a snapshot.

use std::io::{self, BufWriter, Cursor, Seek, SeekFrom, Write};
use std::path::PathBuf;

use tamis_commands::Value;

use crate::keyspace::Keyspace;
use crate::persistence::disk::{Disk, Sequential};
use crate::persistence::error::DurabilityError;
use crate::persistence::header::{self, new_secret};
use crate::persistence::log::Log;
use crate::persistence::snapshot::{
    END, ITEM_HEADER_BYTES, KIND, Summed, finish_sum, item_header, path,
};

/// Writes a snapshot for the log with this number. The log begins at `position`. The snapshot gets
/// its final name when the snapshot is complete.
///
/// # Errors
///
/// [`DurabilityError::Io`] if the snapshot cannot be written. On an error, the temporary file is
/// removed.
pub(in crate::persistence) fn save(
    disk: &dyn Disk,
    keyspace: &Keyspace,
    log: &Log,
    number: u64,
    position: u64,
) -> Result<(), DurabilityError> {
    let write = || -> io::Result<()> {
        let mut out = SnapshotWriter::new(disk, number, position)?;
        // A transaction has no position before its end, so the snapshot reads a value either before
        // or after a transaction.
        let may_read = || log.group_bytes().is_none();
        for entry in keyspace.listed_keys() {
            if log.is_closing() {
                return Err(io::Error::other("the server ends"));
            }
            // The log may contain changes after this position, and the replay of the log counts the
            // items of these changes.
            let observe = |value: &Value| (log.end(), value.counted_items());
            let written = entry.read(may_read, observe, |value, expires_millis, observed| {
                out.write(entry.key(), value, expires_millis, observed)
            });
            if let Some(Some(encoded)) = written.transpose()? {
                // The key is unlocked at this point, so no client waits for the disk.
                out.append(&encoded)?;
            }
        }
        // The values may contain changes that the log has not written yet. If a crash lost
        // unwritten changes, later changes would get the positions of the lost changes, and a start
        // would skip the later changes.
        let end = log.sync()?;
        out.finish(end)
    };
    write().map_err(|error| {
        let path = path(disk, number);
        _ = disk.remove(&path.with_extension("part"));
        DurabilityError::io(&path)(error)
    })
}

/// The writer encodes values up to this size, in bytes, in memory before the write to the disk.
/// With a small value in memory, a client that waits for the key does not wait for the disk.
const SMALL_BYTES: u64 = 256 << 10;

/// A snapshot that is being written under a temporary name.
pub(in crate::persistence) struct SnapshotWriter<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    file: BufWriter<Sequential>,
    header: Vec<u8>,
    secret: u64,
    /// The offset at which the next item is written.
    at: u64,
    keys: u64,
}

impl<'d> SnapshotWriter<'d> {
    pub fn new(disk: &'d dyn Disk, number: u64, position: u64) -> io::Result<Self> {
        let secret = new_secret()?;
        let path = path(disk, number);
        let file = disk.create(&path.with_extension("part"))?;
        let mut file = BufWriter::with_capacity(1 << 20, Sequential::new(file));
        let header = header::encode(&KIND, position, secret);
        file.write_all(&header)?;
        let at = header.len() as u64;
        Ok(Self { disk, path, file, header, secret, at, keys: 0 })
    }

    /// Appends a key. The value contains all changes before the given position. At the given
    /// position, the value had the given number of counted items.
    pub fn entry(
        &mut self,
        key: &[u8],
        value: &Value,
        expires_millis: Option<u64>,
        observed: (u64, Option<u64>),
    ) -> io::Result<()> {
        match self.write(key, value, expires_millis, observed)? {
            Some(encoded) => self.append(&encoded),
            None => Ok(()),
        }
    }

    /// Writes a key with a large value directly. For a small value, returns the encoded key, which
    /// the caller appends.
    fn write(
        &mut self,
        key: &[u8],
        value: &Value,
        expires_millis: Option<u64>,
        observed: (u64, Option<u64>),
    ) -> io::Result<Option<Vec<u8>>> {
        let seed = self.seed();
        if value.memory_bytes() <= SMALL_BYTES {
            let mut encoded = Cursor::new(Vec::new());
            write_entry(&mut encoded, seed, key, value, expires_millis, observed)?;
            return Ok(Some(encoded.into_inner()));
        }
        self.at += write_entry(&mut self.file, seed, key, value, expires_millis, observed)?;
        self.keys += 1;
        Ok(None)
    }

    fn append(&mut self, encoded: &[u8]) -> io::Result<()> {
        self.file.write_all(encoded)?;
        self.at += encoded.len() as u64;
        self.keys += 1;
        Ok(())
    }

    fn seed(&self) -> u64 {
        self.at ^ self.secret
    }

    /// Completes the snapshot and gives the snapshot its final name. The stream of logs is durable
    /// up to `end`.
    pub fn finish(mut self, end: u64) -> io::Result<()> {
        let seed = self.seed();
        self.file.write_all(&item_header([END, self.keys, end, 0], seed))?;
        self.file.write_all(&self.header)?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.file.sync()?;
        self.disk.rename(&self.path.with_extension("part"), &self.path)?;
        self.disk.sync_dir(self.disk.dir())
    }
}

/// Writes a key with its value and returns the written length in bytes.
fn write_entry(
    out: &mut (impl Write + Seek),
    seed: u64,
    key: &[u8],
    value: &Value,
    expires_millis: Option<u64>,
    (applied, counted_items): (u64, Option<u64>),
) -> io::Result<u64> {
    // Write the header after the value: the header contains the length of the value, although the
    // header is before the value in the file.
    let start = out.stream_position()?;
    out.write_all(&[0; ITEM_HEADER_BYTES])?;
    out.write_all(key)?;
    let mut image = Summed::new(&mut *out, seed);
    value.write_image(counted_items, &mut image)?;
    let Summed { sum, len, .. } = image;
    let time = expires_millis.map_or(0, |at| at.saturating_add(1));
    let sum = finish_sum(sum, key, &[time, applied, len]);
    out.write_all(&sum.to_le_bytes())?;
    let end = out.stream_position()?;
    out.seek(SeekFrom::Start(start))?;
    out.write_all(&item_header([key.len() as u64, time, applied, len], seed))?;
    out.seek(SeekFrom::Start(end))?;
    Ok(end - start)
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.inner.write(bytes)?;
        self.add(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
