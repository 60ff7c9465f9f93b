//! The position in an output from which a later run resumes.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::io::output::place::{is_stdout, regular_file, stdout_file};

/// The identity of a file and its length, from which a later run resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPosition {
    device: u64,
    inode: u64,
    pub(super) len_bytes: u64,
}

impl OutputPosition {
    /// Returns the mark at the end of the file that an output at `path` would replace or append to.
    pub fn of_output(path: Option<&Path>) -> Option<OutputPosition> {
        let file = match path.filter(|path| !is_stdout(path)) {
            None => stdout_file()?,
            Some(path) => regular_file(path)?,
        };
        OutputPosition::of(&file).ok().flatten()
    }

    /// Tests whether both positions belong to the same file, and the file has become shorter. The
    /// usual reason for a shorter file is a redirection (`> FILE`), which empties the file.
    pub fn is_cut(&self, earlier: &OutputPosition) -> bool {
        self.is_same_file(earlier) && self.len_bytes < earlier.len_bytes
    }

    /// Returns the mark at the end of `file`, or `None` if `file` is not a regular file.
    pub(super) fn of(file: &File) -> io::Result<Option<OutputPosition>> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let metadata = file.metadata()?;
            Ok(metadata.is_file().then(|| OutputPosition {
                device: metadata.dev(),
                inode: metadata.ino(),
                len_bytes: metadata.len(),
            }))
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            Ok(None)
        }
    }

    /// Tests whether two marks belong to the same file.
    pub(super) fn is_same_file(&self, other: &OutputPosition) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Tests whether both positions belong to the same file, and the file has not become shorter.
    pub fn continues(&self, earlier: &OutputPosition) -> bool {
        self.is_same_file(earlier) && self.len_bytes >= earlier.len_bytes
    }
}
