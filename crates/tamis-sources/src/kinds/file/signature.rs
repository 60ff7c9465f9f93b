//! The signature of a file, which shows whether the file has changed.

use std::fmt;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::errors::source_error::SourceError;

/// The attributes of a file that show a change. Two changes within one tick of the file system's
/// clock may have the same signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    len_bytes: u64,
    modified: Option<SystemTime>,
    identity: Identity,
    /// Seconds and nanoseconds of the last change. A program can set `modified` back, but not this.
    changed: (i64, i64),
}

/// Which file it is: device and inode. On systems other than Unix, all files are the same.
pub(crate) type Identity = (u64, u64);

impl Signature {
    /// Reads the signature of the file at a path.
    pub(crate) fn of_path(path: &Path) -> Result<Self, SourceError> {
        let metadata =
            fs::metadata(path).map_err(|error| SourceError::Io { path: path.to_owned(), error })?;
        // Before it is opened: to open a pipe may wait forever.
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

    /// Returns which file it is. It stays the same when the content changes.
    #[cfg(feature = "databases")]
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }
}

/// Writes all attributes. Equal texts are equal signatures.
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
