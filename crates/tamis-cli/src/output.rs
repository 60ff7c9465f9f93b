//! Where results go: standard output, or a file that is replaced at the end, all or nothing.
//!
//! With `-o FILE` everything is written to a temporary file in the same folder. Only when all is
//! done and on disk does it take the name: a failure, a full disk or a kill leaves the old file as it
//! was, and the output may even be one of the inputs.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::exit::Failure;

/// Small writes are gathered up to this size; larger ones go out as they are.
const BUFFER_BYTES: usize = 256 << 10;

/// A place for results. Nothing is promised until [`finish`](Self::finish).
pub struct Output {
    name: String,
    sink: Sink,
    buffer: Vec<u8>,
    written_bytes: u64,
}

enum Sink {
    /// Standard output, or a device, pipe or socket given by name: written as it comes.
    Stream(Box<dyn Write>),
    /// A file that takes the place of `path` at the end.
    Replacement { file: NamedTempFile, path: PathBuf },
}

impl Output {
    /// Opens `path`, or standard output if there is none or it is `-`.
    ///
    /// # Errors
    ///
    /// A directory, or a folder in which no file can be made.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path.filter(|path| *path != Path::new("-")) {
            Some(path) => Self::replace(path, usual_permissions()),
            None => Ok(Self::stream("standard output".into(), Box::new(stdout()))),
        }
    }

    /// Opens `path` for something secret: a new file is its owner's alone.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_private(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") { Self::open(None) } else { Self::replace(path, None) }
    }

    /// `new_permissions` are those of a file that was not there before; none are the owner's alone.
    fn replace(path: &Path, new_permissions: Option<Permissions>) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failure = |error: io::Error| Failure::io(&name, &error);
        // A link stays a link: what it points to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let existing = match path.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure(error)),
        };
        if existing.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(Failure::new(format!("{name}: is a directory; name a file to write to")));
        }
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            // A device or pipe must not be replaced by a file.
            let file = OpenOptions::new().write(true).open(&path).map_err(failure)?;
            return Ok(Self::stream(name, Box::new(file)));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tamis-").suffix(".tmp");
        let permissions = existing.map(|metadata| metadata.permissions());
        if let Some(permissions) = permissions.clone().or(new_permissions) {
            builder.permissions(permissions);
        }
        let file = builder.tempfile_in(folder(&path)).map_err(failure)?;
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions).map_err(failure)?;
        }
        let sink = Sink::Replacement { file, path };
        Ok(Self { name, sink, buffer: Vec::with_capacity(BUFFER_BYTES), written_bytes: 0 })
    }

    fn stream(name: String, writer: Box<dyn Write>) -> Self {
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Self { name, sink: Sink::Stream(writer), buffer, written_bytes: 0 }
    }

    /// Writes all of `bytes`, after what was written before.
    ///
    /// # Errors
    ///
    /// A full disk, or [`Failure::BrokenPipe`] if whoever reads has had enough.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.written_bytes += bytes.len() as u64;
        if bytes.len() > BUFFER_BYTES - self.buffer.len() {
            return self.write_through(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn write_through(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.flush()?;
        if bytes.len() < BUFFER_BYTES / 2 {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.sink.writer().write_all(bytes).map_err(|error| Failure::io(&self.name, &error))
    }

    /// Hands everything written so far to the system, so that a reader of a pipe sees it.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.sink
            .writer()
            .write_all(&self.buffer)
            .map_err(|error| Failure::io(&self.name, &error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Returns how many bytes were written.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Makes it all last: the file is on disk and has its name.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write); the old file is untouched then.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        let failure = |error: &io::Error| Failure::io(&self.name, error);
        match self.sink {
            Sink::Stream(mut writer) => writer.flush().map_err(|error| failure(&error)),
            Sink::Replacement { file, path } => {
                file.as_file().sync_all().map_err(|error| failure(&error))?;
                file.persist(&path).map_err(|error| failure(&error.error))?;
                sync_folder(&path).map_err(|error| failure(&error))
            }
        }
    }
}

impl Sink {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Sink::Stream(writer) => writer,
            Sink::Replacement { file, .. } => file.as_file_mut(),
        }
    }
}

/// Returns the folder in which `path` lies.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a new name in the folder of `path` last.
///
/// # Errors
///
/// Those of the system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder(path))?.sync_all() } else { Ok(()) }
}

/// What a new file may be used for before the user's mask is applied; temporary files are otherwise
/// their owner's alone.
fn usual_permissions() -> Option<Permissions> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        Some(Permissions::from_mode(0o666))
    }
    #[cfg(not(unix))]
    None
}

/// Standard output without the standard library's line buffer, which would cost a call a line.
fn stdout() -> impl Write {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let duplicate = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        // Without a descriptor to spare, the buffered handle does.
        duplicate.map_or_else(|_| Either::Std(io::stdout()), Either::File)
    }
    #[cfg(not(unix))]
    io::stdout()
}

#[cfg(unix)]
enum Either {
    File(File),
    Std(io::Stdout),
}

#[cfg(unix)]
impl Write for Either {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Either::File(file) => file.write(bytes),
            Either::Std(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Either::File(file) => file.flush(),
            Either::Std(stdout) => stdout.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn written(path: &Path, pieces: &[&[u8]]) -> Result<(), Failure> {
        let mut output = Output::open(Some(path))?;
        pieces.iter().try_for_each(|piece| output.write(piece))?;
        output.finish()
    }

    #[test]
    fn the_old_file_stays_until_all_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut output = Output::open(Some(&path)).unwrap();
        output.write(b"new").unwrap();
        output.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(output);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        written(&path, &[b"new"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn small_and_large_writes_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let large = vec![b'x'; BUFFER_BYTES];
        let pieces = [&b"a"[..], &large, b"b", &large[..BUFFER_BYTES / 3], &large[1..], b"c"];
        written(&path, &pieces).unwrap();
        assert_eq!(fs::read(&path).unwrap(), pieces.concat());
    }

    #[cfg(unix)]
    #[test]
    fn links_devices_and_permissions_survive() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
        std::os::unix::fs::symlink("out", &link).unwrap();
        written(&link, &[b"new"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o604);
        written(Path::new("/dev/null"), &[b"new"]).unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    }

    #[test]
    fn a_folder_is_no_output() {
        let folder = tempfile::tempdir().unwrap();
        assert!(written(folder.path(), &[]).is_err());
        assert!(written(&folder.path().join("missing/out"), &[]).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_a_failure() {
        match written(Path::new("/dev/full"), &[b"x"]) {
            Err(Failure::Message(line)) => assert!(line.contains("/dev/full: no space"), "{line}"),
            other => panic!("{other:?}"),
        }
    }
}
