//! Stores the number of the newest log whose name is durable. A start uses the stored number to
//! detect that the newest log was removed. The manifest contains a copy of the secret of the log,
//! which a repair uses to read a log with a damaged header.
//!
//! ```text
//! log 4 secret 0123456789abcdef
//! ```

use std::io;
use std::path::PathBuf;

use crate::persistence::disk::Disk;
use crate::persistence::log::log_file::{LogFile, NUMBER_LIMIT};

/// Returns the path of the manifest.
pub(super) fn path(disk: &dyn Disk) -> PathBuf {
    disk.dir().join("manifest")
}

/// The content of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The number of the newest log.
    pub log: u64,
    /// The secret of the newest log.
    pub secret: u64,
}

impl Manifest {
    /// Creates the manifest for a log.
    pub fn of(log: &LogFile) -> Self {
        Self { log: log.number, secret: log.secret }
    }
}

/// Writes the manifest. The manifest records that a log exists.
///
/// # Errors
///
/// The I/O error of the write. On an error, the old manifest is unchanged.
pub(super) fn write(disk: &dyn Disk, Manifest { log, secret }: Manifest) -> io::Result<()> {
    let path = path(disk);
    let temporary = path.with_extension("part");
    let text = format!("log {log} secret {secret:016x}\n");
    let write = || {
        let file = disk.create(&temporary)?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.sync()?;
        disk.rename(&temporary, &path)?;
        disk.sync_dir(disk.dir())
    };
    write().inspect_err(|_| _ = disk.remove(&temporary))
}

/// Writes the manifest for a log. If the write fails, logs a warning, because the server also works
/// with the old manifest.
pub(super) fn record_newest(disk: &dyn Disk, log: &LogFile) {
    if let Err(error) = write(disk, Manifest::of(log)) {
        tracing::warn!(
            %error,
            "cannot update the manifest: the next start cannot detect a missing newest log"
        );
    }
}

/// Reads the manifest. Returns `None` if the file does not exist.
///
/// # Errors
///
/// The I/O error of the read, or an error for a file that is not a manifest.
pub(super) fn read(disk: &dyn Disk) -> io::Result<Option<Manifest>> {
    let file = match disk.open(&path(disk)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; 64];
    let len = file.read_at_most(&mut bytes, 0)?;
    let manifest = std::str::from_utf8(&bytes[..len]).ok().and_then(parse);
    let what = "it does not name a log; remove it to start without it";
    manifest.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, what))
}

fn parse(text: &str) -> Option<Manifest> {
    let mut fields = text.strip_prefix("log ")?.split_ascii_whitespace();
    let log = fields.next()?.parse().ok().filter(|log| *log < NUMBER_LIMIT)?;
    let secret = match (fields.next(), fields.next(), fields.next()) {
        (Some("secret"), Some(digits), None) => u64::from_str_radix(digits, 16).ok()?,
        _ => return None,
    };
    Some(Manifest { log, secret })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::sim_disk::SimDisk;

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let disk = SimDisk::default();
        assert_eq!(read(&disk).unwrap(), None);
        for secret in [1, u64::MAX] {
            let manifest = Manifest { log: NUMBER_LIMIT - 1, secret };
            write(&disk, manifest).unwrap();
            assert_eq!(read(&disk).unwrap(), Some(manifest));
        }
        for damaged in
            ["", "log", "log 7", "log 2147483648", "log 1 secret", "log 1 secret x", "log 1 2"]
        {
            assert_eq!(parse(damaged), None, "{damaged}");
        }
    }
}
