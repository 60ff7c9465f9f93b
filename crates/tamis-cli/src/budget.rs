//! Divides the memory of `--memory` among the parts of a command.
//!
//! The limit applies to the whole process. The resident memory stays below it, except for up to
//! 6 MB of code and system libraries.

use std::path::PathBuf;

use crate::exit::Failure;
use crate::size::Size;
use crate::unpack;

/// Memory of the program besides its sets and filters: its code and its read and write buffers.
pub const OWN_BYTES: u64 = 8 << 20;

/// Smallest useful size of a set.
const LEAST_SET_BYTES: u64 = 1 << 20;

/// Reserves memory for unpacking `inputs` and returns the rest of `limit` for sets and filters.
/// Returns `u64::MAX` if there is no limit.
///
/// # Errors
///
/// A message if the limit is too small for any work.
pub fn left_bytes(limit: Option<Size>, inputs: &[PathBuf]) -> Result<u64, Failure> {
    let Some(limit) = limit else { return Ok(u64::MAX) };
    let least = Size { bytes: OWN_BYTES + LEAST_SET_BYTES };
    if limit < least {
        return Err(Failure::new(format!("--memory {limit} is too little: give at least {least}")));
    }
    let bytes = limit.bytes - OWN_BYTES;
    unpack::set_aside(inputs, bytes);
    Ok(bytes - unpack::aside().min(bytes))
}
