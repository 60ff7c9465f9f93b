//! Writes results to standard output, or to a file that is replaced atomically at the end.
//!
//! With `-o FILE`, the results go to a temporary file in the same folder. The program syncs the
//! complete temporary file to the disk, and then renames the file to FILE. A failure, a full disk
//! or a kill leaves the old file unchanged. FILE may be one of the inputs.

pub(crate) mod place;
mod position;
mod refusals;
mod resumable;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Failure, plain};
use crate::io::attributes;
pub use crate::io::output::place::{folder, is_same_file, is_stdout, name, sync_folder};
use crate::io::output::place::{resolved, stdout};
pub use crate::io::output::position::OutputPosition;
pub use crate::io::output::refusals::{
    check_filter_output, refuse_endless, refuse_input_as_output, refuse_name_of_other_format,
    refuse_terminal,
};
use crate::io::standard;
use crate::io::temporary::Temporary;

/// The size of the buffer, in bytes, for small writes. A write that does not fit in the buffer, and
/// has at least half of the size of the buffer, bypasses the buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// A destination for results: standard output, a device or a file. A file is incomplete until
/// [`finish`](Self::finish) has returned.
pub struct Output {
    name: String,
    sink: Sink,
    buffer: Vec<u8>,
    written_bytes: u64,
}

enum Sink {
    /// Standard output, or a device, pipe or socket with a name. No file replaces a stream.
    Stream(Box<dyn Write + Send>),
    /// A temporary file that replaces `path` at the end.
    Replacement { file: Temporary, path: PathBuf },
    /// A file that replaces `path` at the end. If the program is killed, this file remains, and the
    /// next run can resume its output.
    Partial { file: File, partial: PathBuf, path: PathBuf },
    /// Standard output that is redirected to a file.
    Appended(File),
}

impl Output {
    /// Opens `path`. If `path` is `None` or `-`, opens standard output.
    ///
    /// # Errors
    ///
    /// A message for a directory, or for a folder in which no file can be created.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path.filter(|path| !is_stdout(path)) {
            Some(path) => Self::replace(path, usual_permissions()),
            None => {
                standard::check_output()?;
                Ok(Self::stream("standard output".into(), stdout()))
            }
        }
    }

    /// Opens `path` for secret data: only the owner can read a new file.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open).
    pub fn open_private(path: &Path) -> Result<Self, Failure> {
        if is_stdout(path) { Self::open(None) } else { Self::replace(path, None) }
    }

    /// Creates a replacement for `path`. A new file gets `new_permissions`. If `new_permissions`
    /// is `None`, only the owner can read the new file.
    fn replace(path: &Path, new_permissions: Option<Permissions>) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failure = |error: io::Error| Failure::io(&name, &error);
        let path = resolved(path);
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
        if existing.is_some() {
            check_writable(&path).map_err(failure)?;
        }
        // The replacement of an existing file is private to its owner until the replacement gets
        // the permissions of the existing file.
        let permissions = new_permissions.filter(|_| existing.is_none());
        let file = temporary(&name, &path, permissions)?;
        if let Some(existing) = &existing {
            note_other_names(&name, existing);
            attributes::keep(&path, existing, file.as_file()).map_err(failure)?;
        }
        Ok(Self::new(name, Sink::Replacement { file, path }))
    }

    /// Syncs the file to the disk. Returns the mark at the end of the file, or `None` if the output
    /// is not a file.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write).
    pub fn mark(&mut self) -> Result<Option<OutputPosition>, Failure> {
        self.flush()?;
        let (Sink::Partial { file, .. } | Sink::Appended(file)) = &self.sink else {
            return Ok(None);
        };
        file.sync_all()
            .and_then(|()| OutputPosition::of(file))
            .map_err(|error| Failure::io(&self.name, &error))
    }

    /// Tests whether a later run can resume this output from a [`mark`](Self::mark).
    pub fn is_resumable(&self) -> bool {
        matches!(self.sink, Sink::Partial { .. } | Sink::Appended(_))
    }

    /// Removes the unfinished file of a run with `--state`.
    pub fn abandon(self) {
        if let Sink::Partial { partial, .. } = &self.sink {
            // If the removal fails, the next run replaces the file.
            std::fs::remove_file(partial).ok();
        }
    }

    /// Creates an output that discards everything, for a command that writes nothing.
    pub fn nowhere() -> Self {
        Self::stream("nowhere".into(), Box::new(io::sink()))
    }

    fn stream(name: String, writer: Box<dyn Write + Send>) -> Self {
        Self::new(name, Sink::Stream(writer))
    }

    fn new(name: String, sink: Sink) -> Self {
        Self { name, sink, buffer: Vec::with_capacity(BUFFER_BYTES), written_bytes: 0 }
    }

    /// Appends `bytes` to the output.
    ///
    /// # Errors
    ///
    /// A message for a full disk, or [`Failure::BrokenPipe`] if the reader has closed the pipe.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.append(bytes).map_err(|error| Failure::io(&self.name, &error))
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written_bytes += bytes.len() as u64;
        if bytes.len() > BUFFER_BYTES - self.buffer.len() {
            return self.write_through(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        Write::flush(self)?;
        if bytes.len() < BUFFER_BYTES / 2 {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.sink.writer().write_all(bytes)
    }

    /// Syncs the output to the disk. After this call, [`finish`](Self::finish) only renames the
    /// file. A run with two outputs syncs both outputs before it replaces the first file.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write).
    pub fn sync(&mut self) -> Result<(), Failure> {
        self.flush()?;
        let file = match &self.sink {
            Sink::Stream(_) => return Ok(()),
            Sink::Replacement { file, .. } => file.as_file(),
            Sink::Partial { file, .. } | Sink::Appended(file) => file,
        };
        file.sync_all().map_err(|error| Failure::io(&self.name, &error))
    }

    /// Writes the buffer to the sink, so that the reader of a pipe receives the bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), Failure> {
        Write::flush(self).map_err(|error| Failure::io(&self.name, &error))
    }

    /// Returns the number of bytes written.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Flushes the output. Returns the path of the temporary file, which the caller can check
    /// before [`finish`](Self::finish). Returns `None` if the output replaces no file.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write).
    #[cfg(feature = "network")]
    pub fn unfinished(&mut self) -> Result<Option<PathBuf>, Failure> {
        self.flush()?;
        Ok(match &self.sink {
            Sink::Replacement { file, .. } => Some(file.path().to_owned()),
            Sink::Partial { partial, .. } => Some(partial.clone()),
            Sink::Stream(_) | Sink::Appended(_) => None,
        })
    }

    /// Flushes the output. If the output is a file, syncs the file to the disk and renames the file
    /// to its final name.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write). After an error, the old file is unchanged.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        self.sink.finish().map_err(|error| Failure::io(&self.name, &error))
    }
}

