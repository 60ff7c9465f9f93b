//! Reads from a source that a signal may interrupt.

use std::io::{self, Read};

/// Reads once. Retries if a signal interrupted the read.
///
/// # Errors
///
/// The error of the reader.
pub fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Reads until `buffer` is full or the input ends. Returns the number of bytes read.
///
/// # Errors
///
/// The error of the reader.
pub fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(reader, &mut buffer[filled..])? {
            0 => break,
            len => filled += len,
        }
    }
    Ok(filled)
}
