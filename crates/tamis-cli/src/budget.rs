//! What `--memory` leaves for the work of a command.
//!
//! The limit is for the whole process: what is resident stays below it, but for up to 6 MB of code and of the system's
//! libraries.

use std::path::PathBuf;

use crate::exit::Failure;
use crate::size::Size;
use crate::unpack;

/// What the program needs beside its sets and filters: its code, and buffers for reading and writing.
pub const OWN_BYTES: u64 = 8 << 20;

/// The least that is worth a set.
const LEAST_SET_BYTES: u64 = 1 << 20;

/// Sets memory aside for unpacking `inputs`, and returns what is left of `limit` for sets and filters; everything if
/// there is no limit.
///
/// # Errors
///
/// A limit that is too small for any work.
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