/// Writes the bytes of encoders. The errors do not name the output.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.writer().write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Sink {
    fn finish(self) -> io::Result<()> {
        match self {
            Sink::Stream(mut writer) => writer.flush(),
            Sink::Appended(file) => file.sync_all(),
            Sink::Partial { file, partial, path } => {
                file.sync_all()?;
                std::fs::rename(partial, &path)?;
                sync_folder(&path)
            }
            Sink::Replacement { file, path } => {
                file.as_file().sync_all()?;
                file.persist(&path)?;
                sync_folder(&path)
            }
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Sink::Stream(writer) => writer,
            Sink::Replacement { file, .. } => file.as_file_mut(),
            Sink::Partial { file, .. } | Sink::Appended(file) => file,
        }
    }
}

/// Writes `bytes` to `path`. If `path` is `None` or `-`, writes `bytes` to standard output.
///
/// # Errors
///
/// The errors of [`Output::open`] and [`Output::write`]. After an error, the old file is unchanged.
pub fn write_whole(path: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(path)?;
    output.write(bytes)?;
    output.finish()
}

/// Creates the file `path` with the content `bytes`, and syncs the file to the disk. Only the owner
/// can read the file. Does nothing if the file exists. A crash leaves either no file or the
/// complete file.
///
/// # Errors
///
/// A message for a folder in which no file can be created, or a full disk.
pub fn create_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let (name, path) = (path.display().to_string(), resolved(path));
    if path.try_exists().map_err(|error| Failure::io(&name, &error))? {
        return Ok(());
    }
    let mut file = temporary(&name, &path, None)?;
    file.as_file_mut()
        .write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .and_then(|()| file.persist_new(&path))
        .and_then(|()| sync_folder(&path))
        .map_err(|error| Failure::io(&name, &error))
}

/// Creates the temporary file that will be renamed to `path`. If `permissions` is `None`, only the
/// owner can read the file. Messages contain `name` as the name of the output.
fn temporary(
    name: &str,
    path: &Path,
    permissions: Option<Permissions>,
) -> Result<Temporary, Failure> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tamis-").suffix(".tmp");
    permissions.map(|permissions| builder.permissions(permissions));
    Temporary::create(|| builder.tempfile_in(folder(path)))
        .map_err(|error| not_created(name, folder(path), &error))
}

/// Returns the failure to create the temporary file of an output in its folder.
fn not_created(name: &str, folder: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        // The output file itself may be writable, so the message names the folder.
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Failure::new(format!(
                "{name}: a new file is written in its folder {} first, and then replaces it, but: \
                 {}; allow writing to that folder, or name an output in another",
                folder.display(),
                plain(error)
            ))
        }
        _ => Failure::io(name, error),
    }
}

/// Rejects a file that the user may not write. A rename over a file without write permission would
/// succeed, but a program that writes in place, such as `sort -o`, would fail.
fn check_writable(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Writes a note if `existing` has other hard links. The hard links of the old file keep the old
/// content.
fn note_other_names(name: &str, existing: &std::fs::Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let others = existing.nlink().saturating_sub(1);
        if others > 0 {
            let (names, keep) = if others == 1 { ("name", "keeps") } else { ("names", "keep") };
            note!("{name}: a hard link: its {others} other {names} {keep} the old content");
        }
    }
    #[cfg(not(unix))]
    let _ = (name, existing);
}

/// Returns the permissions of a new file, before the umask of the user applies. With `None`, only
/// the owner can read a temporary file.
fn usual_permissions() -> Option<Permissions> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        Some(Permissions::from_mode(0o666))
    }
    #[cfg(not(unix))]
    None
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
    fn one_file_is_known_under_two_names() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        // In the first pass, the output file does not exist. In the second pass, the output file
        // exists.
        for _ in 0..2 {
            assert!(is_same_file(&path, &folder.path().join("./file")));
            assert!(!is_same_file(&path, &other));
            fs::write(&path, "").unwrap();
        }
        for stream in ["-", "/dev/null"] {
            assert!(!is_same_file(Path::new(stream), Path::new(stream)));
        }
    }

    #[test]
    fn a_folder_is_no_output() {
        let folder = tempfile::tempdir().unwrap();
        assert!(written(folder.path(), &[]).is_err());
        assert!(written(&folder.path().join("missing/out"), &[]).is_err());
    }

    #[test]
    fn a_folder_that_takes_no_files_is_named() {
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let failure = not_created("data/out", Path::new("data"), &kind.into());
            let Failure::Message(line) = failure else { panic!() };
            assert!(
                line.starts_with("data/out: a new file is written in its folder data"),
                "{line}"
            );
        }
    }
}
