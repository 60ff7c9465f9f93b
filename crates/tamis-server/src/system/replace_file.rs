//! Replaces a file atomically.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Replaces the content of a file. After a crash, the file has either the complete old content or
/// the complete new content.
///
/// The new file has the permissions of the old file. If no old file exists, only the owner may read
/// the new file.
pub(crate) fn replace_file(path: &Path, text: &[u8]) -> io::Result<()> {
    // Replace the target of a symbolic link, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write_beside(&beside, path, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        _ = fs::remove_file(&beside);
        return written;
    }
    // The directory needs a separate sync. If the sync of the directory fails, the file is still
    // replaced.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(folder) = fs::File::open(folder.unwrap_or(Path::new("."))) {
        _ = folder.sync_all();
    }
    Ok(())
}

fn write_beside(beside: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    // Remove a temporary file that a previous process with the same process ID left behind.
    _ = fs::remove_file(beside);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(beside)?;
    if let Ok(before) = fs::metadata(path) {
        file.set_permissions(before.permissions())?;
    }
    file.write_all(text)?;
    file.sync_all()
}
