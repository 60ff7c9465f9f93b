//! The creation of a state file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::StateError;

/// Creates the file `path` with the content `bytes`, and syncs the file to the disk. Only the owner
/// can read the file. Does nothing if the file exists. A crash leaves either no file or the
/// complete file. If `path` is a symbolic link to a missing file, creates the target of the link.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    target_of(path).and_then(|target| write(&target, bytes)).map_err(StateError::io(path))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".tamis-").suffix(".tmp");
    // The errors of `make_in` and of `as_file_mut` do not name the temporary file.
    let mut file = temporary.make_in(folder, create_private)?;
    file.as_file_mut().write_all(bytes)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        // Another process has created the file since the caller's test.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.error),
        Ok(_) => {}
    }
    // The new name in the folder survives a crash.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Creates a file that only the owner can read.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The maximum number of links that [`target_of`] follows.
const MAX_LINKS: usize = 40;

/// Returns the path of the file that a symbolic link names, also if this file does not exist yet.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            // The target of a link is relative to the folder of the link.
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_to_a_missing_file_creates_the_target_and_keeps_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("second", at("first")).unwrap();
        symlink("file", at("second")).unwrap();
        create(&at("first"), b"bytes").unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"bytes");
        assert!(at("first").is_symlink() && at("second").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file remains");
        symlink("circle", at("circle")).unwrap();
        assert!(create(&at("circle"), b"bytes").is_err());
    }

    #[test]
    fn the_error_of_a_missing_folder_names_only_the_path_of_the_caller() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/seen");
        let error = create(&path, b"bytes").unwrap_err().to_string();
        let expected = format!("{}: No such file or directory (os error 2)", path.display());
        assert_eq!(error, expected);
        symlink("missing/seen", folder.path().join("link")).unwrap();
        let error = create(&folder.path().join("link"), b"bytes").unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}/link: No such", folder.path().display())));
    }
}
