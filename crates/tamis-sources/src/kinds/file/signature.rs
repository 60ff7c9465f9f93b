//! The signature of a file: a change of the file changes its signature.

use std::fmt;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::errors::source_error::SourceError;

/// The attributes of a file that a change modifies. Two changes within one tick of the file system's clock may produce
/// the same signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    len_bytes: u64,
    modified: Option<SystemTime>,
    identity: Identity,
    /// The seconds and nanoseconds of the last status change (`ctime`). A program can set `modified` to an earlier
    /// time, but cannot set `ctime`.
    changed: (i64, i64),
}

/// The identity of a file: device and inode. On systems other than Unix, all files have the same identity.
pub(crate) type Identity = (u64, u64);

impl Signature {
    /// Reads the signature of the file at a path.
    pub(crate) fn of_path(path: &Path) -> Result<Self, SourceError> {
        let metadata =
            fs::metadata(path).map_err(|error| SourceError::Io { path: path.to_owned(), error })?;
        // The test precedes the open call, because opening a pipe may block forever.
        if metadata.is_file() {
            Ok(Self::new(&metadata))
        } else {
            Err(SourceError::NotAFile(path.to_owned()))
        }
    }

    pub(crate) fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let (identity, changed) = {
            use std::os::unix::fs::MetadataExt as _;
            ((metadata.dev(), metadata.ino()), (metadata.ctime(), metadata.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let (identity, changed) = ((0, 0), (0, 0));
        let modified = metadata.modified().ok();
        Self { len_bytes: metadata.len(), modified, identity, changed }
    }

    /// Tests whether the last change of the file is at least `time` before `now`. Returns false on systems other than
    /// Unix, because any program can set the times of a file there.
    pub(crate) fn is_unchanged_for(&self, time: Duration, now: SystemTime) -> bool {
        let Ok(now) = now.duration_since(UNIX_EPOCH) else { return false };
        // The time of the change is rounded up to a full second.
        let changed = u64::try_from(self.changed.0).map(|seconds| Duration::from_secs(seconds + 1));
        cfg!(unix) && changed.is_ok_and(|changed| changed + time <= now)
    }

    /// Returns the identity of the file. The identity stays the same when the content changes.
    #[cfg(feature = "databases")]
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }
}

/// Formats all attributes. Two signatures are equal if and only if their texts are equal.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len_bytes, modified, identity: (device, inode), changed: (seconds, nanos) } =
            self;
        let since = |moment: SystemTime| match moment.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        let modified = modified.map_or(i128::MIN, since);
        write!(f, "{len_bytes} {modified} {device}:{inode} {seconds}.{nanos:09}")
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_unchanged_since_its_last_status_change() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // A program can set the time of the modification, but not the time of the status change.
        file.as_file().set_modified(UNIX_EPOCH).unwrap();
        let signature = Signature::of_path(file.path()).unwrap();
        let (now, minute) = (SystemTime::now(), Duration::from_secs(60));
        assert!(!signature.is_unchanged_for(minute, now));
        assert!(!signature.is_unchanged_for(minute, now - 10 * minute));
        assert!(!signature.is_unchanged_for(minute, now + minute / 2));
        assert!(signature.is_unchanged_for(minute, now + 2 * minute));
    }
}
