//! Where results go: standard output, or a file that is replaced at the end, all or nothing.
//!
//! With `-o FILE` everything is written to a temporary file in the same folder. Only when all is
//! done and on disk does it take the name: a failure, a full disk or a kill leaves the old file as it
//! was, and the output may even be one of the inputs.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::attributes;
use crate::exit::Failure;
use crate::input::{self, is_named_packed};
use crate::standard;
use crate::temporary::Temporary;

/// Small writes are gathered up to this size; larger ones go out as they are.
const BUFFER_BYTES: usize = 256 << 10;

/// How far a file was written, so that a later run may go on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    device: u64,
    inode: u64,
    len_bytes: u64,
}

/// A place for results. Nothing is promised until [`finish`](Self::finish).
pub struct Output {
    name: String,
    sink: Sink,
    buffer: Vec<u8>,
    written_bytes: u64,
}

enum Sink {
    /// Standard output, or a device, pipe or socket given by name: written as it comes.
    Stream(Box<dyn Write + Send>),
    /// A file that takes the place of `path` at the end.
    Replacement { file: Temporary, path: PathBuf },
    /// The same, but kept when the program is killed, to be continued.
    Partial { file: File, partial: PathBuf, path: PathBuf },
    /// Standard output that is a file.
    Appended(File),
}

impl Output {
    /// Opens `path`, or standard output if there is none or it is `-`.
    ///
    /// # Errors
    ///
    /// A directory, or a folder in which no file can be made.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path.filter(|path| !is_stdout(path)) {
            Some(path) => Self::replace(path, usual_permissions()),
            None => {
                standard::check_output()?;
                Ok(Self::stream("standard output".into(), stdout()))
            }
        }
    }

    /// Opens `path` for something secret: a new file is its owner's alone.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_private(path: &Path) -> Result<Self, Failure> {
        if is_stdout(path) { Self::open(None) } else { Self::replace(path, None) }
    }

    /// `new_permissions` are those of a file that was not there before; none are the owner's alone.
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
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tamis-").suffix(".tmp");
        // In place of another, until it has those of the other, it is its owner's alone.
        if let (None, Some(permissions)) = (&existing, new_permissions) {
            builder.permissions(permissions);
        }
        let file = Temporary::create(|| builder.tempfile_in(folder(&path))).map_err(failure)?;
        if let Some(existing) = &existing {
            note_other_names(&name, existing);
            attributes::keep(&path, existing, file.as_file()).map_err(failure)?;
        }
        let sink = Sink::Replacement { file, path };
        Ok(Self { name, sink, buffer: Vec::with_capacity(BUFFER_BYTES), written_bytes: 0 })
    }

    /// As [`open`](Self::open), but what was written survives a kill: with the [`mark`](Self::mark)
    /// of an earlier run whose output is still there, that output is cut to the mark and continued.
    ///
    /// Returns whether it is continued. Without a mark everything starts afresh.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_resumable(
        path: Option<&Path>,
        mark: Option<&Mark>,
    ) -> Result<(Self, bool), Failure> {
        let (name, file, partial) = match path.filter(|path| !is_stdout(path)) {
            None => {
                standard::check_output()?;
                ("standard output".to_string(), stdout_file(), None)
            }
            Some(path) => {
                let target = resolved(path);
                let is_new = matches!(target.metadata(),
                    Err(error) if error.kind() == io::ErrorKind::NotFound);
                if !is_new && !target.is_file() {
                    return Ok((Self::open(Some(path))?, false));
                }
                let mut file_name = std::ffi::OsString::from(".");
                file_name.push(target.file_name().unwrap_or_default());
                file_name.push(".tamis-part");
                let partial = target.with_file_name(file_name);
                let file = OpenOptions::new().read(true).write(true).open(&partial).ok();
                // Held to the end of the run, so that no other removes it or writes to it.
                if let Some(file) = &file {
                    lock_part(file, &path.display().to_string())?;
                }
                (path.display().to_string(), file, Some((partial, target)))
            }
        };
        let failure = |error: io::Error| Failure::io(&name, &error);
        let mut resumed = false;
        if let (Some(file), Some(mark)) = (&file, mark) {
            let found = Mark::of(file).map_err(failure)?;
            resumed = found.is_some_and(|found| found.continues(mark));
            if resumed {
                file.set_len(mark.len_bytes).map_err(failure)?;
            }
        }
        let sink = match (file, partial) {
            (Some(file), None) if Mark::of(&file).map_err(failure)?.is_some() => {
                Sink::Appended(file)
            }
            (_, None) => return Ok((Self::open(None)?, false)),
            (Some(file), Some((partial, path))) if resumed => Sink::Partial { file, partial, path },
            (_, Some((partial, path))) => {
                // A new file has another inode: marks of an abandoned run no longer fit.
                match std::fs::remove_file(&partial) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failure(error));
                    }
                    _ => {}
                }
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(&partial)
                    .map_err(failure)?;
                lock_part(&file, &name)?;
                if let Ok(existing) = path.metadata() {
                    note_other_names(&name, &existing);
                    attributes::keep(&path, &existing, &file).map_err(failure)?;
                }
                Sink::Partial { file, partial, path }
            }
        };
        let mut output =
            Self { name, sink, buffer: Vec::with_capacity(BUFFER_BYTES), written_bytes: 0 };
        if resumed && let Sink::Partial { file, .. } | Sink::Appended(file) = &mut output.sink {
            use std::io::{Seek as _, SeekFrom};
            file.seek(SeekFrom::End(0)).map_err(|error| Failure::io(&output.name, &error))?;
        }
        Ok((output, resumed))
    }

    /// Makes what was written so far last, and returns where it ends; `None` if this is no file.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn mark(&mut self) -> Result<Option<Mark>, Failure> {
        self.flush()?;
        let (Sink::Partial { file, .. } | Sink::Appended(file)) = &self.sink else {
            return Ok(None);
        };
        file.sync_all()
            .and_then(|()| Mark::of(file))
            .map_err(|error| Failure::io(&self.name, &error))
    }

    /// Tells whether a later run may go on from a [`mark`](Self::mark).
    pub fn is_resumable(&self) -> bool {
        matches!(self.sink, Sink::Partial { .. } | Sink::Appended(_))
    }

    /// Removes what was written to a file that has not taken its name yet.
    pub fn abandon(self) {
        if let Sink::Partial { partial, .. } = &self.sink {
            // A file that cannot be removed is replaced by the next run.
            std::fs::remove_file(partial).ok();
        }
    }

    /// An output for a command that writes nothing.
    pub fn nowhere() -> Self {
        Self::stream("nowhere".into(), Box::new(io::sink()))
    }

    fn stream(name: String, writer: Box<dyn Write + Send>) -> Self {
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Self { name, sink: Sink::Stream(writer), buffer, written_bytes: 0 }
    }

    /// Writes all of `bytes`, after what was written before.
    ///
    /// # Errors
    ///
    /// A full disk, or [`Failure::BrokenPipe`] if the reader has closed the pipe.
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
            Sink::Appended(file) => file.sync_all().map_err(|error| failure(&error)),
            Sink::Partial { file, partial, path } => {
                let rename = || std::fs::rename(&partial, &path);
                let lasting = file.sync_all().and_then(|()| rename());
                lasting.and_then(|()| sync_folder(&path)).map_err(|error| failure(&error))
            }
            Sink::Replacement { file, path } => {
                file.as_file().sync_all().map_err(|error| failure(&error))?;
                file.persist(&path).map_err(|error| failure(&error))?;
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
            Sink::Partial { file, .. } | Sink::Appended(file) => file,
        }
    }
}

