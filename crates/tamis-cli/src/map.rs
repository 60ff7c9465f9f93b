//! Files as memory: the only `unsafe` of this crate.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a whole file for reading; its pages are read when they are touched, and shared with every
/// other process that maps it.
///
/// # Errors
///
/// Those of the system, such as for a pipe or an empty file.
pub fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the bytes must not change while they are borrowed. `tamis` itself never writes into a
    // file that exists: it puts a new one in its place, and a mapping keeps the old. Another program
    // that writes into a filter in use breaks it for every reader, mapped or not; on Linux a read past
    // a new end then stops this process with SIGBUS, which is no worse than any other answer.
    #[allow(unsafe_code)]
    unsafe {
        Mmap::map(file)
    }
}
