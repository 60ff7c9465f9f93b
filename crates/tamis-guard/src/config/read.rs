//! Reads files with a size limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The maximum size of a configuration file or an id list in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a text file. Returns an error if the file exceeds the size limit.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(text)
}