impl Mark {
    /// Returns the mark at the end of the file that an output would replace or append to.
    pub fn of_output(path: Option<&Path>) -> Option<Mark> {
        let file = match path.filter(|path| !is_stdout(path)) {
            None => stdout_file()?,
            // Opening a pipe would wait for its reader.
            Some(path) if path.is_file() => File::open(path).ok()?,
            Some(_) => return None,
        };
        Mark::of(&file).ok().flatten()
    }

    /// Tells whether this is the file of `earlier`, and shorter: emptied by `> FILE`, as a rule.
    pub fn is_cut(&self, earlier: &Mark) -> bool {
        self.device == earlier.device
            && self.inode == earlier.inode
            && self.len_bytes < earlier.len_bytes
    }

    /// Returns the mark at the end of `file`, or `None` if it is no regular file.
    fn of(file: &File) -> io::Result<Option<Mark>> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let metadata = file.metadata()?;
            Ok(metadata.is_file().then(|| Mark {
                device: metadata.dev(),
                inode: metadata.ino(),
                len_bytes: metadata.len(),
            }))
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            Ok(None)
        }
    }

    /// Tells whether this is the file of `earlier`, and holds all that it held.
    pub fn continues(&self, earlier: &Mark) -> bool {
        self.device == earlier.device
            && self.inode == earlier.inode
            && self.len_bytes >= earlier.len_bytes
    }
}

/// Locks the unfinished output of a run with a state.
fn lock_part(file: &File, name: &str) -> Result<(), Failure> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::new(format!(
            "{name}: another run with a --state is writing to it; wait for its end, or name another output"
        ))),
        // Some network file systems know no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Refuses to read a file that standard output appends to: the command would read what it has written, without end.
