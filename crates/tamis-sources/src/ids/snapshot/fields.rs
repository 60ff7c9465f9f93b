//! Reads and writes the fields of a snapshot, with a checksum.

use std::io::{self, BufWriter, Read, Take, Write};

use xxhash_rust::xxh3::Xxh3;

use crate::ids::snapshot::error::SnapshotError;

/// The maximum length of a text in bytes.
const MAX_TEXT: usize = 64 << 10;

/// Writes fields, and a checksum of all bytes at the end.
pub(super) struct FieldWriter<W: Write> {
    out: BufWriter<W>,
    checksum: Xxh3,
}

impl<W: Write> FieldWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out: BufWriter::new(out), checksum: Xxh3::new() }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }

    pub(super) fn u32(&mut self, value: u32) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn text(&mut self, text: &[u8]) -> io::Result<()> {
        if text.len() > MAX_TEXT {
            let message = "a text of the snapshot is longer than 64 KiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.u32(text.len() as u32)?;
        self.bytes(text)
    }

    /// Writes the checksum.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&self.checksum.digest().to_le_bytes())?;
        self.out.flush()
    }
}

/// The serialization of the filters uses this implementation of `Write`.
impl<W: Write> Write for FieldWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads fields, and compares the checksum of all bytes at the end.
pub(super) struct FieldReader<R> {
    stream: R,
    checksum: Xxh3,
    /// The number of bytes that the reader may still read.
    left: u64,
    max_bytes: u64,
}

impl<R: Read> FieldReader<R> {
    /// Creates a reader that reads at most `max_bytes`.
    pub(super) fn new(stream: R, max_bytes: u64) -> Self {
        Self { stream, checksum: Xxh3::new(), left: max_bytes, max_bytes }
    }

    fn reserve(&self, bytes: u64) -> Result<(), SnapshotError> {
        match bytes > self.left {
            true => Err(SnapshotError::TooLarge { max_bytes: self.max_bytes }),
            false => Ok(()),
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        self.reserve(N as u64)?;
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, SnapshotError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, SnapshotError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn text(&mut self) -> Result<Vec<u8>, SnapshotError> {
        let len = self.u32()? as usize;
        if len > MAX_TEXT {
            return Err(SnapshotError::Invalid("length of a text"));
        }
        self.reserve(len as u64)?;
        let mut bytes = vec![0; len];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns a reader of the next `len_bytes` bytes.
    pub(super) fn take(&mut self, len_bytes: u64) -> Result<Take<&mut Self>, SnapshotError> {
        self.reserve(len_bytes)?;
        Ok(Read::take(self, len_bytes))
    }

    /// Reads the checksum, compares it with the computed checksum, and tests that the stream ends.
    pub(super) fn finish(mut self) -> Result<(), SnapshotError> {
        let computed = self.checksum.digest();
        if self.u64()? != computed {
            return Err(SnapshotError::Checksum);
        }
        match self.stream.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(SnapshotError::TooLong),
        }
    }
}

/// The deserialization of the filters uses this implementation of `Read`.
impl<R: Read> Read for FieldReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(bytes)?;
        self.checksum.update(&bytes[..read]);
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}
