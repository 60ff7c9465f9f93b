//! The data folder of a server, and the file operations on the folder. Some tests use a simulated
//! disk.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file system that contains the data folder of a server.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Returns the path of the data folder.
    fn dir(&self) -> &Path;

    /// Creates a file, or truncates an existing file.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Renames a file. If a file with the new name exists, the rename replaces that file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a folder inside an existing folder.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates a hard link. After an error, the link may still exist.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns the names of the files in a folder.
    fn names(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes the file names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file.
pub(crate) trait DiskFile: Debug + Send + Sync {
    /// Reads bytes at an offset. Returns the number of bytes read; 0 means the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads until the buffer is full or the file ends. Returns the number of bytes read.
    fn read_at_most(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut len = 0;
        while len < bytes.len() {
            match self.read_at(&mut bytes[len..], offset + len as u64) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(len)
    }

    /// Writes all bytes at an offset. After an error, the file may contain any part of the bytes.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns the length of the file in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Truncates or extends the file to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves disk space for `len` bytes at an offset, which may be beyond the end of the file.
    /// The length of the file does not change. [`io::ErrorKind::Unsupported`] means that the file
    /// system cannot reserve space.
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Makes the file's bytes and length durable.
    fn sync(&self) -> io::Result<()>;

    /// Tests whether `path` is a name of this open file.
    fn is_at(&self, path: &Path) -> bool;
}

/// A data folder in the file system of the operating system.
#[derive(Debug)]
pub(crate) struct OsDisk(pub PathBuf);

impl Disk for OsDisk {
    fn dir(&self) -> &Path {
        &self.0
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        Ok(Arc::new(options.create(true).truncate(true).read(true).write(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
        std::fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

impl DiskFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        let reserve = || fallocate(self, FallocateFlags::KEEP_SIZE, offset, len);
        Ok(rustix::io::retry_on_intr(reserve)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn reserve(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        // `sync_data` makes the data and a changed length durable.
        self.sync_data()
    }

    fn is_at(&self, path: &Path) -> bool {
        let identity = |it: std::fs::Metadata| (it.dev(), it.ino());
        let found = std::fs::metadata(path).ok().map(identity);
        found.is_some() && found == self.metadata().ok().map(identity)
    }
}

/// The number of bytes in one copy step.
const COPY_BYTES: u64 = 4 << 20;

/// Copies `len` bytes from an offset of one file to an offset of a second file.
pub(super) fn copy_bytes(
    (from, from_at): (&dyn DiskFile, u64),
    (to, to_at): (&dyn DiskFile, u64),
    len: u64,
) -> io::Result<()> {
    let mut buffer = vec![0; len.min(COPY_BYTES) as usize];
    let mut done = 0;
    while done < len {
        let wanted = (len - done).min(COPY_BYTES) as usize;
        let read = from.read_at_most(&mut buffer[..wanted], from_at + done)?;
        if read == 0 {
            break;
        }
        to.write_all_at(&buffer[..read], to_at + done)?;
        done += read as u64;
    }
    Ok(())
}

/// Reads or writes a file from its start to its end.
#[derive(Debug)]
pub(crate) struct Sequential {
    pub file: Arc<dyn DiskFile>,
    pub offset: u64,
}

impl Sequential {
    /// Creates a reader or writer at the beginning of the file.
    pub fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, offset: 0 }
    }
}

impl Read for Sequential {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(bytes, self.offset)?;
        self.offset += len as u64;
        Ok(len)
    }
}

impl Write for Sequential {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Sequential {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let offset = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.offset.checked_add_signed(by),
            SeekFrom::End(by) => self.file.len()?.checked_add_signed(by),
        };
        self.offset = offset.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}