///
/// `output` is where the user has the results go, if not to standard output.
///
/// # Errors
///
/// If one of `paths` is that file.
pub fn refuse_endless(paths: &[PathBuf], output: Option<&Path>) -> Result<(), Failure> {
    if output.is_some_and(|output| !is_stdout(output)) {
        return Ok(());
    }
    let Some(written) = stdout_file().and_then(|file| Mark::of(&file).ok().flatten()) else {
        return Ok(());
    };
    let is_written = |path: &Path| {
        let read = if input::is_stdin(path) { stdin_file() } else { regular_file(path) };
        let read = read.and_then(|file| Mark::of(&file).ok().flatten());
        read.is_some_and(|read| (read.device, read.inode) == (written.device, written.inode))
    };
    match paths.iter().find(|path| is_written(path)) {
        Some(path) => Err(Failure::new(format!(
            "{}: is standard output too: write to another file",
            input::name(path)
        ))),
        None => Ok(()),
    }
}

/// Opens `path` if it is a regular file. To open a pipe would wait for its writer.
fn regular_file(path: &Path) -> Option<File> {
    if path.is_file() { File::open(path).ok() } else { None }
}

/// Returns the path of the file itself: a link stays a link, and what it points to is replaced, or made if it is missing.
fn resolved(path: &Path) -> PathBuf {
    /// As many as the system follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if let Ok(path) = path.canonicalize() {
            return path;
        }
        // A missing file, or a link to one.
        let Ok(target) = path.read_link() else { break };
        path = folder(&path).join(target);
    }
    path
}

/// Says that a file of several names stays as it is under the others.
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

/// Tells whether `path` is a name of standard output, which is written to and never replaced.
pub fn is_stdout(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

/// Returns the folder in which `path` lies.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Tells whether `a` and `b` name one file, which need not be there yet. Devices and pipes are no
/// files in this sense: nothing is lost when they are used twice.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let known = |path: &Path| {
        path.canonicalize().or_else(|_| {
            Ok::<_, io::Error>(
                folder(path).canonicalize()?.join(path.file_name().unwrap_or_default()),
            )
        })
    };
    let is_replaceable = |path: &Path| path.metadata().map_or(true, |metadata| metadata.is_file());
    let is_stream = |path: &Path| is_stdout(path) || !is_replaceable(path);
    !is_stream(a) && !is_stream(b) && known(a).is_ok_and(|a| known(b).is_ok_and(|b| a == b))
}

/// Refuses an output that is no place for a filter, before the work: standard output that is closed or a terminal, and
/// a name of packed data, since filters are written as they are.
///
/// # Errors
///
/// If `output` is such a place.
pub fn check_filter_output(output: &Path) -> Result<(), Failure> {
    if is_stdout(output) {
        standard::check_output()?;
        refuse_terminal("a filter is")?;
    }
    if is_named_packed(output) {
        return Err(Failure::new(format!(
            "{}: filters are written unpacked, and this is a name of packed data: name it otherwise, and pack it then",
            output.display()
        )));
    }
    Ok(())
}

/// Refuses to write bytes that are no text to a terminal; `what` they are.
///
/// # Errors
///
/// If standard output is one.
pub fn refuse_terminal(what: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::new(format!(
            "standard output: is a terminal, and {what} binary: write to a file with -o, or to a pipe"
        )));
    }
    Ok(())
}

/// Refuses to write a filter in place of what it is made of.
///
/// # Errors
///
/// If `output` is one of `paths`.
pub fn refuse_input_as_output(paths: &[PathBuf], output: &Path) -> Result<(), Failure> {
    match paths.iter().find(|path| is_same_file(path, output)) {
        Some(path) => Err(Failure::new(format!(
            "{}: is an input too, and the filter would take its place; name another output",
            path.display()
        ))),
        None => Ok(()),
    }
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
fn stdout() -> Box<dyn Write + Send> {
    // Without a descriptor to spare, the buffered handle does.
    stdout_file()
        .map_or_else(|| Box::new(io::stdout()) as Box<dyn Write + Send>, |file| Box::new(file))
}

fn stdin_file() -> Option<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        io::stdin().as_fd().try_clone_to_owned().map(File::from).ok()
    }
    #[cfg(not(unix))]
    None
}

fn stdout_file() -> Option<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        io::stdout().as_fd().try_clone_to_owned().map(File::from).ok()
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
        // Before there is such a file, and after.
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_a_failure() {
        match written(Path::new("/dev/full"), &[b"x"]) {
            Err(Failure::Message(line)) => assert!(line.contains("/dev/full: no space"), "{line}"),
            other => panic!("{other:?}"),
        }
    }
}
