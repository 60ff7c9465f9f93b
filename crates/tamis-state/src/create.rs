//! The creation of a state file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use crate::error::StateError;

/// Creates the file `path` with the content `bytes`, and syncs the file to the disk. Only the owner
/// can read the file. Does nothing if the file exists. A crash leaves either no file or the
/// complete file.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    write(path, folder, bytes).map_err(StateError::io(path))
}

fn write(path: &Path, folder: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".tamis-").suffix(".tmp").tempfile_in(folder)?;
    file.write_all(bytes)?;
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
