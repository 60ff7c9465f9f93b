//! Resolves the paths of inputs and outputs, and opens standard streams as files.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::filters::redis_url::without_password;

/// Opens `path` if it is a regular file. Opening a pipe would block until a writer opens the pipe.
pub(super) fn regular_file(path: &Path) -> Option<File> {
    if path.is_file() { File::open(path).ok() } else { None }
}

/// Returns `path` with symbolic links resolved. An output replaces or creates the target of a link,
/// and the link remains.
pub(super) fn resolved(path: &Path) -> PathBuf {
    /// The limit of Linux for links in one path.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if let Ok(path) = path.canonicalize() {
            return path;
        }
        // `path` is a missing file, or a link to a missing file.
        let Ok(target) = path.read_link() else { break };
        path = folder(&path).join(target);
    }
    path
}

/// Tests whether `path` is a name of standard output. Standard output is never replaced.
pub fn is_stdout(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

/// Returns the name of an output for messages.
pub fn name(path: &Path) -> String {
    if is_stdout(path) { "standard output".into() } else { without_password(path) }
}

/// Returns the folder that contains `path`.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Tests whether an output at `path` replaces or creates a file. Returns false for standard output,
/// devices and pipes, because commands write each record there immediately.
pub fn is_replaced(path: &Path) -> bool {
    !is_stdout(path) && path.metadata().map_or(true, |metadata| metadata.is_file())
}

/// Tests whether `a` and `b` name the same regular file. The file need not exist yet. Returns false
/// for devices and pipes, because two uses of the same device lose no data.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let known = |path: &Path| {
        path.canonicalize().or_else(|_| {
            Ok::<_, io::Error>(
                folder(path).canonicalize()?.join(path.file_name().unwrap_or_default()),
            )
        })
    };
    is_replaced(a) && is_replaced(b) && known(a).is_ok_and(|a| known(b).is_ok_and(|b| a == b))
}

/// Syncs the folder of `path`, so that a new file name in the folder survives a crash.
///
/// # Errors
///
/// The error of the system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder(path))?.sync_all() } else { Ok(()) }
}

/// Returns standard output without the line buffer of the standard library. The line buffer would
/// make a system call for each line.
pub(super) fn stdout() -> Box<dyn Write + Send> {
    // If the process has no free file descriptor, the buffered handle is used.
    stdout_file()
        .map_or_else(|| Box::new(io::stdout()) as Box<dyn Write + Send>, |file| Box::new(file))
}

pub(super) fn stdin_file() -> Option<File> {
    file_of(&io::stdin())
}

pub(super) fn stdout_file() -> Option<File> {
    file_of(&io::stdout())
}

#[cfg(unix)]
fn file_of(stream: &impl std::os::fd::AsFd) -> Option<File> {
    stream.as_fd().try_clone_to_owned().map(File::from).ok()
}

#[cfg(not(unix))]
fn file_of<T>(_: &T) -> Option<File> {
    None
}
