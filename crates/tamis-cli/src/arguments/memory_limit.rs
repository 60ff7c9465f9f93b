//! Divides the memory of `--memory` among the parts of a command.
//!
//! The limit applies to the whole process. The allocated memory (`RssAnon`) stays below the limit.
//! The resident memory also contains up to 10 MB of file pages: the program file and the system
//! libraries (measured: 9.1 to 9.8 MB). Therefore, the resident memory exceeds the limit by less
//! than 10 MB.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::arguments::byte_size::ByteSize;
use crate::exit::Failure;
use crate::io::input::{InputForm, is_stdin};
use crate::io::read::read_up_to;
use crate::io::unpack;
use crate::io::unpack::OWN_BYTES;

/// A decoder may use one half of the memory.
const PARTS: u64 = 2;

/// The smallest useful size of a set, in bytes.
const LEAST_SET_BYTES: u64 = 1 << 20;

/// Reserves memory to decompress `inputs`. Returns the part of `limit` that remains for sets and
/// filters, in bytes. Returns `u64::MAX` if there is no limit.
///
/// # Errors
///
/// A message if the limit is too small for the command.
pub fn left_bytes(
    limit: Option<ByteSize>,
    inputs: &[PathBuf],
    form: InputForm,
) -> Result<u64, Failure> {
    unpack::set_parts(PARTS);
    let Some(limit) = limit else { return Ok(u64::MAX) };
    let least = ByteSize { bytes: OWN_BYTES + LEAST_SET_BYTES };
    if limit < least {
        return Err(Failure::new(format!("--memory {limit} is too little: give at least {least}")));
    }
    let bytes = limit.bytes - OWN_BYTES;
    reserve_unpacking(inputs, form, limit, PARTS);
    Ok(bytes - unpack::reserved_bytes().min(bytes))
}

/// Reserves memory to decompress `paths`: at most `limit` divided by `parts`. If data need more
/// memory than reserved, their decompression fails later.
pub fn reserve_unpacking(paths: &[PathBuf], form: InputForm, limit: ByteSize, parts: u64) {
    /// The memory to reserve for a pipe, because its data may be compressed.
    const PIPE_BYTES: u64 = 4 << 20;
    let max_bytes = limit.bytes.saturating_sub(OWN_BYTES) / parts;
    let of_path = |path: &PathBuf| {
        if is_stdin(path) || !path.is_file() {
            PIPE_BYTES.min(max_bytes / 8)
        } else {
            needed_bytes(path, form).unwrap_or(0).min(max_bytes)
        }
    };
    let needed = paths.iter().map(of_path).max().unwrap_or(0);
    unpack::limit_memory(needed);
}

/// Reads the start of a file. Returns the memory in bytes that the decompression of the file needs.
fn needed_bytes(path: &Path, form: InputForm) -> Option<u64> {
    let mut head = [0; 64];
    let filled = read_up_to(&mut File::open(path).ok()?, &mut head).ok()?;
    Some(form.packing(&head[..filled]).needed_bytes(&head[..filled]))
}
