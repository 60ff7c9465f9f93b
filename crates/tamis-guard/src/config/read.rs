//! Reads files of limited size.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The largest file of a configuration or a list of ids, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a file of limited size.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(text)
}
