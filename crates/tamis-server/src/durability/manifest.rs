//! The number of the newest log whose name is durable, so that a start misses it if it is removed.
//!
//! ```text
//! log 4
//! ```

use std::io;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::log_file::read_at_most;

/// Returns the path of the manifest.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join("manifest")
}

/// Records that the log of this number exists.
///
/// # Errors
///
/// What the disk says. The old record is kept.
pub(super) fn write(disk: &dyn Disk, dir: &Path, number: u64) -> io::Result<()> {
    let (path, temporary) = (path(dir), path(dir).with_extension("part"));
    let write = || -> io::Result<()> {
        let file = disk.create(&temporary)?;
        file.write_all_at(format!("log {number}\n").as_bytes(), 0)?;
        file.sync()?;
        disk.rename(&temporary, &path)?;
        disk.sync_dir(dir)
    };
    write().inspect_err(|_| _ = disk.remove(&temporary))
}

/// Reads the number; `None` if there is no record.
///
/// # Errors
///
/// What the disk says, or that the file is no such record.
pub(super) fn read(disk: &dyn Disk, dir: &Path) -> io::Result<Option<u64>> {
    let file = match disk.open(&path(dir)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; 32];
    let len = read_at_most(&*file, &mut bytes, 0)?;
    let number = std::str::from_utf8(&bytes[..len]).ok();
    let number: Option<u32> =
        number.and_then(|text| text.strip_prefix("log ")?.trim_end().parse().ok());
    // There is a number for the next log.
    let number = number.filter(|number| *number < u32::MAX);
    number.map(|number| Some(u64::from(number))).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "it does not name a log; remove it to start without it",
        )
    })
}
