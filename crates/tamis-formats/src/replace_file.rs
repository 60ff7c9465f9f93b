//! Replaces a file atomically.

#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::errors::{FileError, FileErrorKind};

/// The users who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The users that the umask of the process allows.
    ByUmask,
    /// Only the owner, because the file contains a secret key.
    Owner,
}

/// Replaces the file at `path` by the bytes that `write` writes. After a crash, the path has either
/// the complete old file or the complete new file. The new file is on disk when the function
/// returns.
///
/// The new file has the group and the permissions of the old file, unless `readers` is
/// [`Readers::Owner`]. If the group cannot be set, the group gets no permissions. If there is an old
/// file, only the owner may read the new file until the file is complete. If `path` is a symbolic
/// link, the function replaces the target of the link.
///
/// # Errors
///
/// [`FileError`] with the path and the reason. If the reason is [`FileErrorKind::Write`], a previous
/// file is unchanged.
pub fn replace_file(
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), FileError> {
    let failure = |error| FileErrorKind::Write(error).at(path);
    let target = &target_of(path).map_err(failure)?;
    let before = fs::metadata(target).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return Err(FileErrorKind::NotAFile.at(path));
    }
    // A new file gets the permissions that the umask of the process allows.
    let is_private = before.is_some() || readers == Readers::Owner;
    let (beside, file) = create_beside(target, is_private).map_err(failure)?;
    let written = write(&file)
        .and_then(|()| match &before {
            Some(before) if readers == Readers::ByUmask => copy_permissions(before, &file),
            _ => Ok(()),
        })
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, target));
    if let Err(error) = written {
        _ = fs::remove_file(&beside);
        return Err(failure(error));
    }
    sync_folder(target).map_err(|error| FileErrorKind::SyncFolder(error).at(path))
}

/// Gives a file the group and the permissions of the old file.
#[cfg(unix)]
fn copy_permissions(before: &Metadata, file: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let mut mode = before.mode() & 0o7777;
    let has_group = file.metadata()?.gid() == before.gid();
    if !has_group && fchown(file, None, Some(before.gid())).is_err() {
        // The permissions were for the members of another group.
        mode &= !0o070;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives a file the permissions of the old file.
#[cfg(not(unix))]
fn copy_permissions(before: &Metadata, file: &File) -> io::Result<()> {
    file.set_permissions(before.permissions())
}

/// Returns the path of the file that a symbolic link names, also if this file does not exist yet.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    if let Ok(target) = fs::canonicalize(path) {
        return Ok(target);
    }
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

/// The maximum number of links that [`target_of`] follows.
const MAX_LINKS: usize = 40;

/// Creates an empty file in the folder of `target`, with a name that no other file has. Only the
/// owner may read a private file.
fn create_beside(target: &Path, is_private: bool) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    // A path such as `..` has no name of a file.
    target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let beside = target.with_file_name(format!(".tamis-{}-{number}.tmp", std::process::id()));
        match options.open(&beside) {
            // A process that crashed and had the same number left the file behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|file| (beside, file)),
        }
    }
}

/// Syncs the folder of a file, so that the new name of the file is on disk.
#[cfg(unix)]
fn sync_folder(target: &Path) -> io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Does nothing: only Unix systems sync folders.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.tamis");
        fs::write(&path, "old").unwrap();
        let error = replace_file(&path, Readers::ByUmask, |mut file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert!(error.to_string().contains("a previous file is unchanged"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["seen.tamis"]);
    }

    #[test]
    fn a_folder_and_a_missing_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let is_a_folder = replace_file(folder.path(), Readers::ByUmask, |_| Ok(())).unwrap_err();
        assert!(matches!(is_a_folder.kind, FileErrorKind::NotAFile));
        let missing = folder.path().join("none/seen.tamis");
        let error = replace_file(&missing, Readers::ByUmask, |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with(missing.to_str().unwrap()), "{error}");
        assert!(names(folder.path()).is_empty());
        for path in ["", "/", ".."] {
            assert!(
                replace_file(Path::new(path), Readers::ByUmask, |_| Ok(())).is_err(),
                "{path:?}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_are_kept() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("seen.tamis"), folder.path().join("link"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // The link names a file that does not exist yet.
        symlink("seen.tamis", &link).unwrap();
        replace_file(&link, Readers::ByUmask, |mut file| file.write_all(b"1")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"1");
        for wanted in [0o640, 0o600, 0o644] {
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
            replace_file(&link, Readers::ByUmask, |mut file| {
                let during = file.metadata()?.permissions().mode() & 0o777;
                assert_eq!(during, 0o600, "an unfinished file is private");
                file.write_all(b"2")
            })
            .unwrap();
            assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"2".to_vec(), wanted));
        }
        replace_file(&path, Readers::Owner, |mut file| file.write_all(b"3")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"3".to_vec(), 0o600));
        assert_eq!(names(folder.path()), ["link", "seen.tamis"]);
        symlink("round", folder.path().join("round")).unwrap();
        assert!(replace_file(&folder.path().join("round"), Readers::Owner, |_| Ok(())).is_err());
    }

    #[test]
    fn the_longest_name_of_a_file_can_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        replace_file(&path, Readers::ByUmask, |mut file| file.write_all(b"1")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1");
    }
}
