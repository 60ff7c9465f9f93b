//! Locks a filter file while a command changes the filter. Without the lock, two processes could
//! change the filter at the same time, and the items of one process would be lost.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::exit::Failure;
use crate::filters::redis_url::{is_url, not_a_file};
use crate::io::input;

/// Locks the filter at `path` against changes by other processes, until the file is closed.
///
/// # Errors
///
/// A message for standard input, a directory, a file that cannot be opened, or a filter that
/// another process is changing.
pub fn lock_to_change(path: &Path) -> Result<File, Failure> {
    if input::is_stdin(path) {
        return Err(Failure::new("the filter to change must be a file, not standard input"));
    }
    if is_url(path) {
        return Err(not_a_file(path));
    }
    if path.is_dir() {
        return Err(Failure::new(format!("{}: is a directory, not a filter", input::name(path))));
    }
    let failure = |error: io::Error| Failure::io(input::name(path), &error);
    loop {
        let file = File::open(path).map_err(failure)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(format!(
                    "{}: another process is changing it; try again later",
                    path.display()
                )));
            }
            // Some network file systems do not support locks.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        // The process that held the lock may have replaced the file.
        if is_still_at(&file, path).map_err(failure)? {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (held, there) = (file.metadata()?, path.metadata()?);
    Ok((held.dev(), held.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}
